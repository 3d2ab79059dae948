"""Output of commands: tables for people, JSON for programs; remarks go to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from efemb._files import check_writable, complete_or_absent, file_target
from efemb._terminal import one_line, printable
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.table import Table

Say = Callable[[str], None]
# Control characters that JSON need not escape, and marks that reverse the text.
_UNSAFE = re.compile(r"[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ENDINGS = (".png", ".svg", ".pdf")


def echo(text: str, *, err: bool = False) -> None:
    """Print text, with control characters of labels and paths escaped."""
    typer.echo(printable(text), err=err)


def show(table: Table, as_json: bool, *, empty: str = "") -> None:
    """Print a table, with its note as a remark; `empty` is the remark on one without rows."""
    if as_json:
        show_json(list(table))
    else:
        echo(table.to_text(note=False))
        if table.note:
            remark(table.note)
    if empty and len(table) == 0:
        remark(empty)


def show_json(value: Any) -> None:
    """Print JSON; numbers that are not finite become null."""
    plain = _plain(value)
    style: dict[str, Any] = {"indent": 2, "allow_nan": False}
    text = json.dumps(plain, ensure_ascii=False, **style)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # this terminal cannot show some letters: escape them
        text = json.dumps(plain, ensure_ascii=True, **style)
    typer.echo(_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def show_fields(fields: Mapping[str, Any]) -> None:
    """Print names and values, aligned."""
    width = max(map(len, fields))
    for name, value in fields.items():
        echo(f"{name.ljust(width)}  {one_line(str(value))}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return str(value) if isinstance(value, Path) else value


def remark(text: str) -> None:
    """Print a remark to standard error."""
    echo(text, err=True)


def ignore(text: str) -> None:
    """Print nothing."""


def make_reporter(quiet: bool) -> Say:
    """The function that prints the remarks of a command."""
    return ignore if quiet else remark


# -- pictures -------------------------------------------------------------------------------------


def check_picture(path: Path) -> None:
    """Reject a file that cannot be written, before the work."""
    if path.suffix.lower() not in ENDINGS:
        raise ParameterError(f"{path}: the file name must end in {', '.join(ENDINGS)}")
    check_writable(file_target(path).parent)


def write_picture(picture: Any, path: Path, dpi: int = 200) -> None:
    """Write Axes to a file, completely or not at all."""
    target = file_target(path)
    form = target.suffix.lower()[1:]
    with complete_or_absent(target) as stream:
        picture.figure.savefig(stream, format=form, dpi=dpi, bbox_inches="tight")
