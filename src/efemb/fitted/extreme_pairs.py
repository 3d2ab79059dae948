"""Pairs: the largest and smallest of all inner products of two entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.errors import ParameterError, check_integer, suggest
from efemb.fitted.nearest import BLOCK, largest
from efemb.fitted.relation import Pairing
from efemb.fitted.selection import PairOptions
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.queries.base import HasFitted

End = Literal["both", "largest", "smallest"]
ENDS = ("both", "largest", "smallest")


def pairs(
    model: HasFitted,
    n: int = 10,
    *,
    end: End = "both",
    progress: bool = False,
    **options: Unpack[PairOptions],
) -> Table:
    """Find the pairs of items with the largest and smallest inner products.

    The method `pairs` of fitted models calls it, and documents the parameters and the result.
    """
    if end not in ENDS:
        raise ParameterError(f"end={end!r}; {suggest(end, ENDS)}")
    size, pairing = check_integer("n", n), Pairing(model, **options)
    signs = {"both": (1, -1), "largest": (1,), "smallest": (-1,)}[end]
    once = options.get("direction", "given") == "symmetric"
    ends = [_End(size, sign) for sign in signs]
    _search(pairing, ends, once, progress)
    n_codes, m_codes = (
        np.concatenate(side) for side in zip(*(e.pairs() for e in ends), strict=True)
    )
    if end == "both":  # if there are few pairs, list none of them twice
        _, first = np.unique(np.stack([n_codes, m_codes]), axis=1, return_index=True)
        first.sort()
        n_codes, m_codes = n_codes[first], m_codes[first]
    labels = pairing.labels
    names = {"label": labels[n_codes], "given": labels[m_codes]}
    similarity = pairing.affinity.similarity(n_codes, m_codes)
    note = "score: how much more probable one of the given item makes the labeled one"
    note += pairing.describe_support()
    return pairing.table(names, n_codes, m_codes, {"context_similarity": similarity}, note)


class _End:
    """The largest products so far (sign 1), or the smallest (sign -1)."""

    def __init__(self, size: int, sign: int) -> None:
        self.size, self.sign, self.limit = size, sign, -np.inf
        self.scores: Floats = np.empty(0)
        self.codes: Ints = np.empty((2, 0), dtype=np.int64)

    def offer(self, products: Floats, rows: Ints, m: Ints) -> None:
        """Consider a block of products (m, rows), ignoring NaN."""
        flat = products.ravel()
        cell = np.flatnonzero(flat > self.limit if self.sign > 0 else flat < -self.limit)
        signed = self.sign * flat[cell]
        best = largest(signed, self.size)
        cell = cell[best]
        pairs = np.stack([rows[cell % len(rows)], m[cell // len(rows)]])
        scores = np.concatenate([self.scores, signed[best]])
        codes = np.concatenate([self.codes, pairs], axis=1)
        best = largest(scores, self.size)
        self.scores, self.codes = scores[best], codes[:, best]
        if len(best) == self.size:
            self.limit = float(self.scores[-1])

    def pairs(self) -> tuple[Ints, Ints]:
        """Codes (n, m), the best first."""
        return self.codes[0], self.codes[1]


def _search(pairing: Pairing, ends: list[_End], once: bool, progress: bool) -> None:
    rows, near = pairing.rows, pairing.affinity
    targets = near.left[rows]
    step = max(1, (BLOCK >> 2) // max(1, len(rows)))
    with progress_bar("pairs", len(rows), progress) as advance:
        for start in range(0, len(rows), step):
            m = rows[start : start + step]
            width = start + len(m) if once else len(rows)
            products = near.right[m] @ targets[:width].T
            own = products[:, start : start + len(m)]
            own[np.triu_indices(len(m)) if once else np.diag_indices(len(m))] = np.nan
            for each in ends:
                supported = _mask_unsupported(pairing, products, m, each.sign)
                each.offer(supported, rows[:width], m)
            advance(len(m))


def _mask_unsupported(pairing: Pairing, products: Floats, m: Ints, sign: int) -> Any:
    """The products of pairs with enough support, NaN elsewhere."""
    if pairing.min_support is None:
        return products
    enough = pairing.often_together if sign > 0 else pairing.often_expected
    supported = np.full_like(products, np.nan)
    for row, code in enumerate(m.tolist()):
        columns = enough(code)[: products.shape[1]]
        supported[row, columns] = products[row, columns]
    return supported
