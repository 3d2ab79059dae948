"""The command `efemb`; every file here without a leading underscore is one of its commands."""

from __future__ import annotations

import atexit
import gc
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from io import StringIO
from typing import Annotated, Any, Final

import typer

import efemb
from efemb.cli._arguments import StrictCommand, replace_old_options, spread_groups
from efemb.cli._output import echo, remark
from efemb.errors import EfembError

REFUSED: Final = 2  # 1 is for unexpected errors, which show a traceback
INTERRUPTED: Final = 130
# The error of typer for invalid options, whose class has moved between packages.
_USAGE_ERRORS: Final[Any] = typer.BadParameter.__bases__


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"efemb {efemb.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Exponential family embeddings: word embeddings for any data.

    \b
      efemb datasets sample-trips --out trips.csv   write simulated trips
      efemb fit trips.csv --out model               fit a model to them
      efemb similar model yogurt                    list similar items
      efemb demo                                    all of this on real trips

    Examples and options of a command: efemb COMMAND --help
    """


def build(asked: str | None = None) -> typer.Typer:
    """The application with the function `command` of every file in this folder.

    If `asked` is one of the commands, the other files are not read.
    """
    # Plain help: examples keep their lines, and there are no colors to disable.
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_options)
    files = [info.name for info in pkgutil.iter_modules(__path__) if info.name[0] != "_"]
    for name in [asked] if asked in files else files:
        module = importlib.import_module(f"{__name__}.{name}")
        command = app.command(name.replace("_", "-"), cls=StrictCommand)
        command(spread_groups(module.command))
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with 0, or with 2 and a line that explains the error."""
    typed = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        # Labels may contain letters that this terminal or file cannot show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # The operating system frees the memory at exit; collecting it would take a tenth of a second.
    atexit.register(gc.freeze)
    try:
        current = replace_old_options(typed, lambda text: remark(f"efemb: {text}"))
        run = build(current[0] if current else None)
        code = run(args=current, prog_name="efemb", standalone_mode=False)
    except _USAGE_ERRORS as error:
        explanation = StringIO()
        error.show(explanation)
        echo(explanation.getvalue().rstrip("\n"), err=True)
        sys.exit(error.exit_code)
    except EfembError as error:
        _stop(error, REFUSED)
    except OSError as error:
        _stop(_describe(error), REFUSED)
    except MemoryError as error:
        _stop(f"not enough memory {error}".rstrip(), REFUSED)
    if code == INTERRUPTED:
        _stop("interrupted", INTERRUPTED)
    sys.exit(code)


def _stop(message: Any, code: int) -> None:
    echo(f"efemb: {message}", err=True)
    sys.exit(code)


def _describe(error: OSError) -> str:
    """The file and the problem with it, without the error number."""
    if error.filename is None or error.strerror is None:
        return error.strerror or str(error)
    return f"{error.filename}: {error.strerror}"
