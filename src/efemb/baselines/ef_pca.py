"""ExponentialFamilyPCA: rows and entities as vectors whose inner product is the parameter."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.baselines.arrays import Holdout
from efemb.baselines.early_stopping import Iterated, run_passes
from efemb.baselines.low_rank import FactorSearch, RowFits, predict_left_out
from efemb.data.matrices import dense, sparse
from efemb.errors import ParameterError
from efemb.estimators.checks import check_variation, generator
from efemb.model.families import Family, Gaussian
from efemb.model.ingredient import flag
from efemb.model.links import Identity
from efemb.model.score import log_expected_value

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

FAMILIES = ("poisson", "bernoulli", "gaussian")
BETWEEN_LOOKS = 5
# Multiplications per evaluation of the validation score; they determine the number of rows.
LOOK = 2e10


@dataclass(eq=False, repr=False)
class ExponentialFamilyPCA(Iterated):
    """Exponential family principal component analysis (Collins et al. 2001).

    x_tn has the natural parameter u = theta_t . beta_n. Maximizes the sum of x u - a(u) over all
    cells, minus penalty / 2 times the sum of all theta^2 and beta^2, by L-BFGS. With
    family="poisson" this is Poisson PCA. A cell is predicted with the theta inferred from all other
    cells of its row, including zeros: a convex problem, solved to convergence by Newton's method
    for each cell separately.

    Parameters
    ----------
    n_components : int, default=20
        K.
    family : {"poisson", "bernoulli", "gaussian"}, default="poisson"
        Distribution of the data.
    penalty : float, default=8.0
        Penalty > 0 of both kinds of vectors.
    positive : bool, default=False
        theta >= 0 and beta >= 0, as in the paper on embeddings; not for gaussian data. Without an
        intercept, no Poisson mean is then below 1.
    intercept : bool, default=False
        Add an unpenalized intercept per entity to u.
    max_iter : int, default=500
        Maximum number of iterations of L-BFGS.
    tol, n_iter_no_change : float, int
        Stop if the score, evaluated every 5 iterations, has not improved by `tol` in
        `n_iter_no_change` evaluations. It is the score of `validation`: of entries of the training
        rows with the current vectors, or of other rows (a subset if there are many) with vectors
        inferred from them; without `validation`, the objective per unit (or value).
    dtype : {"float32", "float64"}, default="float32"
        Precision of the fit; predictions are made in double precision.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the initial vectors.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    beta_ : array of shape (N, K)
    intercept_ : array of shape (N,)
        Zeros without an intercept.
    theta_ : array of shape (T, K)
        Factors of the training rows.
    history_ : list of dict
        Score at each evaluation.
    n_iter_, best_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(1.0, size=(50, 6))
    >>> ExponentialFamilyPCA(2, random_state=0).fit(X).beta_.shape
    (6, 2)
    """

    _: KW_ONLY
    family: str = "poisson"
    penalty: float = 8.0
    positive: bool = False
    intercept: bool = False
    dtype: str = "float32"

    intercept_: Floats = field(init=False)

    _positive = ("penalty",)

    def _family(self) -> Family:
        return Family.resolve(self.family)

    def _check(self) -> None:
        super()._check()
        family = self._family()
        if family.name() not in FAMILIES:
            raise ParameterError(
                f"family must be poisson, bernoulli or gaussian, got {self.family!r}"
            )
        if family.missing and family != Gaussian():
            raise ParameterError("Gaussian PCA has a noise variance of 1: pass family='gaussian'")
        for name in ("positive", "intercept"):
            flag(name, getattr(self, name))
        if self.positive and family.missing:
            raise ParameterError(
                "positive=True needs counts or binary data, not the gaussian family"
            )
        if str(self.dtype) not in ("float32", "float64"):
            raise ParameterError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}")

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        real = self.family_.missing
        if real:
            check_variation(data, {})
        held = Holdout.of(data, validation, missing=real)
        X = sparse(data)
        masked = held.mask(data.shape)
        if real:
            missing = np.isnan(dense(data))
            X, masked = np.where(missing, 0.0, dense(data)), csr_array(missing)
        search = FactorSearch(
            X,
            masked,
            self.family_,
            int(self.n_components),
            generator(self.random_state),
            penalty=float(self.penalty),
            positive=bool(self.positive),
            has_intercept=bool(self.intercept),
            dtype=str(self.dtype),
        )
        size = X.size if real else max(float(X.sum()), 1.0)

        def score() -> float:
            if not held.is_set:
                return search.value / size
            self._take(search.vectors())
            return self._held_score(data, held)

        best = run_passes(self, search.step, score, search.vectors, every=BETWEEN_LOOKS)
        self._take(best)
        if real:
            self._fit_variance(data)

    def _take(self, vectors: tuple[Floats, Floats, Floats]) -> None:
        theta, beta, intercept = (array.astype(np.float64) for array in vectors)
        self.theta_, self.beta_, self.intercept_ = theta, beta, intercept

    def _row_fits(self) -> RowFits:
        penalty, positive = float(self.penalty), bool(self.positive)
        return RowFits(self.beta_, self.intercept_, self.family_, penalty, positive)

    def _held_score(self, data: Dataset, held: Holdout) -> float:
        """Score of the held-out data with the current vectors; higher is better."""
        if self.family_.missing:
            if held.others is not None:
                gap = dense(held.others) - self._gaussian(held.others)[0]
            else:
                gap = held.x - self._gaussian(data)[0][held.rows, held.entities]
            return -float(np.nanmean(gap**2))
        if held.others is not None:
            n_rows = max(1, int(LOOK / self.beta_.shape[0] / self.beta_.shape[1] ** 2))
            return self._share_score(_some_rows(held.others, n_rows))
        # The vectors of the rows were fitted without these entries.
        return self._entry_score(self.theta_[held.rows], held.entities, held.x)

    # -- prediction of counts ----------------------------------------------------------------------

    def _factors(self, X: Any, rows: Ints, entities: Ints) -> Floats:
        distinct, index = np.unique(rows, return_inverse=True)
        x = X[distinct].toarray()
        start = np.tile(self.theta_.mean(axis=0), (len(distinct), 1))
        return self._row_fits().fit_without(start, x, index, entities)

    def _columns(self) -> tuple[Floats, Floats]:
        return self.beta_, self.intercept_

    def _log_mean(self, u: Floats) -> Floats:
        return log_expected_value(self.family_, Identity(), u)

    def _numbers_of_a_cell(self, n_entities: int) -> int:
        return max(n_entities, int(self.beta_.shape[1]) ** 2)

    # -- prediction of real numbers ----------------------------------------------------------------

    def _gaussian(self, data: Dataset) -> tuple[Floats, Floats]:
        """Mean of each cell given the rest of its row, and its variance with unit noise."""
        gap = dense(data) - self.intercept_
        loadings = self.beta_ / np.sqrt(self.penalty)  # theta ~ Normal(0, I / penalty)
        with progress_bar("predicting rows", data.n_rows, bool(self.verbose)) as advance:
            mean, variance = predict_left_out(gap, loadings, np.ones(len(loadings)), advance)
        return mean + self.intercept_, variance

    def _fit_variance(self, data: Dataset) -> None:
        """Choose the noise variance that makes the left-out training data most probable."""
        mean, variance = self._gaussian(data)
        gap = dense(data) - mean
        self.family_ = Gaussian(max(float(np.nanmean(gap * gap / variance)), 1e-300))

    def _moments(self, data: Dataset) -> tuple[Floats, Floats]:
        mean, variance = self._gaussian(data)
        return mean, self.family_.variance_of_mean(mean) * variance


def _some_rows(data: Dataset, n_rows: int) -> Dataset:
    """Evenly spaced rows, if possible such that can be scored."""
    present = sparse(data)
    rows = np.flatnonzero(np.diff(present.indptr) >= 2)
    if len(rows) <= n_rows:
        return data
    return data.take_rows(rows[np.linspace(0, len(rows) - 1, n_rows).astype(np.int64)])
