"""Output to a terminal: progress bars, and text that cannot command the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias
from unicodedata import category

# Advances a progress bar by a number of units.
Advance: TypeAlias = Callable[[int], None]
_KEPT = frozenset("\n\t")


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


def printable(text: str, allowed: frozenset[str] = _KEPT) -> str:
    r"""Escape control characters, except line ends and tabs, and marks that reverse the text.

    >>> printable("beer\x1b[31m and\nchips")
    'beer\\x1b[31m and\nchips'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if _is_shown(sign, allowed) else _escape(sign) for sign in text)


def one_line(text: str) -> str:
    r"""Escape every control character, line ends and tabs included.

    >>> one_line("beer\nchips")
    'beer\\nchips'
    """
    return printable(text, frozenset())


def _is_shown(sign: str, allowed: frozenset[str]) -> bool:
    return sign.isprintable() or sign in allowed or category(sign) == "Zs"  # spaces of all kinds


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
