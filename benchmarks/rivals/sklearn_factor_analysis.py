"""scikit-learn's FactorAnalysis: the rival on real data, predicting each number from the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class FactorAnalysisRival:
    """Exact conditional means under the fitted Gaussian.

    With P the inverse covariance, x_n - E[x_n | rest] = (P (x - mean))_n / P_nn; P is
    diag(1 / psi) less a matrix of rank k.
    """

    def fit(self, train: Array, k: int, seed: int) -> None:
        """Learn from frames."""
        from sklearn.decomposition import FactorAnalysis

        self.model = FactorAnalysis(k, random_state=seed).fit(train)

    def conditional(self, X: Any) -> Array:
        """E[x_n | the other neurons of the frame] of every cell."""
        found, values = self.model, np.asarray(getattr(X, "values", X))
        inverse = 1.0 / found.noise_variance_
        loadings = found.components_ * inverse
        core = np.linalg.inv(np.eye(len(loadings)) + loadings @ found.components_.T)
        diagonal = inverse - np.einsum("kn,kl,ln->n", loadings, core, loadings)
        centered = values - found.mean_
        product = centered * inverse - centered @ loadings.T @ core @ loadings
        return np.asarray(values - product / diagonal)
