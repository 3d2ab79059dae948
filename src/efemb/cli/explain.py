"""`efemb explain`: why an item is likely or unlikely in a context."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, embedding_of
from efemb.cli._output import echo, show_json


def command(
    model: of.Model,
    item: Annotated[
        str, typer.Argument(help="Item to explain.", metavar="ITEM", show_default=False)
    ],
    context: of.Members,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """Show what each part of a basket contributes to an item.

    The contributions add up exactly to the inner product that determines the mean of the item. For
    a basket model, the table lists the contribution of each item through the vectors and its weight
    in the item pairs.

    \b
      efemb explain model salsa beer=2 chips
    """
    fitted: Any = efemb.load(model)
    is_mixture = hasattr(fitted, "parts_")  # a mixture, of which the vectors are one part
    fitted = fitted if is_mixture else embedding_of(fitted, model)
    labels = Labels(fitted, skip_unknown=skip_unknown)
    label, members = labels.find(item), labels.context(context)
    if is_mixture:
        _explain_pairs(fitted, members, label, as_json)
        return
    table = fitted.explain(members, label)
    total = float(table["contribution"].sum())
    expected = fitted.predict(members, 1, where=[label])[0]
    if as_json:
        show_json({"item": label, "sum": total, **expected, "terms": list(table)})
        return
    echo(table.to_text())
    means = ", ".join(f"{name} {expected[name]:.4g}" for name in expected if name != "label")
    echo(f"\n{label}: sum {total:.4g}, {means}")


def _explain_pairs(model: Any, members: Any, label: Any, as_json: bool) -> None:
    """Contributions of the items of a basket to an item outside it, and its probability."""
    table = model.explain(members, label, by="item")
    rest = {member: amount for member, amount in members.items() if member != label}
    probability = float(model.complete(rest, 1, where=[label])["probability"][0])
    if as_json:
        show_json({"item": label, "probability": probability, "terms": list(table)})
        return
    echo(table.to_text())
    echo(f"\n{label}: probability {probability:.4g}")
