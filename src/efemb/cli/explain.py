"""`efemb explain`: why an item is likely or unlikely in a context."""

from __future__ import annotations

from typing import Annotated

import typer

from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, open_model
from efemb.cli._output import echo, show_json


def command(
    model: of.Model,
    item: Annotated[str, typer.Argument(help="Item to explain.", show_default=False)],
    context: of.Members,
    skip_unknown: of.SkipUnknown = False,
    as_json: of.Json = False,
) -> None:
    """Show what each part of a basket contributes to an item.

    The contributions add up exactly to the inner product that determines the mean of the item.

    \b
      efemb explain model salsa beer=2 chips
    """
    fitted = open_model(model)
    labels = Labels(fitted, skip_unknown=skip_unknown)
    label, members = labels.find(item), labels.context(context)
    table = fitted.explain(members, label)
    total = float(table["contribution"].sum())
    expected = fitted.predict(members, 1, where=[label])[0]
    if as_json:
        show_json({"item": label, "sum": total, **expected, "terms": list(table)})
        return
    echo(table.to_text())
    means = ", ".join(f"{name} {expected[name]:.4g}" for name in expected if name != "label")
    echo(f"\n{label}: sum {total:.4g}, {means}")
