"""How commands answer: tables for people, JSON for programs; remarks go to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from efemb.table import Table


def show(table: Table, as_json: bool, *, empty: str = "") -> None:
    """Print a table; `empty` is said where it has no rows."""
    if as_json:
        show_json(list(table))
    else:
        typer.echo(table.to_text())
    if empty and len(table) == 0:
        remark(empty)


def show_json(value: Any) -> None:
    """Print JSON; what is not a finite number is null."""
    plain = _plain(value)
    style: dict[str, Any] = {"indent": 2, "allow_nan": False}
    text = json.dumps(plain, ensure_ascii=False, **style)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # letters that cannot be shown are written as JSON writes them
        text = json.dumps(plain, ensure_ascii=True, **style)
    typer.echo(text)


def show_list(told: Mapping[str, Any]) -> None:
    """Print names and values, aligned."""
    width = max(map(len, told))
    for name, value in told.items():
        typer.echo(f"{name.ljust(width)}  {value}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return str(value) if isinstance(value, Path) else value


def remark(text: str) -> None:
    """Say something beside the answer."""
    typer.echo(text, err=True)


def nothing(text: str) -> None:
    """Say nothing."""
