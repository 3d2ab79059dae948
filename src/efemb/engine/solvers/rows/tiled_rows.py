"""Cells of some rows and entities: inner products of their vectors, and slopes carried back."""

from __future__ import annotations

from efemb._typing import Floats
from efemb.engine.threads import Workers


class TiledRows:
    """Context vectors of some rows, laid out for products with vectors of entities.

    The cells of an entity lie side by side (E[n, t]), so that vectors of entities are used as they
    are and only those of the rows are transposed. A row of E is longer than there are rows: it has
    `pitch` places, `width` of which are worked on and `n` of which count.
    """

    def __init__(self, Z: Floats, pool: Workers) -> None:
        from efemb.kernels.products import ROW_BYTES
        from efemb.kernels.tiles import transpose

        self.pool, self.dtype = pool, Z.dtype
        self.n, self.size = Z.shape
        unit = ROW_BYTES // Z.itemsize
        self.width = -(-self.n // unit) * unit
        self.pitch = (self.width // unit | 1) * unit  # an odd count fills the cache evenly
        self.transposed = pool.buffer("row vectors", (_whole(self.size), self.pitch), Z.dtype)
        transpose(Z, self.transposed)
        self.transposed[:, self.n : self.width] = 0.0
        self.transposed[self.size :] = 0.0  # what lies there may be denormals, which are slow

    def buffers(self, n_entities: int) -> tuple[Floats, Floats]:
        """Room of this thread for the cells of some entities and the gradient of their vectors."""
        rows = _whole(n_entities)
        cells = self.pool.buffer("cells", (rows, self.pitch), self.dtype)
        return cells, self.pool.buffer("of cells", (rows, len(self.transposed)), self.dtype)

    def unset(self, n: int = 1) -> Floats:
        """Room of this thread for n gradients of the transposed vectors."""
        return self.pool.buffer("of rows", (n, self.size, self.pitch), self.dtype)

    def inner_products(self, rho: Floats) -> Floats:
        """rho . z of every cell, in a buffer."""
        from efemb.kernels.products import multiply

        E = self.buffers(len(rho))[0]
        multiply(rho, self.transposed, E, self.width, True)
        return E

    def slopes_to_rows(self, E: Floats, rho: Floats, total: Floats, *, fresh: bool = True) -> None:
        """Gradient of the transposed vectors; what is not fresh is added to."""
        from efemb.kernels.products import multiply

        multiply(rho.T, E, total, self.width, fresh)

    def slopes_to_entities(self, E: Floats) -> Floats:
        """Gradient of the entities' vectors, in a buffer that may be larger."""
        from efemb.kernels.products import inner_products

        found = self.buffers(len(E))[1]
        inner_products(E, self.transposed, found, self.width)
        return found


def _whole(n: int) -> int:
    """So many rows that `inner_products` has whole blocks of them."""
    from efemb.kernels.products import BLOCK

    return -(-n // BLOCK) * BLOCK
