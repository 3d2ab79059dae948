"""Streams: a text cut into chunks, and what the kernels need for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from efemb.contexts.window import WindowBags
from efemb.spec import Spec
from efemb.tree import Huffman
from efemb.types import Floats, Ints
from efemb.zeros import Hierarchical, NegativeSampling, probabilities

# A chunk is so long that copies of busy rows cost nothing beside it, but not much of the text.
CHUNK_TOKENS, LEAST_TOKENS, CHUNKS = 131_072, 4_096, 128
LONGEST = 8_192  # longer documents are cut: windows at a cut lose their other side


@dataclass(frozen=True)
class Chunk:
    """Some consecutive documents (or pieces of one): places in the text and a seed."""

    cuts: Ints
    seed: int

    @property
    def n_tokens(self) -> int:
        """Tokens of the chunk, before any are left out."""
        return int(self.cuts[-1] - self.cuts[0])


class Streams:
    """Draws for every chunk; a chunk's depend on its seed only, not on threads."""

    def __init__(self, bound: WindowBags, spec: Spec) -> None:
        from efemb.kernels.streams import alias_table

        self.bound, self.corpus, self.zeros = bound, bound.data, spec.zeros
        self.subsample = bound.window.subsample
        self.counts = bound.word_counts
        self.tree: Huffman | None = None
        if isinstance(self.zeros, Hierarchical):
            self.tree = Huffman.of(self.counts)
        else:
            assert isinstance(self.zeros, NegativeSampling)
            share = probabilities(self.zeros.distribution, self.counts)
            self.n, self.share = int(self.zeros.n), share
            # Zeros are other words; a sum over words, which the relatives estimate, has them all.
            self.distinct = type(self.zeros) is NegativeSampling
            self.table = np.empty((len(share), 2), np.uint32)
            alias_table(share, self.table)
        if self.subsample is not None:
            with np.errstate(divide="ignore"):
                ratio = self.subsample * self.counts.sum() / self.counts
            self.chance = np.minimum(np.sqrt(ratio) + ratio, 1.0)
        self.cuts = _pieces(self.corpus.starts)
        self.edges = _groups(self.cuts)

    def visits(self, *, pairs: bool) -> tuple[Floats, Floats]:
        """Expected visits of each row of the predicting and of the summed vectors in a pass.

        Under the reverse conditional (`pairs`) a summed vector is visited once a neighbour.
        """
        counts = self.bound.own_counts
        counts = counts if self.subsample is None else counts * self.chance
        members = counts
        if pairs:
            around = self.bound.predictions_of_entry()
            members = np.bincount(self.corpus.tokens, around, len(counts))
            members = members if self.subsample is None else members * self.chance
        if self.tree is not None:
            repeats = np.repeat(counts, np.diff(self.tree.starts))
            return np.bincount(self.tree.nodes, repeats, len(counts)), members
        others = counts.sum() - counts if self.distinct else counts.sum()
        return counts + self.n * self.share * others, members

    def chunks(self, rng: np.random.Generator) -> list[Chunk]:
        """The chunks of one pass in random order."""
        seeds = rng.integers(2**63, size=len(self.edges) - 1)
        found = [
            Chunk(self.cuts[a : b + 1], int(seed))
            for (a, b), seed in zip(pairwise(self.edges), seeds, strict=True)
        ]
        return [found[i] for i in rng.permutation(len(found))]

    def draw(self, chunk: Chunk) -> tuple[Any, ...]:
        """(tokens, starts, ptr, rows, labels) of a chunk."""
        from efemb.kernels import streams
        from efemb.kernels.windows import AHEAD

        state = np.array([chunk.seed], np.uint64)
        tokens = np.array(self.corpus.tokens[chunk.cuts[0] : chunk.cuts[-1]])
        starts = (chunk.cuts - chunk.cuts[0]).astype(np.int64)
        if self.subsample is not None:
            out, ends = np.empty_like(tokens), np.empty_like(starts)
            streams.thin(tokens, starts, self.chance, state, out, ends)
            tokens, starts = out[: ends[-1]], ends
        ptr = np.empty(len(tokens) + 1, np.int64)
        if self.tree is not None:
            size = int(np.diff(self.tree.starts)[tokens].sum())
        else:
            size = len(tokens) * (self.n + 1)
        rows, labels = np.empty(size + AHEAD, np.int32), np.empty(size + 1, np.int8)
        if self.tree is not None:
            tree = (self.tree.starts, self.tree.nodes, self.tree.turns)
            streams.path_outputs(tokens, *tree, ptr, rows, labels)
        else:
            noise = (self.n, self.table, self.distinct, state)
            streams.negative_outputs(tokens, *noise, ptr, rows, labels)
        return tokens, starts, ptr, rows, labels


def _pieces(starts: Ints) -> Ints:
    """Starts of the documents, long ones cut into pieces.

    >>> _pieces(np.array([0, 3, 20_000])).tolist()
    [0, 3, 8195, 16387, 20000]
    """
    if (np.diff(starts) <= LONGEST).all():
        return starts
    parts = [np.arange(a, b, LONGEST) for a, b in pairwise(starts.tolist()) if b > a]
    return np.concatenate([*parts, starts[-1:]])


def _groups(cuts: Ints) -> Ints:
    """Places of `cuts` that start a chunk."""
    size = min(CHUNK_TOKENS, max(LEAST_TOKENS, int(cuts[-1]) // CHUNKS))
    wanted = np.arange(0, cuts[-1], size)
    return np.unique(np.append(np.searchsorted(cuts, wanted), len(cuts) - 1))
