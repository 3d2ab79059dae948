"""HotRows: copies of the busiest rows, so that threads do not fight for their cache lines."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import numpy as np

from efemb.types import Floats, Ints

WORTH = 16  # visits of a row while a copy is kept; making one costs as much as a few


class HotRows:
    """A table with spare rows at its end, where each thread keeps the busiest rows for a while.

    Parameters
    ----------
    table : array (rows + slots * len(hot), width)
    hot : rows to copy;  n_slots : how many threads may borrow them at a time
    """

    def __init__(self, table: Floats, hot: Ints, n_slots: int) -> None:
        self.table, self.hot = table, hot
        self.first = len(table) - n_slots * len(hot)
        self.base = np.zeros((n_slots, len(hot), table.shape[1]), table.dtype)
        self.places = np.tile(np.arange(self.first, dtype=np.int32), (n_slots, 1))
        for slot, places in enumerate(self.places):
            places[hot] = self.first + slot * len(hot) + np.arange(len(hot))

    def borrow(self, slot: int) -> Ints:
        """Copy the busy rows; returns the place of every row for this slot."""
        from efemb.kernels.hot_rows import borrow

        # Another thread may be giving back: a copy of rows half old and half new does no harm.
        borrow(self.table, self.hot, self.first + slot * len(self.hot), self.base[slot])
        return np.asarray(self.places[slot])

    def give_back(self, slot: int) -> None:
        """Add what happened to the copies to the rows themselves; one thread at a time."""
        from efemb.kernels.hot_rows import give_back

        give_back(self.table, self.hot, self.first + slot * len(self.hot), self.base[slot])


class Slots:
    """As many slots as threads, and a lock for what they do together."""

    def __init__(self, n: int) -> None:
        self.n, self.lock = n, threading.Lock()
        self.free: SimpleQueue[int] = SimpleQueue()
        for slot in range(n):
            self.free.put(slot)


def busiest(visits: Floats, n_slots: int) -> Ints:
    """Rows worth a copy, given what a thread visits meanwhile: none for a single thread.

    Most rows stay shared: threads with nothing in common would learn each by itself.
    """
    size = min(int((visits >= WORTH).sum()), len(visits) // 4) if n_slots > 1 else 0
    return np.argsort(-visits, kind="stable")[:size]
