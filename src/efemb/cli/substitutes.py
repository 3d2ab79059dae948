"""`efemb substitutes`: what replaces an item."""

from __future__ import annotations

from typing import Annotated, Any

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
    basket: of.Basket = None,
    item: of.Item = None,
    count: of.Count = None,
    layout: of.Layout = None,
    header: of.Header = None,
    encoding: of.Encoding = "utf-8",
    min_count: of.MinCount = None,
    where: of.Where = None,
    exclude: of.Exclude = None,
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
    columns: dict[str, Any] = {"basket": basket, "item": item, "count": count, "encoding": encoding}
    columns |= {"layout": layout, "header": header, "skip_unknown": skip_unknown}
    filters = (min_count, where, exclude)
    fitted, query, options = open_pair_question(model, items, filters, data, **columns)
    options |= {"direction": direction, "min_support": min_support, "apart": apart}
    show(fitted.substitutes(query, n, **options), as_json)
