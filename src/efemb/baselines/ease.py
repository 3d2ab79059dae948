"""EASE: ridge regression of every item on all others, in closed form."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from efemb.baselines.item_item import ItemItem
from efemb.errors import check_number
from efemb.model.ingredient import positive_number
from efemb.model.item_regressions import check_memory, dense_size, ridge_weights

WAY_OUT = "drop rare items, or use ItemKNN or RP3beta, whose weights are sparse"


@dataclass(eq=False, repr=False)
class EASE(ItemItem):
    """Item-item ridge regression without self-weights (Steck 2019), and its dropout form.

    With X the 0/1 matrix of rows and items, B minimizes
    ``|X - X B|^2 + sum over m, n of ridge_m B_mn^2`` subject to ``B_nn = 0``::

        P = (X'X + diag(ridge))^-1,   B_mn = -P_mn / P_nn

    with ``ridge_m = penalty + dropout / (1 - dropout) (X'X)_mm``; `dropout` > 0 is EDLAE
    (Steck 2020), the expected loss when items are dropped from the rows at random. Each column of
    B is a Gaussian embedding with alpha = identity and no intercept, solved exactly.

    The score of item n is ``sum over the row's other items m of B_mn``; its share is
    proportional to ``max(score_n, 0)^power + weight * backoff_n``. Power and weight maximize the
    mean log-likelihood of held-out entries, so that scores become probabilities.

    Parameters
    ----------
    penalty : float, default=100.0
        lambda > 0; it acts like this many additional rows in which no item predicts another.
    dropout : float, default=0.0
        Probability, in [0, 1), of dropping an item from a row that predicts.
    backoff : {"uniform", "popularity"}, default="uniform"
        Added to the scores of all items: a constant, or a multiple of the number of rows
        that contain the item. "uniform" ranks exactly as the scores do, with ties for scores <= 0;
        "popularity" improves the likelihood on baskets and slightly degrades the ranking.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    weights_ : array of shape (N, N) of float32
        B; ``weights_[m, n]`` is the weight of item m for item n.
    power_, backoff_weight_ : float
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    Counts are used as 0/1, so that a single large count cannot dominate. Other rows passed as
    `validation` are used to calibrate. Without them one row in ten is set aside for this, and B is
    then fitted again to all rows, which doubles the time; held-out entries of training rows are
    zeros.
    Needs N^2 numbers and O(N^3) time: `ItemKNN` and `RP3beta` are for more items than that.

    References
    ----------
    H. Steck. Embarrassingly shallow autoencoders for sparse data. WWW, 2019.
    H. Steck. Autoencoders that don't overfit towards the identity. NeurIPS, 2020.

    Examples
    --------
    >>> X = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    >>> model = EASE(penalty=1.0).fit(X)
    >>> print(model.weights_.round(2))
    [[0.   0.73 0.14]
     [0.73 0.   0.14]
     [0.09 0.09 0.  ]]
    """

    penalty: float = 100.0
    _: KW_ONLY
    dropout: float = 0.0

    def _check(self) -> None:
        super()._check()
        positive_number(self, "penalty")
        check_number("dropout", self.dropout, low=0, below=1)

    def _learn(self, present: Any) -> None:
        n_items = present.shape[1]
        check_memory(dense_size(n_items), "EASE", n_items, WAY_OUT)
        self.weights_ = ridge_weights(present, float(self.penalty), float(self.dropout))
