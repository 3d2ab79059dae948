"""A progress bar for what takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

# Moves a progress bar by so many units.
Advance: TypeAlias = Callable[[int], None]


@contextmanager
def progress_bar(text: str, total: int, shown: bool) -> Iterator[Advance]:
    """Give a function that moves the bar on; does nothing unless `shown`; 0 is unknown."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # A bar that is not shown would still leave an empty line in a log file.
    hidden = not (console.is_terminal or console.is_jupyter)
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(text, total=total or None)
        yield lambda step: bar.advance(task, step)
