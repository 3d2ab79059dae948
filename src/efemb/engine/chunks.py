"""Chunks: the parts of a text that a thread works on at a time, in random order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from efemb.contexts.base import gather_rows
from efemb.types import Ints

LONGEST = 8_192  # longer documents are cut: windows at a cut lose their other side
RUN_TOKENS = 2_048  # documents of so many tokens stay together: a text on disk is read in pages
LEAST_TOKENS, MOST_TOKENS, PARTS = 4_096, 131_072, 32
MOST_OUTPUTS = 1 << 22  # of a chunk: 20 MB


@dataclass(frozen=True)
class Chunk:
    """Documents (or pieces of long ones): where each begins in the text, and a seed.

    starts : where each starts among the tokens of the chunk, and their number
    """

    first: Ints
    starts: Ints
    seed: int

    @property
    def n_tokens(self) -> int:
        """Tokens of the chunk, before any are left out."""
        return int(self.starts[-1])


class Chunks:
    """A text in runs of neighbouring documents, whose order is drawn anew for every pass.

    n_outputs : rows that a token brings; with many of them chunks are shorter, for their memory

    Texts are often sorted, by subject or by date; steps on one subject after the other would leave
    the vectors with the last one.
    """

    def __init__(self, starts: Ints, n_outputs: int = 1) -> None:
        cuts = _pieces(starts)
        self.first, self.sizes = cuts[:-1], np.diff(cuts)
        self.runs = _runs(cuts)
        self.most = max(LEAST_TOKENS, min(MOST_TOKENS, MOST_OUTPUTS // n_outputs))

    def drawn(self, rng: np.random.Generator, n_threads: int = 1) -> list[Chunk]:
        """The chunks of one pass; with as many threads as will work on them side by side."""
        ptr, order = gather_rows(self.runs, rng.permutation(len(self.runs) - 1))
        first, ends = self.first[order], np.append(0, np.cumsum(self.sizes[order]))
        most = self.largest(int(ends[-1]), n_threads)
        edges = ptr[_plan(ends[ptr], n_threads, most)]
        seeds = rng.integers(2**63, size=len(edges) - 1)
        return [
            Chunk(first[a:b], ends[a : b + 1] - ends[a], int(seed))
            for (a, b), seed in zip(pairwise(edges.tolist()), seeds, strict=True)
        ]

    def largest(self, n_tokens: int, n_threads: int) -> int:
        """Tokens of the longest chunk of a text."""
        return max(LEAST_TOKENS, min(self.most, n_tokens // (PARTS * n_threads)))


def _pieces(starts: Ints) -> Ints:
    """Starts of the documents, long ones cut into pieces.

    >>> _pieces(np.array([0, 3, 20_000])).tolist()
    [0, 3, 8195, 16387, 20000]
    """
    long = np.flatnonzero(np.diff(starts) > LONGEST)
    inner = [np.arange(starts[d] + LONGEST, starts[d + 1], LONGEST) for d in long]
    return np.sort(np.concatenate([starts, *inner])).astype(np.int64)


def _runs(cuts: Ints) -> Ints:
    """Places of `cuts` at which a run begins, and their number.

    >>> _runs(np.array([0, 3, 2000, 2500, 9000])).tolist()
    [0, 3, 4]
    """
    wanted = np.arange(0, cuts[-1], RUN_TOKENS)
    return np.unique(np.append(np.searchsorted(cuts, wanted), len(cuts) - 1))


def _plan(ends: Ints, n_threads: int, most: int) -> Ints:
    """Places of `ends`, the tokens before each run, at which a chunk begins, and the last.

    While a thread has a chunk it does not see what others make of the busiest words. Hence no
    chunk is much beside the text seen so far, when vectors change most; and none beside what is
    left, so that threads finish together.
    """
    total, places = int(ends[-1]), [0]
    while places[-1] < len(ends) - 1:
        done = int(ends[places[-1]])
        size = min(most, done // (4 * n_threads), (total - done) // (2 * n_threads))
        place = int(np.searchsorted(ends, done + max(size, LEAST_TOKENS)))
        places.append(min(place, len(ends) - 1))
    return np.array(places)
