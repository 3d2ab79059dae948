"""FactorAnalysis: Gaussian factors, with exact prediction of each number from the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Bools, Floats
from efemb.baselines.arrays import known_variances
from efemb.baselines.base import Baseline
from efemb.baselines.low_rank import predict_left_out
from efemb.data.matrices import dense
from efemb.errors import ParameterError, check_integer, check_number
from efemb.estimators.checks import check_components, check_variation, generator
from efemb.model.families import Family, Gaussian

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

LEAST_NOISE = 1e-6  # relative to an entity's variance
RIDGE = 1e-9  # keeps the regression of an entity with few observations regular


@dataclass(eq=False, repr=False)
class FactorAnalysis(Baseline):
    """x_t = mean + W' z_t + noise, z_t ~ Normal(0, I), noise_n ~ Normal(0, psi_n).

    Fitted by scikit-learn or, if values are missing (NaN), to the observed values by expectation
    maximization. A value is predicted by its exact distribution given the other observed
    values of its row, E[x_n | rest] = x_n - (x_n - mean_n - w_n . zhat) / (1 - h_n),
    where zhat is the factor given the whole row and h_n = w_n' S w_n / psi_n with its covariance
    S; the variance is psi_n / (1 - h_n). Rows with the same missing cells share S, so
    that no matrix is larger than K x K.

    Parameters
    ----------
    n_components : int, default=10
        K.
    tol, max_iter : float, int
        Stop if the log-likelihood of all rows improves by less than `tol`, or after `max_iter`
        iterations.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the randomized singular value decomposition.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    mean_ : array of shape (N,)
    components_ : array of shape (K, N)
        W.
    noise_variance_ : array of shape (N,)
        psi; constant entities have the mean noise of the others.
    family_ : Gaussian
        Its sigma2 is the mean variance of an entity given all others.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3))
    >>> model = FactorAnalysis(1).fit(X)
    >>> model.conditional([[1.0, 1.0, np.nan]]).round(1)
    array([[1., 1., 1.]])
    """

    n_components: int = 10
    _: KW_ONLY
    tol: float = 0.01
    max_iter: int = 1000
    random_state: Any = 0
    verbose: int = 0

    mean_: Floats = field(init=False)
    components_: Floats = field(init=False)
    noise_variance_: Floats = field(init=False)

    def _family(self) -> Family:
        return Gaussian()

    def _check(self) -> None:
        check_components(self.n_components)
        check_number("tol", self.tol, low=0)
        check_integer("max_iter", self.max_iter)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        values = dense(data)
        check_variation(data, {})
        if self.n_components > data.n_entities:
            raise ParameterError(
                f"n_components={self.n_components} exceeds the number of entities, "
                f"{data.n_entities:,}"
            )
        # scikit-learn keeps variances above 1e-12, whatever the unit of the data.
        unit = float(np.sqrt(np.nanvar(values, axis=0).mean())) or 1.0
        fit = self._fit_observed if np.isnan(values).any() else self._fit_complete
        mean, loadings, noise, self.n_iter_ = fit(values / unit)
        self.mean_, self.components_ = unit * mean, unit * loadings.T
        self.noise_variance_ = known_variances(unit**2 * noise, values)
        whole_row = np.zeros((1, data.n_entities))
        variance = predict_left_out(
            whole_row, self.components_.T, self.noise_variance_, lambda _: None
        )[1]
        self.family_ = Gaussian(float(variance.mean()))

    def _fit_complete(self, values: Floats) -> tuple[Floats, Floats, Floats, int]:
        """Mean, loadings, noise and iterations, by scikit-learn."""
        from sklearn.decomposition import FactorAnalysis as Fit

        seed = int(generator(self.random_state).integers(2**31))
        fit = Fit(self.n_components, tol=self.tol, max_iter=self.max_iter, random_state=seed)
        with progress_bar("factor analysis", 0, bool(self.verbose)):
            solution = fit.fit(values)
        return solution.mean_, solution.components_.T, solution.noise_variance_, solution.n_iter_

    def _fit_observed(self, values: Floats) -> tuple[Floats, Floats, Floats, int]:
        """The same from the observed values only."""
        with progress_bar("factor analysis", self.max_iter, bool(self.verbose)) as advance:
            factors = fit_observed(
                values,
                self.n_components,
                tol=self.tol,
                max_iter=self.max_iter,
                rng=generator(self.random_state),
                advance=advance,
            )
        return factors.mean, factors.loadings, factors.noise, factors.n_iter

    def _moments(self, data: Dataset) -> tuple[Floats, Floats]:
        gap = dense(data) - self.mean_
        with progress_bar("predicting rows", data.n_rows, bool(self.verbose)) as advance:
            mean, variance = predict_left_out(
                gap, self.components_.T, self.noise_variance_, advance
            )
        return mean + self.mean_, variance


@dataclass
class Factors:
    """x_t = mean + W' z_t + noise: mean (N,), loadings W' (N, K), noise variances (N,)."""

    mean: Floats
    loadings: Floats
    noise: Floats
    n_iter: int = 0


def fit_observed(
    values: Floats,
    k: int,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> Factors:
    """Maximize the likelihood of the observed values; NaN marks the others.

    Stops when the log-likelihood of all rows rises by less than `tol`.
    """
    observed = ~np.isnan(values)
    filled = np.where(observed, values, 0.0)
    factors, least = _initial_factors(filled, observed, k, rng)
    before = -np.inf
    for step in range(1, max_iter + 1):
        z, covariance, likelihood = _expect(filled, observed, factors)
        factors.n_iter = step
        if likelihood - before < tol:
            break
        before = likelihood
        _maximize(filled, observed, z, covariance, factors, least)
        advance(1)
    return factors


def _initial_factors(
    filled: Floats, seen: Bools, k: int, rng: np.random.Generator
) -> tuple[Factors, Floats]:
    """Principal components of the data with means in the gaps, and the minimum noise."""
    count = np.maximum(seen.sum(axis=0), 1)
    mean = filled.sum(axis=0) / count
    gap = np.where(seen, filled - mean, 0.0)
    variance = (gap**2).sum(axis=0) / count
    least = LEAST_NOISE * np.where(variance > 0, variance, max(float(variance.mean()), 1e-300))
    _, size, basis = np.linalg.svd(gap, full_matrices=False)
    loadings = np.zeros((filled.shape[1], k))
    rank = min(k, len(size))
    loadings[:, :rank] = basis[:rank].T * (size[:rank] / np.sqrt(len(filled)))
    loadings += 1e-3 * np.sqrt(variance)[:, None] * rng.normal(size=loadings.shape)
    noise = np.maximum(variance - (loadings**2).sum(axis=1), np.maximum(0.1 * variance, least))
    return Factors(mean, loadings, noise), least


def _expect(filled: Floats, seen: Bools, factors: Factors) -> tuple[Floats, Floats, float]:
    """Means (T, K) and covariances (T, K, K) of the factors, and the log-likelihood."""
    loadings, noise = factors.loadings, factors.noise
    k = loadings.shape[1]
    outer = (loadings[:, :, None] * loadings[:, None, :] / noise[:, None, None]).reshape(-1, k * k)
    precision = (seen @ outer).reshape(-1, k, k) + np.eye(k)
    gap = np.where(seen, filled - factors.mean, 0.0)
    along = (gap / noise) @ loadings
    covariance = np.linalg.inv(precision)
    z = np.einsum("tkl,tl->tk", covariance, along)
    sign, log_det = np.linalg.slogdet(precision)
    assert (sign > 0).all()  # the matrix includes the identity
    constant = seen @ np.log(2.0 * np.pi * noise)
    quadratic = (gap**2 / noise).sum(axis=1) - (along * z).sum(axis=1)
    return z, covariance, -0.5 * float((quadratic + log_det + constant).sum())


def _maximize(
    filled: Floats, seen: Bools, z: Floats, covariance: Floats, factors: Factors, least: Floats
) -> None:
    """Regress every entity on the factors of the rows in which it is observed, in place."""
    k = z.shape[1]
    moments = (covariance + z[:, :, None] * z[:, None, :]).reshape(-1, k * k)
    count = seen.sum(axis=0).astype(np.float64)
    gram = np.empty((len(count), k + 1, k + 1))
    gram[:, :k, :k] = (seen.T @ moments).reshape(-1, k, k)
    gram[:, :k, k] = gram[:, k, :k] = seen.T @ z
    gram[:, k, k] = count
    cross = np.concatenate([filled.T @ z, filled.sum(axis=0)[:, None]], axis=1)
    regular = gram + RIDGE * np.maximum(count, 1.0)[:, None, None] * np.eye(k + 1)
    solution = np.linalg.solve(regular, cross[:, :, None])[:, :, 0]
    factors.loadings, factors.mean = solution[:, :k], solution[:, k]
    residual = (filled**2).sum(axis=0) - 2.0 * np.einsum("nk,nk->n", solution, cross)
    residual += np.einsum("nk,nkl,nl->n", solution, gram, solution)
    factors.noise = np.maximum(residual / np.maximum(count, 1.0), least)
