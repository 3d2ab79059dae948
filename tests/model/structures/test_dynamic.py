"""Dynamic: slices of numbers and dates, interpolation, a planted change, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.model.structures.dynamic import Dynamic


def dated(column: Any, n_entities: int = 4) -> efemb.Dataset:
    counts = np.random.default_rng(0).poisson(0.8, (len(column), n_entities)) + 1.0
    return efemb.Dataset(counts, rows={"time": np.array(column)})


def changed(n_rows: int = 4000, n_pairs: int = 5, at: int = 6, seed: int = 0) -> efemb.Dataset:
    """Pairs of items are bought together; from week `at` on, two partners are exchanged."""
    rng = np.random.default_rng(seed)
    week = rng.integers(0, 10, n_rows)
    reason = rng.random((n_rows, n_pairs)) < 0.25
    partner = reason.copy()
    late = week >= at
    partner[late, 0], partner[late, 1] = reason[late, 1], reason[late, 0]
    counts = np.empty((n_rows, 2 * n_pairs))
    counts[:, ::2], counts[:, 1::2] = reason, partner
    counts += rng.random(counts.shape) < 0.05
    return efemb.Dataset(counts, rows={"week": week})


def test_the_walk_by_its_definition() -> None:
    """rho_g = rho + W_g - mean W, W the running sum of the steps."""
    rng = np.random.default_rng(0)
    structure = Dynamic("time", every=1.0, precision=4.0, origin=0.0, n_slices=4)
    steps, shift = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 5))
    rho, b = rng.normal(size=(5, 2)), rng.normal(size=5)
    target, intercept = structure.spread_groups(
        {"steps": steps, "intercepts": shift}, rho, b, np.arange(4)
    )
    walk = np.concatenate([np.zeros((1, 5, 2)), np.cumsum(steps / 2.0, axis=0)])
    np.testing.assert_allclose(target, rho + walk - walk.mean(axis=0), atol=1e-12)
    walk_b = np.concatenate([np.zeros((1, 5)), np.cumsum(shift, axis=0)])
    np.testing.assert_allclose(intercept, b + walk_b - walk_b.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("column", "every", "labels", "codes"),
    [
        ([3, 5, 4, 7], None, [3, 4, 5, 6, 7], [0, 2, 1, 4]),
        ([2007.5, 2010.0, 2008.0], 2, [2007.5, 2009.5], [0, 1, 0]),
        (np.array([3, None, 4], dtype=object), None, [3, 4], [0, -1, 1]),
        (["2017-01-31", "2017-03-01", None], None, ["2017-01", "2017-02", "2017-03"], [0, 2, -1]),
        (
            np.array(["2017-03-01", "2017-01-01", "NaT"], dtype="datetime64[D]"),
            "year",
            None,
            "one slice",
        ),
        (["2016-12-31", "2017-01-01T12:00"], "year", ["2016", "2017"], [0, 1]),
        (["2017-01-01", "2017-01-20"], 7, None, [0, 2]),
    ],
)
def test_slices_of_numbers_and_dates(column: Any, every: Any, labels: Any, codes: Any) -> None:
    data = dated(np.array(column, dtype=object) if isinstance(column, list) else column)
    if isinstance(column, list) and not isinstance(column[0], str):
        data = dated(column)
    if codes == "one slice":
        with pytest.raises(efemb.DataError, match="in one slice of 'time'"):
            Dynamic("time", every).freeze(data)
        return
    frozen = Dynamic("time", every).freeze(data)
    assert labels is None or frozen.labels == labels
    assert frozen.codes(data).tolist() == codes


def test_times_outside_have_the_nearest_slice() -> None:
    frozen = Dynamic("time", 1).freeze(dated([10, 12]))
    assert frozen.codes(dated([9, 10, 13, 99])).tolist() == [0, 0, 2, 2]
    assert frozen.code_of(11) == 1


def test_slices_without_rows_are_said_and_interpolated() -> None:
    data = changed()
    some = data.take_rows(data.rows["week"] != 4)
    model = efemb.PoissonEmbedding(4, structure=Dynamic("week"), random_state=0, max_iter=60)
    with pytest.warns(Warning, match="max_iter"):
        model.set_params(early_stopping=False, tol=0.0).fit(some)
    assert model.report_["slices_without_rows"] == [4]
    assert model.report_["groups"][4] == 0
    before, gap, after = (model.of_group(week).parameters.rho for week in (3, 4, 5))
    np.testing.assert_allclose(gap, (before + after) / 2, atol=0.15 * np.abs(after).max())


@pytest.mark.slow
def test_a_planted_change_is_learned() -> None:
    train, test = changed().split(test=0.3, seed=0)
    plain = efemb.CategoricalEmbedding(8, random_state=0).fit(train)
    structure = Dynamic("week", precision=10)
    model = efemb.CategoricalEmbedding(8, structure=structure, random_state=0).fit(train)
    assert model.score(test) > plain.score(test) + 0.05
    steps = np.linalg.norm(model.parameters_.terms["dynamic.steps"][:, :4], axis=(1, 2))
    assert steps.argmax() == 5, "the step into week 6 is the largest"


@pytest.mark.parametrize(
    ("structure", "column", "error", "match"),
    [
        (Dynamic("year"), [1, 2], efemb.DataError, "'year', which the data lack"),
        (Dynamic("time"), ["2017-01-01", "soon"], efemb.DataError, "has 'soon' in row 1"),
        (Dynamic("time"), [None, None], efemb.DataError, "contains no times"),
        (Dynamic("time", "month"), [1, 2], efemb.ParameterError, "needs dates, but the row column"),
        (Dynamic("time", "fortnight"), [1, 2], efemb.ParameterError, "got 'fortnight'"),
        (Dynamic("time", -1), [1, 2], efemb.ParameterError, "every must be > 0"),
        (Dynamic("time", precision=0), [1, 2], efemb.ParameterError, "precision must be > 0"),
        (Dynamic(""), [1, 2], efemb.InputTypeError, "column must be a name"),
    ],
)
def test_bad_input_is_refused(
    structure: Dynamic, column: Any, error: type[Exception], match: str
) -> None:
    values = np.array(column, dtype=None if isinstance(column[0], int) else object)
    with pytest.raises(error, match=match):
        efemb.PoissonEmbedding(2, structure=structure).fit(dated(values))


def test_dates_out_of_order_make_the_slices_of_sorted_ones() -> None:
    dates = np.array(["2020-03-05", "2019-12-31", None, "2020-01-01"], dtype=object)
    frozen = Dynamic("time", "month").freeze(dated(dates))
    assert frozen.labels == ["2019-12", "2020-01", "2020-02", "2020-03"]
    assert frozen.codes(dated(dates)).tolist() == [3, 0, -1, 1]
    order = np.array([1, 3, 0, 2])
    assert frozen.codes(dated(dates[order])).tolist() == [0, 1, 3, -1]
    assert Dynamic("time", "month").freeze(dated(dates[order])).labels == frozen.labels


def test_counts_stand_beside_interpolated_slices() -> None:
    data = changed(600)
    some = data.take_rows(data.rows["week"] != 4)
    model = efemb.PoissonEmbedding(2, structure=Dynamic("week"), random_state=0, max_iter=2)
    with pytest.warns(Warning, match="max_iter"):
        model.fit(some)
    path = model.trajectory(1, data=some)
    assert path["at"].tolist() == list(range(10))
    week = some.rows["week"][some.values[:, 1] > 0]
    assert path["count"].tolist() == np.bincount(week, minlength=10).tolist()
    assert path["count"][4] == 0
