"""`efemb topics`: the leading items of each dimension."""

from __future__ import annotations

from typing import Annotated

import typer

from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, open_model
from efemb.cli._output import show


def command(
    model: of.Model,
    n: of.Number = 5,
    topic: Annotated[
        int | None, typer.Option(help="Show this dimension only.", min=0, metavar="N")
    ] = None,
    by: Annotated[str, typer.Option(help="Rank by value or magnitude.", metavar="NAME")] = "value",
    vectors: Annotated[
        str, typer.Option(help="context (alpha) or embedding (rho).", metavar="NAME")
    ] = "context",
    rotate: Annotated[
        str | None,
        typer.Option(help="varimax: few large values per dimension.", metavar="NAME"),
    ] = None,
    *,
    filters: of.Filters,
    as_json: of.Json = False,
) -> None:
    """List the leading items of each dimension.

    \b
      efemb topics model -n 3
      efemb topics model --rotate varimax --min-count 50
    """
    fitted = open_model(model)
    options = Labels(fitted).filters(filters)
    options |= {"topic": topic, "by": by}
    show(fitted.topics(n, vectors=vectors, rotate=rotate, **options), as_json)
