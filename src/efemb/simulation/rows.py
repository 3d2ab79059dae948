"""Gibbs sweeps over the entities of many rows at once: basket contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efemb._typing import Floats
from efemb.errors import DivergenceError, EfembError
from efemb.model.contexts.base import or_one
from efemb.model.objective import natural_parameter
from efemb.model.predictor import Predictor
from efemb.model.spec import Spec

LARGEST = 1e6


def draw(spec: Spec, u: Floats, rng: np.random.Generator) -> Floats:
    """Observations with inner products u."""
    try:
        x = spec.family.sample(natural_parameter(spec.family, spec.link, u), rng)
        bounded = bool(np.abs(x).max(initial=0.0) < LARGEST)
    except EfembError:
        raise
    except ValueError:  # NumPy refuses rates that no counter holds
        bounded = False
    if not bounded:
        raise DivergenceError(
            "the conditionals of this model feed on one another and the draws grow without "
            "bound: lower strength or row_size, or use scale='items' or 'total'"
        )
    return x


@dataclass
class RowSampler:
    """x_tn | the other entities of row t, for a block of rows; values are (entities, rows)."""

    spec: Spec
    predictor: Predictor

    def start(self, n_rows: int, typical: Floats, rng: np.random.Generator) -> Floats:
        """Independent draws at the typical inner product of each entity."""
        return draw(self.spec, np.repeat(typical[:, None], n_rows, axis=1), rng)

    def own(self, x: Floats) -> Floats:
        """What an observation adds to the context sums of others."""
        return (x != 0).astype(np.float64) if self.spec.context.binary else x

    def share(self, own: Floats) -> Floats:
        """What an observation adds to the divisor."""
        scale = self.spec.context.scale
        if scale == "total":
            return own
        return np.asarray((own != 0) if scale == "items" else np.zeros(own.shape), np.float64)

    def sweep(self, x: Floats, rng: np.random.Generator) -> None:
        """Redraw every entity once, in order, in place."""
        target, bag = self.predictor.factors.target, self.predictor.factors.bag
        own = self.own(x)
        sums = own.T @ bag
        divisor = self.share(own).sum(axis=0)
        for n in range(len(x)):
            mine = self.own(x[n].copy())  # x[n] is overwritten below
            rest = or_one(divisor - self.share(mine))
            u = self.predictor.leave_sum(sums @ target[n], mine, rest, n)
            x[n] = draw(self.spec, u, rng)
            new = self.own(x[n])
            moved = np.flatnonzero(new != mine)
            sums[moved] += (new - mine)[moved, None] * bag[n]
            divisor[moved] += (self.share(new) - self.share(mine))[moved]


@dataclass
class UnitSampler:
    """Categorical rows: each unit is redrawn among the entities given the row without its entity.

    Values are (entities, rows).
    """

    spec: Spec
    predictor: Predictor
    row_size: float

    def start(self, n_rows: int, typical: Floats, rng: np.random.Generator) -> Floats:
        """Rows of two units or more, drawn by popularity."""
        sizes = 2 + rng.poisson(max(self.row_size - 2.0, 0.0), n_rows)
        chance = np.exp(typical - typical.max())
        units = rng.choice(len(typical), sizes.sum(), p=chance / chance.sum())
        x = np.zeros((len(typical), n_rows))
        np.add.at(x, (units, np.repeat(np.arange(n_rows), sizes)), 1.0)
        return x

    def sweep(self, x: Floats, rng: np.random.Generator) -> None:
        """Redraw every unit once, in place."""
        order, columns = np.nonzero(x.T)
        units = np.repeat(columns, x.T[order, columns].astype(np.int64))
        row = np.repeat(order, x.T[order, columns].astype(np.int64))
        place = np.arange(len(row)) - np.searchsorted(row, row)
        for turn in range(int(place.max(initial=-1)) + 1):
            now = place == turn
            self._redraw(x, units[now], row[now], rng)

    def _redraw(self, x: Floats, units: Floats, rows: Floats, rng: np.random.Generator) -> None:
        """One unit in each of some rows."""
        block = x[:, rows]
        place = np.arange(len(rows))
        context = block.copy()
        context[units, place] = 0.0
        own = (context != 0).astype(np.float64) if self.spec.context.binary else context
        scale = self.spec.context.scale
        divisor: Floats = np.ones(len(rows))
        if scale != "none":
            divisor = or_one(((own != 0) if scale == "items" else own).sum(axis=0))
        u = self.predictor.apply(own.T @ self.predictor.factors.bag / divisor[:, None])
        winner = np.argmax(u + rng.gumbel(size=u.shape), axis=1)
        x[units, rows] -= 1.0
        x[winner, rows] += 1.0
