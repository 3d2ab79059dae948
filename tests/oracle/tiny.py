"""Tiny data with every awkward place: empty rows, one-item rows, lone entities, gaps."""

from __future__ import annotations

import numpy as np

from oracle.members import nearest
from oracle.model import Array, Part

N_ROWS, N_ENTITIES, N_COMPONENTS = 5, 5, 2

# Row 0 is empty, row 1 has one item.
COUNTS: Array = np.array(
    [[0, 0, 0, 0, 0], [0, 2, 0, 0, 0], [1, 3, 1, 0, 2], [2, 0, 0, 1, 0], [0, 1, 4, 0, 1]],
    dtype=np.float64,
)
REALS: Array = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, -1.3, 0.0, 0.0, 0.0],
        [0.6, 1.1, -0.7, 0.0, 0.4],
        [-0.9, 0.0, 0.5, 1.7, 0.0],
        [0.3, 0.8, -1.2, 0.0, -0.2],
    ]
)
RECORDINGS = [0, 0, 0, 1, 1]
POSITIONS: Array = np.array([[0.0, 0.0], [1.0, 0.1], [0.2, 1.3], [2.0, 2.1], [0.9, 2.6]])
N_NEAREST = 2
# Entity 3 has no neighbor, and nobody has entity 4 as a neighbor of entity 0's.
AROUND = [[1, 2], [0, 2, 4], [1], [], [3, 0]]
RHO_OF = [0, 1, 1, 2, 0]
ALPHA_OF = [0, 0, 1, 2, 2]

EXPLICIT = {
    (1, 1): [(0, 1), (1, 0), (2, 3)],
    (2, 0): [(2, 1)],
    (2, 4): [(3, 0), (4, 2), (2, 2), (1, 1)],
    (3, 3): [(3, 0), (4, 0)],
    (4, 2): [(2, 1), (2, 0)],
    (4, 4): [(4, 1), (4, 2), (3, 3)],
}

FIXED = ("neighbors", "graph", "lagged", "lagged-shared")
SUMS = ("graph+lagged", "neighbors+graph", "basket+lagged-shared")
KINDS = ("basket", *FIXED, "explicit", *SUMS)


def part(kind: str, scale: str, binary: bool) -> Part:
    """One context of the given kind on the tiny data."""
    if kind == "basket":
        return Part("basket", scale, binary)
    if kind == "neighbors":
        near = nearest(POSITIONS.tolist(), N_NEAREST)
        return Part("neighbors", scale, binary, neighbors=near)
    if kind == "graph":
        return Part("graph", scale, binary, neighbors=AROUND)
    if kind == "lagged":
        return Part("lagged", scale, binary, offsets=(-1, 1))
    if kind == "lagged-shared":
        return Part("lagged", scale, binary, neighbors=AROUND, offsets=(-2, -1, 1), shared=True)
    assert kind == "explicit", kind
    return Part("explicit", scale, binary, explicit=EXPLICIT)


def parts(kind: str, scale: str, binary: bool) -> tuple[Part, ...]:
    """The parts of a context, `a+b` being a sum."""
    return tuple(part(one, scale, binary) for one in kind.split("+"))


def has_slots(kind: str) -> bool:
    """One alpha per offset: rho and alpha then differ in shape."""
    return "lagged" in kind.split("+")


def data(family: str, nonnegative: bool, missing: bool = False, n_dims: int = 1) -> Array:
    """Values in the family's domain, with gaps where `missing`."""
    x = (REALS if family == "gaussian" else COUNTS).copy()
    if n_dims == 2:
        # The second number of a vector is zero in places where the first is not.
        second = np.roll(x, (1, 2), axis=(0, 1)) * (1.0 if family != "gaussian" else -0.8)
        second[0] = 0.0
        x = np.stack([x, second], axis=2)
    if family == "bernoulli":
        x = (x > 0).astype(np.float64)
    if nonnegative:
        x = np.abs(x)
    if missing:
        x[2, 1] = x[4, 0] = x[3, 2] = np.nan
        if n_dims == 2:
            x[2, 1, 0] = 0.5
    return x
