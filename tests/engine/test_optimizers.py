"""Optimizers against five lines of NumPy, and L-BFGS against scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import efemb
from efemb.engine.optimizers.first_order import Optimizer, RowStepper
from efemb.engine.optimizers.limited_memory import LimitedMemory
from efemb.engine.optimizers.step import Move
from efemb.engine.threads import Workers

Array = Any
SHAPES = ((4, 3), (4,))


def gradients(n: int = 6) -> list[list[Array]]:
    rng = np.random.default_rng(0)
    return [[rng.normal(size=shape) for shape in SHAPES] for _ in range(n)]


def start() -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape) for shape in SHAPES]


SCALE, SHRINK = 1.7, 0.4
Slopes = list[Array]


def total(gradient: Array, theta: Array) -> Array:
    """What a step follows: the scaled data term and a normal prior."""
    return SCALE * gradient - SHRINK * theta


def adagrad(theta: Array, slopes: Slopes, slope_at: Any = total) -> Array:
    squares = np.zeros_like(theta)
    for gradient in slopes:
        g = slope_at(gradient, theta)
        squares = squares + g**2
        theta = theta + 0.3 * g / np.sqrt(squares + 0.01 * SCALE**2)
    return theta


def adam(theta: Array, slopes: Slopes, slope_at: Any = total) -> Array:
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    for t, gradient in enumerate(slopes, 1):
        g = slope_at(gradient, theta)
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
        theta = theta + 0.3 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.95**t)) + 1e-12)
    return theta


def sgd(theta: Array, slopes: Slopes, slope_at: Any = total) -> Array:
    for t, gradient in enumerate(slopes):
        theta = theta + 0.3 / (1 + 0.5 * t) * slope_at(gradient, theta) / 10
    return theta


POOL = Workers(1)
REFERENCES: dict[str, tuple[Any, Any]] = {
    "adagrad": (efemb.engine.optimizers.Adagrad(0.3, epsilon=0.01), adagrad),
    "adam": (efemb.engine.optimizers.Adam(0.3, beta1=0.8, beta2=0.95, epsilon=1e-12), adam),
    "sgd": (efemb.engine.optimizers.SGD(0.3, decay=0.5), sgd),
}


def test_every_registered_optimizer_is_tested() -> None:
    assert {*REFERENCES, "lbfgs"} == set(Optimizer.choices())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_steps_are_those_of_the_reference(name: str, dtype: Any) -> None:
    optimizer, reference = REFERENCES[name]
    arrays = [array.astype(dtype) for array in start()]
    stepper = optimizer.start(arrays, 10)
    for slopes in gradients():
        move = Move(arrays, [slope.astype(dtype) for slope in slopes], SCALE, [SHRINK] * 2)
        stepper.step(move, POOL)
    for i, begin in enumerate(start()):
        expected = reference(begin, [slopes[i] for slopes in gradients()])
        assert arrays[i].dtype == dtype
        rounding = 1e-4 if dtype == np.float32 else 1e-9
        assert_allclose(arrays[i], expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", ["adagrad", "sgd"])  # Adam moves all rows
def test_steps_on_some_rows_leave_the_others_alone(name: str) -> None:
    optimizer, reference = REFERENCES[name]
    rows = np.array([2, 0])
    arrays = start()
    stepper = optimizer.start(arrays, 10)
    waited = np.array([3.0, 1.0])
    move = Move(arrays, [slope[rows] for slope in gradients()[0]], SCALE, [SHRINK] * 2)
    stepper.step_rows(move, rows, waited, POOL)

    def shrunk(gradient: Any, theta: Any) -> Any:
        return SCALE * gradient - SHRINK * waited.reshape(-1, *[1] * (theta.ndim - 1)) * theta

    for array, begin, slope in zip(arrays, start(), gradients()[0], strict=True):
        expected = reference(begin[rows], [slope[rows]], shrunk)
        assert_allclose(array[rows], expected, rtol=1e-10)
        assert_allclose(array[[1, 3]], begin[[1, 3]])


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_restored_state_goes_on_as_if_never_stopped(name: str) -> None:
    optimizer, _ = REFERENCES[name]
    through, broken = start(), start()
    whole = optimizer.start(through, 10)
    for slopes in gradients():
        whole.step(Move(through, slopes, SCALE, [SHRINK] * 2), POOL)
    first = optimizer.start(broken, 10)
    for slopes in gradients()[:3]:
        first.step(Move(broken, slopes, SCALE, [SHRINK] * 2), POOL)
    second = optimizer.start(broken, 10)
    second.restore({key: value.copy() for key, value in first.state().items()})
    for slopes in gradients()[3:]:
        second.step(Move(broken, slopes, SCALE, [SHRINK] * 2), POOL)
    for one, other in zip(through, broken, strict=True):
        assert_allclose(one, other, rtol=1e-14)


def test_adagrad_with_a_zero_gradient_stays_put() -> None:
    arrays = [np.ones((2, 2))]
    efemb.engine.optimizers.Adagrad().start(arrays, 2).step(
        Move(arrays, [np.zeros((2, 2))], 1.0, [0.0]), POOL
    )
    assert (arrays[0] == 1).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_a_gradient_out_of_range_is_left_for_the_fit_to_report(name: str, value: float) -> None:
    """Squares overflow in single precision, which is reported as divergence."""
    arrays = [np.ones((2, 2), dtype=np.float32)]
    stepper = REFERENCES[name][0].start(arrays, 2)
    slope = np.full((2, 2), value, dtype=np.float32)
    with np.errstate(all="ignore"):
        for _ in range(3):
            stepper.step(Move(arrays, [slope], 1.0, [0.0]), POOL)
        if isinstance(stepper, RowStepper):
            stepper.step_rows(Move(arrays, [slope], 1.0, [0.0]), np.arange(2), np.ones(2), POOL)
    assert not np.isfinite(arrays[0]).all() or value == 1e30


def logistic_ridge() -> tuple[Any, int]:
    """Concave: log-likelihood of a logistic regression minus a ridge penalty."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(60, 8)) * np.logspace(-0.4, 0.4, 8), rng.integers(0, 2, 60)

    def evaluate(w: Array) -> tuple[float, Array]:
        u = Z @ w
        value = float((y * u - np.logaddexp(0, u)).sum() - 0.25 * w @ w)
        return value, Z.T @ (y - 1 / (1 + np.exp(-u))) - 0.5 * w

    return evaluate, 8


