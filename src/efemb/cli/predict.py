"""`efemb predict`: what comes next in a basket or between words."""

from __future__ import annotations

from typing import Annotated

import typer

from efemb.cli import _arguments as of


def command(
    model: of.Model,
    context: of.Members,
    number: of.Number = 10,
    new: Annotated[
        bool, typer.Option("--new", help="Only what is not in the context: complete a basket.")
    ] = False,
    min_count: of.MinCount = None,
    where: of.Where = None,
    exclude: of.Exclude = None,
    as_json: of.Json = False,
) -> None:
    """Show what belongs into a basket or between words.

    \b
      efemb predict model beer=2 chips --new
      efemb predict text-model once upon a
    """
    from efemb.cli._asking import Labels, opened
    from efemb.cli._show import show

    found = opened(model)
    ask = found.complete if new else found.predict
    labels = Labels(found)
    chosen = labels.filters(min_count, where, exclude)
    show(ask(labels.context(context), number, **chosen), as_json)
