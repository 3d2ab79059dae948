"""Terms: conditional log-likelihood terms of some observations as index arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError

UNEVEN = 100.0  # times the smallest value: costs two of the seven digits of single precision


@dataclass(frozen=True)
class Bags:
    """Context sums of n terms: (matrix[bag] - own[left_out]) @ vectors / scale.

    matrix : csr_array of shape (bags, context vectors) of member values
    bag : (n,) row of `matrix` that each term uses
    scale : (n,) divisor
    own, left_out : csr_array of what a term removes from its bag, and the term's row in it
    """

    matrix: Any
    bag: Ints
    scale: Floats
    own: Any = None
    left_out: Ints | None = None

    def contexts(self, bag: Floats) -> Floats:
        """(matrix[bag] - own[left_out]) @ vectors / scale."""
        vectors = bag[: self.matrix.shape[1]]  # a part of a sum may use fewer slots than the whole
        dtype = bag.dtype if self.own is None else summing_dtype(self.matrix.data, bag.dtype)
        sums = (self.matrix.astype(dtype) @ vectors)[self.bag]
        if self.own is not None and self.left_out is not None:
            sums -= (self.own.astype(dtype) @ vectors)[self.left_out]
        return np.asarray(sums / self.scale.astype(dtype)[:, None]).astype(bag.dtype, copy=False)

    def coefficients(self) -> tuple[Ints, Floats]:
        """Rows of the context vectors of a single term, and their coefficients."""
        line = self.matrix[[self.bag[0]]]
        if self.own is not None and self.left_out is not None:
            line = line - self.own[[self.left_out[0]]]
        line.eliminate_zeros()
        return line.indices.astype(np.int64), line.data / self.scale[0]

    def take(self, keep: Any) -> Bags:
        """The same bags for some of the terms."""
        left_out = None if self.left_out is None else self.left_out[keep]
        return replace(self, bag=self.bag[keep], scale=self.scale[keep], left_out=left_out)


@dataclass(frozen=True)
class Terms:
    """n numbers x, the vectors and intercepts that predict them, and their context sums.

    x : (n,) observed numbers
    row : (n,) position among the requested rows
    vector : (n,) row of the target vectors (rho, or alpha under the reverse conditional)
    entity : (n,) row of the intercepts
    parts : context sums that are added up
    """

    x: Floats
    row: Ints
    vector: Ints
    entity: Ints
    parts: tuple[Bags, ...]

    def joined(self, other: Terms) -> Terms:
        """The same terms with the context sums of both."""
        if not np.array_equal(self.entity, other.entity) or not np.array_equal(self.row, other.row):
            raise ParameterError("contexts of a sum must define the same observations")
        return replace(self, parts=self.parts + other.parts)

    def contexts(self, bag: Floats) -> Floats:
        """Scaled context sum of each term, (n, K)."""
        total = np.zeros((len(self.x), bag.shape[1]), dtype=bag.dtype)
        for part in self.parts:
            total += part.contexts(bag)
        return total

    def take(self, keep: Any) -> Terms:
        """Some of the terms."""
        return Terms(
            self.x[keep],
            self.row[keep],
            self.vector[keep],
            self.entity[keep],
            tuple(part.take(keep) for part in self.parts),
        )


def stacked(all_terms: list[Terms]) -> Terms:
    """Concatenate terms with one context part each."""
    from scipy.sparse import csr_array, vstack

    bags = [terms.parts[0] for terms in all_terms]
    first = np.cumsum([0, *(bag.matrix.shape[0] for bag in bags)])
    joined = Bags(
        matrix=csr_array(vstack([bag.matrix for bag in bags])),
        bag=np.concatenate([bag.bag + start for bag, start in zip(bags, first, strict=False)]),
        scale=np.concatenate([bag.scale for bag in bags]),
    )
    return Terms(
        x=np.concatenate([terms.x for terms in all_terms]),
        row=np.concatenate([terms.row for terms in all_terms]),
        vector=np.concatenate([terms.vector for terms in all_terms]),
        entity=np.concatenate([terms.entity for terms in all_terms]),
        parts=(joined,),
    )


def summing_dtype(values: Floats, dtype: Any) -> Any:
    """Precision for sums of member values from which single members are then subtracted.

    A value far above the others would cost them their digits, hence double precision.
    """
    size = np.abs(values[values != 0])
    uneven = len(size) > 0 and bool(size.max() > UNEVEN * size.min())
    return np.float64 if uneven else dtype


def with_components(index: Ints, n_dims: int) -> Ints:
    """Rows of the flattened vectors: each index becomes `n_dims` consecutive ones."""
    if n_dims == 1:
        return index
    return (index[..., None] * n_dims + np.arange(n_dims)).reshape(*index.shape[:-1], -1)
