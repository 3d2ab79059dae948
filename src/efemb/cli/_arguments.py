"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="Folder of a saved model.", show_default=False)]
Data = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, NPY, NPZ or text file.", show_default=False)
]
Items = Annotated[list[str], typer.Argument(help="Labels, or parts of them.", show_default=False)]
Members = Annotated[
    list[str], typer.Argument(help="Labels, with amounts: beer=2 chips.", show_default=False)
]
MaybeData = Annotated[
    Path | None,
    typer.Option(help="The data behind the model: adds counts and lift.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Number = Annotated[
    int, typer.Option("--number", "-n", help="How many to show.", min=1, metavar="N")
]
Which = Annotated[str, typer.Option(help="Vectors: auto, rho, alpha or both.", metavar="NAME")]
MinCount = Annotated[
    int | None, typer.Option(help="Only what is seen at least so often.", min=1, metavar="N")
]
Where = Annotated[
    str | None, typer.Option(help="Only labels that contain this text.", metavar="TEXT")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Never show this label; repeat for several.", metavar="LABEL"),
]
MinSupport = Annotated[
    int | None, typer.Option(help="With --data: least baskets with both.", min=0, metavar="N")
]
Direction = Annotated[
    str,
    typer.Option(help="given: the item is in the basket; symmetric: both ways.", metavar="NAME"),
]
Rarest = Annotated[
    int,
    typer.Option(
        "--min-count", help="Leave out items in fewer baskets, rarer words.", min=1, metavar="N"
    ),
]
Basket = Annotated[
    str | None, typer.Option(help="Column of baskets: orders, trips, users.", metavar="COLUMN")
]
Item = Annotated[str | None, typer.Option(help="Column of items.", metavar="COLUMN")]
Count = Annotated[
    str | None, typer.Option(help="Column of counts; none: each line is 1.", metavar="COLUMN")
]
Positions = Annotated[
    Path | None,
    typer.Option(help="Coordinates of the columns: NPY or CSV.", metavar="FILE"),
]
Encoding = Annotated[
    str, typer.Option(help="Of a text file or table, such as cp1252.", metavar="NAME")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at bad lines instead of leaving them out.")
]
MaxIter = Annotated[int | None, typer.Option(help="Most passes over the data.", min=1, metavar="N")]
Seed = Annotated[int, typer.Option(help="Of every random choice.", min=0, metavar="N")]
Jobs = Annotated[int, typer.Option(help="Threads; -1: every core.", metavar="N")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")]
