"""`efemb topics`: what each dimension of the vectors stands for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from efemb.cli import _arguments as of


def command(
    model: of.Model,
    number: of.Number = 5,
    topic: Annotated[
        int | None, typer.Option(help="One dimension only.", min=0, metavar="N")
    ] = None,
    by: Annotated[str, typer.Option(help="value or magnitude.", metavar="NAME")] = "value",
    vectors: Annotated[
        str, typer.Option(help="context (alpha) or embedding (rho).", metavar="NAME")
    ] = "context",
    rotate: Annotated[
        str | None,
        typer.Option(help="varimax: dimensions with few large numbers.", metavar="NAME"),
    ] = None,
    min_count: of.MinCount = None,
    where: of.Where = None,
    exclude: of.Exclude = None,
    as_json: of.Json = False,
) -> None:
    """Show the first items of each dimension.

    \b
      efemb topics model --number 3
      efemb topics model --rotate varimax --min-count 50
    """
    from efemb.cli._asking import Labels, opened
    from efemb.cli._show import show

    found = opened(model)
    options: dict[str, Any] = Labels(found).filters(min_count, where, exclude)
    options |= {"topic": topic, "by": by}
    show(found.topics(number, vectors=vectors, rotate=rotate, **options), as_json)
