"""New context vectors: their effect on the predictions of all other entities in their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.inference.conditionals import Conditionals, Design, Inverse, typical_curvature
from efemb.model.contexts.base import gather_rows
from efemb.model.contexts.bound.rows import RowBags, Stored
from efemb.model.factors import Factors
from efemb.model.objective import value_and_slope
from efemb.model.predictor import Predictor, row_side
from efemb.model.spec import Spec

BLOCK_NUMBERS = 1 << 18
BYTES_AT_ONCE = 1 << 27
PAIRS_AT_ONCE = 4096
BYTES_OF_ENTRY = 160  # of `_Entries` and of temporary arrays


@dataclass(frozen=True)
class _Entries:
    """Observed entries in the rows of a new member: u = fixed + share * rho_n . alpha_m.

    pair : row and member;  ids : predicted entity
    """

    pair: Ints
    ids: Ints
    x: Floats
    fixed: Floats
    share: Floats


@dataclass(frozen=True)
class _Mass:
    """Means of the zeros in a member's rows without it, summed over rows of equal share.

    share : (groups,) factor of rho_n . alpha_m;  total : (groups, N)
    """

    share: Floats
    total: Floats


def _has_exponential_zeros(spec: Spec) -> bool:
    """Whether means of zeros are products, so that rows can be summed beforehand."""
    return spec.family.linear_mean and spec.link.is_identity


def split_members(
    spec: Spec, bound: RowBags, members: Ints, dtype: np.dtype[np.floating]
) -> list[Ints]:
    """Blocks of members that fit into memory: each needs all entries of its rows, or all cells."""
    stored, size = bound.stored, bound.n_entities
    lengths = np.diff(stored.ptr)
    row = np.repeat(np.arange(bound.n_rows), lengths)
    in_context = stored.own != 0
    ids = stored.ids[in_context]
    need = BYTES_OF_ENTRY * np.bincount(ids, lengths[row[in_context]], size)[members]
    if _has_exponential_zeros(spec):
        cells = np.bincount(ids, minlength=size)[members] * size * dtype.itemsize
        need += np.minimum(cells, BYTES_AT_ONCE)
    turn = np.cumsum(need) // BYTES_AT_ONCE
    return [members[turn == which] for which in np.unique(turn)]


class ContextConditionals(Conditionals):
    """alpha_m of some entities, given all embeddings and all other context vectors.

    A member m of row t, with value v, adds v rho_n . alpha_m / d to the u of every other entity n:
    zeros have d = D_t, entries their own divisor. Members of the same row are solved side by side,
    each with the others at their previous values.

    Parameters
    ----------
    spec, bound, vectors : the model, the data and all vectors
    entities : the members; each is in at least one row
    row_weight : (rows,)
    """

    def __init__(
        self, spec: Spec, bound: RowBags, vectors: Factors, entities: Ints, row_weight: Floats
    ) -> None:
        # The posterior treats the new context vectors as embeddings without intercepts.
        self.spec = replace(
            spec, prior_rho=spec.prior_alpha, intercept=False, intercept_prior=None, terms=()
        )
        self.n, self.dtype, self.noise = len(entities), vectors.bag.dtype, np.zeros(len(entities))
        stored, side = bound.stored, row_side(spec, bound)
        ids = stored.ids[stored.seen]
        counts = np.bincount(ids, minlength=bound.n_entities).astype(np.float64)
        self.vectors, self.entities = vectors.less(spec.noise_offset(counts)), entities
        self.predictor = Predictor(self.vectors)
        self.k = vectors.n_bag
        self.target = self.vectors.target[:, : self.k]  # multiplies a context vector
        self._find_pairs(stored, bound)
        self.side_columns = np.zeros((len(self.row), 0), dtype=self.dtype)  # row side of a pair
        if side is not None:
            self.side_columns = side.columns(vectors.terms, self.row).astype(self.dtype, copy=False)
        self.side, self.arrays = side, vectors.terms
        self.weight = row_weight[self.row].astype(self.dtype)  # of a pair
        self._find_entries(stored)
        self.column_weight = spec.zeros.entity_weights(counts).astype(self.dtype)
        self.row_weight = spec.zeros.weigh_rows(self.weight, self.positives).astype(self.dtype)
        massed = _has_exponential_zeros(spec)
        self.mass = [self._mass_of(m) if massed else None for m in range(self.n)]

    def _find_pairs(self, stored: Stored, bound: RowBags) -> None:
        """(row, member) sorted by member: the row without it, and its share of the context."""
        lookup = np.full(bound.n_entities, -1, dtype=np.int64)
        lookup[self.entities] = np.arange(self.n)
        member = lookup[stored.ids]
        row = np.repeat(np.arange(bound.n_rows), np.diff(stored.ptr))
        entries = np.flatnonzero((member >= 0) & (stored.own != 0))
        share = stored.own[entries] / stored.total[row[entries]]
        order = np.lexsort((share, member[entries]))
        entries, self.share = entries[order], share[order].astype(self.dtype)
        self.row, self.member = row[entries], member[entries]
        self.starts = np.searchsorted(self.member, np.arange(self.n + 1))
        self.value = stored.own[entries].astype(self.dtype)
        rows, first = np.unique(self.row, return_inverse=True)
        bags = bound.block(rows).bag_matrix(bound.n_context_vectors).astype(self.dtype)
        bag = self.vectors.bag
        own = bag[self.entities[self.member]]
        self.rest = (bags @ bag)[first] - self.value[:, None] * own
        self.total = stored.total[self.row].astype(self.dtype)

    def _find_entries(self, stored: Stored) -> None:
        """The other entries of each pair's row, and all stored cells."""
        ptr, where = gather_rows(stored.ptr, self.row)
        pair, ids = np.repeat(np.arange(len(self.row)), np.diff(ptr)), stored.ids[where]
        self.stored_ptr, self.stored_ids = ptr, ids
        is_entry = ~np.isnan(stored.x[where])
        self.positives = np.bincount(pair[is_entry], minlength=len(self.row)).astype(np.float64)
        is_entry &= ids != self.entities[self.member[pair]]
        pair, ids, where = pair[is_entry], ids[is_entry], where[is_entry]
        x, own, rest = (
            array[where].astype(self.dtype) for array in (stored.x, stored.own, stored.rest)
        )
        inner, added = np.empty((2, len(pair)), dtype=self.dtype)
        size = max(1, BLOCK_NUMBERS // self.k)
        for start in range(0, len(pair), size):
            block = slice(start, start + size)
            target = self.vectors.target[ids[block]]
            sums = self.rest[pair[block]]
            inner[block] = np.einsum("ik,ik->i", sums, target[:, : self.k])
            side = self.side_columns[pair[block]]
            added[block] = np.einsum("ik,ik->i", side, target[:, self.k :])
        if self.side is not None and self.side.has_cells:
            for start in range(0, len(self.row), PAIRS_AT_ONCE):
                pairs = slice(start, start + PAIRS_AT_ONCE)
                entry_range = slice(*np.searchsorted(pair, (pairs.start, pairs.stop)))
                offsets = self.side.offsets(self.arrays, self.row[pairs])
                assert offsets is not None
                added[entry_range] += offsets.at(pair[entry_range] - start, ids[entry_range])
        fixed = self.predictor.leave_sum(inner, own, rest, ids, added)
        self.entries = _Entries(pair, ids, x, fixed, self.value[pair] / rest)

    def _blocks(self, m: int) -> list[slice]:
        size = max(64, BLOCK_NUMBERS // len(self.vectors.target))
        first, last = int(self.starts[m]), int(self.starts[m + 1])
        return [slice(start, min(start + size, last)) for start in range(first, last, size)]

    def _products(self, pairs: slice, alpha: Floats | None = None) -> tuple[Floats, Floats]:
        """u of every entity as a zero in some rows of a member, and a mask of the stored cells."""
        Z = self.rest[pairs] / self.total[pairs, None]
        if alpha is not None:
            Z = Z + self.share[pairs, None] * alpha
        if self.side_columns.shape[1]:
            Z = np.concatenate([Z, self.side_columns[pairs]], axis=1)
        ptr = self.stored_ptr[pairs.start : pairs.stop + 1]
        row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        stored = np.stack([row, self.stored_ids[ptr[0] : ptr[-1]]])
        u = self.predictor.apply(Z)
        offsets = None if self.side is None else self.side.offsets(self.arrays, self.row[pairs])
        if offsets is not None:
            offsets.add_to(u)
        return u, stored

    def _mass_of(self, m: int) -> _Mass | None:
        """Means are exp(u) exp(share rho_n . alpha_m), so rows of equal share can be summed.

        None if there are so many different shares that this is no faster.
        """
        rows = slice(int(self.starts[m]), int(self.starts[m + 1]))
        share, group = np.unique(self.share[rows], return_inverse=True)
        if len(share) * len(self.vectors.target) * self.dtype.itemsize > BYTES_AT_ONCE:
            return None
        total = np.zeros((len(share), len(self.vectors.target)), dtype=self.dtype)
        for pairs in self._blocks(m):
            means, (row, column) = self._products(pairs)
            with np.errstate(over="ignore"):
                np.exp(means, out=means)
            means[row, column] = 0.0
            groups = group[pairs.start - rows.start : pairs.stop - rows.start]
            first = groups[0]  # pairs are sorted by share
            add_up = np.zeros((groups[-1] - first + 1, len(groups)), dtype=self.dtype)
            add_up[groups - first, np.arange(len(groups))] = self.row_weight[pairs]
            total[first : groups[-1] + 1] += add_up @ means
        total *= self.column_weight
        return _Mass(share, total)

    def evaluate(
        self, rho: Floats, intercept: Floats, which: Ints
    ) -> tuple[Floats, Floats, Floats]:
        """`rho` are the new context vectors; there are no intercepts."""
        alpha = np.zeros((self.n, self.k), dtype=self.dtype)
        alpha[which] = rho
        active = np.zeros(self.n, dtype=bool)
        active[which] = True
        value, slopes = np.zeros(self.n), np.zeros((self.n, len(self.vectors.target)))
        with np.errstate(over="ignore", invalid="ignore"):  # steps that go too far are rejected
            inner = alpha @ self.target.T
            self._add_entries(inner, active, value, slopes)
            for m in which.tolist():
                self._add_zeros(m, alpha[m], inner[m], value, slopes)
            gradient = slopes[which].astype(self.dtype) @ self.target
        return value[which], gradient.astype(np.float64), np.zeros(len(which))

    def _add_entries(self, inner: Floats, active: Bools, value: Floats, slopes: Floats) -> None:
        """Each entry needs the inner product of a member and a target, which many entries share."""
        e = self.entries
        member = self.member[e.pair]
        entries = slice(None) if active.all() else np.flatnonzero(active[member])
        member, ids = member[entries], e.ids[entries]
        u = e.fixed[entries] + e.share[entries] * inner[member, ids]
        gain, slope = value_and_slope(self.spec.family.at(ids), self.spec.link, e.x[entries], u)
        weight = self.weight[e.pair[entries]]
        gain, slope = gain * weight, slope * weight
        value += np.bincount(member, gain, self.n)
        cell, size = member * slopes.shape[1] + ids, slopes.size
        slopes += np.bincount(cell, slope * e.share[entries], size).reshape(slopes.shape)

    def _add_zeros(
        self, m: int, alpha: Floats, inner: Floats, value: Floats, slopes: Floats
    ) -> None:
        mass = self.mass[m]
        if mass is not None:
            means = np.exp(mass.share[:, None] * inner)
            means *= mass.total
            plain, shared = np.stack([np.ones_like(mass.share), mass.share]) @ means
            value[m] -= float(plain.sum(dtype=np.float64))
            slopes[m] -= shared
            return
        for pairs in self._blocks(m):
            u, (row, column) = self._products(pairs, alpha)
            gain, slope = value_and_slope(self.spec.family, self.spec.link, np.zeros_like(u), u)
            gain[row, column], slope[row, column] = 0.0, 0.0
            weight = self.row_weight[pairs]
            value[m] += float(weight @ gain @ self.column_weight)
            slopes[m] += ((weight * self.share[pairs]) @ slope) * self.column_weight

    def design(self, i: int) -> Design:
        """Not available: a member takes part in many predictions."""
        raise NotImplementedError("context vectors have no design of their own")

    def inverse(self, rho: Floats, intercept: Floats, prior: Floats) -> Inverse:
        """The covariance of all embeddings, times the member's share of its rows."""
        square = self.share.astype(np.float64) ** 2 * self.row_weight
        share = np.bincount(self.member, square, self.n)
        total = np.asarray(
            np.bincount(self.entries.ids, self.entries.x, len(self.vectors.target)), np.float64
        )
        bend = typical_curvature(self.spec.family, self.spec.link, total, len(self.row))
        target = self.target.astype(np.float64)
        weighted = target * (bend * self.column_weight)[:, None]
        spread, basis = np.linalg.eigh(weighted.T @ target)
        scale = 1.0 / np.maximum(share[:, None] * np.maximum(spread, 0.0) + prior, 1e-8)
        return lambda gradient, which: np.asarray((gradient @ basis * scale[which]) @ basis.T)
