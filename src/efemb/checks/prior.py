"""check_prior: a prior is a log-density with its derivative."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from efemb.checks.common import STEP, check_options, check_same_shape
from efemb.model.priors import Prior


def check_prior(prior: Prior) -> None:
    """Check that a prior can be used in a fit.

    Parameters
    ----------
    prior : Prior

    Raises
    ------
    AssertionError
        If options are not stored untouched, `log_density` is not a number, or `gradient` is not
        its derivative: in theta, or in log theta if the prior is `positive`.

    Examples
    --------
    >>> from efemb import LogNormal
    >>> check_prior(LogNormal(2.0, center=-1.0))
    """
    check_options(prior, Prior)
    name = type(prior).__name__
    theta = np.linspace(0.2, 1.4, 6).reshape(2, 3)
    if not prior.positive:
        theta = theta - 0.7
    value = prior.log_density(theta)
    assert np.ndim(value) == 0, (
        f"{name}.log_density must return one number, the sum over all of theta, got shape "
        f"{np.shape(value)}"
    )
    assert np.isfinite(value), f"{name}.log_density returned {value}"
    gradient = prior.gradient(theta)
    check_same_shape(gradient, theta, f"{name}.gradient")
    slopes = np.empty_like(theta)
    for index in np.ndindex(theta.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = theta.copy()
            moved[index] = moved[index] * np.exp(step) if prior.positive else moved[index] + step
            ends.append(float(prior.log_density(moved)))
        slopes[index] = (ends[0] - ends[1]) / (2 * STEP)
    where = "log theta" if prior.positive else "theta"
    message = f"{name}.gradient is not the derivative of log_density in {where}"
    assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-6, err_msg=message)
