"""A progress bar for long operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from efemb._terminal import one_line

# Advances a progress bar by a number of units.
Advance: TypeAlias = Callable[[int], None]


@contextmanager
def progress_bar(text: str, total: int, shown: bool) -> Iterator[Advance]:
    """Yield a function that advances the bar; inactive unless `shown`, a total of 0 is unknown."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    # A transient bar would still leave an empty line in a log file.
    hidden = not (console.is_terminal or console.is_jupyter)
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(escape(one_line(text)), total=total or None)
        yield lambda step: bar.advance(task, step)
