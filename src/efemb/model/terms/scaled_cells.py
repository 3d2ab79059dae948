"""Known numbers of cells times a learned coefficient."""

from __future__ import annotations

from abc import abstractmethod

from efemb._typing import Floats, Ints
from efemb.model.terms.base import Arrays, BoundCells
from efemb.model.terms.cell_values import ScaledRows, TableRows


class ScaledCells(BoundCells):
    """Known numbers of cells times the array "coefficient"."""

    @abstractmethod
    def weighed(self, rows: Ints) -> TableRows:
        """The known numbers of some rows."""

    def weighed_without(self, rows: Ints, left_out: Ints) -> TableRows:
        """The known numbers of some rows, each without one item."""
        return self.weighed(rows)

    def cells(self, arrays: Arrays, rows: Ints) -> ScaledRows:
        """Times the coefficient."""
        return ScaledRows(arrays["coefficient"], self.weighed(rows))

    def cells_without(self, arrays: Arrays, rows: Ints, left_out: Ints) -> ScaledRows:
        """Times the coefficient."""
        return ScaledRows(arrays["coefficient"], self.weighed_without(rows, left_out))

    def pull_back_cells(self, arrays: Arrays, rows: Ints, gradient: Floats) -> dict[str, Floats]:
        """Gradient of the coefficient, the only value."""
        return {"coefficient": gradient}
