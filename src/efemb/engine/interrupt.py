"""Ctrl-C during a fit: the first one stops at the next step, the second one immediately."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_AT_ONCE: ContextVar[bool] = ContextVar("at_once", default=False)


class StopFlag:
    """Set by Ctrl-C."""

    def __init__(self) -> None:
        self.raised = False


@contextmanager
def stop_on_interrupt() -> Iterator[StopFlag]:
    """Turn SIGINT into a flag while the block runs (main thread only)."""
    flag = StopFlag()
    elsewhere = threading.current_thread() is not threading.main_thread()
    # A handler that is not Python's (None) belongs to an embedding program, and a process started
    # in the background or by nohup ignores Ctrl-C on purpose. Both are left unchanged.
    foreign = signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN)
    if _AT_ONCE.get() or elsewhere or foreign:
        yield flag
        return

    def handle(number: int, frame: Any) -> None:
        if flag.raised:
            raise KeyboardInterrupt
        flag.raised = True

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def interrupt_at_once() -> Iterator[None]:
    """Let the first Ctrl-C end the block, so that no partial fit counts as complete."""
    before = _AT_ONCE.set(True)
    try:
        yield
    finally:
        _AT_ONCE.reset(before)
