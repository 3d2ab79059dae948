"""Huge baskets: sizes, popularity, topics and bad arguments, at a small size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.simulation import simulate_baskets


def test_exact_sizes_and_types() -> None:
    data = simulate_baskets(n_rows=3000, n_entities=2000, n_lines=30_000, seed=1)
    assert data.shape == (3000, 2000)
    assert data.values.nnz == 30_000
    assert data.values.dtype == np.float32
    assert data.values.indices.dtype == data.values.indptr.dtype == np.int32
    assert np.diff(data.values.indptr).min() >= 2
    assert data.values.data.min() >= 1
    assert (data.values.data == np.floor(data.values.data)).all()
    assert data.values.has_canonical_format


def test_several_chunks_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.simulation.baskets.CHUNK_LINES", 500)
    one, two, other = (
        simulate_baskets(n_rows=400, n_entities=300, n_lines=4000, seed=seed) for seed in (1, 1, 2)
    )
    assert one.values.nnz == 4000
    assert (one.values != two.values).nnz == 0
    assert (one.values != other.values).nnz > 0


def test_full_baskets() -> None:
    data = simulate_baskets(n_rows=10, n_entities=8, n_lines=40, n_topics=4, exponent=3.0)
    assert np.diff(data.values.indptr).tolist() == [4] * 10


def test_popularity_falls_and_topics_show() -> None:
    data = simulate_baskets(n_rows=20_000, n_entities=400, n_lines=160_000, n_topics=10)
    bought = np.bincount(data.values.indices, minlength=400)
    often = np.sort(bought)[::-1]
    assert often[:40].sum() > 4 * often[-40:].sum()
    present = (data.values != 0).astype(np.float64)
    together = (present.T @ present).toarray()
    expected = np.outer(bought, bought) / data.n_rows
    lift = (together / expected)[np.triu_indices(400, 1)]
    assert np.quantile(lift, 0.98) > 2.5
    assert np.median(lift) < 1.0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"n_lines": 10}, efemb.ParameterError),
        ({"n_lines": 10**6}, efemb.ParameterError),
        ({"n_rows": 0}, efemb.ParameterError),
        ({"n_entities": 2.0}, efemb.InputTypeError),
        ({"n_topics": 0}, efemb.ParameterError),
        ({"n_topics": 51}, efemb.ParameterError),
        ({"exponent": -1.0}, efemb.ParameterError),
        ({"exponent": "a"}, efemb.InputTypeError),
        ({"seed": -3}, efemb.ParameterError),
        ({"n_rows": 2**30, "n_lines": 2**31, "n_entities": 4}, efemb.ParameterError),
    ],
)
def test_bad_arguments(change: dict[str, Any], error: type[Exception]) -> None:
    sizes = {"n_rows": 20, "n_entities": 50, "n_lines": 100}
    with pytest.raises(error):
        simulate_baskets(**{**sizes, **change})
