"""Known numbers of cells times a coefficient that is learned."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from efemb._typing import Floats, Ints
from efemb.model.terms.base import Arrays, BoundCells
from efemb.model.terms.cell_values import SparseRows


class ScaledCells(BoundCells):
    """Known numbers of cells times the array "coefficient"; the last are asked for twice."""

    def __init__(self) -> None:
        self._last: tuple[Ints, Ints | None, SparseRows] | None = None

    @abstractmethod
    def weighed(self, rows: Ints) -> SparseRows:
        """The known numbers of some rows."""

    def weighed_without(self, rows: Ints, left_out: Ints) -> SparseRows:
        """The same of rows without one item each."""
        return self.weighed(rows)

    def cells(self, arrays: Arrays, rows: Ints) -> SparseRows:
        """Times the coefficient."""
        return _scale(self._design(rows), arrays)

    def cells_without(self, arrays: Arrays, rows: Ints, left_out: Ints) -> SparseRows:
        """Times the coefficient."""
        return _scale(self._design(rows, left_out), arrays)

    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Of the coefficient."""
        return _unscale(self._design(rows), arrays, gradient)

    def pull_back_cells_without(
        self, arrays: Arrays, rows: Ints, left_out: Ints, gradient: Floats
    ) -> dict[str, Floats]:
        """Of the coefficient."""
        return _unscale(self._design(rows, left_out), arrays, gradient)

    def _design(self, rows: Ints, left_out: Ints | None = None) -> SparseRows:
        last = self._last
        if last is not None and _equal(last[0], rows) and _equal(last[1], left_out):
            return last[2]
        design = self.weighed(rows) if left_out is None else self.weighed_without(rows, left_out)
        self._last = (rows, left_out, design)
        return design


def _equal(mine: Ints | None, asked: Ints | None) -> bool:
    if mine is None or asked is None:
        return mine is asked
    return mine is asked or np.array_equal(mine, asked)


def _scale(design: SparseRows, arrays: Arrays) -> SparseRows:
    """The numbers times the coefficient."""
    coefficient = arrays["coefficient"]
    values = design.values.astype(coefficient.dtype, copy=False) * coefficient[0]
    return replace(design, values=values)


def _unscale(design: SparseRows, arrays: Arrays, gradient: Floats) -> dict[str, Floats]:
    """The transpose of `_scale`."""
    slope = gradient.astype(np.float64) @ design.values.astype(np.float64)
    return {"coefficient": np.array([slope], dtype=arrays["coefficient"].dtype)}
