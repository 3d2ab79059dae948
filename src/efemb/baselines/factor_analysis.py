"""FactorAnalysis: Gaussian factors, with exact prediction of each number from the others."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats
from efemb.baselines.arrays import dense, known_variances
from efemb.baselines.base import Baseline
from efemb.baselines.factor_em import fit_observed
from efemb.baselines.low_rank import predict_left_out
from efemb.engine.options import number, whole
from efemb.errors import ParameterError
from efemb.estimators.checks import check_components, check_variation, generator
from efemb.model.families import Family, Gaussian

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


@dataclass(eq=False, repr=False)
class FactorAnalysis(Baseline):
    """x_t = mean + W' z_t + noise, z_t ~ Normal(0, I), noise_n ~ Normal(0, psi_n).

    Fitted by scikit-learn, or by expectation-maximization to what is observed if values are missing
    (NaN). A value is predicted by its exact distribution given the other observed
    values of its row, E[x_n | rest] = x_n - (x_n - mean_n - w_n . zhat) / (1 - h_n),
    where zhat is the factor given the whole row and h_n = w_n' S w_n / psi_n with its covariance
    S; the variance is psi_n / (1 - h_n). Rows with the same missing cells share S, so
    that no matrix is larger than K x K.

    Parameters
    ----------
    n_components : int
        K.
    tol, max_iter : float, int
        Stop if the log-likelihood of all rows improves by less than `tol`, or after `max_iter`
        iterations.
    random_state : None, int, RandomState or Generator
        Random seed of the randomized singular value decomposition.
    verbose : int
        Show progress bars.

    Attributes
    ----------
    mean_ : array (N,)
    components_ : array (K, N)
        W.
    noise_variance_ : array (N,)
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
        number("tol", self.tol)
        whole("max_iter", self.max_iter)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        values = dense(data)
        check_variation(data, {})
        if self.n_components > data.n_entities:
            raise ParameterError(
                f"n_components={self.n_components} exceeds the number of entities, "
                f"{data.n_entities:,}"
            )
        # scikit-learn keeps variances above 1e-12, whatever the unit of the data is.
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
        """The same from the values that there are."""
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
