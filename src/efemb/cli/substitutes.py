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
        typer.Option(
            "--apart", help="Also list unclear pairs, and items bought apart for other reasons."
        ),
    ] = False,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List the substitutes of an item.

    Substitutes fit the same baskets, but have a small inner product rho . alpha. The vectors alone
    only suggest candidates. With --data, the answer contains only items that are bought together
    significantly less often than expected by chance.

    \b
      efemb substitutes model milk --data trips.csv
      efemb substitutes model milk --data trips.csv --apart
    """
    fitted, query, options = open_pair_question(
        model, items, filters, data, layout, skip_unknown=skip_unknown
    )
    options |= {"direction": direction, "min_support": min_support, "apart": apart}
    show(fitted.substitutes(query, n, **options), as_json)
