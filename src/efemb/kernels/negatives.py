"""Draws for steps over windows of text: subsampled text, sizes of windows, outputs of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from efemb.kernels.jit import inlined, kernel

Array = Any
_UNIT = 1.0 / 4294967296.0  # 2^-32
ALL, HALF = np.uint32(0xFFFFFFFF), np.uint64(0xFFFFFFFF)


@inlined
def _next(state: Array) -> Any:
    """Return 64 random bits (SplitMix64)."""
    state[0] += types.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> types.uint64(30))) * types.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> types.uint64(27))) * types.uint64(0x94D049BB133111EB)
    return z ^ (z >> types.uint64(31))


@kernel
def alias_table(share: Array, table: Array) -> None:
    """Fill Walker's table: i becomes table[i, 1] unless 32 random bits are below table[i, 0]."""
    n = len(share)
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    n_small = n_large = 0
    mass = share * n
    for i in range(n):
        table[i, 0], table[i, 1] = ALL, i
        if mass[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        little, big = small[n_small], large[n_large - 1]
        table[little, 0], table[little, 1] = types.uint32(mass[little] * ALL), big
        mass[big] -= 1.0 - mass[little]
        if mass[big] < 1.0:
            n_large -= 1
            small[n_small] = big
            n_small += 1


@kernel
def negative_outputs(
    tokens: Array,
    n: int,
    table: Array,
    distinct: bool,
    state: Array,
    ptr: Array,
    rows: Array,
    labels: Array,
) -> None:
    """Each token with label 1, then n draws of noise with label 0, without the token if `distinct`.

    The upper half of the product of 32 random bits and N selects an entity, and the lower half is
    compared with its entry of the alias table.
    """
    place, size, bits = 0, types.uint64(len(table)), types.uint64(0)
    for t in range(len(tokens)):
        token = types.uint32(tokens[t])
        ptr[t] = place
        rows[place], labels[place] = token, 1
        place += 1
        for i in range(n):
            bits = bits >> types.uint64(32) if i % 2 else _next(state)
            product = (bits & HALF) * size
            drawn = types.uint32(product >> types.uint64(32))
            moves = types.uint32(types.uint32(product & HALF) >= table[drawn, 0])
            drawn ^= (
                drawn ^ table[drawn, 1]
            ) * moves  # without a branch, which could not be predicted
            rows[place], labels[place] = drawn, 0
            place += not distinct or drawn != token
    ptr[len(tokens)] = place
    rows[place:] = 0


@kernel
def draw_reach(size: int, state: Array, reach: Array) -> None:
    """Draw the reach of the window of each token, uniformly from 1 to `size`."""
    for t in range(len(reach)):
        product = (_next(state) >> types.uint64(32)) * types.uint64(size)
        reach[t] = 1 + (product >> types.uint64(32))


@kernel
def gather(tokens: Array, first: Array, starts: Array, out: Array) -> None:
    """Copy documents of a text: document d from first[d] to starts[d]."""
    for d in range(len(first)):
        shift = first[d] - starts[d]
        for i in range(starts[d], starts[d + 1]):
            out[i] = tokens[i + shift]


@kernel
def path_outputs(
    tokens: Array, starts: Array, nodes: Array, turns: Array, ptr: Array, rows: Array, labels: Array
) -> None:
    """The inner nodes on the path to each token in a tree, with the turns as labels."""
    place = 0
    for t in range(len(tokens)):
        ptr[t] = place
        for i in range(starts[tokens[t]], starts[tokens[t] + 1]):
            rows[place], labels[place] = nodes[i], turns[i]
            place += 1
    ptr[len(tokens)] = place
    rows[place:] = 0


@kernel
def thin(
    tokens: Array, starts: Array, chance: Array, state: Array, out: Array, ends: Array
) -> None:
    """Keep each token with the probability of its word; `ends` gets the new starts of documents."""
    place = 0
    for d in range(len(starts) - 1):
        ends[d] = place
        for t in range(starts[d], starts[d + 1]):
            if (_next(state) >> types.uint64(32)) * _UNIT < chance[tokens[t]]:
                out[place] = tokens[t]
                place += 1
    ends[len(starts) - 1] = place
