"""ItemKNN: items similar to those in the row, by cosine."""

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
class ItemKNN(ItemItem):
    """Sum of the cosines between an item and the row's other items (Sarwar et al. 2001).

    ``B_mn = C_mn / (sqrt(C_mm C_nn) + shrinkage)``, C_mn the number of rows that contain both m and
    n, if m is one of the `n_neighbors` most similar items of n, otherwise 0. The score of item n is
    ``sum over the row's other items m of B_mn``; shares are those of `EASE`:
    ``max(score_n, 0)^power + weight * backoff_n``.

    Parameters
    ----------
    n_neighbors : int, default=100
        Number of items m with a weight for each item n.
    shrinkage : float, default=10.0
        Value >= 0 that lowers the similarity of items that occur in few rows.
    backoff : {"uniform", "popularity"}, default="uniform"
        Added to the scores of all items: a constant, or a multiple of the number of rows
        that contain the item. With few neighbors many items have a score of 0;
        "popularity" breaks these ties.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    weights_ : csr_array of shape (N, N)
        B, at most `n_neighbors` numbers per column.
    power_, backoff_weight_ : float
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    Counts are used as 0/1; `validation` calibrates as in `EASE`.

    Examples
    --------
    >>> X = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    >>> print(ItemKNN(1, shrinkage=0).fit(X).weights_.toarray().round(2))
    [[0.   1.   0.41]
     [1.   0.   0.  ]
     [0.   0.   0.  ]]
    """

    n_neighbors: int = 100
    _: KW_ONLY
    shrinkage: float = 10.0

    def _check(self) -> None:
        super()._check()
        check_integer("n_neighbors", self.n_neighbors)
        positive_number(self, "shrinkage", zero=True)

    def _learn(self, present: Any) -> None:
        length = np.sqrt(np.asarray(present.sum(axis=0)).ravel())

        def cosine(together: Floats, m: Ints, n: Ints) -> Floats:
            return np.asarray(together / (length[m] * length[n] + float(self.shrinkage)))

        self.weights_ = find_strongest_weights(present, cosine, int(self.n_neighbors))
