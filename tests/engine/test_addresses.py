"""Kernels give the same bits wherever their arrays lie: side by side or far apart."""

from __future__ import annotations

import ctypes
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import efemb
import efemb.kernels
from engine import models
from goldens.fits import KERNEL_FITS, RACING_THREADS

Array = Any
INSIDE = {"exp_digamma", "fold_in_row"}  # called by kernels only


def compiled() -> dict[str, Dispatcher]:
    """Every kernel that Python may call."""
    found = {}
    for module in pkgutil.iter_modules(efemb.kernels.__path__, "efemb.kernels."):
        for name, value in vars(importlib.import_module(module.name)).items():
            mine = isinstance(value, Dispatcher) and value.py_func.__module__ == module.name
            if mine and not name.startswith("_") and "inline" not in value.targetoptions:
                found[name] = value
    return found


class Recorded:
    """A kernel, and copies of the arguments of the first call of each signature."""

    def __init__(self, kernel: Dispatcher, calls: dict[Any, Any]) -> None:
        self.kernel, self.calls = kernel, calls

    def __call__(self, *args: Any) -> Any:
        key = (self.kernel.py_func.__name__, *map(self.kernel.typeof_pyval, args))
        if key not in self.calls:
            self.calls[key] = (self.kernel, Memory(args))
        return self.kernel(*args)


class Memory:
    """The arrays among the arguments of a call, as bytes that can be laid out anew."""

    def __init__(self, args: Any) -> None:
        self.args = args
        extents = sorted(np.lib.array_utils.byte_bounds(a) for a in _arrays(args) if a.size)
        self.blocks: list[tuple[int, int]] = []  # of arrays that share memory, one
        for extent in extents:
            if self.blocks and extent[0] < self.blocks[-1][1]:
                low, high = self.blocks.pop()
                self.blocks.append((low, max(high, extent[1])))
            else:
                self.blocks.append(extent)
        self.bytes = {b: ctypes.string_at(b[0], b[1] - b[0]) for b in self.blocks}

    def laid_out(self, order: Array, gap: int) -> Any:
        """The arguments, with arrays in a given order, so many bytes apart."""
        room = np.zeros(sum(b - a + gap + 128 for a, b in self.blocks), np.uint8)
        start, moved = -room.ctypes.data % 64, {}
        for place in order:
            low, high = block = self.blocks[place]
            start += (low - start - room.ctypes.data) % 64
            room[start : start + high - low] = np.frombuffer(self.bytes[block], np.uint8)
            moved[block] = start
            start += high - low + gap

        def put(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(put, value))
            if not isinstance(value, np.ndarray) or not value.size:
                return value
            at = np.lib.array_utils.byte_bounds(value)[0]
            low = max(b[0] for b in self.blocks if b[0] <= at)
            block = next(b for b in self.blocks if b[0] == low)
            offset = moved[block] + at - low
            new = np.ndarray(value.shape, value.dtype, room, offset, value.strides)
            new.flags.writeable = value.flags.writeable
            return new

        return put(self.args)


def _arrays(args: Any) -> Iterator[Array]:
    for value in args:
        if isinstance(value, tuple):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value


@contextmanager
def recording(patch: pytest.MonkeyPatch) -> Iterator[dict[Any, Any]]:
    calls: dict[Any, Any] = {}
    kernels = compiled()
    with patch.context() as change:
        for kernel in kernels.values():
            recorded = Recorded(kernel, calls)
            for module in [m for name, m in sys.modules.items() if name.startswith("efemb.")]:
                for name in [name for name, value in vars(module).items() if value is kernel]:
                    change.setattr(module, name, recorded)
        yield calls


def fit_and_score_all() -> None:
    for fit in (*KERNEL_FITS.values(), RACING_THREADS):
        fit().score(fit.data)


def outcome(kernel: Dispatcher, args: Any) -> tuple[bytes, ...]:
    found = kernel(*args)
    return (np.asarray(found).tobytes(), *(a.tobytes() for a in _arrays(args)))


@pytest.mark.slow
def test_bits_do_not_depend_on_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    models.tune(monkeypatch, dense=0.3)
    fit_and_score_all()  # compiled, since kernels that are recorded cannot be called by others
    with recording(monkeypatch) as calls:
        fit_and_score_all()
    assert {name for name, *_ in calls} == set(compiled()) - INSIDE
    rng, differing = np.random.default_rng(0), set()
    for (name, *_), (kernel, memory) in calls.items():
        n = len(memory.blocks)
        size = max(b - a for a, b in memory.blocks)
        far = outcome(kernel, memory.laid_out(range(n), 4 * size + 4096))
        for order in (range(n), range(n)[::-1], *(rng.permutation(n) for _ in range(6))):
            if outcome(kernel, memory.laid_out(order, 0)) != far:
                differing.add(name)
    assert not differing
