"""`efemb plot`: pictures of a saved model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of
from efemb.errors import EfembError, ParameterError, suggest

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding

ENDINGS = (".png", ".svg", ".pdf")
METHODS = ("pca", "tsne", "umap")
OPTIONS = {  # and the pictures that they are options of
    "--method": ("map",),
    **dict.fromkeys(
        ("--data", "--basket", "--item-column", "--count", "--encoding"), ("relations",)
    ),
    "--item": ("map", "relations", "similarity", "weights"),
    "--number": ("map", "relations", "similarity", "topics", "weights"),
}


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
    data: Annotated[
        Path | None,
        typer.Option(help="Of relations: baskets that confirm substitutes.", metavar="FILE"),
    ] = None,
    basket: of.Basket = None,
    item_column: Annotated[
        str | None, typer.Option(help="Column of items.", metavar="COLUMN")
    ] = None,
    count: of.Count = None,
    encoding: of.Encoding = "utf-8",
    method: Annotated[
        str, typer.Option(help="Of a map: pca, tsne or umap.", metavar="NAME")
    ] = "pca",
    dpi: Annotated[int, typer.Option(help="Dots an inch.", min=30, metavar="N")] = 200,
    as_json: of.Json = False,
) -> None:
    """Draw a picture of a model.

    \b
      efemb plot model map --out map.png
      efemb plot model map --method tsne
      efemb plot model relations --item milk --data trips.csv
      efemb plot model similarity --item milk --item beer --item chips
      efemb plot model topics --number 6
      efemb plot model weights --number 6 --out neurons.pdf

    \b
    map          all vectors, the most frequent labelled; tsne and umap show
                 finer groups, and take about a minute for 8,000 items
    relations    complements and substitutes of an item
    similarity   cosines of some items
    topics       the first items of each dimension
    weights      neurons and their neighbours, seen from above
    history      score and objective while it was fitted
    """
    from efemb.cli._asking import Labels, opened
    from efemb.cli._show import show_json

    told = {"basket": basket, "item": item_column, "count": count, "encoding": encoding}
    given = {
        "--method": method != "pca",
        "--data": data is not None,
        "--basket": basket is not None,
        "--item-column": item_column is not None,
        "--count": count is not None,
        "--encoding": encoding != "utf-8",
        "--item": bool(items),
        "--number": number is not None,
    }
    _check_options(kind, method, given)
    check_picture(out)
    found = opened(model)
    labels = Labels(found)
    shown = [labels.one(typed) for typed in items or []]
    options: dict[str, Any] = {"map": {"method": method}}.get(kind, {})
    if data is not None:
        options = {"data": _baskets(data, found, told)}
    with _missing_signs_told():
        write_picture(PICTURES[kind](found, shown, number, **options), out, dpi)
    if as_json:
        show_json({"picture": kind, "written": out})
    else:
        typer.echo(f"{kind} drawn to {out}")


def _check_options(kind: str, method: str, given: dict[str, bool]) -> None:
    if kind not in PICTURES:
        raise ParameterError(f"there is no picture {kind!r}; {suggest(kind, PICTURES)}")
    if method not in METHODS:
        raise ParameterError(f"--method {method}: {suggest(method, METHODS)}")
    for option, owners in OPTIONS.items():
        if given[option] and kind not in owners:
            raise ParameterError(f"{option} belongs to {', '.join(owners)}, not to {kind}")


def _baskets(path: Path, model: FittedEmbedding, told: dict[str, Any]) -> Any:
    """Data behind a model; here --item is what to show, so that its column has another option."""
    from efemb.cli._asking import data_of

    try:
        return data_of(path, model, **told)
    except EfembError as error:
        raise type(error)(str(error).replace("--item", "--item-column")) from error


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
    form = target.suffix.lower()[1:]
    with complete_or_absent(target) as stream:
        picture.figure.savefig(stream, format=form, dpi=dpi, bbox_inches="tight")


@contextmanager
def _missing_signs_told() -> Iterator[None]:
    """One remark instead of a warning for each sign that the font does not have."""
    from efemb.cli._show import remark

    with warnings.catch_warnings(record=True) as missing:
        warnings.filterwarnings("always", message="Glyph .* missing")
        yield
    if missing:
        remark(
            "the font lacks some signs of the labels: name one that has them as font.family in "
            "a file matplotlibrc"
        )


def _map(model: FittedEmbedding, items: list[Any], number: int | None, method: str = "pca") -> Any:
    from efemb.plots import embedding_map

    return embedding_map(model, method=method, labels=items or number or 40, progress=True)


def _history(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import history

    return history(model)


def _topics(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import topics

    return topics(model, n=number or 8)


def _relations(
    model: FittedEmbedding, items: list[Any], number: int | None, data: Any = None
) -> Any:
    from efemb.plots import relations

    if len(items) != 1:
        raise ParameterError("relations are those of one item: --item LABEL")
    return relations(model, items[0], number or 8, data=data)


def _similarity(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import similarity

    return similarity(model, items or number or 20)


def _weights(model: FittedEmbedding, items: list[Any], number: int | None) -> Any:
    from efemb.plots import spatial_weights

    return spatial_weights(model, items or number or 3)


PICTURES: dict[str, Callable[..., Any]] = {
    "map": _map,
    "history": _history,
    "topics": _topics,
    "relations": _relations,
    "similarity": _similarity,
    "weights": _weights,
}
