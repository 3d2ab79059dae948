"""Combine: which side of the inner product the conditioning data enter."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from efemb.ingredient import Ingredient


class Combine(Ingredient, ABC):
    """How rho and the context meet."""

    reverse: ClassVar[bool]


class Linear(Combine):
    """x_n given its context: u = rho_n . (sum of x_m alpha_m) / d."""

    reverse = False


class Reverse(Combine):
    """Each context member given x_n alone: u_m = alpha_m . rho_n x_n (skip-gram)."""

    reverse = True
