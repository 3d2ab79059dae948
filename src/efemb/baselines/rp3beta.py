"""RP3beta: random walks from item to row to item."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.baselines.item_item import ItemItem
from efemb.errors import check_integer
from efemb.model.ingredient import positive_number
from efemb.model.item_regressions import find_strongest_weights


@dataclass(eq=False, repr=False)
class RP3beta(ItemItem):
    """Three steps of a random walk, with a penalty on popular items (Paudel et al. 2017).

    ``B_mn = sum over rows t with m and n of (1 / c_m)^alpha (1 / d_t)^alpha / c_n^beta``, c_n the
    number of rows that contain n and d_t the number of items in row t, if it is one of the
    `n_neighbors` largest of m, otherwise 0. alpha = 1, beta = 0 are the probabilities of going from
    item m to one of its rows and from there to one of its items. The score of item n is
    ``sum over the row's other items m of B_mn``; shares are those of `EASE`:
    ``max(score_n, 0)^power + weight * backoff_n``.

    Parameters
    ----------
    alpha : float, default=1.0
        Exponent >= 0 of the probability of a step.
    beta : float, default=0.5
        Exponent >= 0 of the penalty on popular items. Worth tuning: 0.3 was best for baskets, 0.6
        for movies.
    n_neighbors : int, default=100
        Number of items n that each item m has a weight for.
    backoff : {"uniform", "popularity"}, default="uniform"
        Added to the scores of all items: a constant, or a multiple of the number of rows
        that contain the item. With few neighbors many items have a score of 0;
        "popularity" breaks these ties.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    weights_ : csr_array of shape (N, N)
        B, at most `n_neighbors` numbers per row.
    power_, backoff_weight_ : float
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    Counts are used as 0/1; `validation` calibrates as in `EASE`.

    Examples
    --------
    >>> X = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    >>> print(RP3beta(beta=0.0).fit(X).weights_.toarray().round(2))
    [[0.   0.44 0.11]
     [0.44 0.   0.11]
     [0.17 0.17 0.  ]]
    """

    alpha: float = 1.0
    beta: float = 0.5
    _: KW_ONLY
    n_neighbors: int = 100

    def _check(self) -> None:
        super()._check()
        check_integer("n_neighbors", self.n_neighbors)
        for name in ("alpha", "beta"):
            positive_number(self, name, zero=True)

    def _learn(self, present: Any) -> None:
        alpha, beta = float(self.alpha), float(self.beta)
        # Items and rows without a line have no pairs, so any positive number will do.
        n_rows = np.maximum(np.asarray(present.sum(axis=0)).ravel(), 1.0)
        n_items = np.maximum(np.asarray(present.sum(axis=1)).ravel(), 1.0)

        # The largest per m, not per n: per n, items m with few rows would crowd out the others.
        def walk(together: Floats, n: Ints, m: Ints) -> Floats:
            return np.asarray(together * n_rows[m] ** -alpha * n_rows[n] ** -beta)

        size = int(self.n_neighbors)
        weights = find_strongest_weights(present, walk, size, row_weight=n_items**-alpha)
        self.weights_ = weights.T.tocsr()
