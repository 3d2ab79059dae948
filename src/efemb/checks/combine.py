"""check_combine: the pull-back of a combination is the derivative of its value."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from efemb.checks.common import STEP, check_options, check_same_shape
from efemb.model.combine import Combine

N = 5


def check_combine(combine: Combine, n_components: int = 4) -> None:
    """Check that a combination of embeddings and contexts can be fitted.

    Parameters
    ----------
    combine : Combine
        With the options to be checked.
    n_components : int, default=4
        Length of the vectors, with the columns of the terms that the combination expects.

    Raises
    ------
    AssertionError
        If options are not stored untouched, `value` does not return one finite number per
        observation, an observation changes the value of another one, single precision becomes
        double, or `pull_back` is not the derivative of `value`.

    Examples
    --------
    >>> from efemb.model.combine import Linear
    >>> check_combine(Linear())
    """
    check_options(combine, Combine)
    rng, name = np.random.default_rng(0), type(combine).__name__
    target, context = (rng.normal(0.0, 0.5, (N, n_components)) for _ in range(2))
    slope = rng.normal(size=N)
    u = combine.value(target, context)
    check_same_shape(u, slope, f"{name}.value")
    alone = np.concatenate([combine.value(target[i : i + 1], context[i : i + 1]) for i in range(N)])
    message = f"{name}.value of an observation changes with the other observations"
    assert_allclose(alone, u, rtol=1e-10, atol=1e-12, err_msg=message)
    single = combine.value(target.astype(np.float32), context.astype(np.float32))
    assert single.dtype == np.float32, f"{name}.value turns single precision into {single.dtype}"
    gradients = combine.pull_back(target, context, slope)
    for array, gradient, side in zip(
        (target, context), gradients, ("target", "context"), strict=True
    ):
        check_same_shape(gradient, array, f"{name}.pull_back ({side})")
        numeric = np.empty_like(array)
        for index in np.ndindex(array.shape):
            original = array[index]
            ends = []
            for step in (STEP, -STEP):
                array[index] = original + step
                ends.append(float(slope @ combine.value(target, context)))
            array[index] = original
            numeric[index] = (ends[0] - ends[1]) / (2 * STEP)
        message = f"{name}.pull_back is not the derivative of value in `{side}`"
        assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7, err_msg=message)
