"""`efemb similar`: entities whose vectors point the same way."""

from __future__ import annotations

from efemb.cli import _arguments as of


def command(
    model: of.Model,
    items: of.Items,
    number: of.Number = 10,
    which: of.Which = "auto",
    min_count: of.MinCount = None,
    where: of.Where = None,
    exclude: of.Exclude = None,
    as_json: of.Json = False,
) -> None:
    """Show what is most like an item.

    The measure is the cosine of the vectors. Part of a label is enough where one label begins with
    it or only one holds it.

    \b
      efemb similar model "greek yogurt"
      efemb similar model milk beer --number 3 --json
      efemb similar model milk --where organic --min-count 50
    """
    from efemb.cli._asking import Labels, opened
    from efemb.cli._show import remark, show

    found = opened(model)
    labels = Labels(found)
    query, chosen = labels.query(items), labels.filters(min_count, where, exclude)
    vectors = found.vectors(which)  # type: ignore[arg-type]  # checked there
    for label in query if isinstance(query, list) else [query]:
        if not vectors[label].any():
            remark(f"{label} never varied or was never seen: its vector is zero, and like no other")
    show(vectors.similar(query, number, **chosen), as_json)
