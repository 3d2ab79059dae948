"""`efemb predict`: what else is in a basket, or between words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, embedding_of
from efemb.cli._output import show


def command(
    model: of.Model,
    context: of.Members,
    n: of.Number = 10,
    new: Annotated[
        bool,
        typer.Option("--new", help="Only items not in the context: complete a basket."),
    ] = False,
    min_count: of.MinCount = None,
    where: of.Where = None,
    exclude: of.Exclude = None,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List what fits a basket, or a gap between words.

    \b
      efemb predict model beer=2 chips --new
      efemb predict text-model once upon a
    """
    fitted: Any = efemb.load(model)
    if not (new and hasattr(fitted, "complete")):
        fitted = embedding_of(fitted, model)
    ask = fitted.complete if new else fitted.predict
    labels = Labels(fitted, skip_unknown=skip_unknown)
    filters = labels.filters(min_count, where, exclude)
    show(ask(labels.context(context), n, **filters), as_json)
