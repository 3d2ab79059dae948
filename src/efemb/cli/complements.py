"""`efemb complements`: what an item makes more likely."""

from __future__ import annotations

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
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List the items that an item in a basket makes more likely.

    Items are ranked by the inner product rho . alpha, which is large for complements. With --data,
    items that are bought together significantly more often than expected by chance come first; the
    others are marked as unclear.

    \b
      efemb complements model milk
      efemb complements model milk --data trips.csv --min-support 5
    """
    fitted, query, options = open_pair_question(
        model, items, filters, data, layout, skip_unknown=skip_unknown
    )
    options |= {"direction": direction, "min_support": min_support}
    show(fitted.complements(query, n, **options), as_json)
