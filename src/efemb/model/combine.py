"""Combine: how the vectors of an observation and of its context are combined into u."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.model.ingredient import Ingredient


class Combine(Ingredient, ABC):
    """How rho and the context are combined: u_i = value(target_i, context_i) + intercept.

    A subclass of your own defines `value` and `pull_back` for n observations at once, and runs by
    the solver "generic". Rows of `target` are the embeddings of the entities, those of `context`
    their scaled context sums; the columns of further terms follow in both (entity side and row
    side), in the order of the terms.
    """

    reverse: ClassVar[bool] = False
    inner_product: ClassVar[bool] = False  # u is the inner product of target and context
    not_inherited = ("inner_product",)

    def value(self, target: Floats, context: Floats) -> Floats:
        """Return u without the intercept, (n,), of `target` and `context`, both (n, K)."""
        return np.asarray(np.einsum("ik,ik->i", context, target))

    def pull_back(self, target: Floats, context: Floats, slope: Floats) -> tuple[Floats, Floats]:
        """Return the gradients of sum_i slope_i u_i in `target` and `context`, both (n, K)."""
        return slope[:, None] * context, slope[:, None] * target


class Linear(Combine):
    """x_n given its context.

    u = rho_n . (sum of x_m alpha_m) / d
    """

    inner_product = True


class Reverse(Combine):
    """Each context member given x_n alone, as in skip-gram.

    u_m = alpha_m . rho_n x_n
    """

    reverse = True
    inner_product = True
