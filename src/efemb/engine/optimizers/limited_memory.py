"""Limited-memory BFGS for smooth maximization, one iteration at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from efemb._typing import Floats

Evaluate = Callable[[Floats], tuple[float, Floats]]
ARMIJO, CURVATURE = 1e-4, 0.9


class LimitedMemory:
    """Iterates of L-BFGS on one flat vector; `step` returns False if no ascent is possible.

    With the `state` of an earlier search it resumes there.
    """

    def __init__(
        self, evaluate: Evaluate, start: Floats, memory: int, state: dict[str, Any] | None = None
    ) -> None:
        self.evaluate = evaluate
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
        if state is None:
            self.x = start
            self.value, self.gradient = evaluate(start)
        else:
            self.x, self.value, self.gradient = state["x"], state["value"], state["gradient"]
            self.pairs.extend((s, y, inverse) for s, y, inverse in state["pairs"])

    def state(self) -> dict[str, Any]:
        """The state of the search for a checkpoint."""
        pairs = [list(pair) for pair in self.pairs]
        return {"x": self.x, "value": self.value, "gradient": self.gradient, "pairs": pairs}

    def refresh(self) -> None:
        """Evaluate again at the current point, because the function itself has changed."""
        self.value, self.gradient = self.evaluate(self.x)

    def direction(self) -> Floats:
        """Two-loop recursion."""
        q = self.gradient.copy()
        weights = []
        for s, y, inverse in reversed(self.pairs):
            weight = inverse * float(s @ q)
            weights.append(weight)
            q -= q.dtype.type(weight) * y
        if self.pairs:
            s, y, inverse = self.pairs[-1]
            q *= q.dtype.type(1.0 / (inverse * float(y @ y)))
        else:
            norm = float(np.sqrt(q @ q))
            q *= q.dtype.type(0.1 * np.sqrt(len(q)) / norm) if norm > 0 else q.dtype.type(1.0)
        for (s, y, inverse), weight in zip(self.pairs, reversed(weights), strict=True):
            q += q.dtype.type(weight - inverse * float(y @ q)) * s
        return q

    def step(self) -> bool:
        """One line search along the quasi-Newton direction."""
        move = self.direction()
        slope = float(self.gradient @ move)
        if not slope > 0:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        point = self._line_search(move, slope)
        if point is None:
            if not self.pairs:
                return False
            self.pairs.clear()
            return self.step()
        x, value, gradient = point
        s, y = x - self.x, self.gradient - gradient
        curvature, change = float(s @ y), float(y @ y)  # either may underflow
        if change > 0 and curvature > 1e-10 * change**0.5 * float(s @ s) ** 0.5:
            self.pairs.append((s, y, 1.0 / curvature))
        self.x, self.value, self.gradient = x, value, gradient
        return True

    def _line_search(self, move: Floats, slope: float) -> tuple[Floats, float, Floats] | None:
        """Weak Wolfe conditions by bracketing and bisection."""
        low, high, t = 0.0, np.inf, 1.0
        best: tuple[Floats, float, Floats] | None = None
        for _ in range(25):
            x = self.x + self.x.dtype.type(t) * move
            value, gradient = self.evaluate(x)
            if not np.isfinite(value) or value < self.value + ARMIJO * t * slope:
                high = t
            else:
                best = (x, value, gradient)
                if float(gradient @ move) <= CURVATURE * slope:
                    return best
                low = t
            t = 2.0 * t if high == np.inf else 0.5 * (low + high)
        return best
