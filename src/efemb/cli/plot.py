"""`efemb plot`: pictures of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of
from efemb.errors import ParameterError, suggest

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding

ENDINGS = (".png", ".svg", ".pdf")


def command(
    model: of.Model,
    kind: Annotated[
        str, typer.Argument(help="map, history, topics, relations, similarity or weights.")
    ] = "map",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="PNG, SVG or PDF.", metavar="FILE")
    ] = Path("plot.png"),
    items: Annotated[
        list[str] | None,
        typer.Option("--item", help="Items to show; repeat for several.", metavar="LABEL"),
    ] = None,
    number: Annotated[
        int | None, typer.Option("--number", "-n", help="How many to show.", min=1, metavar="N")
    ] = None,
    dpi: Annotated[int, typer.Option(help="Dots an inch.", min=30, metavar="N")] = 200,
    as_json: of.Json = False,
) -> None:
    """Draw a picture of a model.

    \b
      efemb plot model map --out map.png
      efemb plot model relations --item milk
      efemb plot model similarity --item milk --item beer --item chips
      efemb plot model topics --number 6
      efemb plot model weights --out neurons.pdf

    \b
    map          all vectors, the most frequent labelled
    relations    complements and substitutes of an item
    similarity   cosines of some items
    topics       the first items of each dimension
    weights      neurons and their neighbours, seen from above
    history      score and objective while it was fitted
    """
    from efemb.cli._asking import Labels, opened
    from efemb.cli._show import show_json

    if kind not in PICTURES:
        raise ParameterError(f"there is no picture {kind!r}; {suggest(kind, PICTURES)}")
    check_picture(out)
    found = opened(model)
    labels = Labels(found)
    shown = [labels.one(typed) for typed in items or []]
    write_picture(PICTURES[kind](found, shown, number), out, dpi)
    if as_json:
        show_json({"picture": kind, "written": out})
    else:
        typer.echo(f"{kind} drawn to {out}")


def check_picture(path: Path) -> None:
    """Refuse what cannot be drawn or written, before the work."""
    from efemb.files import check_writable, file_target

    if path.suffix.lower() not in ENDINGS:
        raise ParameterError(f"{path}: a picture ends in {', '.join(ENDINGS)}")
    check_writable(file_target(path).parent)


def write_picture(picture: Any, path: Path, dpi: int = 200) -> None:
    """Write Axes to a file, whole or not at all."""
    from efemb.files import complete_or_absent, file_target

    target = file_target(path)
    with complete_or_absent(target) as stream:
        picture.figure.savefig(
            stream, format=target.suffix.lower()[1:], dpi=dpi, bbox_inches="tight"
        )


def _map(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import embedding_map

    return embedding_map(model, labels=items or number or 40)


def _history(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import history

    return history(model)


def _topics(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import topics

    return topics(model, n=number or 8)


def _relations(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import relations

    if len(items) != 1:
        raise ParameterError("relations are those of one item: --item LABEL")
    return relations(model, items[0], number or 8)


def _similarity(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import similarity

    return similarity(model, items or number or 20)


def _weights(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import spatial_weights

    return spatial_weights(model)


PICTURES = {
    "map": _map,
    "history": _history,
    "topics": _topics,
    "relations": _relations,
    "similarity": _similarity,
    "weights": _weights,
}
