"""`efemb substitutes`: what replaces an item."""

from __future__ import annotations

from typing import Annotated

import typer

from efemb.cli import _arguments as of
from efemb.cli._labels import open_pair_question
from efemb.cli._output import show


def command(
    model: of.Model,
    items: of.Items,
    n: of.Number = 10,
    direction: of.Direction = "given",
    data: of.MaybeData = None,
    *,
    layout: of.Layout,
    filters: of.Filters,
    min_support: of.MinSupport = None,
    apart: Annotated[
        bool,
        typer.Option("--apart", help="Include unclear cases and items apart for other reasons."),
    ] = False,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List what replaces an item.

    Substitutes fit the same baskets but lower each other's rho . alpha. The vectors alone only
    suggest them; with --data, only items that are significantly less often bought together than
    by chance are listed.

    \b
      efemb substitutes model milk --data trips.csv
      efemb substitutes model milk --data trips.csv --apart
    """
    fitted, query, options = open_pair_question(
        model, items, filters, data, layout, skip_unknown=skip_unknown
    )
    options |= {"direction": direction, "min_support": min_support, "apart": apart}
    show(fitted.substitutes(query, n, **options), as_json)
