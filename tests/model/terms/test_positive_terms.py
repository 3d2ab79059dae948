"""Terms of models whose means add up: positive numbers, zeros in closed form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array

import efemb
from efemb.engine.callbacks import Checkpoint
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import Tuning, workers
from efemb.inference import fold_in_rows
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms import History, RowVectors

K, N, T = 3, 7, 23
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.6, (T, N)).astype(float)
COUNTS[3] = 0.0  # an empty row
COUNTS[4] = 2.0 * np.eye(N)[2]  # a row of one item
HOMES = [*RNG.choice(["ann", "bob", "eve"], T - 1), None]  # the last row has no household
MASKED = csr_array((np.ones(1), ([0], [int(np.flatnonzero(COUNTS[0])[0])])), shape=(T, N))
SOME = np.array([0, 4, 3, 9, 22])
VECTORS, HISTORY = RowVectors("user", 2), History("user", kappa=2.0)
TERMS = {
    "vectors": [VECTORS],
    "history": [HISTORY],
    "earlier rows": [History("user", time="day", decay=4.0, kappa=2.0)],
    "both": [VECTORS, HISTORY],
}


def model_of(scale: str, terms: str, **options: Any) -> tuple[Spec, Any]:
    given = {"family": "poisson", "link": "log", "prior": "half-normal", **options}
    data = efemb.Dataset(csr_array(COUNTS), rows={"user": HOMES, "day": np.arange(T) // 2})
    every = TERMS[terms]
    spec = Spec.resolve(context=efemb.Basket(scale), terms=every, **given).freeze_terms(data)
    return spec, spec.context.bind(data)


def point_of(space: ParameterSpace) -> Parameters:
    rng = np.random.default_rng(1)
    arrays = {a.name: np.exp(rng.normal(-1.0, 0.4, a.shape)) for a in space.layout}
    return Parameters.from_named(arrays)


def evaluate(
    spec: Spec, bound: Any, name: str, at: Parameters, rows: Any = None
) -> tuple[float, dict[str, Any]]:
    """Value, and the gradient in the logarithms of all arrays."""
    space = ParameterSpace(spec, N, 1, 1, K)
    assert all(array.positive for array in space.layout)
    with workers(1) as pool:
        solver = make_solver(name, bound, spec, pool, dtype=np.float64)
        value, gradient = solver.value_and_gradient(space.vectors(at), rows)
    return value, space.pull_back(at, gradient).named()


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("rows", [None, SOME], ids=["all", "some"])
@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_by_finite_differences(
    scale: str, rows: Any, intercept: bool, terms: str
) -> None:
    """With an empty row, a row of one item, a masked cell and a row of no household."""
    spec, bound = model_of(scale, terms, intercept=intercept)
    bound = bound.without(MASKED)
    at, h = point_of(ParameterSpace(spec, N, 1, 1, K)), 1e-6
    _, gradient = evaluate(spec, bound, "rows", at, rows)
    for name, array in at.named().items():
        for index in np.ndindex(array.shape):
            ends = []
            for step in (h, -h):
                moved = at.copy()
                moved.named()[name][index] *= np.exp(step)
                ends.append(evaluate(spec, bound, "rows", moved, rows)[0])
            slope = (ends[0] - ends[1]) / (2 * h)
            assert gradient[name][index] == pytest.approx(slope, rel=1e-5, abs=1e-6), name


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("zero_weight", [1.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_closed_form_is_the_sum_over_all_cells(
    scale: str, zero_weight: float, intercept: bool, terms: str
) -> None:
    spec, bound = model_of(scale, terms, zeros=efemb.All(zero_weight), intercept=intercept)
    at = point_of(ParameterSpace(spec, N, 1, 1, K))
    value, gradient = evaluate(spec, bound, "rows", at)
    other, same = evaluate(spec, bound, "generic", at)
    assert value == pytest.approx(other, rel=1e-10)
    for name, array in gradient.items():
        assert_allclose(array, same[name], rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
def test_terms_that_are_0_leave_the_bits_of_the_model_without_them(
    scale: str, dtype: Any, terms: str
) -> None:
    spec, bound = model_of(scale, terms)
    plain = replace(spec, terms=())
    known = point_of(ParameterSpace(plain, N, 1, 1, K)).astype(dtype)
    results = []
    for model in (plain, spec):
        space = ParameterSpace(model, N, 1, 1, K)
        zeros = {a.name: np.zeros(a.shape, dtype) for a in space.layout if "." in a.name}
        at = Parameters.from_named({**known.named(), **zeros})
        with workers(1, Tuning(stage_rows=8)) as pool:
            solver = make_solver("rows", bound, model, pool, dtype=dtype)
            value, gradient = solver.value_and_gradient(space.vectors(at))
        results.append((value, space.pull_back(at, gradient).named()))
    (value, gradient), (same, wider) = results
    assert value == same
    for name, array in gradient.items():
        assert_array_equal(array, wider[name], err_msg=name)


def planted(n_rows: int = 600, seed: int = 5) -> efemb.Dataset:
    """Households that buy one half of the items, or the other."""
    rng = np.random.default_rng(seed)
    home = rng.integers(0, 30, n_rows)
    rate = np.where((home[:, None] % 2) == (np.arange(12) % 2), 0.6, 0.05)
    labels = [f"i{n}" for n in range(12)]
    rows = {"user": [f"h{i}" for i in home]}
    return efemb.Dataset(rng.poisson(rate).astype(float), entities=labels, rows=rows)


def with_days(data: efemb.Dataset) -> efemb.Dataset:
    rows = {"user": data.rows["user"], "day": np.arange(data.n_rows)}
    return efemb.Dataset(data.values, entities=data.entities, rows=rows)


def fit(
    data: efemb.Dataset, terms: str = "vectors", **options: Any
) -> efemb.AdditivePoissonEmbedding:
    model = efemb.AdditivePoissonEmbedding(2, terms=TERMS[terms], random_state=0, **options)
    return model.fit(data)


@pytest.mark.slow
def test_a_fit_learns_who_shops_with_positive_vectors() -> None:
    train, test = planted().split(test=0.3, seed=0)
    known, plain = fit(train), efemb.AdditivePoissonEmbedding(2, random_state=0).fit(train)
    assert known.score(test) > plain.score(test) + 0.02
    terms = known.parameters_.terms
    assert set(terms) == {"user.rows", "user.entities"}
    assert all((array > 0).all() for array in terms.values())
    assert known.fitted().spec.terms[0].prior == efemb.HalfNormal(1.0)
    strangers = efemb.Dataset(test.values, entities=test.entities, users=["new"] * test.n_rows)
    assert known.score(strangers) < known.score(test)


def test_history_adds_its_shares_to_the_mean_without_the_row_itself() -> None:
    """By the definition, as a loop over the other training rows of the household."""
    data = planted(60)
    model = fit(data, "history", dtype="float64")
    means, p, x = model.conditional(data), model.parameters_, np.asarray(data.values)
    log_shares, units = [], []
    coefficient = p.terms["history of user.coefficient"][0]
    homes = np.asarray(data.rows["user"])
    for t in range(60):
        past = x[(homes == homes[t]) & (np.arange(60) != t)].sum(axis=0)
        for n in range(12):
            others = np.where(np.arange(12) == n, 0.0, x[t])
            mean = p.rho @ (others @ p.alpha / (others.sum() or 1.0)) + p.intercept
            mean = mean + coefficient * past / (2.0 + past.sum())
            assert means[t, n] == pytest.approx(mean[n], rel=1e-9)
            log_shares.append(np.log(mean[n] / mean.sum()))
            units.append(x[t, n] if others.any() else 0.0)
    assert model.score(data) == pytest.approx(np.average(log_shares, weights=units), rel=1e-9)


@pytest.mark.parametrize("terms", TERMS)
def test_any_number_of_threads_gives_the_same_bits(terms: str) -> None:
    data = with_days(planted())
    fits = [fit(data, terms, n_jobs=n, batch_size=128).parameters_.named() for n in (1, 2)]
    for name, array in fits[0].items():
        assert_array_equal(array, fits[1][name], err_msg=name)


@pytest.mark.slow
def test_scores_are_shares_of_the_means_that_conditional_gives() -> None:
    """Of each entry among all items, with the row as context less the entry, by the definition."""
    data = planted(80)
    model = fit(data, dtype="float64")
    p, groups = model.parameters_, list(model.fitted().spec.terms[0].groups)
    theta, gamma = p.terms["user.rows"], p.terms["user.entities"]
    means, log_shares, units = model.conditional(data), [], []
    for t, x in enumerate(np.asarray(data.values)):
        of_home = gamma @ theta[groups.index(data.rows["user"][t])]
        for n in np.flatnonzero(x):
            others = np.where(np.arange(12) == n, 0.0, x)
            context = others @ p.alpha / (others.sum() or 1.0)
            mean = p.rho @ context + p.intercept + of_home
            assert means[t, n] == pytest.approx(mean[n], rel=1e-9)
            log_shares.append(np.log(mean[n] / mean.sum()))
            units.append(x[n] if others.any() else 0.0)
    expected = np.average(log_shares, weights=units)
    assert model.score(data) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("terms", ["vectors", "history", "both"])
def test_explanations_add_up_to_the_mean(terms: str) -> None:
    model = fit(planted(120), terms, dtype="float64")
    basket = {"i1": 2, "i4": 1}
    table = model.explain(basket, "i2", user="h3")
    labels = [term.label for term in model.fitted().spec.terms]
    assert [str(name) for name in table["term"] if str(name) in labels] == labels
    means = {}
    for item in ("i2", "i3"):
        means[item] = model.explain(basket, item, user="h3")["contribution"].sum()
    answer = model.predict(basket, n=12, user="h3")
    share = dict(zip(answer["label"], answer["probability"], strict=True))
    assert share["i2"] / share["i3"] == pytest.approx(means["i2"] / means["i3"], rel=1e-8)


@pytest.mark.parametrize("terms", ["vectors", "both"])
def test_saved_models_agree_and_interrupted_fits_resume(tmp_path: Path, terms: str) -> None:
    data = planted(300)

    def stop(max_iter: int, callbacks: Any) -> efemb.AdditivePoissonEmbedding:
        options = {"max_iter": max_iter, "callbacks": callbacks, "early_stopping": False}
        with pytest.warns(Warning, match="max_iter"):
            return fit(data, terms, **options)

    whole, checkpoint = stop(6, None), Checkpoint(tmp_path / "state")
    stop(3, [checkpoint])
    resumed = stop(6, [checkpoint])
    for name, array in whole.parameters_.named().items():
        assert_array_equal(array, resumed.parameters_.named()[name], err_msg=name)
    whole.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.spec.terms == whole.fitted().spec.terms
    assert_array_equal(loaded.conditional(data), whole.conditional(data))


def test_new_households_join_by_partial_fit_and_not_by_folding_in() -> None:
    model, later = fit(planted()), planted(100, seed=6)
    homes = [f"new {label}" for label in later.rows["user"]]
    later = efemb.Dataset(later.values, entities=later.entities, rows={"user": homes})
    with pytest.raises(efemb.ParameterError, match="are positive: use partial_fit"):
        fold_in_rows(model, later)
    before = model.score(later)
    for _ in range(20):
        model.partial_fit(later)
    assert len(model.parameters_.terms["user.rows"]) > 30
    assert model.score(later) > before


def test_an_item_that_is_folded_in_has_the_vectors_of_the_largest_posterior() -> None:
    """Against a direct search over its logarithms, given all other vectors."""
    rng = np.random.default_rng(5)
    home = rng.integers(0, 30, 600)
    rate = np.where((home[:, None] % 2) == (np.arange(13) % 2), 0.6, 0.05)
    values, rows = rng.poisson(rate).astype(float), {"user": [f"h{i}" for i in home]}
    labels = [f"i{n}" for n in range(13)]
    model = fit(efemb.Dataset(values[:, :12], entities=labels[:12], rows=rows))
    wider = efemb.inference.fold_in(
        model, efemb.Dataset(values, entities=labels, rows=rows), prior="model"
    )
    p, groups = model.parameters_, list(model.fitted().spec.terms[0].groups)
    context = values[:, :12] @ p.alpha / np.maximum(values[:, :12].sum(axis=1), 1.0)[:, None]
    theta = p.terms["user.rows"][[groups.index(label) for label in rows["user"]]]
    design = np.concatenate([context, theta, np.ones((600, 1))], axis=1)

    def loss(logarithms: Any) -> float:
        v = np.exp(logarithms)
        mean = np.maximum(design @ v, 1e-6)
        return float(mean.sum() - values[:, 12] @ np.log(mean) + 0.5 * (v[:4] ** 2).sum())

    starts = np.random.default_rng(0).normal(-2.0, 1.0, (6, 5))
    best = min(minimize(loss, start, method="BFGS").fun for start in starts)
    q = wider.parameters
    assert q.intercept is not None
    solved = [*q.rho[12], *q.terms["user.entities"][12], q.intercept[12]]
    assert loss(np.log(solved)) < best + 0.5
