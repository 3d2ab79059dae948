"""Move: the arguments of one step of an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from efemb._typing import Floats
from efemb.model.space import positive_exp


@dataclass(frozen=True)
class Move:
    """Arrays to change, the gradients of the data term, and how both are changed.

    vectors : for an array of logarithms the vectors themselves, else None; the gradient is
        then that of the vectors, which are also shrunk, and they are updated with the array
    """

    arrays: list[Floats]
    gradients: list[Floats]
    scale: float
    shrinkage: list[float]
    vectors: Sequence[Floats | None] = ()

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def size(self) -> int:
        """Number of elements that have gradients."""
        return sum(gradient.size for gradient in self.gradients)

    def vectors_of(self, i: int) -> Floats | None:
        """Factors of the array, None unless it holds logarithms."""
        return self.vectors[i] if self.vectors else None

    def without_vectors(self) -> Move:
        """The move with the chain rule applied, for optimizers that do not support vectors."""
        gradients, shrinkage = list(self.gradients), list(self.shrinkage)
        for i, gradient in enumerate(self.gradients):
            vectors = self.vectors_of(i)
            if vectors is not None:
                shrink = shrinkage[i] / self.scale
                gradients[i], shrinkage[i] = vectors * (gradient - shrink * vectors), 0.0
        return Move(self.arrays, gradients, self.scale, shrinkage)

    def refresh_vectors(self) -> None:
        """Update the vectors from the arrays."""
        for i, array in enumerate(self.arrays):
            vectors = self.vectors_of(i)
            if vectors is not None:
                positive_exp(array, out=vectors)
