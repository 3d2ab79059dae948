"""The column `count` says the same in every answer, also after a split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import efemb

LABELS = list("abcdef")


def trips(kind: Any) -> efemb.Dataset:
    values = (
        np.random.default_rng(0).poisson([0.2, 0.4, 0.6, 0.8, 1.0, 2.0], (300, 6)).astype(float)
    )
    words = efemb.Vocabulary(LABELS, counts=(values > 0).sum(axis=0))
    return efemb.Dataset(kind(values), entities=words)


def held(data: efemb.Dataset) -> dict[str, int]:
    """How many rows hold each label, one cell after the other."""
    rows = data.values.toarray() if data.is_sparse else data.values
    return {label: sum(bool(row[place] > 0) for row in rows) for place, label in enumerate(LABELS)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "by"),
    [(np.asarray, "rows"), (sparse.csr_array, "rows"), (sparse.csr_array, "entries")],
)
def test_count_is_about_the_rows_of_the_fit_or_of_data(kind: Any, by: Any) -> None:
    train, test = trips(kind).split(test=0.5, by=by)
    model = efemb.PoissonEmbedding(2, max_iter=3, random_state=0).fit(train)
    for given, known in ((None, train), (train, train), (test, test)):
        counts = held(known)
        tables = [model.complements("a", data=given), model.substitutes("a", data=given)]
        tables += [model.pairs(data=given)] + ([model.similar("a"), model.topics()] * (not given))
        for table in tables:
            assert table["count"].tolist() == [counts[label] for label in table["label"]]


def test_parts_of_dense_data_with_gaps_count_what_is_there() -> None:
    train, _ = trips(np.asarray).split(test=0.5, by="entries")
    assert train.entities is not None
    assert dict(zip(LABELS, train.entities.counts, strict=True)) == held(train)
