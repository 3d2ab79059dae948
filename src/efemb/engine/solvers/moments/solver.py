"""The `moments` solver: Gaussian models with fixed contexts, from precomputed Gram matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.moments.evidence import (
    GRID,
    Evidence,
    measure_evidence,
    pool_evidence,
)
from efemb.engine.threads import Workers, cut
from efemb.errors import ParameterError
from efemb.kernels.moments import best_targets, gram_gradient, member_gradient
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists, Lists
from efemb.model.factors import Factors
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

BLOCK_ENTITIES = 256


@dataclass(frozen=True)
class Ridges:
    """The ridge of every entity (N,), the mean variance, and the mean square of members."""

    ridge: Floats
    variance: float
    size: float


def applies(bound: BoundContext, spec: Spec) -> bool:
    """Whether the model is Gaussian with the identity link and has fixed contexts."""
    return (
        bound.lists is not None
        and (bound.n_dims == 1 or _flattens(bound, spec))
        and spec.family.quadratic
        and spec.link.is_identity
        and not spec.combine.reverse
        and spec.zeros.gradient == "exact"
        and not spec.terms
    )


def _flattens(bound: BoundContext, spec: Spec) -> bool:
    """Whether the D numbers of an observation can be entities of their own."""
    return not spec.family.varies and bound.flattened() is not None


class MomentsSolver(Solver[EntityLists]):
    """Regresses each x_n on its members z: G_n = sum of w z z' and c_n = sum of w x z suffice.

    The coefficients of the members are alpha_m . rho_n and the intercept is the coefficient of 1.
    Value and gradient cost N c (c + K) for contexts of c members, whatever the number of rows.
    """

    name = "moments"
    stochastic = False

    def prepare(self) -> None:
        """Accumulate the Gram matrices."""
        if not applies(self.bound, self.spec):
            raise ParameterError(
                "solver 'moments' needs a Gaussian family with the identity link and a context "
                "that is fixed for each entity (with scale='none' where an observation has several "
                "numbers); use solver='auto'"
            )
        self.flattened = self.bound.n_dims > 1
        flat = self.bound.flattened() if self.flattened else None
        self.bound = self.bound if flat is None else flat
        self._lay_out()
        self._accumulate()

    @property
    def variance(self) -> float:
        """Variance of the conditionals."""
        return self.family.variance

    def _lay_out(self) -> None:
        """Merge the lists of all parts into one list of edges per entity, and transpose it."""
        bound = self.bound
        owner = np.concatenate([part.owner for part in bound.lists])
        order = np.argsort(owner, kind="stable")
        index = np.concatenate(
            [part.slot * bound.n_entities + part.members for part in bound.lists]
        )
        self.order: Ints = order  # place of each edge among those of all parts
        self.members: Ints = index[order]
        degree = np.bincount(owner, minlength=bound.n_entities)
        self.ptr: Ints = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
        self.place: Ints = np.concatenate([[0], np.cumsum((degree + 1) ** 2)]).astype(np.int64)
        back = np.argsort(self.members, kind="stable")
        counts = np.bincount(self.members, minlength=bound.n_context_vectors)
        self.back_ptr: Ints = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.back_edge: Ints = back
        self.back_owner: Ints = owner[order][back]

    def _accumulate(self) -> None:
        """Compute the Gram matrix and the cross products of every entity."""
        self.gram = np.empty(self.place[-1], dtype=self.dtype)
        self.cross = np.empty(len(self.members) + self.bound.n_entities, dtype=self.dtype)
        self.square_of, self.weight_of = np.zeros((2, self.bound.n_entities))
        shifted = Shifted(self.bound, self.pool)
        pieces = cut(self.bound.n_entities, BLOCK_ENTITIES)
        results = self.pool.map(lambda piece: self._gram_of(piece, shifted), pieces)
        self.ridge: Floats = np.zeros(len(self.members))
        self.squares, self.total_weight = 0.0, 0.0
        for squares, weight in results:
            self.squares += squares
            self.total_weight += weight
        self.n_observed = self.total_weight

    def _gram_of(self, piece: slice, shifted: Shifted) -> tuple[float, float]:
        squares = total = 0.0
        alike = shifted.x_seen is None and bool((self.row_weight == 1).all())
        alike = alike and self.spec.zeros.weight == 1.0
        for n in range(piece.start, piece.stop):
            x = shifted.x[n]
            size = self.ptr[n + 1] - self.ptr[n]
            design = self.pool.buffer("design", (size + 1, self.n_rows), np.float64)
            shifted.fill(n, design[:-1])
            design[-1] = 1.0 if self.spec.intercept else 0.0
            # The product of a matrix with its own transpose takes half the time of another product.
            weight = self.row_weight if alike else self._weight(x, shifted.observed(n))
            weighted = design if alike else design * weight
            self.gram[self.place[n] : self.place[n + 1]] = (weighted @ design.T).ravel()
            self.cross[self.ptr[n] + n : self.ptr[n + 1] + n + 1] = weighted @ x
            self.square_of[n], self.weight_of[n] = float(weight @ (x * x)), float(weight.sum())
            squares += float(self.square_of[n])
            total += float(self.weight_of[n])
        return squares, total

    def _weight(self, x: Floats, observed: Floats) -> Floats:
        """Weights of the observations of one entity."""
        weight = self.row_weight * observed
        return np.where(x == 0, weight * self.spec.zeros.weight, weight)

    # -- shrinkage of the members' weights ---------------------------------------------------------

    def sums(self) -> dict[str, Floats]:
        """The sums over the rows, which are all that a fit needs of them."""
        totals = {"squares": np.array([self.squares]), "weight": np.array([self.total_weight])}
        by_entity = {"square_of": self.square_of, "weight_of": self.weight_of}
        return {"gram": self.gram, "cross": self.cross, **by_entity, **totals}

    def add_sums(self, sums: Mapping[str, Floats]) -> None:
        """Add the sums of other rows with the same lists."""
        self.gram += sums["gram"]
        self.cross += sums["cross"]
        self.square_of += sums["square_of"]
        self.weight_of += sums["weight_of"]
        self.squares += float(sums["squares"][0])
        self.total_weight += float(sums["weight"][0])
        self.n_observed = self.total_weight

    def in_order(self, parts: Sequence[Floats]) -> Floats:
        """Values of the edges of all parts, in the order of the edges of the solver."""
        return np.asarray(np.concatenate(parts)[self.order])

    def regression(self, n: int) -> tuple[Floats, Floats, float]:
        """Gram matrix, cross products and squares of an entity (centered with an intercept)."""
        size = int(self.ptr[n + 1] - self.ptr[n])
        gram = self.gram[self.place[n] : self.place[n + 1]].reshape(size + 1, size + 1)
        whole = np.asarray(gram, dtype=np.float64)
        cross = np.asarray(self.cross[self.ptr[n] + n : self.ptr[n + 1] + n + 1], dtype=np.float64)
        square = float(self.square_of[n])
        if not whole[-1, -1] > 0:
            return whole[:-1, :-1], cross[:-1], square
        pull = whole[:-1, -1] / whole[-1, -1]
        centered = whole[:-1, :-1] - pull[:, None] * whole[-1, :-1]
        square -= cross[-1] ** 2 / whole[-1, -1]
        return centered, cross[:-1] - pull * cross[-1], max(square, 0.0)

    def best_ridges(self, factors: Floats) -> Ridges:
        """The ridge of every entity by evidence; `factors` are those of the edges, in order."""

        def measure(piece: slice) -> list[Evidence]:
            return [
                measure_evidence(
                    *self.regression(n),
                    float(self.weight_of[n]),
                    factors[self.ptr[n] : self.ptr[n + 1]],
                )
                for n in range(piece.start, piece.stop)
            ]

        pieces = cut(self.bound.n_entities, BLOCK_ENTITIES)
        evidence = [one for piece in self.pool.map(measure, pieces) for one in piece]
        size = np.array([one.size for one in evidence])
        probability = pool_evidence(np.stack([one.log_evidence for one in evidence]))
        ridge = size * np.exp(probability @ np.log(GRID))
        variance = np.stack([one.variance for one in evidence])
        noise = float(self.weight_of @ (probability * variance).sum(axis=1))
        total = float(self.weight_of.sum())
        return Ridges(ridge, noise / total if total > 0 else 0.0, float(size.mean()))

    def add_ridge(self, parts: Sequence[Floats | None]) -> None:
        """Penalize the squares of the weights rho_n . alpha_m by adding to the Gram matrices.

        Value and gradient then include the penalty, and a learned variance counts it among the
        squared residuals, as the evidence does.
        """
        ridges = [part if part is not None else np.zeros(0) for part in parts]
        self.ridge = self.in_order(ridges)
        degree = np.diff(self.ptr)
        within = np.arange(len(self.members)) - np.repeat(self.ptr[:-1], degree)
        diagonal = np.repeat(self.place[:-1], degree) + within * np.repeat(degree + 2, degree)
        self.gram[diagonal] += self.ridge.astype(self.dtype)

    def variance_at_start(self, noise: float) -> float:
        """The variance of the family, or `noise` if the variance is learned."""
        return noise if self.family.learns and noise > 0 else self.variance

    # -- value and gradient ------------------------------------------------------------------------

    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """Sum over all rows; some of the rows are an error."""
        if rows is not None and len(rows) != self.n_rows:
            raise ParameterError("solver 'moments' works on all rows: use batch_size=None")
        gradient = Factors.zeros_like(vectors)
        g_edges = np.empty(len(self.members), dtype=vectors.target.dtype)
        statistics, variance = self._statistics, self._variances
        arrays = (vectors.target, vectors.bag, vectors.intercept)
        slopes = (gradient.target, g_edges, gradient.intercept)

        def fit(piece: slice) -> float:
            if variance is not None:
                return self._fit_entities(piece, variance, (*statistics, *arrays), slopes)
            return float(gram_gradient(piece.start, piece.stop, *statistics, *arrays, *slopes))

        def spread(piece: slice) -> None:
            transposed = (self.back_ptr, self.back_owner, self.back_edge)
            arrays = (g_edges, vectors.target, gradient.bag)
            member_gradient(piece.start, piece.stop, *transposed, *arrays)

        total = sum(self.pool.map(fit, cut(self.bound.n_entities, BLOCK_ENTITIES)))
        list(self.pool.map(spread, cut(len(gradient.bag), BLOCK_ENTITIES)))
        if variance is not None:
            return total, gradient
        gradient.scale(1.0 / self.variance)
        return self._log_likelihood(total), gradient

    @property
    def _statistics(self) -> tuple[Ints, Ints, Ints, Floats, Floats]:
        return self.ptr, self.members, self.place, self.gram, self.cross

    @property
    def _variances(self) -> Floats | None:
        """Variance of every entity, None if it is the same for all."""
        if not self.family.varies:
            return None
        every = np.arange(self.bound.n_entities)
        return self.family.at(every).variance_of_mean(np.zeros(len(every)))

    def _fit_entities(
        self, piece: slice, variance: Floats, given: tuple[Any, ...], slopes: tuple[Floats, ...]
    ) -> float:
        """Log-likelihood of some entities, each with its own variance; fill their slopes."""
        value = 0.0
        for n in range(piece.start, piece.stop):
            fit = float(gram_gradient(n, n + 1, *given, *slopes))
            edges = slice(self.ptr[n], self.ptr[n + 1])
            for slope, at in zip(slopes, (slice(n, n + 1), edges, slice(n, n + 1)), strict=True):
                slope[at] /= slope.dtype.type(variance[n])
            value -= 0.5 * (self.square_of[n] - fit) / variance[n]
            value -= 0.5 * self.weight_of[n] * math.log(2.0 * math.pi * variance[n])
        return value

    def evidence(self, vectors: Factors) -> tuple[Floats, Floats]:
        """Squared residuals of every entity, from the Gram matrices, and its weight."""
        slopes = Factors.zeros_like(vectors)
        g_edges = np.empty(len(self.members), dtype=vectors.target.dtype)
        arrays = (*self._statistics, vectors.target, vectors.bag, vectors.intercept)
        out = (slopes.target, g_edges, slopes.intercept)
        fits = [float(gram_gradient(n, n + 1, *arrays, *out)) for n in range(self.bound.n_entities)]
        return self.square_of - np.array(fits), self.weight_of

    def best_targets(self, bag: Floats) -> tuple[Floats, Floats]:
        """Embeddings and intercepts that maximize the objective given alpha."""
        prior, scalar = self.spec.prior_rho, self.dtype.type
        assert prior is not None  # `projects` has checked it
        free = self.spec.intercept_prior
        stiffness = 0.0 if free is None else free.shrinkage
        variance = self._variances
        target = np.empty((self.bound.n_entities, bag.shape[1]), dtype=bag.dtype)
        intercept = np.zeros(self.bound.n_entities, dtype=bag.dtype)
        statistics = self._statistics

        def solve(piece: slice) -> None:
            whole = [(piece.start, piece.stop, self.variance)]
            if variance is not None:
                whole = [(n, n + 1, variance[n]) for n in range(piece.start, piece.stop)]
            for start, stop, noise in whole:
                ridges = (scalar(prior.shrinkage * noise), scalar(stiffness * noise))
                best_targets(start, stop, *statistics, bag, *ridges, target, intercept)

        list(self.pool.map(solve, cut(self.bound.n_entities, BLOCK_ENTITIES)))
        return target, intercept

    def projects(self, space: ParameterSpace) -> bool:
        """Whether `best_targets` applies: signed, penalized embeddings, one per entity."""
        spec, prior = self.spec, self.spec.prior_rho
        normal = prior is not None and prior.shrinkage > 0
        free = spec.intercept_prior is None or spec.intercept_prior.shrinkage > 0
        signed = not (spec.positive_rho or spec.positive_alpha)
        return space.plain and normal and free and signed

    def _log_likelihood(self, fit: float) -> float:
        constant = float(self.family.log_base_measure(np.zeros(1))[0])
        squares = self.squares - fit
        return -0.5 * squares / self.variance + constant * self.total_weight


BLOCK_ROWS = 64


class Shifted:
    """Columns of the data at every offset, zero where nothing is observed."""

    def __init__(self, bound: EntityLists, pool: Workers) -> None:
        self.bound = bound
        self.columns, self.seen = _columns(bound.data, pool)
        self.x, self.x_seen = self.columns, self.seen
        if bound.targets is not bound.data:
            self.x, self.x_seen = _columns(bound.targets, pool)
        self.offsets = [np.unique(part.offset).tolist() for part in bound.lists]
        every = {offset for offsets in self.offsets for offset in offsets}
        self.cache = {offset: self._shift(offset) for offset in sorted(every)}

    def _shift(self, offset: int) -> tuple[Floats, Floats | None]:
        if offset == 0:
            return self.columns, None if self.seen is None else self.seen.astype(np.float64)
        source, inside = self.bound.source_rows(np.arange(self.bound.n_rows), offset)
        known = inside.astype(np.float64) * (1.0 if self.seen is None else self.seen[:, source])
        known = np.broadcast_to(known, self.columns.shape)
        return self.columns[:, source] * known, known

    def observed(self, n: int) -> Floats:
        """Array of 1 where x_n is observed and 0 elsewhere."""
        if self.x_seen is None:
            return np.ones(self.columns.shape[1])
        return np.asarray(self.x_seen[n], dtype=np.float64)

    def fill(self, n: int, out: Floats) -> None:
        """Fill `out`, (members, rows), with the scaled member values of entity n."""
        start = 0
        for part, offsets in zip(self.bound.lists, self.offsets, strict=True):
            stop = start + int(part.ptr[n + 1] - part.ptr[n])
            self._fill_part(part, offsets, n, out[start:stop])
            start = stop

    def _fill_part(self, part: Lists, offsets: list[int], n: int, values: Floats) -> None:
        edges = slice(part.ptr[n], part.ptr[n + 1])
        members = part.members[edges]
        if len(offsets) == 1:
            np.take(self.cache[offsets[0]][0], members, axis=0, out=values, mode="clip")  # no copy
        else:
            for offset, places in self._by_offset(part, offsets, edges):
                values[places] = self.cache[offset][0][members[places]]
        if part.center is not None:
            self._center(part, offsets, edges, values)
        if part.binary:
            np.not_equal(values, 0, out=values)
        if part.weight is not None:
            values *= part.weight[edges, None]
        if part.scale != "none":
            items = part.scale == "items"
            scale = self._seen(part, offsets, edges) if items else values.sum(axis=0)
            values /= np.where(scale > 0, scale, 1.0)

    def _center(self, part: Lists, offsets: list[int], edges: slice, values: Floats) -> None:
        """Measure observed values from the centers of their members; missing ones stay 0."""
        assert part.center is not None
        members, center = part.members[edges], part.center[edges]
        for offset, places in self._by_offset(part, offsets, edges):
            known = self.cache[offset][1]
            level = center[places, None]
            values[places] -= level if known is None else level * known[members[places]]

    def _by_offset(
        self, part: Lists, offsets: list[int], edges: slice
    ) -> Iterator[tuple[int, Ints]]:
        """Yield (offset, places of the members at this offset among those of the entity)."""
        for offset in offsets:
            yield offset, np.flatnonzero(part.offset[edges] == offset)

    def _seen(self, part: Lists, offsets: list[int], edges: slice) -> Floats:
        """Number of observed members of an entity in each row, or the sum of their weights."""
        count, members = np.zeros(self.columns.shape[1]), part.members[edges]
        for offset, places in self._by_offset(part, offsets, edges):
            known = self.cache[offset][1]
            weight = part.weigh(np.ones(len(places)), np.arange(edges.start, edges.stop)[places])
            count += weight.sum() if known is None else weight @ known[members[places]]
        return count


def _columns(data: Dataset, pool: Workers) -> tuple[Floats, Bools | None]:
    """Columns as contiguous rows, 0 where missing, and a mask of observed values (None: all)."""
    dense = data.values.toarray() if data.is_sparse else data.values
    raw = dense.reshape(data.n_rows, data.n_entities)
    columns = np.empty((data.n_entities, data.n_rows))

    def transpose(rows: slice) -> None:
        columns[:, rows] = raw[rows].T

    list(pool.map(transpose, cut(data.n_rows, BLOCK_ROWS)))  # in blocks that fit into the cache
    seen = ~np.isnan(columns)
    if seen.all():
        return columns, None
    columns[~seen] = 0.0
    return columns, seen
