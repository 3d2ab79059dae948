"""HPF: hierarchical Poisson factorization by coordinate ascent."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from efemb._typing import Floats, Ints
from efemb.baselines.arrays import Holdout
from efemb.baselines.early_stopping import Iterated, run_passes
from efemb.data.matrices import sparse
from efemb.estimators.checks import generator
from efemb.kernels.poisson_factors import fold_in, gamma_posterior, log_products, share_counts
from efemb.model.families import Family, Poisson

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

# A fold-in has converged if no element of theta moves by more than this fraction of the largest.
SETTLED, ROUNDS = 1e-7, 100_000
BETWEEN_CHECKS = 10


@dataclass(eq=False, repr=False)
class HPF(Iterated):
    """Hierarchical Poisson factorization (Gopalan, Hofman and Blei 2015).

    x_tn ~ Poisson(theta_t . beta_n); theta_tk ~ Gamma(a, xi_t), xi_t ~ Gamma(a', a' / b'); beta_nk
    ~ Gamma(c, eta_n), eta_n ~ Gamma(c', c' / d'); mean-field variational inference, in passes over
    the stored counts only. A cell is predicted by the posterior means; theta is inferred from all
    other cells of its row, including zeros, by coordinate ascent to convergence.

    Parameters
    ----------
    n_components : int, default=20
        K.
    a, a_prime, c, c_prime : float, default=0.3
        Shapes of the gamma priors.
    b_prime, d_prime : float, default=1.0
        Rates of the gamma priors are a' / b' and c' / d'.
    max_iter : int, default=1000
        Maximum number of passes.
    tol, n_iter_no_change : float, int
        Stop if the score, evaluated every 10 passes, has not improved by `tol` in
        `n_iter_no_change` evaluations: the normalized log-likelihood per unit of `validation`, or
        without it the log-likelihood per unit of the training data.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the initial factors.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    beta_ : array of shape (N, K)
        Posterior means of the factors of entities.
    geometric_beta_ : array of shape (N, K)
        Their geometric means, exp(E[log beta]).
    theta_ : array of shape (T, K)
        Posterior means of the factors of training rows.
    history_ : list of dict
        Score at each evaluation.
    n_iter_, best_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(1.0, size=(50, 6))
    >>> HPF(2, random_state=0).fit(X).beta_.shape
    (6, 2)
    """

    _: KW_ONLY
    a: float = 0.3
    a_prime: float = 0.3
    b_prime: float = 1.0
    c: float = 0.3
    c_prime: float = 0.3
    d_prime: float = 1.0
    max_iter: int = 1000

    geometric_beta_: Floats = field(init=False)

    _positive = ("a", "a_prime", "b_prime", "c", "c_prime", "d_prime")

    def _family(self) -> Family:
        return Poisson()

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        held = Holdout.of(data, validation, missing=False)
        ascent = _Ascent(self, sparse(data), held)

        def score() -> float:
            if not held.is_set:
                return ascent.log_likelihood()
            self.beta_, self.geometric_beta_ = ascent.columns.mean, ascent.columns.geometric
            if held.others is not None:
                return self._share_score(held.others)
            # The rows' factors were recovered without these entries: no fold-in is needed.
            return self._entry_score(ascent.rows.mean[held.rows], held.entities, held.x)

        best = run_passes(self, ascent.step, score, ascent.state, every=BETWEEN_CHECKS)
        self.theta_, self.beta_, self.geometric_beta_ = best

    def _factors(self, X: Any, rows: Ints, entities: Ints) -> Floats:
        theta = np.empty((len(rows), self.beta_.shape[1]))
        arrays = (X.indptr, X.indices, X.data, rows, entities)
        means = (self.beta_, self.geometric_beta_, self.beta_.sum(axis=0))
        top_shape = self.a_prime + theta.shape[1] * self.a
        prior = (self.a, top_shape, self.a_prime / self.b_prime)
        unsettled = fold_in(*arrays, *means, *prior, SETTLED, ROUNDS, theta)
        if unsettled:
            warnings.warn(
                f"the factors of {unsettled} cells were still moving after {ROUNDS:,} rounds",
                ConvergenceWarning,
                stacklevel=2,
            )
        return theta

    def _columns(self) -> tuple[Floats, Floats]:
        return self.beta_, np.zeros(len(self.beta_))

    def _log_mean(self, u: Floats) -> Floats:
        return np.log(u)


class _Side:
    """Variational parameters of the factors of the rows, or of the entities."""

    def __init__(self, start: Floats, shape: float, top_shape: float, top_rate: float) -> None:
        self.mean, self.geometric = start, start.copy()  # E[.] and exp(E[log .])
        self.sums = np.empty_like(start)  # counts shared among the components
        self.shape, self.top_rate = shape, top_rate
        self.top_shape = top_shape + start.shape[1] * shape
        self.top = np.ones(len(start))
        self.masked: Any = None
        self.nothing = np.broadcast_to(0.0, start.shape)

    def update(self, other: Floats) -> None:
        """Posterior of the factors given the other side's means, then of their own rates."""
        expected = self.nothing if self.masked is None else self.masked @ other
        total = other.sum(axis=0)
        gamma_posterior(self.sums, self.shape, self.top, total, expected, self.mean, self.geometric)
        np.divide(self.top_shape, self.top_rate + self.mean.sum(axis=1), out=self.top)


class _Ascent:
    """Coordinate ascent over all rows and entities."""

    def __init__(self, model: HPF, X: Any, held: Holdout) -> None:
        self.ptr, self.ids = X.indptr, X.indices
        self.x = X.data.astype(np.float64)
        self.units = max(float(self.x.sum()), 1.0)
        rng, size = generator(model.random_state), int(model.n_components)
        # Components that start almost equal reach a better maximum than very different ones.
        level = np.sqrt(self.units / (size * X.shape[0] * X.shape[1]))
        start = [level * (1.0 + 0.01 * rng.random((n, size))) for n in X.shape]
        self.rows = _Side(start[0], model.a, model.a_prime, model.a_prime / model.b_prime)
        self.columns = _Side(start[1], model.c, model.c_prime, model.c_prime / model.d_prime)
        if len(held.rows):
            mask = held.mask(X.shape)
            self.rows.masked, self.columns.masked = mask, mask.T.tocsr()

    def step(self) -> bool:
        """One round: the shares of the counts, then rows, then entities."""
        factors = (self.rows.geometric, self.columns.geometric, self.rows.sums, self.columns.sums)
        share_counts(self.ptr, self.ids, self.x, *factors)
        self.rows.update(self.columns.mean)
        self.columns.update(self.rows.mean)
        return True

    def state(self) -> tuple[Floats, Floats, Floats]:
        """Copies of the factors."""
        return self.rows.mean.copy(), self.columns.mean.copy(), self.columns.geometric.copy()

    def log_likelihood(self) -> float:
        """Log-likelihood of the training data at the posterior means, per unit, without log x!."""
        theta, beta = self.rows.mean, self.columns.mean
        total = np.empty(len(self.x))
        log_products(self.ptr, self.ids, theta, beta, total)
        return float(self.x @ total - theta.sum(axis=0) @ beta.sum(axis=0)) / self.units
