"""Nominal observations: one of D states each, such as an answer or the state of a neuron."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, check_integer
from efemb.model.families.base import Density, Family, Interval

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

LEAST_SHARE = 1e-3  # minimum share of a state for the starting value of an intercept


class Nominal(Density):
    """x_tn is an indicator vector of D states: P(state d) = exp(u_d) / sum over d' of exp(u_d').

    The categorical observation of the paper, but the categories are states of each entity instead
    of entities: rho_n and alpha_n are K x D. `efemb.data.indicators` makes indicators from a table
    of states. Solved by "generic", with any context.

    Parameters
    ----------
    n_states : int, default=2
        D, at least 2.

    Examples
    --------
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> first = rng.choice(["red", "green", "blue"], 300)
    >>> second = np.where(rng.random(300) < 0.8, first, rng.permutation(first))
    >>> answers = efemb.data.indicators(np.c_[first, second], entities=["car", "house"])
    >>> family, others = Nominal(3), efemb.Graph(1 - np.eye(2))
    >>> model = efemb.Embedding(2, family=family, context=others, random_state=0).fit(answers)
    >>> model.conditional(answers).shape, bool(model.score(answers) > -np.log(3))
    ((300, 2, 3), True)
    """

    support: ClassVar[Interval] = Interval(low=0, high=1, integer=True)
    links = ("identity",)
    missing = True
    judged_by_density = True

    def __init__(self, n_states: int = 2) -> None:
        self.n_states = n_states

    @property
    def states(self) -> int:  # type: ignore[override]
        """D."""
        return int(self.n_states)

    def _grouped(self, numbers: Floats) -> Floats:
        """The D numbers of each observation as rows."""
        return numbers.reshape(-1, self.states)

    def value_and_slope(self, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return x log p and x - p of every state; the states of an observation are adjacent."""
        indicator, u = self._grouped(x), self._grouped(v)
        log_p = u - _log_sums(u)
        slope = indicator - np.exp(log_p) * indicator.sum(axis=1, keepdims=True)
        return (indicator * log_p).reshape(v.shape), slope.reshape(v.shape)

    def expected_value(self, eta: Floats) -> Floats:
        """Return the probability of every state."""
        u = self._grouped(eta)
        return np.asarray(np.exp(u - _log_sums(u)).reshape(eta.shape))

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return p (1 - p)."""
        return mean * (1.0 - mean)

    def predictor(self, mean: Floats) -> Floats:
        """Return log(mean); a state that never occurs counts as rare."""
        return np.log(np.maximum(mean, LEAST_SHARE))

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw a state for each observation, as indicators."""
        u = self._grouped(eta)
        winner = np.argmax(u + rng.gumbel(size=u.shape), axis=1)
        return np.asarray(np.eye(self.states)[winner].reshape(eta.shape))

    def freeze(self, data: Dataset) -> Family:
        """Reject data that are not indicators of that many states."""
        if data.n_dims != self.states:
            raise DataError(
                f"Nominal({self.states}) needs observations of {self.states} indicators, got "
                f"{data.n_dims} numbers: efemb.data.indicators makes them from a table of states"
            )
        dense = np.asarray(data.values, dtype=np.float64)
        total = dense.sum(axis=2)  # NaN where anything is missing
        bad = (total != 1) & ~np.isnan(dense).all(axis=2)
        if bad.any():
            row, entity = (int(index[0]) for index in np.nonzero(bad))
            raise DataError(
                f"Nominal needs exactly one state per observation; row {row}, entity {entity} has "
                f"{dense[row, entity].tolist()} (and {int(bad.sum()) - 1:,} more); a missing "
                "observation is NaN in all its states"
            )
        return self

    def check(self) -> None:
        """`n_states` must be an integer of at least 2."""
        check_integer("Nominal.n_states", self.n_states, 2)


def _log_sums(u: Floats) -> Floats:
    """log of the sum of exp(u) of each row, (n, 1), without overflow."""
    top = u.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(u - top).sum(axis=1, keepdims=True)))
