"""Text that is safe to show: data cannot command a terminal by control characters."""

from __future__ import annotations

from unicodedata import category

_KEPT = frozenset("\n\t")


def printable(text: str, kept: frozenset[str] = _KEPT) -> str:
    r"""Escape control characters, except line ends and tabs, and marks that reverse the text.

    >>> printable("beer\x1b[31m and\nchips")
    'beer\\x1b[31m and\nchips'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if _is_shown(sign, kept) else _escape(sign) for sign in text)


def one_line(text: str) -> str:
    r"""Escape every control character, line ends and tabs included.

    >>> one_line("beer\nchips")
    'beer\\nchips'
    """
    return printable(text, frozenset())


def _is_shown(sign: str, kept: frozenset[str]) -> bool:
    return sign.isprintable() or sign in kept or category(sign) == "Zs"  # spaces of all kinds


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
