"""ItemPairs: by its definition as a loop, cross-fitted, and never from the item itself."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.engine.solvers.choice import Setup
from efemb.engine.threads import workers
from efemb.engine.validation import entries_given_rows
from efemb.model import item_regressions
from efemb.model.contexts import Basket
from efemb.model.parameters import Parameters
from efemb.model.predict import score_parts
from efemb.model.predictor import row_side
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms import ItemPairs

N = 9
ONE = {"coefficient": np.ones(1)}


def trips(n_rows: int = 80, seed: int = 0, n: int = N) -> efemb.Dataset:
    """Trips in which items 2k and 2k + 1 are bought together."""
    rng = np.random.default_rng(seed)
    kinds = rng.random((n_rows, (n + 1) // 2)) < 0.25
    bought = np.repeat(kinds, 2, axis=1)[:, :n] & (rng.random((n_rows, n)) < 0.8)
    values = np.where(bought, rng.integers(1, 5, (n_rows, n)), 0.0)
    return efemb.Dataset(csr_array(values), entities=[f"i{k}" for k in range(n)])


def regress(present: Any, penalty: float, dropout: float, n_neighbors: int) -> Any:
    """B by one ridge regression per item, of which the largest weights are kept."""
    n = present.shape[1]
    weights = np.zeros((n, n))
    for item in range(n):
        others = np.delete(np.arange(n), item)
        X, y = present[:, others], present[:, item]
        ridge = penalty + dropout / (1.0 - dropout) * X.sum(axis=0)
        weights[others, item] = np.linalg.solve(X.T @ X + np.diag(ridge), X.T @ y)
        weak = np.argsort(-np.abs(weights[:, item]), kind="stable")[n_neighbors:]
        weights[weak, item] = 0.0
    return weights


def compare_with_shares(sums: Any, X: Any, kappa: float = 5.0) -> Any:
    """log(1 + s / (kappa p)) by its definition."""
    shares = np.maximum(X.sum(axis=0), 0.5) / len(X)
    return np.log(1.0 + np.maximum(sums, 0.0) / (kappa * shares))


def dense_cells(bound: Any, n_rows: int, n: int = N) -> Any:
    cells = np.zeros((n_rows, n))
    bound.cells(ONE, np.arange(n_rows)).add_to(cells)
    return cells


@pytest.mark.parametrize(("dropout", "n_neighbors"), [(0.0, 20), (0.3, 3)])
def test_cells_are_those_of_the_definition(dropout: float, n_neighbors: int) -> None:
    """Of other rows with the B of all rows; of training rows with the B of the other half."""
    train, other = trips(), trips(300, seed=1)
    term = ItemPairs(3.0, dropout, n_neighbors).freeze(train)
    X, Y = (np.sign(data.values.toarray()) for data in (train, other))
    known = {tuple(row) for row in X}
    new = [t for t in range(300) if tuple(Y[t]) not in known or Y[t].sum() < 2]
    assert len(new) > 50
    B = regress(X, 3.0, dropout, n_neighbors)
    cells = dense_cells(term.bind(other), 300)
    for t in new:
        for n in range(N):
            total = sum(B[m, n] for m in range(N) if m != n and Y[t, m])
            expected = math.log(1.0 + max(total, 0.0) / (5.0 * X[:, n].mean()))
            assert cells[t, n] == pytest.approx(expected, abs=1e-4)
    own = dense_cells(term.bind(train), 80)
    halves = [own_half(term, train, which) for which in (1, 2)]
    assert min(len(half) for half in halves) > 10
    for mine, others in (halves, halves[::-1]):
        outside = np.setdiff1d(np.arange(80), mine)
        B = regress(X[outside], 3.0 * len(outside) / 80, dropout, n_neighbors)
        assert_allclose(own[mine], compare_with_shares(X[mine] @ B, X), atol=1e-4)
        assert set(others) <= set(outside)


def own_half(term: ItemPairs, data: efemb.Dataset, which: int) -> Any:
    """Training rows that are predicted by the weights without this half of them."""
    lines: Any = term.bind(data)
    first = lines.lines.ids // N
    return np.unique(lines.lines.row[first == which])


def test_a_row_of_the_training_data_does_not_teach_its_own_weights() -> None:
    """A pair that occurs in one row only adds nothing to that row."""
    values = np.zeros((40, 4))
    values[:39, 2:] = trips(39, n=2).values.toarray()
    values[39, :2] = 1.0
    term = ItemPairs(1.0).freeze(efemb.Dataset(values))
    assert not dense_cells(term.bind(efemb.Dataset(values)), 40, 4)[39, :2].any()
    question = efemb.Dataset(np.array([[1.0, 0.0, 0.0, 0.0]]))
    assert dense_cells(term.bind(question), 1, 4)[0, 1] > 0.2


def test_entries_held_out_of_a_row_predict_nothing_in_it() -> None:
    """Neither in training nor in validation, by the B that has not seen the whole row."""
    data = trips()
    X = np.sign(data.values.toarray())
    several = np.flatnonzero(X.sum(axis=1) >= 2)
    held = np.zeros_like(X)
    held[several, X[several].argmax(axis=1)] = 1.0
    term = ItemPairs(3.0, n_neighbors=20).freeze(data)
    spec = Spec.resolve(context="basket", family="poisson", terms=[term])
    rest = Basket().bind(data).without(csr_array(held))
    expected = np.zeros_like(X)
    for which in (1, 2):
        mine = own_half(term, data, which)
        outside = np.setdiff1d(np.arange(len(X)), mine)
        B = regress(X[outside], 3.0 * len(outside) / len(X), 0.0, 20)
        expected[mine] = compare_with_shares((X - held)[mine] @ B, X)
    side = row_side(spec, rest)
    assert side is not None
    in_training = side.add_up({"item pairs.coefficient": np.ones(1)}, several, np.ones((N, 0)))
    assert_allclose(in_training, expected[several], atol=1e-5)
    entries = entries_given_rows(spec, rest, csr_array(held))
    assert entries.side is not None
    assert entries.data_row is not None
    in_validation = entries.side.offsets({"item pairs.coefficient": np.ones(1)}, entries.data_row)
    assert in_validation is not None
    assert_allclose(in_validation.at(entries.row, entries.ids), expected[held > 0], atol=1e-5)
    whole = dense_cells(term.bind(data), len(X))
    assert np.abs(expected - whole)[several].max() > 0.1


@pytest.mark.parametrize("family", ["poisson", "categorical"])
def test_the_item_that_is_asked_for_does_not_raise_the_others(family: str) -> None:
    """Shares given a row without an item are those of a row that never had it."""
    data = trips(300)
    model = efemb.Embedding(
        2, family=family, context="basket", random_state=0, max_iter=5, terms=[ItemPairs(3.0)]
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(data)
    question = np.zeros((1, N))
    question[0, :8] = 1.0  # like no training row, so that B is the same without one of them
    without = question.copy()
    without[0, 3] = 0.0
    asked = (np.array([0]), np.array([3]))
    ((_, given),) = model.log_means(efemb.Dataset(question, entities=data.entities), *asked)
    ((_, alone),) = model.log_means(efemb.Dataset(without, entities=data.entities), *asked)
    assert_allclose(given - given.max(), alone - alone.max(), atol=1e-4)


def test_softmaxes_of_entries_leave_them_out_of_the_pairs() -> None:
    """The objective of a categorical model is the sum of its log shares of every entry."""
    data = trips(60)
    data = data.take_rows(np.diff(data.values.indptr) >= 2)
    term = ItemPairs(3.0).freeze(data)
    spec = Spec.resolve(context="basket", family="categorical", prior=None, terms=[term])
    bound, rng = Basket().bind(data), np.random.default_rng(0)
    space = ParameterSpace(spec, N, 1, 1, 2)
    arrays = {"item pairs.coefficient": np.array([1.3])}
    theta = Parameters(
        rng.normal(size=(N, 2)), rng.normal(size=(N, 2)), rng.normal(size=N), None, arrays
    )
    with workers(1) as pool:
        setup = Setup("rows", spec, pool, np.float64, 0)
        value, _ = setup(bound, None).value_and_gradient(space.vectors(theta))
    assert value == pytest.approx(score_parts(spec, bound, space.vectors(theta))[0], rel=1e-6)


def test_sparse_weights_are_the_dense_ones_of_pairs_that_stand_alone() -> None:
    values = np.kron(np.eye(4), np.ones((10, 2)))
    values[::5, ::2] = 0.0
    data = efemb.Dataset(values)
    questions = efemb.Dataset(np.eye(8))
    dense, sparse = (
        dense_cells(ItemPairs(2.0, 0.2, 3, sparse=kind).freeze(data).bind(questions), 8, 8)
        for kind in (False, True)
    )
    assert_allclose(sparse, dense, atol=1e-3)
    assert dense[0, 1] > 0.3


def test_many_items_need_no_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_regressions, "available_memory", lambda: 1000)
    with pytest.raises(efemb.MemoryEstimateError, match=r"ItemPairs of 9 items.*sparse=True"):
        ItemPairs().freeze(trips())
    with pytest.raises(efemb.MemoryEstimateError, match=r"ItemPairs of 9 items.*n_neighbors"):
        ItemPairs(sparse=True).freeze(trips())
    monkeypatch.setattr(item_regressions, "available_memory", lambda: None)
    monkeypatch.setattr(item_regressions, "MOST_DENSE", 8)
    assert ItemPairs().freeze(trips()).pairs is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding, efemb.BernoulliEmbedding]
)
def test_a_fit_learns_pairs_that_few_components_cannot_hold(make: Any) -> None:
    options = {"binarize": True} if make is efemb.BernoulliEmbedding else {}
    train, test = trips(700, n=20).split(test=0.3, seed=0)
    plain = make(1, random_state=0, **options).fit(train)
    model = make(1, random_state=0, terms=[ItemPairs(10.0, n_neighbors=10)], **options).fit(train)
    assert model.parameters_.terms["item pairs.coefficient"][0] > 1.0
    assert model.score(test) > plain.score(test) + 0.3


def test_questions_name_the_pairs(tmp_path: Path) -> None:
    data = trips(400)
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[ItemPairs(10.0)]).fit(data)
    table = model.explain({"i2": 3, "i7": 1}, "i3")
    shares = dict(zip(table["term"], table["contribution"], strict=True))
    assert shares["through the pair i2 - i3"] > abs(shares["through the pair i7 - i3"])
    assert model.complete(["i2"], n=1)["label"][0] == "i3"
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert_array_equal(loaded.explain({"i2": 3}, "i3")["term"], model.explain(["i2"], "i3")["term"])


@pytest.mark.slow
def test_new_items_have_no_pairs_yet() -> None:
    data = trips(300)
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[ItemPairs(10.0)]).fit(data)
    wider = np.concatenate([data.values.toarray(), np.ones((300, 1))], axis=1)
    labels = [*(f"i{k}" for k in range(N)), "new"]
    larger = model.fold_in(efemb.Dataset(wider, entities=labels))
    assert "through the pair i2 - new" not in larger.explain(["i2"], "new")["term"]
    with pytest.raises(efemb.ParameterError, match="no groups of rows"):
        model.fold_in_rows(data)


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        ({"penalty": 0.0}, efemb.ParameterError, "penalty must be > 0"),
        ({"dropout": 1.0}, efemb.ParameterError, "dropout must lie in"),
        ({"n_neighbors": 0}, efemb.ParameterError, "n_neighbors must be >= 1"),
        ({"sparse": "yes"}, efemb.InputTypeError, "sparse must be True, False or None"),
        ({"prior": "half-normal"}, efemb.ParameterError, "signed"),
    ],
)
def test_bad_options_are_refused(options: Any, error: Any, rule: str) -> None:
    with pytest.raises(error, match=rule):
        efemb.PoissonEmbedding(1, terms=[ItemPairs(**options)]).fit(trips())


def test_rows_without_pairs_and_signed_data_are_refused() -> None:
    with pytest.raises(efemb.DataError, match="no training row has two items"):
        ItemPairs().freeze(efemb.Dataset(np.eye(4)))
    with pytest.raises(efemb.DataError, match="row 0 has -2"):
        ItemPairs().freeze(efemb.Dataset([[1.0, -2.0], [0.5, 1.0]]))
