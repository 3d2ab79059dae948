"""EASE: ridge regression of every item on all others, in closed form."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csr_array

from efemb._typing import Floats, Ints
from efemb.baselines.item_item import ItemItem, find_strongest_weights
from efemb.engine.limits import available_memory, in_words
from efemb.errors import InputTypeError, MemoryEstimateError, ParameterError
from efemb.kernels.coordinate_descent import descend
from efemb.model.ingredient import positive_number

BYTES_PER_PAIR = 24  # Gram matrix (sparse at first), its inverse and the weights
TILE = 1024
MOST_DENSE = 20_000  # items
LARGEST_CONDITION = 1e5  # of a Gram matrix that is inverted in single precision


@dataclass(eq=False, repr=False)
class EASE(ItemItem):
    r"""Item-item ridge regression without self-weights (Steck 2019), and its dropout form.

    With X the 0/1 matrix of rows and items, B minimizes
    ``|X - X B|^2 + sum over m, n of ridge_m B_mn^2`` subject to ``B_nn = 0``:

    .. math:: P = (X'X + \\operatorname{diag}(ridge))^{-1}, \\qquad B_{mn} = -P_{mn} / P_{nn}

    with ``ridge_m = penalty + dropout / (1 - dropout) (X'X)_mm``; `dropout` > 0 is EDLAE
    (Steck 2020), the expected loss when items are dropped from the rows at random. Each column of
    B is a Gaussian embedding with alpha = identity and no intercept, solved exactly.

    The score of item n is ``sum over the row's other items m of B_mn``; its share is in
    proportion to ``max(score_n, 0)^power + weight * backoff_n``. Power and weight maximize the mean
    log-likelihood of held-out entries, so that scores become probabilities.

    Parameters
    ----------
    penalty : float
        lambda > 0; it acts like this many additional rows in which no item predicts another.
    dropout : float
        Probability, in [0, 1), of dropping an item from a row that predicts.
    backoff : {"uniform", "popularity"}
        What is added to the scores of all items: a constant, or a multiple of the number of rows
        that contain the item. "uniform" ranks exactly as the scores do, with ties for scores <= 0;
        "popularity" improves the likelihood on baskets and slightly degrades the ranking.
    verbose : int
        Show progress bars.

    Attributes
    ----------
    weights_ : array (N, N) of float32
        B; ``weights_[m, n]`` is the weight of item m for item n.
    power_, backoff_weight_ : float
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    Counts are used as 0/1, so that a single large count cannot dominate. Other rows passed as
    `validation` calibrate. Without them one row in ten is set aside to calibrate, and B is then
    fitted again to all rows, which doubles the time; held-out entries of training rows are zeros.
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
        owner: Any = self
        positive_number(owner, "penalty")
        if isinstance(self.dropout, bool) or not isinstance(self.dropout, int | float | np.number):
            raise InputTypeError(f"dropout must be a number, got {self.dropout!r}")
        if not 0.0 <= self.dropout < 1.0:
            raise ParameterError(f"dropout must lie in [0, 1), got {self.dropout}")

    def _learn(self, present: Any) -> None:
        self.weights_ = ridge_weights(present, float(self.penalty), float(self.dropout))


def ridge_weights(
    present: Any, penalty: float, dropout: float = 0.0, *, fast: bool = False
) -> Floats:
    """B of `EASE`, (N, N) of float32, zeros on the diagonal; present : csr_array of zeros and ones.

    fast : in single precision, which takes half the time, if B keeps four digits in it
    """
    check_memory(present.shape[1])
    gram = (present.T @ present).astype(np.float64)
    ridge = penalty + dropout / (1.0 - dropout) * gram.diagonal()
    # No eigenvalue is larger than the largest sum of a row, or smaller than the ridge.
    largest = float(np.asarray(gram.sum(axis=1)).max() + ridge.max())
    single = fast and largest < LARGEST_CONDITION * float(ridge.min())
    dense = gram.astype(np.float32 if single else np.float64).toarray()
    dense.flat[:: len(dense) + 1] += ridge.astype(dense.dtype)
    return _regressions(dense)


def _regressions(gram: Floats) -> Floats:
    """B_mn = -P_mn / P_nn, B_nn = 0, P the inverse of a positive definite matrix (overwritten)."""
    routines: Any = get_lapack_funcs(("potrf", "potri"), (gram,))
    potrf, potri = routines
    # The transpose, which is the same matrix, has the memory layout that LAPACK overwrites.
    factor, _ = potrf(gram.T, lower=0, overwrite_a=1)
    inverse, _ = potri(factor, lower=0, overwrite_c=1)
    inverse = inverse.T  # rows by columns again; the lower triangle holds the inverse
    for start in range(0, len(inverse), TILE):
        rows = slice(start, start + TILE)
        inverse[:start, rows] = inverse[rows, :start].T
        tile = inverse[rows, rows]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
    weights = np.empty(inverse.shape, dtype=np.float32)
    np.multiply(inverse, -1.0 / inverse.diagonal(), out=weights, casting="same_kind")
    np.fill_diagonal(weights, 0.0)
    return weights


def sparse_ridge_weights(present: Any, penalty: float, n_neighbors: int) -> Any:
    """Sparse B >= 0: each item is regressed on the items that it occurs with most often.

    csr_array (N, N) of float32. As in SLIM, weights are not negative: so the regressions are
    well posed on a Gram matrix of which only the largest numbers of each item are kept, and no
    array of N^2 numbers is made.
    """
    lines = np.asarray(present.sum(axis=0), dtype=np.float64).ravel()
    scale = 1.0 / np.sqrt(np.maximum(lines, 1.0))

    def cosine(together: Floats, left: Ints, right: Ints) -> Floats:
        return np.asarray(together * scale[left] * scale[right])

    near = find_strongest_weights(present, cosine, n_neighbors)
    near = csr_array(near.T)  # row n: the items that n is regressed on
    near.sort_indices()
    row = np.repeat(np.arange(near.shape[0]), np.diff(near.indptr))
    near.data /= scale[row] * scale[near.indices]  # the number of rows with both
    gram = csr_array(near.maximum(near.T)).astype(np.float32)
    weights = np.zeros(near.nnz, dtype=np.float32)
    descend(
        near.indptr, near.indices, near.data.astype(np.float32),
        gram.indptr, gram.indices, gram.data,
        (lines + penalty).astype(np.float32), weights,
    )  # fmt: skip
    weighted = csr_array((weights, near.indices, near.indptr), shape=near.shape)
    weighted.eliminate_zeros()
    return csr_array(weighted.T)


def dense_fits(n_items: int) -> bool:
    """Whether the pairs of all items may be an array of N^2 numbers."""
    free = available_memory()
    need = BYTES_PER_PAIR * n_items**2
    return n_items <= MOST_DENSE and (free is None or need <= 0.5 * free)


def check_memory(n_items: int) -> None:
    """Refuse N^2 numbers that do not fit, with an estimate."""
    need, free = BYTES_PER_PAIR * n_items**2, available_memory()
    if free is not None and need > free:
        raise MemoryEstimateError(
            f"EASE of {n_items:,} items needs about {in_words(need)}, but only {in_words(free)} "
            "are free: drop rare items, or use ItemKNN or RP3beta, whose weights are sparse "
            "(BasketEmbedding: n_neighbors=100)"
        )
