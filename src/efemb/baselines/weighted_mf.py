"""WeightedMF: matrix factorization in which zeros have little weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Floats, Ints
from efemb.baselines.arrays import Holdout
from efemb.baselines.early_stopping import Iterated, run_passes
from efemb.data.matrices import sparse
from efemb.estimators.checks import generator
from efemb.model.families import Categorical, Family
from efemb.model.predictor import CHUNK_NUMBERS

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


@dataclass(eq=False, repr=False)
class WeightedMF(Iterated):
    """Least squares on presence, weighted by the counts (Hu, Koren and Volinsky 2008).

    Minimizes the sum over all cells of c_tn (1[x_tn > 0] - theta_t . beta_n)^2, with
    c_tn = zero_weight + x_tn, plus penalty (sum of theta^2 + sum of beta^2), by alternating least
    squares. Their c = 1 + alpha x is the same with zero_weight = 1 / alpha and penalty =
    lambda / alpha.

    This is not a model of counts: shares are proportional to max(theta . beta, floor), with the
    theta of the row without the cell in closed form.

    Parameters
    ----------
    n_components : int, default=20
        K.
    zero_weight : float, default=0.1
        Weight > 0 of a zero.
    penalty : float, default=1.0
        Ridge penalty > 0 on all factors.
    floor : float, default=0.01
        Lower bound > 0 of an inner product.
    max_iter : int, default=50
        Maximum number of sweeps over rows and entities.
    tol, n_iter_no_change : float, int
        Stop if the score has not improved by `tol` in `n_iter_no_change` sweeps: the normalized
        log-likelihood per unit of `validation`, or without it minus the loss per unit.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the initial factors of the entities.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    beta_ : array of shape (N, K)
    theta_ : array of shape (T, K)
        Factors of the training rows.
    history_ : list of dict
        Score after each sweep.
    n_iter_, best_iter_ : int
    converged_ : bool
    family_ : Categorical
        Only the shares of the means are meaningful.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(0.5, size=(50, 6))
    >>> WeightedMF(2, random_state=0).fit(X).beta_.shape
    (6, 2)
    """

    _: KW_ONLY
    zero_weight: float = 0.1
    penalty: float = 1.0
    floor: float = 0.01
    max_iter: int = 50
    n_iter_no_change: int = 3

    _positive = ("zero_weight", "penalty", "floor")

    def _family(self) -> Family:
        return Categorical()

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        held = Holdout.of(data, validation, missing=False)
        X = sparse(data).astype(np.float64)
        masked = held.mask(data.shape)
        sides = [_Regressions.of(*pair, self) for pair in ((X, masked), (X.T, masked.T))]
        start = generator(self.random_state).standard_normal((data.n_entities, self.n_components))
        self.beta_ = start / np.sqrt(float(self.n_components))
        self.theta_ = sides[0].solve(self.beta_)

        def sweep() -> bool:
            self.beta_ = sides[1].solve(self.theta_)
            self.theta_ = sides[0].solve(self.beta_)
            return True

        def score() -> float:
            if held.others is not None:
                return self._share_score(held.others)
            if held.is_set:
                return self._entry_score(self.theta_[held.rows], held.entities, held.x)
            return -self._loss(X) / max(float(X.sum()), 1.0)

        best = run_passes(self, sweep, score, lambda: (self.theta_, self.beta_), every=1)
        self.theta_, self.beta_ = best

    def _loss(self, X: Any) -> float:
        """The objective on complete data."""
        theta, beta = self.theta_, self.beta_
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        u = np.einsum("ik,ik->i", theta[rows], beta[X.indices])
        weight = float(self.zero_weight)
        zeros = weight * float(np.sum((theta.T @ theta) * (beta.T @ beta)))
        stored = float(np.sum((weight + X.data) * (1.0 - u) ** 2 - weight * u**2))
        return zeros + stored + float(self.penalty) * float(np.sum(theta**2) + np.sum(beta**2))

    def _factors(self, X: Any, rows: Ints, entities: Ints) -> Floats:
        """theta - S b c (p - b . theta) / (1 - c b'S b), S the inverse of the row's matrix."""
        distinct, place = np.unique(rows, return_inverse=True)
        counts = X[distinct]
        fits, size = _Regressions.of(counts, csr_array(counts.shape), self), self.beta_.shape[1]
        inverse, response = np.empty((len(distinct), size, size)), np.empty((len(distinct), size))
        for block in fits.blocks(size):
            matrix, response[block] = fits.equations(block, self.beta_)
            inverse[block] = np.linalg.inv(matrix)
        theta = np.matmul(inverse, response[..., None])[place, :, 0]
        b = self.beta_[entities]
        x = np.asarray(counts[place, entities]).ravel()
        weight = float(self.zero_weight) + x
        gap = weight * ((x > 0) - np.einsum("ik,ik->i", b, theta))
        pull = np.matmul(inverse[place], b[..., None])[..., 0]
        rest = 1.0 - weight * np.einsum("ik,ik->i", b, pull)
        return np.asarray(theta - pull * (gap / rest)[:, None])

    def _columns(self) -> tuple[Floats, Floats]:
        return self.beta_, np.zeros(len(self.beta_))

    def _log_mean(self, u: Floats) -> Floats:
        return np.log(np.maximum(u, float(self.floor)))

    def _numbers_of_a_cell(self, n_entities: int) -> int:
        return max(n_entities, int(self.beta_.shape[1]) ** 2)


@dataclass(frozen=True)
class _Regressions:
    """One weighted ridge regression per row, of presence on the other side's vectors.

    cells : csr_array of the cells other than ordinary zeros, with their weight less that of a
        zero; a masked cell subtracts its zero
    response : weight times target of each cell
    """

    cells: Any
    response: Floats
    zero_weight: float
    penalty: float

    @classmethod
    def of(cls, X: Any, masked: Any, model: WeightedMF) -> _Regressions:
        zero = float(model.zero_weight)
        cells = (X - zero * masked).tocsr()
        response = np.where(cells.data > 0, cells.data + zero, 0.0)
        return cls(cells, response, zero, float(model.penalty))

    def equations(self, rows: Ints, vectors: Floats) -> tuple[Floats, Floats]:
        """Matrices (rows, K, K) and right-hand sides (rows, K)."""
        first, counts = self.cells.indptr[rows], np.diff(self.cells.indptr)[rows]
        reach = np.arange(counts.max(initial=0))
        real = reach < counts[:, None]
        slots = np.where(real, first[:, None] + reach, 0)
        V = vectors[self.cells.indices[slots]]
        weight = np.where(real, self.cells.data[slots], 0.0)
        response = np.where(real, self.response[slots], 0.0)
        matrix = np.matmul((V * weight[..., None]).transpose(0, 2, 1), V)
        size = vectors.shape[1]
        matrix += self.zero_weight * (vectors.T @ vectors) + self.penalty * np.eye(size)
        return matrix, np.matmul(response[:, None, :], V)[:, 0]

    def blocks(self, size: int) -> Iterator[Ints]:
        """All rows, those with many cells first, so that rows of a block are about equally long."""
        counts = np.diff(self.cells.indptr)
        order = np.argsort(-counts, kind="stable")
        start = 0
        while start < len(order):
            step = max(1, CHUNK_NUMBERS // (size * max(size, int(counts[order[start]]))))
            yield order[start : start + step]
            start += step

    def solve(self, vectors: Floats) -> Floats:
        """Weights of all rows."""
        solutions = np.empty((self.cells.shape[0], vectors.shape[1]))
        for rows in self.blocks(vectors.shape[1]):
            matrix, response = self.equations(rows, vectors)
            solutions[rows] = np.linalg.solve(matrix, response[..., None])[..., 0]
        return solutions
