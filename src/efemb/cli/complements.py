"""`efemb complements`: what an item makes more likely."""

from __future__ import annotations

from typing import Any

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
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List what an item in a basket makes more likely.

    Items are ranked by the inner product rho . alpha, which is large for complements. With --data,
    items that are bought together significantly more often than by chance come first, and the
    others are marked.

    \b
      efemb complements model milk
      efemb complements model milk --data trips.csv --min-support 5
    """
    columns: dict[str, Any] = {"basket": basket, "item": item, "count": count, "encoding": encoding}
    columns |= {"layout": layout, "header": header, "skip_unknown": skip_unknown}
    filters = (min_count, where, exclude)
    fitted, query, options = open_pair_question(model, items, filters, data, **columns)
    options |= {"direction": direction, "min_support": min_support}
    show(fitted.complements(query, n, **options), as_json)
