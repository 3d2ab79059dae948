"""differs: planted differences come first, none are found in shuffled data, errors matter."""

from __future__ import annotations

import numpy as np
import pytest

import efemb
from efemb.inference.group_differences import compare_groups
from efemb.inference.uncertainty import laplace
from model.structures.test_grouped import swapped

PLANTED = {0, 1, 2, 3}  # whose partners change in the south


def fit(data: efemb.Dataset, **options: object) -> efemb.PoissonEmbedding:
    structure = efemb.Grouped("shop", **options)  # type: ignore[arg-type]
    model = efemb.PoissonEmbedding(8, structure=structure, random_state=0, max_iter=40)
    with pytest.warns(Warning, match="max_iter"):
        return model.set_params(early_stopping=False).fit(data)


@pytest.mark.slow
def test_a_planted_difference_is_found_and_none_in_shuffled_data() -> None:
    pairs = swapped(9000, n_pairs=8)
    shop = pairs.rows["shop"].astype(object)
    north = np.flatnonzero(shop == "north")
    shop[north] = np.array(["a", "b", "c"], dtype=object)[north % 3]
    data = efemb.Dataset(pairs.values, rows={"shop": shop})
    table = fit(data).differs(data, n=3)
    assert set(table["label"]) <= PLANTED
    assert (table["q_value"] < 0.01).all()
    assert set(table["group"]) == {"south"}
    shuffled = efemb.Dataset(data.values, rows={"shop": np.random.default_rng(3).permutation(shop)})
    assert (fit(shuffled).differs(shuffled, n=32)["q_value"] > 0.05).all()


@pytest.mark.slow
def test_p_values_of_random_groups_are_uniform() -> None:
    """Groups that were drawn after the fit differ by chance only; the fit is far from converged."""
    data = swapped(3000, n_pairs=8)
    model = efemb.PoissonEmbedding(6, random_state=0, max_iter=15, early_stopping=False)
    with pytest.warns(Warning, match="max_iter"):
        fitted = model.fit(data).fitted()
    p_values = []
    for seed in range(40):
        late = np.random.default_rng(seed).permutation(data.n_rows) < data.n_rows // 3
        parts = [data.take_rows(np.flatnonzero(half)) for half in (late, ~late)]
        errors = [laplace(fitted, part, sandwich=True) for part in parts]
        p_values.append(compare_groups(errors, fitted, 10.0, False)[2, 0])
    shares = [(np.array(p_values) < level).mean() for level in (0.5, 0.1, 0.01)]
    gaps = np.abs(np.array(shares) - [0.5, 0.1, 0.01])
    assert (gaps < [0.08, 0.04, 0.012]).all(), shares


def test_columns_options_and_bad_questions() -> None:
    data = swapped(600)
    model = fit(data)
    table = model.differs(data, n=3, group="south")
    assert set(table["group"]) == {"south"}
    counts = (data.values[data.rows["shop"] == "south"] > 0).sum(axis=0)
    assert table["count"].tolist() == [counts[item] for item in table["label"]]
    assert (np.diff(table["p_value"]) >= 0).all()
    assert (table["q_value"] >= table["p_value"]).all()
    assert len(model.differs(data, n=50, min_count=float(counts.max()), group="south")) == 1
    with pytest.raises(efemb.ParameterError, match="'west'"):
        model.differs(data, group="west")
    with pytest.raises(efemb.ParameterError, match="fewer than two groups"):
        model.differs(data.take_rows(data.rows["shop"] == "south"))
    with pytest.raises(efemb.ParameterError, match="no offsets of their own"):
        fit(data, amortized=True).differs(data)


def test_answers_about_groups_are_drawn_with_their_groups() -> None:
    data = swapped(600)
    table = fit(data).differs(data, n=4)
    axes = efemb.plots.answer(table, value="ratio")
    names = {text.get_text() for text in axes.get_yticklabels()}
    assert names == {f"{a} | {b}" for a, b in zip(table["label"], table["group"], strict=True)}
