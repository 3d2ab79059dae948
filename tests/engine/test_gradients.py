"""Every solver's gradient is that of the plain loops, masked cells and row weights included."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.solvers import generic
from efemb.engine.solvers.choice import make_solver
from efemb.engine.solvers.rows import solver as softmax
from efemb.engine.threads import Tuning, workers
from efemb.model.factors import Factors
from efemb.model.spec import Spec
from engine import models, plain

WEIGHT = np.array([1.0, 0.5, 2.0, 0.0, 1.3, 0.7, 1.0])


def masked_cells(shape: tuple[int, ...], seed: int = 5) -> Any:
    """Stored and unstored cells alike."""
    return np.random.default_rng(seed).random(shape) < 0.2


def expected(
    model: str, X: Any, hidden: Any, scale: str, zero_weight: float
) -> tuple[float, Factors]:
    seen = np.where(hidden, np.nan, X)
    W = WEIGHT[:, None] * np.where(X == 0, zero_weight, 1.0)
    density = models.MODELS[model][3]
    arguments = (seen, W, models.vectors(), scale, density)
    return plain.value(*arguments), plain.gradient(*arguments)


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("solver", ["rows", "generic"])
@pytest.mark.parametrize("model", sorted(models.MODELS))
def test_basket_gradients_are_those_of_the_loops(model: str, solver: str, scale: str) -> None:
    X = models.counts(model)
    hidden = masked_cells(X.shape)
    # What a masked cell holds must not matter: the bag is built without it.
    train = np.where(hidden, 0.0, X)
    spec = models.spec(model, context=efemb.Basket(scale=scale), zeros=efemb.All(0.3))
    bound = models.bind(train, spec, masked=hidden)
    made = models.solver(solver, bound, spec, row_weight=WEIGHT)
    value, slopes = made.value_and_gradient(models.vectors())
    wanted, gradient = expected(model, X, hidden, scale, 0.3)
    assert value == pytest.approx(wanted, rel=1e-8)
    assert_allclose(plain.flat(slopes, 5), plain.flat(gradient, 5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("model", sorted(models.MODELS))
def test_rows_and_generic_agree_to_rounding(model: str) -> None:
    X = models.counts(model)
    hidden = masked_cells(X.shape)
    spec = models.spec(model, zeros=efemb.All(0.3))
    bound = models.bind(np.where(hidden, 0.0, X), spec, masked=hidden)
    answers = []
    for name in ("rows", "generic"):
        made = models.solver(name, bound, spec, row_weight=WEIGHT)
        value, slopes = made.value_and_gradient(models.vectors())
        answers.append(np.append(plain.flat(slopes, 5), [value, made.total_weight]))
    assert_allclose(answers[0], answers[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("model", ["p-emb", "nb-emb"])
def test_narrow_tiles_change_nothing(model: str) -> None:
    X = models.counts(model, 30, 150)
    spec = models.spec(model)
    vectors = models.vectors(150)
    whole = models.solver("rows", models.bind(X, spec), spec).value_and_gradient(vectors)
    narrow = Tuning(tile_bytes=1)  # the least width is used
    made = models.solver("rows", models.bind(X, spec), spec, narrow)
    tiles = made.value_and_gradient(vectors)
    assert tiles[0] == pytest.approx(whole[0], rel=1e-12)
    assert_allclose(plain.flat(tiles[1], 150), plain.flat(whole[1], 150), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("model", sorted(models.MODELS))
def test_blocks_of_rows_add_up(model: str, dtype: str) -> None:
    X = models.counts(model, 60, 20)
    spec = models.spec(model, zeros=efemb.All(0.3))
    vectors = models.vectors(20)
    value, slopes = models.solver("rows", models.bind(X, spec), spec).value_and_gradient(vectors)
    small = Tuning(block_rows=16, stage_rows=16)
    made = models.solver("rows", models.bind(X, spec), spec, small, dtype=dtype)
    found = made.value_and_gradient(models.vectors(20, dtype=np.dtype(dtype)))
    assert found[0] == pytest.approx(value, rel=1e-5)
    size = float(np.abs(plain.flat(slopes, 20)).max())
    assert_allclose(plain.flat(found[1], 20), plain.flat(slopes, 20), rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("combine", ["linear", "reverse"])
def test_a_softmax_gradient_is_the_slope_of_its_value(combine: str) -> None:
    """Also the value, against the definition: x [u_n - logsumexp_j u_j]."""
    X = models.counts("p-emb")
    spec = Spec.resolve(context=efemb.Basket(scale="items"), family="categorical", combine=combine)
    made = models.solver("rows", models.bind(X, spec), spec, row_weight=WEIGHT)

    def value(v: Factors) -> float:
        found = 0.0
        for t, n in np.argwhere(X > 0):
            others = [m for m in np.flatnonzero(X[t]) if m != n]
            if combine == "linear":
                u = v.target @ plain.context(X[t], n, v.bag, "items") + v.intercept
                found += WEIGHT[t] * X[t, n] * (u[n] - np.log(np.exp(u).sum()))
                continue
            u = v.target @ v.bag[n] * X[t, n] + v.intercept
            total = np.log(np.exp(np.delete(u, n)).sum())
            found += WEIGHT[t] * sum(X[t, m] * (u[m] - total) for m in others)
        return found

    vectors = models.vectors()
    got, slopes = made.value_and_gradient(vectors)
    assert got == pytest.approx(value(vectors), rel=1e-10)
    direction = models.vectors(seed=9)
    step = 1e-6
    sides = []
    for sign in (step, -step):
        moved = Factors(
            vectors.target + sign * direction.target,
            vectors.bag + sign * direction.bag,
            vectors.intercept + sign * direction.intercept,
        )
        sides.append(value(moved))
    slope = (sides[0] - sides[1]) / (2 * step)
    assert plain.flat(slopes, 5) @ plain.flat(direction, 5) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("scale", ["none", "items"])
@pytest.mark.parametrize("lagged", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_moments_and_generic_agree_to_rounding(scale: str, lagged: bool, missing: bool) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(12, 6))
    values[rng.random(values.shape) < 0.1] = 0.0
    if missing:
        values[rng.random(values.shape) < 0.2] = np.nan
    context: Any = efemb.Neighbors(3, positions=rng.random((6, 2)), scale=scale)
    if lagged:
        context = context + efemb.Lagged((-1, 2), scale=scale)
    spec = Spec.resolve(context=context, family=efemb.Gaussian(0.7), zeros=efemb.All(0.4))
    data = efemb.Dataset(values, recordings=np.repeat([0, 1], 6))
    bound = spec.context.bind(data)
    weight = rng.uniform(0, 2, 12)
    vectors = Factors(
        rng.normal(size=(6, 2)), rng.normal(size=(bound.n_context_vectors, 2)), rng.normal(size=6)
    )
    answers = []
    for name in ("moments", "generic"):
        made = models.solver(name, bound, spec, row_weight=weight)
        value, slopes = made.value_and_gradient(vectors)
        answers.append(np.append(plain.flat(slopes, 6), [value, made.total_weight]))
    assert_allclose(answers[0], answers[1], rtol=1e-10, atol=1e-10)


def test_moments_gradient_is_the_slope_of_scipy_densities() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(9, 5)), rng.uniform(0, 2, 9)
    spec = Spec.resolve(context=efemb.Graph(1 - np.eye(5)), family=efemb.Gaussian(0.7))
    made = models.solver("moments", spec.context.bind(efemb.Dataset(X)), spec, row_weight=weight)

    def value(v: Factors) -> float:
        found = 0.0
        for t in range(9):
            for n in range(5):
                s = sum(X[t, m] * v.bag[m] for m in range(5) if m != n)
                u = v.target[n] @ s + v.intercept[n]
                found += weight[t] * stats.norm.logpdf(X[t, n], u, np.sqrt(0.7))
        return found

    vectors = models.vectors()
    got, slopes = made.value_and_gradient(vectors)
    assert got == pytest.approx(value(vectors), rel=1e-10)
    for name in ("target", "bag", "intercept"):
        theta = getattr(vectors, name)
        place = (2,) if name == "intercept" else (2, 1)
        sides = []
        for nudge in (1e-6, -2e-6):
            theta[place] += nudge
            sides.append(value(vectors))
        theta[place] += 1e-6
        slope = (sides[0] - sides[1]) / 2e-6
        assert getattr(slopes, name)[place] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("name", ["generic", "rows"])
def test_only_a_few_gradients_of_blocks_live_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gradient is as large as the model, so threads may not get far ahead of the sum."""
    family = "poisson" if name == "generic" else "categorical"
    X, spec = models.counts("p-emb", 60), Spec.resolve(context=efemb.Basket(), family=family)
    owner, work = {
        "generic": (generic.GenericSolver, "_block"),
        "rows": (softmax, "softmax_terms"),
    }[name]
    inner, made, alive = getattr(owner, work), [], []

    def counted(*arguments: Any) -> Any:
        results = inner(*arguments)
        made.append(weakref.ref(results[1].target))
        alive.append(sum(one() is not None for one in list(made)))
        return results

    monkeypatch.setattr(owner, work, counted)
    with workers(2, Tuning(block_numbers=1, block_rows=1)) as pool:
        make_solver(name, models.bind(X, spec), spec, pool).value_and_gradient(models.vectors())
    assert len(made) == 60
    assert max(alive) < 10
