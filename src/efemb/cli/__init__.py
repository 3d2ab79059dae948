"""The command `efemb`; each command is a file here, found by itself."""

from __future__ import annotations

import atexit
import gc
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

import efemb
from efemb.errors import EfembError

BAD_INPUT: Final = 2
FAILED: Final = 1
INTERRUPTED: Final = 130
# A path that is wrong is bad input; a disk that is full is not.
_WRONG_PATH = (
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


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
    """Exponential family embeddings: word embeddings for any data.

    \b
      efemb datasets groceries --out trips.csv    trips to begin with
      efemb fit trips.csv --out model             from a file to a saved model
      efemb similar model yogurt                  and complements, predict, ...
      efemb demo                                  all of it, with a report

    Each command teaches by example: efemb COMMAND --help
    """


def build(asked: str | None = None) -> typer.Typer:
    """The application with the function `command` of every file in this folder.

    Only of the one that is asked for, if there is such a one: the others need not be read.
    """
    # Plain help: examples keep their lines, and there are no colours to switch off.
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_options)
    files = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]
    for name in [asked] if asked in files else files:
        found = importlib.import_module(f"{__name__}.{name}")
        app.command(name.replace("_", "-"))(found.command)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad input; errors are one line."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        # Labels may have letters that a terminal or a file of this system cannot show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # The system takes back what is left at the end; collecting it would take a tenth of a second.
    atexit.register(gc.freeze)
    try:
        build(given[0] if given else None)(args=given, prog_name="efemb")
    except EfembError as error:
        _stop(error, BAD_INPUT)
    except OSError as error:
        _stop(_described(error), BAD_INPUT if isinstance(error, _WRONG_PATH) else FAILED)
    except MemoryError as error:
        _stop(f"not enough memory {error}".rstrip(), FAILED)
    except SystemExit as done:
        if done.code == INTERRUPTED:
            _stop("interrupted", INTERRUPTED)
        raise


def _stop(message: Any, code: int) -> None:
    typer.echo(f"efemb: {message}", err=True)
    sys.exit(code)


def _described(error: OSError) -> str:
    """The file and what is wrong with it, without the number."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"
