"""drift and change_points: a planted change is found at its time, none in shuffled times."""

from __future__ import annotations

import numpy as np
import pytest

import efemb
from model.structures.test_dynamic import changed

PLANTED = {0, 1, 2, 3}  # whose partners change


def fit(data: efemb.Dataset) -> efemb.PoissonEmbedding:
    model = efemb.PoissonEmbedding(12, structure=efemb.Dynamic("week"), random_state=0, max_iter=30)
    with pytest.warns(Warning, match="max_iter"):
        return model.set_params(early_stopping=False).fit(data)


@pytest.mark.slow
def test_a_planted_change_is_found_at_its_time_and_none_in_shuffled_data() -> None:
    data = changed(6000, n_pairs=10, at=6)
    model = fit(data)
    drifting = model.drift(data, n=2)
    assert set(drifting["label"]) <= PLANTED
    assert (drifting["q_value"] < 0.05).all()
    table = model.change_points(drifting["label"][0], data, n_permutations=99)
    assert table["at"][0] == 6
    assert table["p_value"][0] == pytest.approx(0.01)
    week = np.random.default_rng(2).permutation(data.rows["week"])
    shuffled = efemb.Dataset(data.values, rows={"week": week})
    other = fit(shuffled)
    assert (other.drift(shuffled, n=20)["q_value"] > 0.05).all()
    assert other.change_points(0, shuffled, n_permutations=99)["p_value"][0] > 0.05


def test_statistics_of_a_single_change_by_their_definition() -> None:
    """The number of rows on both sides, and bad questions."""
    data = changed(600)
    model = fit(data)
    table = model.change_points(2, data, n=2, n_permutations=9)
    week = data.rows["week"]
    for at, before, after in zip(
        table["at"], table["rows_before"], table["rows_after"], strict=True
    ):
        assert (before, after) == ((week < at).sum(), (week >= at).sum())
    assert table["statistic"][0] >= table["statistic"][1]
    with pytest.raises(efemb.ParameterError, match="n_permutations must be >= 1"):
        model.change_points(2, data, n_permutations=0)
    with pytest.raises(efemb.ParameterError, match="n must be >= 1"):
        model.change_points(2, data, n=-1)
    with pytest.raises(efemb.ParameterError, match="one half of the time"):
        model.drift(data.take_rows(week == 3))
    plain = efemb.PoissonEmbedding(2, random_state=0, max_iter=2)
    with pytest.warns(Warning, match="max_iter"):
        plain.fit(data)
    for ask in (plain.drift, lambda rows: plain.change_points(0, rows), plain.trajectory):
        with pytest.raises(efemb.ParameterError, match=r"Dynamic\(column\)"):
            ask(data)


def test_a_variance_per_entity_that_is_the_same_for_all_is_one_variance() -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    positions = np.arange(5.0)[:, None]
    data = efemb.Dataset(X, rows={"week": np.repeat([1, 2, 3], 20)}, positions=positions)
    statistics = []
    for variance in (2.0, np.full(5, 2.0)):
        model = efemb.Embedding(
            2,
            family=efemb.Gaussian(variance),
            context=efemb.Neighbors(2),
            structure=efemb.Dynamic("week"),
            random_state=0,
        )
        table = model.fit(data).change_points(1, data, n_permutations=9)
        statistics.append(table["statistic"])
    assert statistics[0] == pytest.approx(statistics[1])


def test_trajectories_follow_the_embeddings_of_the_slices() -> None:
    data = changed(600)
    model = fit(data)
    table = model.trajectory([1, 4], data=data)
    assert list(table["at"]) == [*range(10), *range(10)]
    vectors = [model.of_group(week).parameters.rho[4] for week in range(10)]
    distance = [np.linalg.norm(vector - vectors[0]) for vector in vectors]
    np.testing.assert_allclose(table["distance"][10:], distance, rtol=1e-5, atol=1e-6)
    counts = [(data.values[data.rows["week"] == week][:, 4] > 0).sum() for week in range(10)]
    assert table["count"][10:].tolist() == counts
    assert model.similar(1, at=7) == model.of_group(7).similar(1)
    assert table["nearest"][7] == model.similar(1, n=1, at=7)["label"][0]
    with pytest.raises(efemb.ParameterError, match="pass one of them"):
        model.similar(1, at=7, group=7)