def test_lbfgs_reaches_the_optimum_that_scipy_finds() -> None:
    evaluate, size = logistic_ridge()
    wanted = minimize(
        lambda w: tuple(-part for part in evaluate(w)), np.zeros(size), jac=True, tol=1e-12
    )
    search = LimitedMemory(evaluate, np.zeros(size), memory=5)
    values = [search.value]
    for _ in range(200):
        if not search.step():
            break
        values.append(search.value)
    assert search.value == pytest.approx(-wanted.fun, abs=1e-8)
    assert_allclose(search.x, wanted.x, atol=2e-4)
    assert (np.diff(values) >= 0).all(), "every step goes up"
    assert len(values) < 100


def test_lbfgs_stops_where_it_cannot_rise() -> None:
    search = LimitedMemory(lambda x: (-float(x @ x), -2 * x), np.zeros(3), memory=3)
    assert not search.step()
    assert (search.x == 0).all()


def test_lbfgs_passes_over_values_that_are_not_finite() -> None:
    def cliff(x: Array) -> tuple[float, Array]:
        if x[0] >= 2:
            return np.inf, np.full(1, np.nan)
        return float(np.log(2 - x[0]) + x[0]), np.array([1 - 1 / (2 - x[0])])

    search = LimitedMemory(cliff, np.array([-50.0]), memory=3)
    for _ in range(100):
        if not search.step():
            break
    assert search.x[0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    "optimizer",
    [
        efemb.engine.optimizers.Adagrad(0.0),
        efemb.engine.optimizers.Adam(-1.0),
        efemb.engine.optimizers.SGD(np.nan),
        efemb.engine.optimizers.SGD(shared=-1.0),
        efemb.engine.optimizers.LBFGS(0),
    ]
    + [efemb.engine.optimizers.Adagrad(0.1, epsilon) for epsilon in (0.0, -1.0, np.nan, np.inf)],
)
def test_a_step_must_be_positive(optimizer: Any) -> None:
    with pytest.raises(efemb.ParameterError, match=r"must be (finite and )?(>=? 0|>= 1)"):
        optimizer.check()


def test_lbfgs_needs_exact_gradients() -> None:
    X = np.random.default_rng(0).poisson(1.0, (20, 5))
    model = efemb.PoissonEmbedding(2, optimizer="lbfgs", zeros=efemb.Sampled(3))
    with pytest.raises(efemb.ParameterError, match=r"zeros=All"):
        model.fit(X)
