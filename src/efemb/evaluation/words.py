"""Word similarity: do cosines rank pairs of words as humans do?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, ParameterError, suggest
from efemb.evaluation.word_lists import NOT_FOUND, WordLookup, read_pairs
from efemb.fitted import LabeledVectors, check_labeled
from efemb.fitted.nearest import unit_rows
from efemb.table import Table

DECIMALS = 12  # of a cosine in double precision


@dataclass(frozen=True)
class WordSimilarity:
    """Result of `word_similarity`.

    Attributes
    ----------
    spearman : float
        Rank correlation of cosines and human scores.
    n_pairs : int
        Number of pairs it was computed from.
    n_missing : int
        Number of pairs with an unknown word: skipped, or of similarity 0 (`missing="zero"`).
    pairs : Table
        Columns first, second, score (human) and similarity (cosine; NaN if skipped).
    """

    spearman: float
    n_pairs: int
    n_missing: int
    pairs: Table = field(repr=False)


def word_similarity(
    vectors: LabeledVectors,
    source: Any,
    *,
    column: str | int | None = None,
    missing: Literal["skip", "zero"] = "skip",
) -> WordSimilarity:
    """Spearman correlation of cosines with human scores of pairs of words.

    Parameters
    ----------
    vectors : LabeledVectors
        Such as `model.vectors()`.
    source : path, data frame, or iterable of (word, word, score)
        A file such as WordSim-353 or SimLex-999 has two words and a score per line, separated by
        tabs, commas, semicolons or spaces; a header and comments (#) are allowed.
    column : str or int, optional
        Name or number (from 0) of the column of scores. Default: "SimLex999" if there is such a
        column, otherwise the third.
    missing : {"skip", "zero"}, default="skip"
        Skip pairs with unknown words, or assign them a similarity of 0.

    Returns
    -------
    WordSimilarity

    Notes
    -----
    Words are looked up as written first, then ignoring case.
    """
    check_labeled(vectors)
    if missing not in ("skip", "zero"):
        raise ParameterError(f"missing={missing!r}; {suggest(missing, ['skip', 'zero'])}")
    pairs = read_pairs(source, column)
    codes = WordLookup(vectors.vocabulary).codes([[a, b] for a, b, _ in pairs], 2)
    has_both = (codes != NOT_FOUND).all(axis=1)
    cosines = np.full(len(pairs), 0.0 if missing == "zero" else np.nan)
    first, second = (unit_rows(vectors.vectors[side].astype(float)) for side in codes[has_both].T)
    # Otherwise rounding errors would rank pairs of equal cosine (a word and itself).
    products = np.einsum("ij,ij->i", first, second).round(DECIMALS)
    cosines[has_both] = np.clip(products, -1.0, 1.0)
    used = has_both | (missing == "zero")
    scores = np.array([score for _, _, score in pairs])
    _check_enough(used, has_both)
    names = {"first": [a for a, _, _ in pairs], "second": [b for _, b, _ in pairs]}
    return WordSimilarity(
        spearman=spearman(scores[used], cosines[used]),
        n_pairs=int(used.sum()),
        n_missing=int((~has_both).sum()),
        pairs=Table({**names, "score": scores, "similarity": cosines}),
    )


def spearman(a: Floats, b: Floats) -> float:
    """Correlation of average ranks."""
    from scipy.stats import spearmanr

    for side, name in ((a, "scores"), (b, "similarities")):
        if np.ptp(side) == 0:
            raise DataError(f"all {name} are equal, so the rank correlation is undefined")
    return float(spearmanr(a, b).statistic)


def _check_enough(used: Any, known: Any) -> None:
    if not known.any():
        raise DataError(
            f"none of the {len(known):,} pairs has both words in the vocabulary: check that "
            "the labels are words, in the language of the test set"
        )
    if used.sum() < 2:
        raise DataError(
            f"only one of the {len(known):,} pairs has both words in the vocabulary; a rank "
            "correlation needs two"
        )
