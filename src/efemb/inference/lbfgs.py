"""L-BFGS for many small smooth problems side by side, with a step size for each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from efemb._typing import Bools, Floats, Ints

Evaluate = Callable[[Floats, Ints], tuple[Floats, Floats]]
Precondition = Callable[[Floats, Ints], Floats]
ARMIJO = 1e-4
MOST_ROUNDS = 500
SHORTEST = 1e-9  # relative to the first step: shorter ones are not progress
MEMORY = 12  # past rounds whose steps shape the curvature


@dataclass
class Solution:
    """theta : (n, p);  value : (n,);  exhausted : (n,) not converged in the last round."""

    theta: Floats
    value: Floats
    exhausted: Bools


def warn_exhausted(n: int, advice: str) -> None:
    """Warn if any vectors did not converge."""
    if n:
        from sklearn.exceptions import ConvergenceWarning

        text = f"{n} vectors were still improving after the last round: {advice}"
        warnings.warn(text, ConvergenceWarning, stacklevel=3)


class Problems:
    """n problems in p numbers each.

    In every round each unsolved problem is evaluated once: at the end of its step, or of a shorter
    one if that did not improve it. No problem waits for another.

    Parameters
    ----------
    evaluate : (theta (m, p), which (m,)) -> values (m,), gradients (m, p)
    start : array of shape (n, p)
    precondition : (gradient (m, p), which (m,)) -> array (m, p)
        Approximately the inverse of the negative Hessian times the gradient.
    noise : float
        Relative error of the values.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        start: Floats,
        precondition: Precondition,
        *,
        noise: float = 1e-12,
    ) -> None:
        self.precondition, self.noise = precondition, noise
        self.theta = np.array(start, dtype=np.float64)
        self.steps: list[tuple[Floats, Floats, Floats]] = []
        self.rounds, self.scale = 0, np.ones(len(self.theta))
        self.change(evaluate)

    def change(self, evaluate: Evaluate) -> None:
        """Continue with other, similar functions."""
        self.evaluate = evaluate
        self.value, self.gradient = evaluate(self.theta, np.arange(len(self.theta)))
        self.rounds += 1

    def run(self, tol: float) -> Solution:
        """Iterate until each problem expects to gain less than `tol` from another step."""
        n, p = self.theta.shape
        self.move, self.slope, self.size = np.zeros((n, p)), np.zeros(n), np.ones(n)
        active = np.ones(n, dtype=bool)
        ready: Ints = np.arange(n)
        last = self.rounds + MOST_ROUNDS
        while True:
            if len(ready):
                self._aim(ready)
            active[ready[0.5 * self.slope[ready] < tol]] = False
            active &= self.size > SHORTEST  # only rounding errors are left
            if not active.any() or self.rounds >= last:
                break
            ready = self._round(np.flatnonzero(active))
        return Solution(self.theta, self.value, active)

    def _aim(self, which: Ints) -> None:
        """Set new directions, with the full step first."""
        self.move[which] = self._direction(which)
        self.slope[which] = np.einsum("np,np->n", self.gradient[which], self.move[which])
        self.size[which] = 1.0

    def _direction(self, which: Ints) -> Floats:
        """Two-loop recursion; the preconditioned gradient if the result is not an ascent."""
        gradient = self.gradient[which]
        q, weights = gradient.copy(), []
        for s, y, inverse in reversed(self.steps):
            weight = inverse[which] * np.einsum("np,np->n", s[which], q)
            weights.append(weight)
            q -= weight[:, None] * y[which]
        q = self.precondition(q, which) * self.scale[which, None]
        for (s, y, inverse), weight in zip(self.steps, reversed(weights), strict=True):
            back = inverse[which] * np.einsum("np,np->n", y[which], q)
            q += (weight - back)[:, None] * s[which]
        down = ~(np.einsum("np,np->n", gradient, q) > 0)
        if down.any():
            q[down] = self.precondition(gradient[down], which[down])
        return q

    def _round(self, which: Ints) -> Ints:
        """Evaluate the ends of the steps; returns the problems that accepted theirs."""
        self.rounds += 1
        size, slope, value = self.size[which], self.slope[which], self.value[which]
        theta = self.theta[which] + size[:, None] * self.move[which]
        trial, gradient = self.evaluate(theta, which)
        enough = value + ARMIJO * size * slope - self.noise * np.abs(value)
        good = np.isfinite(trial) & (trial >= enough) & np.isfinite(gradient).all(axis=1)
        accepted, bad = which[good], ~good
        self.size[which[bad]] = _shorten(size[bad], slope[bad], trial[bad] - value[bad])
        change = self.gradient[accepted] - gradient[good]
        self._remember(accepted, theta[good] - self.theta[accepted], change)
        self.theta[accepted], self.value[accepted] = theta[good], trial[good]
        self.gradient[accepted] = gradient[good]
        return accepted

    def _remember(self, which: Ints, s: Floats, y: Floats) -> None:
        """Store the steps of a round, except for problems with negative curvature."""
        curvature = np.einsum("np,np->n", s, y)
        size = np.sqrt(np.einsum("np,np->n", s, s) * np.einsum("np,np->n", y, y))
        bent = curvature > 1e-10 * size
        if not bent.any():
            return
        n, p = self.theta.shape
        steps, changes, inverse = np.zeros((n, p)), np.zeros((n, p)), np.zeros(n)
        steps[which[bent]], changes[which[bent]] = s[bent], y[bent]
        inverse[which[bent]] = 1.0 / curvature[bent]
        expected = np.einsum("np,np->n", y[bent], self.precondition(y[bent], which[bent]))
        self.scale[which[bent]] = curvature[bent] / expected
        self.steps = [*self.steps, (steps, changes, inverse)][-MEMORY:]


def _shorten(size: Floats, slope: Floats, gain: Floats) -> Floats:
    """The maximum of the parabola through the known values, between 0.1 and 0.5 of the step."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        top = 0.5 * slope * size**2 / (slope * size - gain)
    top = np.where(np.isfinite(top), top, 0.1 * size)
    return np.clip(top, 0.1 * size, 0.5 * size)
