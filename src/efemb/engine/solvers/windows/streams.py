"""Streams: what the kernels need for each chunk of a text."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.engine.solvers.windows.chunks import Chunk, Chunks
from efemb.model.contexts.window import WindowBags
from efemb.model.huffman import Huffman
from efemb.model.spec import Spec
from efemb.model.zeros import word_noise


class Streams:
    """Draws for every chunk; a chunk's depend on its seed only, not on threads."""

    def __init__(self, bound: WindowBags, spec: Spec) -> None:
        from efemb.kernels.negatives import alias_table

        self.bound, self.corpus, self.zeros = bound, bound.data, spec.zeros
        self.subsample = bound.window.subsample
        self.counts = bound.word_counts
        self.tree: Huffman | None = None
        if self.zeros.tree:
            self.tree = Huffman.of(self.counts)
        else:
            share = word_noise(self.zeros.distribution, self.counts)
            self.n, self.share = int(self.zeros.n), share
            # Zeros are other words; a sum over words, which the relatives estimate, has them all.
            self.distinct = self.zeros.odds
            self.table = np.empty((len(share), 2), np.uint32)
            alias_table(share, self.table)
        if self.subsample is not None:
            with np.errstate(divide="ignore"):
                ratio = self.subsample * self.counts.sum() / self.counts
            self.chance = np.minimum(np.sqrt(ratio) + ratio, 1.0)
        self.chunks = Chunks(self.corpus.starts, 1 + self.n if self.tree is None else 1)

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
            visits = np.bincount(self.tree.nodes, repeats, len(counts))
            return np.asarray(visits, np.float64), members
        others = counts.sum() - counts if self.distinct else counts.sum()
        return counts + self.n * self.share * others, members

    def draw(self, chunk: Chunk) -> tuple[Any, ...]:
        """(tokens, starts, ptr, rows, labels) of a chunk."""
        from efemb.kernels import negatives as streams
        from efemb.kernels.windows import AHEAD

        state = np.array([chunk.seed], np.uint64)
        tokens, starts = np.empty(chunk.n_tokens, np.int32), chunk.starts
        streams.gather(self.corpus.tokens, chunk.first, starts, tokens)
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
