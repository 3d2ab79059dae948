"""Fused float32 kernels against plain NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb.kernels import zero_terms
from efemb.kernels.compiling import FUSED
from engine import models, plain

Array = Any
KERNELS: dict[str, tuple[float, Callable[[Array], Array], Callable[[Array], Array]]] = {
    # size, log-density of a zero, its slope
    "poisson": (np.inf, lambda u: -np.exp(u), lambda u: -np.exp(u)),
    "bernoulli": (
        1.0,
        lambda u: -np.log1p(np.exp(u)),
        lambda u: -1 / (1 + np.exp(-u)),
    ),
    "negative-binomial": (
        1.5,
        lambda u: -1.5 * np.log1p(np.exp(u) / 1.5),
        lambda u: -1.5 * np.exp(u) / (1.5 + np.exp(u)),
    ),
    "negative-binomial, nearly Poisson": (
        1e6,
        lambda u: -1e6 * np.log1p(np.exp(u) / 1e6),
        lambda u: -1e6 * np.exp(u) / (1e6 + np.exp(u)),
    ),
}


def test_exp32_is_accurate_to_float32_rounding() -> None:
    x = np.concatenate([np.linspace(-80, 30, 4001), np.linspace(-1e-3, 1e-3, 101)])
    x = x.astype(np.float32)

    @njit(fastmath=FUSED)  # as inside kernels
    def exponentials(x: Array, out: Array) -> None:
        for i in range(len(x)):
            out[i] = zero_terms.exp32(x[i])

    found = np.empty_like(x)
    exponentials(x, found)
    assert_allclose(found, np.exp(x.astype(np.float64)), rtol=5e-7)


@pytest.mark.slow
def test_exp32_caps_what_would_overflow_or_vanish() -> None:
    low, high = (zero_terms.exp32(np.float32(x)) for x in (-1e30, 1e30))
    assert np.finfo(np.float32).tiny < low < 1e-34  # small, but no slow denormal
    assert high == pytest.approx(np.exp(30.0), rel=1e-6)


@pytest.mark.parametrize("weights", ["equal", "different"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_fused_zero_terms_are_the_formulas(name: str, weights: str) -> None:
    size, density, slope = KERNELS[name]
    rng = np.random.default_rng(0)
    E = rng.normal(-1, 2, (55, 41)).astype(np.float32)  # two entities and four rows too many
    b = rng.normal(0, 1, 53).astype(np.float32)
    row = rng.uniform(0, 2, 37).astype(np.float32)
    weight = np.ones(53) if weights == "equal" else rng.uniform(0.5, 3, 53)
    weight = weight.astype(np.float32)
    column = np.zeros(53, dtype=np.float32)
    before = E.copy()
    u = before[:53, :37].astype(np.float64) + b[:, None]
    both = weight[:, None].astype(np.float64) * row
    value = zero_terms.zero_slopes(E, b, weight, row, size, column)
    assert value == pytest.approx(float((both * density(u)).sum()), rel=1e-5)
    assert_allclose(E[:53, :37], both * slope(u), rtol=1e-5, atol=1e-7)
    assert_allclose(column, (both * slope(u)).sum(axis=1), rtol=1e-5)
    assert_array_equal(E[53:], before[53:])
    assert_array_equal(E[:, 37:], before[:, 37:])


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_hidden_cells_add_nothing(name: str) -> None:
    from efemb.engine.zero_stages import HIDDEN

    size = KERNELS[name][0]
    E = np.full((3, 20), HIDDEN, dtype=np.float32)
    column, ones = np.zeros(20, dtype=np.float32), np.ones(20, dtype=np.float32)
    value = zero_terms.zero_slopes(E, ones[:3], ones[:3], ones, size, column)
    assert abs(value) < 1e-30
    assert np.abs(E).max() < 1e-30


def test_fused_softmax_is_the_formula() -> None:
    rng = np.random.default_rng(0)
    E = rng.normal(0, 3, (21, 40)).astype(np.float32)
    b, weight = rng.normal(size=40).astype(np.float32), rng.uniform(0, 4, 21).astype(np.float32)
    u = E.astype(np.float64) + b
    column, normalizer = np.zeros(40, dtype=np.float32), np.empty(21, dtype=np.float32)
    zero_terms.softmax(E, b, weight, column, normalizer)
    total = np.log(np.exp(u).sum(axis=1))
    expected = -weight[:, None] * np.exp(u - total[:, None])
    assert_allclose(normalizer, total, rtol=1e-5)
    assert_allclose(E, expected, rtol=1e-5, atol=1e-7)
    assert_allclose(column, expected.sum(axis=0), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("zeros", ["all", efemb.Sampled(300, weight=0.4)])
@pytest.mark.parametrize("model", sorted(models.MODELS))
def test_float32_solvers_follow_float64_ones(model: str, zeros: Any) -> None:
    X = models.counts(model, 700, 40)
    spec = models.spec(model, zeros=zeros)
    answers = []
    for dtype in (np.float32, np.float64):
        solver = models.solver("rows", models.bind(X, spec), spec, dtype=dtype)
        value, slopes = solver.value_and_gradient(models.vectors(40, dtype=dtype))
        assert slopes.target.dtype == dtype
        answers.append((value, plain.flat(slopes, 40)))
    (fast, fast_slopes), (exact, exact_slopes) = answers
    assert fast == pytest.approx(exact, rel=1e-5)
    size = np.abs(exact_slopes).max()
    assert_allclose(fast_slopes, exact_slopes, rtol=1e-4, atol=1e-5 * size)
