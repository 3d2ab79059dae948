"""`efemb similar`: items with similar vectors."""

from __future__ import annotations

from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, open_model
from efemb.cli._output import remark, show


def command(
    model: of.Model,
    items: of.Items,
    n: of.Number = 10,
    which: of.Which = "auto",
    *,
    filters: of.Filters,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """List the items most similar to an item.

    Similarity is the cosine of the vectors. Part of a label is enough if exactly one label starts
    with it or contains it.

    \b
      efemb similar model "greek yogurt"
      efemb similar model milk beer -n 3 --json
      efemb similar model milk --where organic --min-count 50
    """
    fitted = open_model(model)
    labels = Labels(fitted, skip_unknown=skip_unknown)
    query, options = labels.query(items), labels.filters(filters)
    vectors = fitted.vectors(which)  # type: ignore[arg-type]  # checked there
    for label in query if isinstance(query, list) else [query]:
        if not vectors[label].any():
            remark(f"{label} never varied in the training data: its vector is zero")
    show(vectors.similar(query, n, **options), as_json)
