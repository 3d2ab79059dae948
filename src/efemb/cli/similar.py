"""`efemb similar`: entities whose vectors point the same way."""

from __future__ import annotations

from efemb.cli import _arguments as of


def command(
    model: of.Model,
    items: of.Items,
    number: of.Number = 10,
    which: of.Which = "auto",
    min_count: of.MinCount = None,
    as_json: of.Json = False,
) -> None:
    """Show what is most like an item.

    The measure is the cosine of the vectors. Part of a label is enough where it fits only one.

    \b
      efemb similar model "greek yogurt"
      efemb similar model milk beer --number 3 --json
    """
    from efemb.cli._asking import Labels, filters, opened
    from efemb.cli._show import show

    found = opened(model)
    query = Labels(found).query(items)
    vectors = found.vectors(which)  # type: ignore[arg-type]  # checked there
    show(vectors.similar(query, number, **filters(min_count)), as_json)
