"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

Model = Annotated[Path, typer.Argument(help="Folder of a saved model.", show_default=False)]
Data = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, NPY, NPZ or text file.", show_default=False)
]
Items = Annotated[
    list[str], typer.Argument(help="Items, by label or part of a label.", show_default=False)
]
Members = Annotated[
    list[str], typer.Argument(help="Items, with amounts: beer=2 chips.", show_default=False)
]
MaybeData = Annotated[
    Path | None,
    typer.Option(help="Data behind the model; adds counts and lift.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[
    int, typer.Option("--n", "-n", help="Number of items to show.", min=1, metavar="N")
]
Which = Annotated[str, typer.Option(help="Vectors: auto, rho, alpha or both.", metavar="NAME")]
MinCount = Annotated[
    int | None, typer.Option(help="Only items that occur at least N times.", min=1, metavar="N")
]
Where = Annotated[
    str | None, typer.Option(help="Only items whose label contains this text.", metavar="TEXT")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Exclude this item; repeat for several.", metavar="LABEL"),
]
MinSupport = Annotated[
    int | None,
    typer.Option(help="With --data: at least N baskets with both items.", min=0, metavar="N"),
]
Direction = Annotated[
    str,
    typer.Option(help="given (the item is in the basket) or symmetric.", metavar="NAME"),
]
Rarest = Annotated[
    int,
    typer.Option(
        "--min-count",
        help="Drop items that occur in fewer than N baskets (or words that occur fewer than N "
        "times).",
        min=1,
        metavar="N",
    ),
]
Basket = Annotated[
    str | None,
    typer.Option(help="Column that identifies the basket: order, trip, user.", metavar="COLUMN"),
]
Item = Annotated[
    str | None, typer.Option(help="Column that identifies the item.", metavar="COLUMN")
]
Count = Annotated[
    str | None, typer.Option(help="Column of counts; none counts each line as 1.", metavar="COLUMN")
]
Positions = Annotated[
    Path | None,
    typer.Option(help="Coordinates of the columns: NPY or CSV.", metavar="FILE"),
]
Encoding = Annotated[
    str, typer.Option(help="Text encoding of the file, such as cp1252.", metavar="NAME")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first bad line instead of dropping it.")
]
MaxIter = Annotated[int | None, typer.Option(help="Maximum number of passes.", min=1, metavar="N")]
Seed = Annotated[int, typer.Option(help="Random seed.", min=0, metavar="N")]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 uses every core.", metavar="N")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks.")]

# Old spellings, which work until version 0.4.
RENAMED: Final = {"--number": "--n"}


def replace_old_options(arguments: Sequence[str], warn: Callable[[str], None]) -> list[str]:
    """Arguments with today's names of options; `warn` hears of every old one.

    >>> replace_old_options(["similar", "model", "--number=3"], print)
    --number is deprecated and will be removed in version 0.4; use --n
    ['similar', 'model', '--n=3']
    """
    current = list(arguments)
    for index, argument in enumerate(current):
        if argument == "--":  # what follows are values, not options
            break
        name, sign, value = argument.partition("=")
        if name in RENAMED:
            warn(f"{name} is deprecated and will be removed in version 0.4; use {RENAMED[name]}")
            current[index] = RENAMED[name] + sign + value
    return current
