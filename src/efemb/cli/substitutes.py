"""`efemb substitutes`: what takes an item's place."""

from __future__ import annotations

from typing import Annotated

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
    where: of.Where = None,
    exclude: of.Exclude = None,
    min_support: of.MinSupport = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Also what is unclear, or apart for other reasons.")
    ] = False,
    as_json: of.Json = False,
) -> None:
    """Show what takes an item's place.

    Substitutes suit the same baskets, but lower each other's rho . alpha. Vectors alone only
    suggest them; with --data only those are shown that are surely bought together less often
    than by chance.

    \b
      efemb substitutes model milk --data trips.csv
      efemb substitutes model milk --data trips.csv --apart
    """
    from efemb.cli._labels import asked_pairs
    from efemb.cli._output import remark, show

    told = {"basket": basket, "item": item, "count": count, "encoding": encoding}
    found, query, options = asked_pairs(model, items, (min_count, where, exclude), data, **told)
    options |= {"direction": direction, "min_support": min_support, "apart": apart}
    none = "nothing suits the same baskets and is surely kept away; --apart shows what may be"
    if data is None:
        none = "the vectors suggest nothing; --apart shows what may be"
    show(found.substitutes(query, number, **options), as_json, empty="" if apart else none)
    if data is None and not as_json:
        remark("suggested by the vectors alone; --data FILE tells which the baskets confirm")
