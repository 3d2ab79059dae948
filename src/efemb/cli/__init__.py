"""The command `efemb`; each command is a file here, found by itself."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import efemb
from efemb.errors import EfembError


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"efemb {efemb.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Exponential family embeddings: word embeddings for any data."""


def build() -> typer.Typer:
    """The application with the function `command` of every file in this folder."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
    app.callback()(_options)
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            found = importlib.import_module(f"{__name__}.{module.name}")
            app.command(module.name.replace("_", "-"))(found.command)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error on purpose is one line and exit code 2."""
    try:
        build()(args=None if arguments is None else list(arguments), prog_name="efemb")
    except EfembError as error:
        typer.echo(f"efemb: {error}", err=True)
        sys.exit(2)
