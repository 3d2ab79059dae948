"""Intervals of inner products, from whoever knows their standard errors."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from efemb.errors import DataError
from efemb.query.support import quantile
from efemb.types import Floats, Ints


class ProductErrors(Protocol):
    """Something that knows how certain inner products are, such as `Laplace`."""

    def standard_errors(self, entities: Ints, given: Ints) -> Floats:
        """Standard error of rho_n . alpha_m for pairs of codes (n, m)."""


def product_interval(
    errors: ProductErrors | None, products: Floats, n: Ints, m: Ints, confidence: float
) -> dict[str, Floats]:
    """Columns `low` and `high` around the products of pairs; none without `errors`."""
    if errors is None:
        return {}
    spread = np.asarray(errors.standard_errors(n, m), dtype=np.float64)
    if spread.shape != products.shape or not (spread >= 0).all():
        raise DataError("standard errors must be one number >= 0 for each pair")
    half = quantile(confidence) * spread
    return {"low": products - half, "high": products + half}
