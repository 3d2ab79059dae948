"""`efemb explain`: why an item is (im)probable in a context."""

from __future__ import annotations

from typing import Annotated

import typer

from efemb.cli import _arguments as of


def command(
    model: of.Model,
    item: Annotated[str, typer.Argument(help="Label that is predicted.", show_default=False)],
    context: of.Members,
    as_json: of.Json = False,
) -> None:
    """Show what each part of a basket adds to an item.

    The contributions add up exactly to the inner product that the item's mean is made of.

    \b
      efemb explain model salsa beer=2 chips
    """
    from efemb.cli._asking import Labels, opened
    from efemb.cli._show import show_json

    found = opened(model)
    labels = Labels(found)
    wanted, given = labels.one(item), labels.context(context)
    table = found.explain(given, wanted)
    total = float(table["contribution"].sum())
    expected = found.predict(given, 1, where=[wanted])[0]
    if as_json:
        show_json({"item": wanted, "sum": total, **expected, "terms": list(table)})
        return
    typer.echo(table.to_text())
    means = ", ".join(f"{name} {expected[name]:.4g}" for name in expected if name != "label")
    typer.echo(f"\n{wanted}: sum {total:.4g}, {means}")
