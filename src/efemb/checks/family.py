"""check_family: a family is a density whose slope is its derivative."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from efemb._typing import Floats
from efemb.checks.common import STEP, check_options, check_same_shape
from efemb.model.families import Density, Family
from efemb.model.links import Identity
from efemb.model.objective import log_density, value_and_slope

ETA = ("log_normalizer", "mean", "expected_value")  # methods of eta
MOST = 400  # largest count in sums of a density
TOLERANCE = 1e-4  # of integrals


def check_family(family: Family) -> None:
    """Check that a family can be fitted.

    Parameters
    ----------
    family : Family
        With the options to be checked.

    Raises
    ------
    AssertionError
        If options are not stored untouched, a method does not work elementwise on arrays,
        `mean` is not the derivative of `log_normalizer`, the slope of `value_and_slope` is not
        the derivative of its value, the density does not sum (or integrate) to 1 with the expected
        value that the family gives, or draws fall outside the support.

    Examples
    --------
    >>> from efemb import NegativeBinomial
    >>> check_family(NegativeBinomial(2.0))
    """
    check_options(family, Family)
    v = np.linspace(-1.5, 1.0, 6)
    x = _values(family, v.shape)
    _check_shapes(family, x, v)
    if not family.softmax and not family.varies:
        _check_shapes(family, x.reshape(2, 3), v.reshape(2, 3))
    if family.softmax or family.states > 1 or family.mixes:  # a single cell is not a distribution
        return
    _check_slopes(family, x, v)
    if family.support.integer:
        _check_sums(family)
    else:
        _check_integrals(family)
    _check_draws(family, family.natural(v))


def _check_shapes(family: Family, x: Floats, v: Floats) -> None:
    name, eta = type(family).__name__, family.natural(v)
    of_eta = ("expected_value",) if isinstance(family, Density) else ETA
    for method in of_eta:
        if not family.softmax:  # its normalizer couples all entities
            check_same_shape(getattr(family, method)(eta), v, f"{name}.{method}")
    for method in ("statistic", "log_base_measure"):
        check_same_shape(getattr(family, method)(x), v, f"{name}.{method}")
    if family.softmax or family.states > 1 or family.mixes:
        return
    both = family.value_and_slope(x, v)
    assert (len(both) if isinstance(both, tuple) else 1) == 2, (
        f"{name}.value_and_slope must return two arrays, the log-density and its derivative"
    )
    for array in both:
        check_same_shape(array, v, f"{name}.value_and_slope")


def _values(family: Family, shape: tuple[int, ...]) -> Floats:
    """Possible values of the family, including 0 if it is one."""
    low, high = family.support.low, family.support.high
    start = 0.0 if low == -np.inf else low
    if family.support.integer:
        values = start + np.arange(shape[0])
        return np.asarray(np.minimum(values, high), dtype=np.float64)
    stop = min(start + 2.0, high)
    return np.linspace(start + 0.1 * (stop - start), stop, shape[0])


def _check_slopes(family: Family, x: Floats, v: Floats) -> None:
    name, link = type(family).__name__, Identity()
    own = type(family).value_and_slope is not Family.value_and_slope
    (up, _), (down, _) = (value_and_slope(family, link, x, v + step) for step in (STEP, -STEP))
    _, slope = value_and_slope(family, link, x, v)
    assert_allclose(
        slope,
        (up - down) / (2 * STEP),
        rtol=1e-4,
        atol=1e-6,
        err_msg=f"the slope of {name}.value_and_slope is not the derivative of its value in v"
        + ("" if own else ": are mean, natural_derivative and log_normalizer consistent?"),
    )
    single, _ = value_and_slope(family, link, x.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32, f"{name} turns single precision into {single.dtype}"


def _check_sums(family: Family) -> None:
    high = min(family.support.high, family.support.low + MOST)
    x = np.arange(family.support.low, high + 1.0)
    for v in (-1.0, 0.5):
        p = np.exp(log_density(family, Identity(), x, np.full(len(x), v)))
        name = type(family).__name__
        assert_allclose(p.sum(), 1.0, rtol=1e-6, err_msg=f"probabilities of {name} do not sum to 1")
        mean = family.expected_value(family.natural(np.array([v])))[0]
        assert_allclose(p @ x, mean, rtol=1e-5, err_msg=f"{name}.expected_value is not E[x]")


def _check_integrals(family: Family) -> None:
    """Like `_check_sums`, for real numbers; 0 may have a probability of its own."""
    from scipy.integrate import IntegrationWarning, quad

    name, support = type(family).__name__, family.support

    def density(x: float, v: float) -> float:
        return float(np.exp(log_density(family, Identity(), np.array([x]), np.array([v])))[0])

    for v in (-1.0, 0.5):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", IntegrationWarning)
            try:
                total, _ = quad(density, support.low, support.high, args=(v,))
                first, _ = quad(lambda x, v=v: x * density(x, v), support.low, support.high)
            except IntegrationWarning:  # tails too heavy for numerical integration
                continue
        if abs(total - 1.0) > TOLERANCE and not support.broken_by(np.zeros(1)).any():
            total += density(0.0, v)
        message = f"the density of {name} does not integrate to 1"
        assert_allclose(total, 1.0, rtol=TOLERANCE, err_msg=message)
        mean = family.expected_value(family.natural(np.array([v])))[0]
        message = f"{name}.expected_value is not E[x]"
        assert_allclose(first, mean, rtol=TOLERANCE, atol=TOLERANCE, err_msg=message)


def _check_draws(family: Family, eta: Floats) -> None:
    if type(family).sample is Family.sample:
        return
    rng: Any = np.random.default_rng(0)
    draws = family.sample(np.tile(eta, 50), rng)
    outside = family.support.broken_by(draws)
    name = type(family).__name__
    assert not outside.any(), f"{name}.sample draws {draws[outside][0]}, outside {family.support}"
