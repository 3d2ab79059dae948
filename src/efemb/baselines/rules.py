"""Rules: confidence of association rules from the items of the row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.baselines.item_item import ItemItem
from efemb.model.ingredient import positive_number
from efemb.model.item_regressions import find_strongest_weights


@dataclass(eq=False, repr=False)
class Rules(ItemItem):
    """Mean of the confidences of the rules m -> n over the items m of the row.

    ``P(n | m) = (C_mn + smoothing * popularity_n) / (C_mm + smoothing)``, C_mn the number of rows
    that contain both m and n, and popularity_n the share of n in all lines. The score of item n is
    the mean of P(n | m) over the row's other items m; shares are those of `EASE`:
    ``max(score_n, 0)^power + weight * backoff_n``.

    Parameters
    ----------
    smoothing : float, default=10.0
        Weight > 0 of the popularity, in rows that contain m.
    backoff : {"uniform", "popularity"}, default="uniform"
        Added to the scores of all items: a constant, or a multiple of the number of rows
        that contain the item.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    weights_ : csr_array of shape (N, N)
        C_mn / (C_mm + smoothing) of all pairs that occur together.
    popularity_ : array of shape (N,)
    smoothed_ : array of shape (N,)
        smoothing / (C_mm + smoothing), the weight of popularity in P(. | m).
    power_, backoff_weight_ : float
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    Counts are used as 0/1; `validation` calibrates as in `EASE`.

    Examples
    --------
    >>> X = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    >>> print(Rules(smoothing=1.0).fit(X).weights_.toarray().round(2))
    [[0.   0.75 0.25]
     [0.75 0.   0.25]
     [0.33 0.33 0.  ]]
    """

    smoothing: float = 10.0

    popularity_: Floats = field(init=False)
    smoothed_: Floats = field(init=False)

    def _check(self) -> None:
        super()._check()
        positive_number(self, "smoothing")

    def _learn(self, present: Any) -> None:
        lines, smoothing = np.asarray(present.sum(axis=0)).ravel(), float(self.smoothing)

        def confidence(together: Floats, m: Ints, n: Ints) -> Floats:
            return np.asarray(together / (lines[m] + smoothing))

        self.weights_ = find_strongest_weights(present, confidence)
        self.smoothed_ = smoothing / (lines + smoothing)
        lines = np.maximum(lines, 0.5)
        self.popularity_ = lines / lines.sum()

    def _scores(self, bags: Any) -> Floats:
        sums, size = self._sums(bags), np.asarray(bags.sum(axis=1)).reshape(-1, 1)
        return np.asarray(sums / np.maximum(size, 1.0))

    def _own_scores(self, bags: Any) -> Floats:
        """Popularity has a weight in P(n | n), too, so n itself is removed from the mean."""
        own = bags.toarray()
        sums = self._sums(bags) - own * self.smoothed_ * self.popularity_
        return np.asarray(sums / np.maximum(own.sum(axis=1, keepdims=True) - own, 1.0))

    def _sums(self, bags: Any) -> Floats:
        """Sums of P(n | m), without the co-occurrences of n with itself, over the bags' items m."""
        return super()._scores(bags) + np.outer(bags @ self.smoothed_, self.popularity_)
