"""Scores of single words of a text under several models, and paired differences of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class WordScores:
    """What a model makes of words of a text, each given the words around it.

    share : (n,) log-probability among all words of the vocabulary
    positive : (n,) log-probability that the word is there, as against noise
    negative : (n,) expected log-probability that as many words of the noise as in the fit are not
    document : (n,) where each word stands, the clusters of its error
    text : (n,) which of several texts it is in
    """

    share: Array
    positive: Array
    negative: Array
    document: Array
    text: Array

    def of(self, what: str) -> Array:
        """The scores of a name; "both" is positive and negative, the objective of the fit."""
        return self.positive + self.negative if what == "both" else np.asarray(getattr(self, what))

    @classmethod
    def join(cls, parts: Sequence[WordScores]) -> WordScores:
        """Those of several texts; documents stay different ones."""
        shift = np.cumsum([0, *(1 + int(part.document.max()) for part in parts)])
        document = [part.document + first for part, first in zip(parts, shift, strict=False)]
        columns = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("share", "positive", "negative")
        )
        text = np.repeat(np.arange(len(parts)), [len(part.share) for part in parts])
        return cls(*columns, np.concatenate(document), text)


def score_words(model: Any, text: Any, n_words: int, seed: int = 0) -> WordScores:
    """Scores of some words, the same for all models; of each given the words around it."""
    from efemb.model.predictor import Cells, Predictor, row_groups
    from efemb.model.zeros import word_noise

    spec, bound, factors = model.fitted()._bind(text)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(bound.n_rows, min(n_words, bound.n_rows), replace=False))
    block = bound.scored_block(rows, reverse=False)
    cells = Cells.leave_one_out(block, bound.n_context_vectors).known()
    cells = cells.with_terms(None, rows[block.row], row_groups(spec, bound))
    noise = word_noise(spec.zeros.distribution, bound.word_counts)
    scores = np.empty((3, len(cells.ids)))
    for part, Z in cells.contexts(factors, bound.n_entities):
        u = cells.apply(Predictor(factors), part, Z)
        scores[:, part] = _against_noise(u, cells.ids[part], noise, int(spec.zeros.n))
    document = np.searchsorted(text.starts, rows[block.row[cells.row]], side="right") - 1
    return WordScores(*scores, document, np.zeros(len(document), dtype=np.int64))


def _against_noise(u: Array, ids: Array, noise: Array, n: int) -> tuple[Array, Array, Array]:
    """Share, positive and negative of each row of u."""
    own, weight = u[np.arange(len(u)), ids].astype(np.float64), noise.astype(u.dtype)
    softplus = np.log(1.0 + np.exp(-np.abs(u)))  # several times as fast as logaddexp
    softplus += np.maximum(u, 0.0)
    negative = -n * (softplus @ weight)
    top = u.max(axis=1)
    total = top + np.log(np.exp(u - top[:, None]) @ weight)
    with np.errstate(divide="ignore"):
        share = own + np.log(noise[ids]) - total
    return share, -np.logaddexp(0.0, -own), negative


def paired_error(values: Array, cluster: Array) -> float:
    """Standard error of the mean of values that are alike within clusters."""
    sums = np.bincount(cluster, values - values.mean())
    return float(np.sqrt((sums**2).sum()) / len(values))


def show_gap(values: Array, cluster: Array) -> str:
    """Mean and error of paired differences."""
    return f"{values.mean():+.4f} ± {paired_error(values, cluster):.4f}"
