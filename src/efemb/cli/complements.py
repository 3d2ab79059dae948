"""`efemb complements`: what an item makes likelier."""

from __future__ import annotations

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
    as_json: of.Json = False,
) -> None:
    """Show what an item in a basket makes likelier.

    The measure is the inner product rho . alpha, large for complements.

    \b
      efemb complements model milk
      efemb complements model milk --data trips.csv --min-support 5
    """
    from efemb.cli._asking import asked_pairs
    from efemb.cli._show import show

    told = {"basket": basket, "item": item, "count": count, "encoding": encoding}
    found, query, options = asked_pairs(model, items, (min_count, where, exclude), data, **told)
    options |= {"direction": direction, "min_support": min_support}
    show(found.complements(query, number, **options), as_json)
