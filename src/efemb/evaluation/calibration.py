"""Calibration: turn any scores into probabilities of the next item, given the current ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from efemb._typing import Floats, Ints
from efemb.errors import DataError
from efemb.evaluation.adapter import (
    Judged,
    as_dataset,
    family_of,
    refuse_overlap,
    stored_entries,
    vocabulary_of,
)
from efemb.evaluation.predictions import context_members
from efemb.model.objective import CACHED_NUMBERS, log_sums

_TOLERANCE = 1e-6  # of the gradient of the log-likelihood per unit
_RIDGE = 1e-6  # keeps weights finite if a model's scores equal those of popularity


class Weights(NamedTuple):
    """Coefficients of the mean, its logarithm and the logarithm of popularity."""

    mean: float
    log_mean: float
    log_popularity: float


class Calibrated:
    """log p_j = a m_j + c log m_j + d log q_j + constant, over the entities j outside the context.

    Here m are the conditional means of a fitted model, or scores that only rank (as returned by
    `log_means`), or their shares; q is the popularity. The calibrated log-likelihood makes models
    with and without probabilities of their own comparable; it is
    ``leave_one_out(calibrated, X).normalized_log_likelihood()``.

    Attributes
    ----------
    weights : Weights
        a, c and d.
    of_shares : bool
        Whether m are shares; the choice with the larger likelihood.
    largest : float
        Largest m among the calibration entries; larger values are clipped to it.
    """

    def __init__(
        self,
        model: Any,
        popularity: Floats,
        weights: Weights,
        *,
        of_shares: bool,
        largest: float = np.inf,
    ) -> None:
        self.model, self.weights = model, weights
        self.of_shares, self.largest = of_shares, largest
        self.log_popularity = np.log(popularity)
        self.family_, self.vocabulary_ = family_of(model), vocabulary_of(model)
        self.binarize = getattr(model, "binarize", False)

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Floats]]:
        """Log shares up to a constant per cell, -infinity for entities in the context.

        Parameters
        ----------
        X : rows x entities
            As expected by the calibrated model.
        rows, entities : integer arrays of shape (n,)
            The queried cells.

        Yields
        ------
        slice
            Positions of a block of queried cells.
        array of shape (cells of the block, N)
        """
        context, _ = stored_entries(as_dataset(X))
        a, c, d = self.weights
        for cells, block in self.model.log_means(X, rows, entities):
            log_means = _log_shares(block) if self.of_shares else block
            values = c * log_means + d * self.log_popularity
            values += a * np.exp(np.minimum(log_means, np.log(self.largest)))
            values[context_members(context, rows[cells], entities[cells])] = -np.inf
            yield cells, values


def calibrate(model: Any, X: Any, entries: Any, popularity: Any) -> Calibrated:
    """Fit the three weights of `Calibrated` to held-out entries by maximum likelihood per unit.

    Parameters
    ----------
    model : fitted estimator, baseline or FittedEmbedding of counts or binary data
        The model whose scores are calibrated.
    X : rows x entities
        Data without the held-out entries.
    entries : like X, of the same shape
        The held-out entries, as in `held_out_entries`; neither training nor test data.
    popularity : array of shape (N,)
        Positive numbers, such as `Popularity().fit(train).mean_`.

    Returns
    -------
    Calibrated
        A model with `log_means`, for any protocol of this module.

    Notes
    -----
    The log-likelihood is concave and is maximized by Newton's method. The means of all entities
    given the row of each entry are held in memory, four bytes each.

    Examples
    --------
    >>> import efemb
    >>> from efemb.baselines import Popularity
    >>> from efemb.evaluation import leave_one_out
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=600, n_entities=12, n_components=2, seed=0
    ... )
    >>> known, test = trips.data.split(test=0.2, seed=0)
    >>> train, held = known.split(test=0.1, by="entries", seed=0)
    >>> model = efemb.PoissonEmbedding(2, random_state=0).fit(train, validation=held)
    >>> calibrated = calibrate(model, train, held, Popularity().fit(train).mean_)
    >>> for judged in (model, calibrated):
    ...     print(round(leave_one_out(judged, test).normalized_log_likelihood().value, 2))
    -2.19
    -1.80
    """
    judged = Judged.of(model, X)
    context, _ = stored_entries(judged.data)
    held, row = stored_entries(as_dataset(entries))
    refuse_overlap(held.multiply(context))
    if len(row) == 0:
        raise DataError("entries is empty: there is nothing to calibrate with")
    quantities = np.asarray(popularity, dtype=np.float64)
    if quantities.shape != (judged.data.n_entities,) or not (quantities > 0).all():
        raise DataError(
            f"popularity must be {judged.data.n_entities} positive numbers, one per entity; "
            f"got shape {quantities.shape}, smallest value {quantities.min(initial=np.inf)}"
        )
    entity = held.indices.astype(np.int64)
    log_means = np.empty((len(row), judged.data.n_entities), dtype=np.float32)
    for cells, block in model.log_means(judged.data, row, entity):
        log_means[cells] = block
    absent = context_members(context, row, entity)
    inputs = (np.log(quantities), absent, entity, held.data.astype(np.float64))
    means, shares = _Problem(log_means, *inputs), _Problem(_log_shares(log_means), *inputs)
    solutions = {False: means.solve(), True: shares.solve()}
    of_shares = solutions[True][1] > solutions[False][1]
    largest = np.exp((shares if of_shares else means).log_means.max(initial=-np.inf))
    weights = solutions[of_shares][0]
    return Calibrated(model, quantities, weights, of_shares=of_shares, largest=float(largest))


def _log_shares(log_means: Floats) -> Floats:
    return np.asarray(log_means - log_sums(log_means)[:, None].astype(log_means.dtype))


class _Problem(NamedTuple):
    """Choices among the entities outside the context, one per held-out entry.

    log_means : (n, N);  log_popularity : (N,);  absent : cells that cannot be chosen;
    entity, units : (n,) the chosen entity, and how often it was chosen
    """

    log_means: Floats
    log_popularity: Floats
    absent: tuple[Ints, Ints]
    entity: Ints
    units: Floats

    def solve(self) -> tuple[Weights, float]:
        """Weights and log-likelihood, by Newton steps within a trust region."""

        @lru_cache(maxsize=2)  # the optimizer requests value and derivatives one after the other
        def expand(*weights: float) -> tuple[float, Floats, Floats]:
            return self._expand(np.array(weights))

        def loss(weights: Floats) -> float:
            return -expand(*weights)[0]

        options: dict[str, Any] = {
            "jac": lambda weights: -expand(*weights)[1],
            "hess": lambda weights: expand(*weights)[2],
            "method": "trust-exact",
            "options": {"gtol": _TOLERANCE},
        }
        solution = minimize(loss, np.array([0.0, 1.0, 0.0]), **options)
        return Weights(*solution.x.tolist()), -float(solution.fun)

    def _expand(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Mean log-likelihood per unit, its gradient (3,) and minus its Hessian (3, 3)."""
        value, gradient, curvature = 0.0, np.zeros(3), np.zeros((3, 3))
        size = max(1, CACHED_NUMBERS // max(len(self.log_popularity), 1))
        for start in range(0, len(self.entity), size):
            terms = self._expand_block(weights, slice(start, start + size))
            value, gradient, curvature = (
                value + terms[0],
                gradient + terms[1],
                curvature + terms[2],
            )
        total = self.units.sum()
        penalty = 0.5 * _RIDGE * float(weights @ weights)
        gradient = gradient / total - _RIDGE * weights
        return value / total - penalty, gradient, curvature / total + _RIDGE * np.eye(3)

    def _expand_block(self, weights: Floats, block: slice) -> tuple[float, Floats, Floats]:
        """The same sums over a block of entries: E[f] and Cov[f] of the features f under p."""
        log_means, units = self.log_means[block].astype(np.float64), self.units[block]
        popularity = np.broadcast_to(self.log_popularity, log_means.shape)
        features = (np.exp(log_means), log_means, popularity)
        u = sum(weight * feature for weight, feature in zip(weights, features, strict=True))
        low, high = np.searchsorted(self.absent[0], (block.start, block.start + len(units)))
        u[self.absent[0][low:high] - block.start, self.absent[1][low:high]] = -np.inf
        log_shares = u - log_sums(u)[:, None]
        share = np.exp(log_shares)
        chosen = (np.arange(len(units)), self.entity[block])
        expected = np.stack([np.einsum("ij,ij->i", share, f) for f in features], axis=1)
        gradient = units @ (np.stack([f[chosen] for f in features], axis=1) - expected)
        curvature = -(expected.T * units) @ expected
        share *= units[:, None]
        for i, left in enumerate(features):
            for j, right in enumerate(features):
                curvature[i, j] += np.einsum("ij,ij,ij->", share, left, right)
        return float(units @ log_shares[chosen]), gradient, curvature
