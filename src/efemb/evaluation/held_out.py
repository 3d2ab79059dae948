"""Held-out text: the probability of each word given the surrounding words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.array_checks import generator
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer
from efemb.model.contexts.base import BoundContext
from efemb.model.factors import Factors
from efemb.model.predict import cell_scores, normalizer_of
from efemb.model.predictor import Cells, Predictor, row_groups
from efemb.model.spec import Spec
from efemb.model.zeros import word_noise

WORDS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class HeldOut:
    """Mean conditional log-likelihood per word, with its standard error.

    Attributes
    ----------
    log_likelihood, standard_error : float
        Mean over words (pairs of words for skip-gram) and its standard error.
    n_words : int
        Number of words that were scored.
    n_skipped : int
        Number of words without any other word around them.
    unigram : float
        Mean log-likelihood of the same words by their frequencies in the training text: a model
        with no higher score has learned nothing from the context of a word.
    gain_error : float
        Standard error of ``log_likelihood - unigram``, paired by word.
    """

    log_likelihood: float
    standard_error: float
    n_words: int
    n_skipped: int
    unigram: float
    gain_error: float

    @property
    def perplexity(self) -> float:
        """exp(-log_likelihood)."""
        return float(np.exp(-self.log_likelihood))

    def __repr__(self) -> str:
        mean = f"{self.log_likelihood:.4f} +- {self.standard_error:.4f} per word"
        rival = f"unigram {self.unigram:.4f}"
        return f"HeldOut({mean}, {rival}, perplexity {self.perplexity:.1f}, {self.n_words:,} words)"


def held_out_words(
    model: Any,
    text: Any,
    *,
    n_words: int | None = None,
    n_candidates: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> HeldOut:
    """Score text that a model has not seen.

    Parameters
    ----------
    model : fitted text model
        An estimator with a `Window` context, or what `efemb.load` returns for one.
    text : path, documents or Corpus
        As accepted by `read_text`; words that the model does not know are dropped.
    n_words : int, optional
        Score this many positions, drawn at random; by default all of them.
    n_candidates : int, optional
        Estimate the sum over the vocabulary from this many words, drawn in proportion to their
        counts, instead of computing it exactly: cheaper for large vocabularies, and slightly
        optimistic.
    seed : int, default=0
        Random seed of both draws.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    HeldOut
    """
    for name, value in (("n_words", n_words), ("n_candidates", n_candidates)):
        if value is not None:
            check_integer(name, value)
    spec, bound, vectors = _fitted_text_model(model)._bind(text)
    groups = row_groups(spec, bound)
    if groups is not None and n_candidates is not None:
        raise ParameterError(
            f"n_candidates cannot be used with {spec.structure!r}, whose groups have vectors of "
            "their own: leave it out"
        )
    rng = generator(seed)
    rows = np.arange(bound.n_rows)
    if n_words is not None and n_words < len(rows):
        rows = np.sort(rng.choice(len(rows), n_words, replace=False))
    log_likelihoods, words, skipped = [], [], 0
    with progress_bar("scoring words", len(rows), progress) as advance:
        for start in range(0, len(rows), WORDS_AT_ONCE):
            block_rows = rows[start : start + WORDS_AT_ONCE]
            block = bound.scored_block(block_rows, reverse=spec.combine.reverse)
            entries = Cells.leave_one_out(block, bound.n_context_vectors)
            known = entries.known().with_terms(None, block_rows[block.row], groups)
            # A word that is alone in its document is not part of any pair of a reverse model.
            skipped += len(block_rows) - len(np.unique(block.row)) + len(entries.x) - len(known.x)
            if len(known.x):
                log_likelihoods.append(_scores(spec, bound, vectors, known, n_candidates, rng))
                words.append(known.ids)
            advance(len(block_rows))
    if not log_likelihoods:
        raise DataError("no word of the text has another word in its window: pass longer documents")
    each = np.concatenate(log_likelihoods)
    rival = np.log(word_noise("popularity", bound.word_counts))[np.concatenate(words)]
    error, gain_error = (float(x.std() / np.sqrt(len(x))) for x in (each, each - rival))
    means = float(each.mean()), float(rival.mean())
    return HeldOut(means[0], error, len(each), skipped, means[1], gain_error)


def _fitted_text_model(model: Any) -> Any:
    """The fitted model behind a text model; any other model is an error."""
    if not hasattr(model, "fitted"):
        raise InputTypeError(f"held_out_words needs a text model, got {type(model).__name__}")
    fitted = model.fitted()
    if not fitted.spec.context.reads_text:
        raise ParameterError(
            "held_out_words needs a text model, that is, one with a Window context"
        )
    return fitted


def _scores(
    spec: Spec,
    bound: BoundContext,
    vectors: Factors,
    known: Cells,
    n_candidates: int | None,
    rng: np.random.Generator,
) -> Floats:
    normalizer: Any = normalizer_of(spec, bound)
    if n_candidates is None or spec.zeros.tree:
        return cell_scores(spec, known, vectors, normalizer)
    exponential = spec.family.exponential_mean or normalizer is not None
    if not exponential or not spec.link.is_identity:
        raise ParameterError(
            "n_candidates needs exponential means (identity link, no sigmoid): leave it out"
        )
    shifted = vectors if normalizer is None else vectors.plus(normalizer)
    share = word_noise("popularity", bound.word_counts)
    drawn = rng.choice(len(share), n_candidates, p=share)
    return _score_by_sampling(known, shifted, drawn, share)


def _score_by_sampling(known: Cells, vectors: Factors, drawn: Ints, share: Floats) -> Floats:
    """u of each entry minus the logarithm of an importance-weighted mean over drawn words."""
    log_likelihoods = np.empty(len(known.row))
    predictor = Predictor(vectors)
    for block, Z in known.contexts(vectors, len(drawn)):
        u = predictor.pick(Z, known.ids[block])
        others = predictor.apply(Z, drawn) - np.log(share[drawn])
        top = others.max(axis=1)
        log_likelihoods[block] = u - top - np.log(np.exp(others - top[:, None]).mean(axis=1))
    return log_likelihoods
