"""Precision: numbers of any size are fitted alike, in double precision where single fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.contexts.base import or_one
from efemb.contexts.basket import Basket
from efemb.contexts.window import Window
from efemb.engine.blocks import cut
from efemb.spec import Spec
from efemb.types import Floats

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BLOCK_ROWS = 64  # copies of so many stay near the core
FAR_MEAN = 30.0  # deviations between zero and a mean
# Gradients are sums of squares over the rows; they are squared and added up once more.
LARGE_SQUARES = 1e14
OUTWEIGHS = 3e4  # times the rest of its row: taken out of the sum, it leaves three digits of that


def working_precision(data: Dataset, spec: Spec, solver: str, dtype: Any) -> Any:
    """`dtype`, or double where single precision would lose what there is to learn.

    Solver `moments`: a Gram matrix holds squares of the mean beside squares of the deviation, of
    which rounding leaves nothing once the mean is some hundred deviations away from zero. Any
    solver: squares of gradients of large values overflow. Counts do neither: they are scaled; but
    an entry takes itself out of the sum of its basket, and a very large one leaves nothing of it.
    """
    if np.dtype(dtype) == np.float64 or isinstance(spec.context, Window):
        return np.dtype(dtype)
    if isinstance(spec.context, Basket) and not spec.context.binary and _outweighs(data):
        return np.dtype(np.float64)
    if spec.family.normalized_score:
        return np.dtype(dtype)
    mean, square, most = _moments(data)
    # mean^2 > FAR_MEAN^2 (square - mean^2)
    far = solver == "moments" and bool(((1.0 + FAR_MEAN**-2.0) * mean**2 > square).any())
    large = most**2 * data.n_rows > LARGE_SQUARES
    return np.dtype(np.float64 if far or large else dtype)


def scaled(spec: Spec, data: Dataset, weight: Floats | None = None) -> Spec:
    """The model with a dispersion, where one is to be learned, that starts at that of the data.

    Rows without weight are not asked: what they say is to change nothing.
    """
    if not spec.family.learns or isinstance(spec.context, Window):
        return spec
    if weight is not None and not (weight > 0).all():
        data = data.take_rows(weight > 0)
    mean, square, _ = _moments(data)
    spread = float(np.maximum(square - mean**2, 0.0).mean())
    return replace(spec, family=spec.family.scaled_to(spread)) if spread > 0 else spec


def _outweighs(data: Dataset) -> bool:
    """Whether an entry is so much larger than all others of its row, or than 1 where it is alone.

    What rounding leaves of an entry that is alone is divided by 1.
    """
    from scipy.sparse import csr_array

    if data.n_dims > 1:  # those sums are made in double precision anyway
        return False
    stored = data.values
    if not data.is_sparse:  # which may have a third axis of length 1
        stored = csr_array(np.nan_to_num(stored.reshape(data.n_rows, data.n_entities)))
    size = np.abs(stored.data.astype(np.float64))
    if len(size) == 0 or size.max() <= OUTWEIGHS * min(size.min(), 1.0):
        return False
    row = np.repeat(np.arange(data.n_rows), np.diff(stored.indptr))
    rest = np.bincount(row, size, data.n_rows)[row] - size
    return bool((size > OUTWEIGHS * or_one(rest)).any())


def _moments(data: Dataset) -> tuple[Any, Any, float]:
    """Mean and mean square of every entity's numbers, and the largest number of all."""
    if data.is_sparse:
        column, stored = data.values.indices, np.nan_to_num(data.values.data).astype(np.float64)
        sums = [np.bincount(column, part, data.n_entities) for part in (stored, stored**2)]
        largest = float(np.abs(stored).max(initial=0.0))
        return sums[0] / data.n_rows, sums[1] / data.n_rows, largest
    shape, most = (data.n_entities, data.n_dims), 0.0
    total, squares, seen = np.zeros((3, *shape))
    for rows in cut(data.n_rows, BLOCK_ROWS):
        values = np.array(data.values[rows], dtype=np.float64).reshape(-1, *shape)
        missing = np.isnan(values)
        values[missing] = 0.0
        total += values.sum(axis=0)
        squares += np.einsum("tnd,tnd->nd", values, values)
        seen += len(values) - missing.sum(axis=0)
        most = max(most, float(values.max()), -float(values.min()))
    seen = np.maximum(seen, 1.0)
    return total / seen, squares / seen, most
