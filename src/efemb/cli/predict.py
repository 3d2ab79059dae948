"""`efemb predict`: what else is in a basket, or between words."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, embedding_of
from efemb.cli._output import show
from efemb.errors import ParameterError


def command(
    model: of.Model,
    context: of.Members,
    n: of.Number = 10,
    new: Annotated[
        bool,
        typer.Option("--new", help="Only items outside the basket, to complete it."),
    ] = False,
    row: Annotated[
        list[str] | None,
        typer.Option(
            help="Customer or time, if the model uses it: household=1234; repeat for several.",
            metavar="COLUMN=VALUE",
        ),
    ] = None,
    *,
    filters: of.Filters,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List the items that fit a basket, or a gap between words.

    \b
      efemb predict model beer=2 chips --new
      efemb predict model beer=2 chips --new --row household=1234
      efemb predict text-model once upon a
    """
    fitted: Any = efemb.load(model)
    if not (new and hasattr(fitted, "complete")):
        fitted = embedding_of(fitted, model)
    ask = fitted.complete if new else fitted.predict
    labels = Labels(fitted, skip_unknown=skip_unknown)
    options = {**labels.filters(filters), **_row_values(row or [], fitted)}
    show(ask(labels.context(context), n, **options), as_json)


def _row_values(typed: list[str], model: Any) -> dict[str, str]:
    """Values of row columns as keywords of the question; a basket model knows customers."""
    values: dict[str, str] = {}
    for text in typed:
        column, sign, value = text.partition("=")
        if not sign:
            raise ParameterError(f"--row {text}: write COLUMN=VALUE, such as household=1234")
        values[column] = value
    report = getattr(model, "report_", {})
    if not values or "history" not in report:
        return values
    customers = report["history"]
    if customers is None:
        raise ParameterError("this model does not know customers: fit it with --row COLUMN")
    if list(values) != [customers]:
        raise ParameterError(
            f"--row {typed[0]}: the model knows one column of rows, {customers!r}; write "
            f"--row {customers}=VALUE"
        )
    return {"user": values[customers]}
