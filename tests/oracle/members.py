"""Which observations are in the context of a cell, their values and their scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oracle.model import Model, Part

Data = list[list[list[float]]]  # [row][entity][dimension]
Member = tuple[int, int, int]  # row, entity, slot


def observed(vector: Sequence[float]) -> bool:
    """A vector with any NaN is missing as a whole."""
    return not any(math.isnan(number) for number in vector)


def nonzero(vector: Sequence[float]) -> bool:
    return any(number != 0 for number in vector)


def nearest(positions: Sequence[Sequence[float]], k: int) -> list[list[int]]:
    """The k nearest other entities of each entity, by Euclidean distance."""
    result = []
    for n, here in enumerate(positions):
        others = [m for m in range(len(positions)) if m != n]
        others.sort(key=lambda m: math.dist(here, positions[m]))
        result.append(others[:k])
    return result


def first_slots(parts: Sequence[Part]) -> list[int]:
    """Slot of each part's first alpha; in a sum slot 0 is kept for the simultaneous part."""
    if len(parts) == 1:
        return [0]
    result = []
    free = 1
    for part in parts:
        if part.kind == "lagged" and not part.shared:
            result.append(free)
            free += len(part.offsets)
        else:
            result.append(0)
    return result


def n_slots(parts: Sequence[Part]) -> int:
    last = [0]
    for part, first in zip(parts, first_slots(parts), strict=True):
        if part.kind == "lagged" and not part.shared:
            last.append(first + len(part.offsets) - 1)
    return max(last) + 1


def candidates(
    part: Part, data: Data, recordings: Sequence[int], t: int, n: int, slot: int
) -> list[Member]:
    """Context of cell (t, n), observed or not."""
    if part.kind == "basket":
        row = data[t]
        return [(t, m, 0) for m in range(len(row)) if m != n and nonzero(row[m])]
    if part.kind == "explicit":
        assert part.explicit is not None
        return [(t2, m, 0) for t2, m in part.explicit.get((t, n), ())]
    around = list(part.neighbors[n]) if part.neighbors is not None else []
    if part.kind in ("neighbors", "graph"):
        return [(t, m, 0) for m in around]
    assert part.kind == "lagged", part.kind
    if part.include_self:
        around.append(n)
    found = []
    for i, offset in enumerate(part.offsets):
        t2 = t + offset
        if 0 <= t2 < len(data) and recordings[t2] == recordings[t]:
            for m in around:
                found.append((t2, m, 0 if part.shared else slot + i))
    return found


def members(
    part: Part, data: Data, recordings: Sequence[int], t: int, n: int, slot: int
) -> list[Member]:
    """Context of cell (t, n): the observed members only."""
    found = candidates(part, data, recordings, t, n, slot)
    return [(t2, m, s) for t2, m, s in found if observed(data[t2][m])]


def member_value(part: Part, vector: Sequence[float]) -> list[float]:
    """What a member contributes: its value, or 1[x != 0] for a binary context."""
    if part.binary:
        return [1.0 if number != 0 else 0.0 for number in vector]
    return list(vector)


def divisor(part: Part, values: Sequence[Sequence[float]]) -> float:
    """Context scale d; 1 when nothing remains."""
    if part.scale == "none":
        return 1.0
    if part.scale == "items":
        d = float(len(values))
    else:
        assert part.scale == "total", part.scale
        d = 0.0
        for vector in values:
            for number in vector:
                d += number
    return d if d != 0 else 1.0


def rho_row(model: Model, n: int) -> int:
    if model.structure == "shared" and model.rho_of is not None:
        return model.rho_of[n]
    return n


def alpha_row(model: Model, slot: int, m: int, n_entities: int) -> int:
    """slot * N + m, where N counts the shared context vectors if entities share them."""
    if model.structure == "shared" and model.alpha_of is not None:
        return slot * (max(model.alpha_of) + 1) + model.alpha_of[m]
    return slot * n_entities + m
