"""Precision: double precision for data for which single precision would fail."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.engine.statistics import ValueMoments, column_means, has_outweighing_entry
from efemb.model.contexts.basket import Basket
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

FAR_MEAN = 30.0  # standard deviations between zero and a mean
# Gradients are sums of squares over the rows, which are then squared and summed again.
LARGE_SQUARES = 1e14


def working_precision(data: Dataset, spec: Spec, solver: str, dtype: Any) -> Any:
    """`dtype`, or double if single precision would lose relevant information.

    Solver `moments`: a Gram matrix contains squares of the mean plus squares of the deviation, and
    the latter are lost to rounding if the mean is some hundred standard deviations from zero. Any
    solver: squares of gradients of large values overflow. Counts have neither problem, because they
    are scaled. But an entry is subtracted from the sum of its basket, and next to a very large
    entry the rest of the basket is lost.
    """
    if np.dtype(dtype) == np.float64 or spec.context.reads_text:
        return np.dtype(dtype)
    if isinstance(spec.context, Basket) and not spec.context.binary and has_outweighing_entry(data):
        return np.dtype(np.float64)
    if spec.family.normalized_score:
        return np.dtype(dtype)
    return np.dtype(np.float64 if needs_double(ValueMoments.of(data), solver) else dtype)


def needs_double(moments: ValueMoments, solver: str) -> bool:
    """Whether a mean is too far from zero for a Gram matrix, or any value too large to square."""
    # mean^2 > FAR_MEAN^2 (mean square - mean^2)
    far = (1.0 + FAR_MEAN**-2.0) * moments.mean**2 > moments.mean_square
    large = moments.largest**2 * moments.n_rows > LARGE_SQUARES
    return (solver == "moments" and bool(far.any())) or large


def scaled(spec: Spec, data: Dataset, weight: Floats | None = None) -> Spec:
    """The model with its dispersion, if it is to be learned, starting at that of the data.

    Rows count by their weight; a row without weight changes nothing.
    """
    if not spec.family.learns or spec.context.reads_text:
        return spec
    if weight is not None and not (weight > 0).all():
        data, weight = data.take_rows(weight > 0), weight[weight > 0]
    if weight is None or (weight == 1).all() or data.is_sparse or data.n_dims > 1:
        moments = ValueMoments.of(data)
        squares, mean = moments.mean_square, moments.mean
    else:
        values = np.asarray(data.values, dtype=np.float64).reshape(data.n_rows, data.n_entities)
        mean = column_means(data, weight)
        squares = column_means(data._replace(values**2), weight)
    return scaled_to(spec, mean, squares)


def scaled_to(spec: Spec, mean: Floats, mean_square: Floats) -> Spec:
    """The model with its dispersion, if it is to be learned, at the variance of these moments."""
    variance = float(np.maximum(mean_square - mean**2, 0.0).mean())
    if not (spec.family.learns and variance > 0):
        return spec
    return replace(spec, family=spec.family.scaled_to(variance))
