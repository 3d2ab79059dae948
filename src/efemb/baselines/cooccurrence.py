"""How often words occur near each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.types import Ints

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus

# Pairs counted at a time: 16 bytes each.
PAIRS = 1 << 23


def cooccurrences(corpus: Corpus, window: int, advance: Callable[[int], None]) -> Any:
    """csr_array (N, N): pairs of tokens of a document, at most `window` apart, both ways round."""
    from scipy.sparse import csr_array

    size, n_tokens = corpus.n_entities, corpus.n_tokens
    # No pair is longer than the longest document: a huge window costs nothing.
    window = min(window, max(1, int(np.diff(corpus.starts).max(initial=0)) - 1))
    step = max(1, PAIRS // window)
    parts: list[Any] = [csr_array((size, size), dtype=np.float64)]
    for start in range(0, n_tokens, step):
        stop = min(start + step, n_tokens)
        parts.append(_counted(corpus, start, stop, window))
        # Only like sizes are added, as in a merge sort: the sum of all is not copied every time.
        while len(parts) > 1 and parts[-2].nnz <= 2 * parts[-1].nnz:
            last = parts.pop()
            parts.append(parts.pop() + last)
        advance(stop - start)
    total = parts.pop()
    while parts:
        total = total + parts.pop()
    return csr_array(total + total.T)


def _counted(corpus: Corpus, start: int, stop: int, window: int) -> Any:
    """Pairs whose first token is in start ... stop, first word in the rows."""
    from scipy.sparse import coo_array

    # A copy: a memory-mapped corpus is read once.
    tokens = np.array(corpus.tokens[start : min(stop + window, corpus.n_tokens)])
    left = _tokens_left(corpus.starts, start, stop)
    offsets = range(1, min(window, int(left.max())) + 1)
    firsts = [np.flatnonzero(left >= offset) for offset in offsets]
    rows = np.concatenate([tokens[:0], *(tokens[first] for first in firsts)])
    shifted = (tokens[first + offset] for first, offset in zip(firsts, offsets, strict=True))
    columns = np.concatenate([tokens[:0], *shifted])
    shape = (corpus.n_entities, corpus.n_entities)
    return coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()


def _tokens_left(starts: Ints, start: int, stop: int) -> Ints:
    """For each token of start ... stop, how many follow it in its document."""
    first = int(np.searchsorted(starts, start, side="right"))
    last = int(np.searchsorted(starts, stop, side="left"))
    ends = starts[first : last + 1]
    lengths = np.diff(np.r_[start, np.minimum(ends, stop)])
    left: Ints = np.repeat(ends, lengths) - np.arange(start, stop) - 1
    return left
