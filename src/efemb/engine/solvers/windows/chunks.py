"""Chunks: the parts of a text that a thread processes at a time, and the draws for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.kernels import negatives
from efemb.kernels.windows import AHEAD
from efemb.model.contexts.base import gather_rows
from efemb.model.contexts.window import WindowBags
from efemb.model.huffman import Huffman
from efemb.model.spec import Spec
from efemb.model.zeros import word_noise

LONGEST = 8_192  # longer documents are cut; windows do not reach across a cut
RUN_TOKENS = 2_048  # neighboring documents stay together, because files are read in pages
LEAST_TOKENS, MOST_TOKENS, PARTS = 4_096, 131_072, 32
LONG_TEXT, LONG_THRESHOLD = 1_000_000, 1e-3  # chosen by word lists of two corpora; of word2vec
MOST_OUTPUTS = 1 << 22  # per chunk: 20 MB


@dataclass(frozen=True)
class Chunk:
    """Some documents (or pieces of long ones), and a seed for the draws.

    first : where each begins in the text
    starts : where each begins among the tokens of the chunk, and the number of these tokens
    """

    first: Ints
    starts: Ints
    seed: int

    @property
    def n_tokens(self) -> int:
        """Number of tokens of the chunk, before subsampling."""
        return int(self.starts[-1])


class Chunks:
    """A text as runs of neighboring documents, whose order is drawn anew in every pass.

    Texts are often sorted by subject or by date. Steps in this order would favor the last subject.

    n_outputs : outputs per token; with more outputs chunks are shorter, to bound their memory
    """

    def __init__(self, starts: Ints, n_outputs: int = 1) -> None:
        cuts = _pieces(starts)
        self.first, self.sizes = cuts[:-1], np.diff(cuts)
        self.runs = _runs(cuts)
        self.most = max(LEAST_TOKENS, min(MOST_TOKENS, MOST_OUTPUTS // n_outputs))

    def drawn(self, rng: np.random.Generator, n_threads: int = 1) -> list[Chunk]:
        """The chunks of one pass, of sizes that suit the number of threads."""
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
        """Number of tokens of the longest chunk of a text."""
        return max(LEAST_TOKENS, min(self.most, n_tokens // (PARTS * n_threads)))


def _pieces(starts: Ints) -> Ints:
    """Starts of the documents and of the pieces of long ones.

    >>> _pieces(np.array([0, 3, 20_000])).tolist()
    [0, 3, 8195, 16387, 20000]
    """
    long = np.flatnonzero(np.diff(starts) > LONGEST)
    inner = [np.arange(starts[d] + LONGEST, starts[d + 1], LONGEST) for d in long]
    return np.sort(np.concatenate([starts, *inner])).astype(np.int64)


def _runs(cuts: Ints) -> Ints:
    """Indices into `cuts` at which a run begins, and the index of the last cut.

    >>> _runs(np.array([0, 3, 2000, 2500, 9000])).tolist()
    [0, 3, 4]
    """
    wanted = np.arange(0, cuts[-1], RUN_TOKENS)
    return np.unique(np.append(np.searchsorted(cuts, wanted), len(cuts) - 1))


def _plan(ends: Ints, n_threads: int, most: int) -> Ints:
    """Indices of the runs at which a chunk begins, and the number of runs.

    While a thread works on a chunk, it does not see how other threads change the busiest words.
    So chunks are short at the beginning of a pass, relative to the text seen so far, when vectors
    change most. They are also short at the end, relative to what is left, so that threads finish
    together.

    ends : number of tokens before each run, and of all tokens
    """
    total, places = int(ends[-1]), [0]
    while places[-1] < len(ends) - 1:
        done = int(ends[places[-1]])
        size = min(most, done // (4 * n_threads), (total - done) // (2 * n_threads))
        place = int(np.searchsorted(ends, done + max(size, LEAST_TOKENS)))
        places.append(min(place, len(ends) - 1))
    return np.array(places)


def count_around(starts: Ints, reach: Ints) -> Ints:
    """Number of words around each token that its window reaches, within its document.

    >>> count_around(np.array([0, 3, 4]), np.array([1, 1, 2, 5])).tolist()
    [1, 2, 2, 0]
    """
    sizes = np.diff(starts)
    place = np.arange(int(starts[-1])) - np.repeat(starts[:-1], sizes)
    behind = np.minimum(place, reach)
    return np.asarray(behind + np.minimum(np.repeat(sizes, sizes) - 1 - place, reach))


def threshold_of(subsample: float | str | None, n_tokens: int) -> float | None:
    """The share of the tokens above which a word is subsampled; "auto" does so in long texts only.

    >>> threshold_of("auto", 10), threshold_of("auto", 3_000_000), threshold_of(0.1, 10)
    (None, 0.001, 0.1)
    """
    if isinstance(subsample, str):
        return LONG_THRESHOLD if n_tokens >= LONG_TEXT else None
    return subsample


class Streams:
    """The draws for each chunk, which depend on its seed only and not on threads."""

    def __init__(self, bound: WindowBags, spec: Spec) -> None:
        self.bound, self.corpus, self.zeros = bound, bound.data, spec.zeros
        self.structure = spec.structure
        self.subsample = threshold_of(bound.window.subsample, bound.n_rows)
        self.counts = bound.word_counts
        self.tree: Huffman | None = None
        if self.zeros.tree:
            self.tree = Huffman.of(self.counts)
        else:
            share = word_noise(self.zeros.distribution, self.counts)
            self.n, self.share = int(self.zeros.n), share
            # Zeros are other words. Approximations of a softmax sum over all words instead.
            self.distinct = self.zeros.odds
            self.table = np.empty((len(share), 2), np.uint32)
            negatives.alias_table(share, self.table)
        if self.subsample is not None:
            with np.errstate(divide="ignore"):
                ratio = self.subsample * self.counts.sum() / self.counts
            self.chance = np.minimum(np.sqrt(ratio) + ratio, 1.0)
        n_outputs = 1 if self.tree is not None else 1 + self.n
        if not self.zeros.shared:  # each pair of words has outputs of its own
            n_outputs = int(np.ceil(2 * self.mean_reach * n_outputs))
        self.chunks = Chunks(self.corpus.starts, n_outputs)

    @property
    def mean_reach(self) -> float:
        """Average number of words that a window reaches on either side."""
        size = self.bound.reach
        return (size + 1) / 2 if self.bound.window.shrink else float(size)

    def visits(self, *, pairs: bool) -> tuple[Floats, Floats]:
        """Expected visits per pass of each row of the predicting and of the summed vectors.

        With `pairs` (reverse conditional), a summed vector is visited once per neighbor.
        """
        counts = self.bound.own_counts
        counts = counts if self.subsample is None else counts * self.chance
        members = counts
        if pairs:
            around = self.bound.predictions_of_entry() * self.mean_reach / self.bound.reach
            members = np.bincount(self.corpus.tokens, around, len(counts))
            members = members if self.subsample is None else members * self.chance
        if self.tree is not None:
            repeats = np.repeat(counts, np.diff(self.tree.starts))
            visits = np.bincount(self.tree.nodes, repeats, len(counts))
            return np.asarray(visits, np.float64), members
        asked = counts
        if not self.zeros.shared:
            asked = members if pairs else 2.0 * self.mean_reach * counts
        others = asked.sum() - asked if self.distinct else asked.sum()
        return asked + self.n * self.share * others, members

    @cached_property
    def groups(self) -> Ints | None:
        """Group of each document, -1 for none; None if all documents have the same vectors."""
        structure = self.structure
        return structure.codes(self.bound.whole_data) if structure.grouped else None

    def second_rows(self, chunk: Chunk) -> Ints | None:
        """Distance from the row of a word to that of its offset, for the group of each document."""
        if self.groups is None:
            return None
        document = np.searchsorted(self.corpus.starts, chunk.first, side="right") - 1
        return np.asarray((self.groups[document] + 1) * self.corpus.n_entities)

    def draw(self, chunk: Chunk) -> tuple[Any, ...]:
        """(tokens, starts, ptr, rows, labels, reach) of a chunk."""
        state = np.array([chunk.seed], np.uint64)
        tokens, starts = np.empty(chunk.n_tokens, np.int32), chunk.starts
        negatives.gather(self.corpus.tokens, chunk.first, starts, tokens)
        if self.subsample is not None:
            out, ends = np.empty_like(tokens), np.empty_like(starts)
            negatives.thin(tokens, starts, self.chance, state, out, ends)
            tokens, starts = out[: ends[-1]], ends
        reach = np.full(len(tokens), self.bound.reach, np.int32)
        asked = tokens
        if not self.zeros.shared:
            if self.bound.window.shrink:
                negatives.draw_reach(self.bound.reach, state, reach)
            asked = np.repeat(tokens, count_around(starts, reach))
        ptr = np.empty(len(asked) + 1, np.int64)
        if self.tree is not None:
            size = int(np.diff(self.tree.starts)[tokens].sum())
        else:
            size = len(asked) * (self.n + 1)
        rows, labels = np.empty(size + AHEAD, np.int32), np.empty(size + 1, np.int8)
        if self.tree is not None:
            tree = (self.tree.starts, self.tree.nodes, self.tree.turns)
            negatives.path_outputs(tokens, *tree, ptr, rows, labels)
        else:
            noise = (self.n, self.table, self.distinct, state)
            negatives.negative_outputs(asked, *noise, ptr, rows, labels)
        if self.bound.window.shrink and self.zeros.shared:
            negatives.draw_reach(self.bound.reach, state, reach)
        return tokens, starts, ptr, rows, labels, reach
