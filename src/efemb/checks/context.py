"""check_context: contexts are finite, reproducible, and never hold the observation itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from efemb._typing import Floats
from efemb.checks.common import check_options
from efemb.data.dataset import Dataset
from efemb.data.matrices import dense
from efemb.model.contexts.base import BoundContext, Context

K = 2


def check_context(context: Context, data: Any = None) -> None:
    """Check that a context can be bound, and that no observation is in its own context.

    Parameters
    ----------
    context : Context
        A context for rows x entities, not for text.
    data : Dataset or array, rows x entities, optional
        Data that the context can be bound to; by default 6 rows x 5 entities of small counts.

    Raises
    ------
    AssertionError
        If options are not stored untouched, `bind` does not return a `BoundContext`, context sums
        are not finite or differ between two calls, or the context of an observation changes with
        its own value.
    DataError
        If the lists that `bind` returns do not match the data.

    Examples
    --------
    >>> from efemb import Basket, Neighbors
    >>> check_context(Basket("items"))
    >>> check_context(Neighbors(2), np.random.default_rng(0).normal(size=(9, 4)))
    """
    check_options(context, Context)
    name = type(context).__name__
    if data is None:
        data = np.random.default_rng(0).poisson(1.5, (6, 5)).astype(float)
    rows = data if isinstance(data, Dataset) else Dataset(data)
    bound = context.bind(rows)
    assert isinstance(bound, BoundContext), f"{name}.bind must return a BoundContext, got {bound!r}"
    rng = np.random.default_rng(1)
    bag = rng.normal(size=(bound.n_context_vectors * bound.n_dims, K))
    contexts = _contexts(bound, bag)
    assert np.isfinite(contexts).all(), f"context sums of {name} are not finite"
    same = f"{name} gives other contexts when it is called again"
    assert_allclose(contexts, _contexts(bound, bag), rtol=1e-12, err_msg=same)
    frozen = bound.frozen_part(context)  # lists that look at values stay those of the data
    for t, n in ((0, 0), (rows.n_rows - 1, rows.n_entities - 1)):
        values = dense(rows).copy()
        values[t, n] += 1.0
        moved = _contexts(frozen.bind(rows._replace(values)), bag)
        message = f"the context of row {t}, entity {n} in {name} changes with its own value"
        assert_allclose(moved[t, n], contexts[t, n], rtol=1e-9, atol=1e-12, err_msg=message)


def _contexts(bound: BoundContext, bag: Floats) -> Floats:
    """s / d of every cell, (T, N, D * K)."""
    terms = bound.terms(np.arange(bound.n_rows), missing=True)
    sums = np.zeros((bound.n_rows, bound.n_entities * bound.n_dims, bag.shape[1]))
    sums[terms.row, terms.entity] = terms.contexts(bag)
    return sums.reshape(bound.n_rows, bound.n_entities, -1)
