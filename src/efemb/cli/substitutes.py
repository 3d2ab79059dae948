"""`efemb substitutes`: what takes an item's place."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from efemb.cli import _arguments as of


def command(
    model: of.Model,
    items: of.Items,
    number: of.Number = 10,
    direction: of.Direction = "given",
    data: of.MaybeData = None,
    basket: of.Basket = None,
    item: of.Item = None,
    count: of.Count = None,
    encoding: of.Encoding = "utf-8",
    min_count: of.MinCount = None,
    min_support: of.MinSupport = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Also what is never together for other reasons.")
    ] = False,
    as_json: of.Json = False,
) -> None:
    """Show what takes an item's place.

    Substitutes suit the same baskets, but lower each other's rho . alpha.

    \b
      efemb substitutes model milk
      efemb substitutes model milk --data trips.csv --min-count 50
    """
    from efemb.cli._asking import Labels, data_of, filters, opened
    from efemb.cli._show import show

    found = opened(model)
    query = Labels(found).query(items)
    options: dict[str, Any] = {**filters(min_count), "direction": direction, "apart": apart}
    told = {"basket": basket, "item": item, "count": count, "encoding": encoding}
    options["data"] = data_of(data, found, **told)
    if min_support is not None:
        options["min_support"] = min_support
    none = "nothing suits the same baskets and is kept away; --apart shows what is merely apart"
    show(found.substitutes(query, number, **options), as_json, empty="" if apart else none)
