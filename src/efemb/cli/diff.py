"""`efemb diff`: what differs between two saved models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from efemb.cli import _arguments as of
from efemb.cli._labels import open_model
from efemb.cli._output import echo, remark, show, show_json


def command(
    a: Annotated[
        Path, typer.Argument(help="Folder of a saved model.", metavar="A", show_default=False)
    ],
    b: Annotated[
        Path, typer.Argument(help="Folder of the other model.", metavar="B", show_default=False)
    ],
    again_a: Annotated[
        list[Path] | None,
        typer.Option(
            "--again-a",
            help="Another fit of A with a different seed; repeat for several.",
            metavar="FOLDER",
        ),
    ] = None,
    again_b: Annotated[
        list[Path] | None,
        typer.Option(
            "--again-b",
            help="Another fit of B with a different seed; repeat for several.",
            metavar="FOLDER",
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("--n", "-n", help="Neighbors per item.", min=1, metavar="N")
    ] = 10,
    rows: Annotated[int, typer.Option(help="Number of items to show.", min=1, metavar="N")] = 10,
    as_json: of.Json = False,
) -> None:
    """Show what differs between two models.

    Compares the nearest neighbors and complements of the items that both models contain, such as
    models of two stores or two seasons, and lists the largest changes first. Fits to the same data
    also differ, by their random seeds: --again-a and --again-b account for this.

    \b
      efemb diff summer winter
      efemb diff summer winter --again-a summer-2 --again-b winter-2
    """
    from efemb.inference import compare_models

    first, second = (
        [open_model(path) for path in (model, *(others or []))]
        for model, others in ((a, again_a), (b, again_b))
    )
    changes = compare_models(first, second, n)
    tables = {"neighbors": changes.neighbors, "complements": changes.complements}
    if as_json:
        only = {
            "common": len(changes.common),
            "only_a": changes.only_a,
            "only_b": changes.only_b,
        }
        show_json({**only, **{name: list(table or ()) for name, table in tables.items()}})
        return
    echo(repr(changes))
    if len(first) == len(second) == 1:
        remark("to see which changes exceed those between seeds, pass --again-a and --again-b")
    for name, table in tables.items():
        if table is not None:
            echo(f"\n{name}")
            show(table.head(rows), as_json)
