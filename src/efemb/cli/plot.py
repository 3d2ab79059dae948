"""`efemb plot`: pictures of a saved model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._labels import Labels, embedding_of, read_evidence
from efemb.cli._output import check_picture, echo, remark, show_json, write_picture
from efemb.errors import EfembError, ParameterError, suggest

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

METHODS = ("auto", "pca", "tsne", "umap")
OPTIONS = {  # option -> the plots that it applies to
    **dict.fromkeys(("--method", "--groups", "--group-column"), ("map",)),
    **dict.fromkeys(
        ("--data", "--basket", "--item-column", "--count", "--encoding"), ("relations",)
    ),
    "--item": ("map", "relations", "similarity", "weights"),
    "--n": ("map", "relations", "similarity", "topics", "weights"),
}


def command(
    model: of.Model,
    kind: Annotated[
        str,
        typer.Argument(
            help="map, history, topics, relations, similarity, weights or reliability.",
            metavar="KIND",
        ),
    ] = "map",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="PNG, SVG or PDF file to write.", metavar="FILE")
    ] = Path("plot.png"),
    items: Annotated[
        list[str] | None,
        typer.Option("--item", help="Item to show; repeat for several.", metavar="LABEL"),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option("--n", "-n", help="Number of items to show.", min=1, metavar="N"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="relations: baskets that the model was fitted to; confirms substitutes.",
            metavar="FILE",
        ),
    ] = None,
    basket: of.Basket = None,
    item_column: of.Item = None,
    count: of.Count = None,
    encoding: of.Encoding = "utf-8",
    method: Annotated[
        str,
        typer.Option(
            help="map: tsne, pca or umap; by default tsne below 10,000 items.", metavar="NAME"
        ),
    ] = "auto",
    groups: Annotated[
        Path | None,
        typer.Option(help="map: table of items and their groups; adds colors.", metavar="FILE"),
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Column of the groups in that table.", metavar="COLUMN")
    ] = None,
    dpi: Annotated[
        int, typer.Option(help="Resolution in dots per inch.", min=30, metavar="N")
    ] = 200,
    as_json: of.Json = False,
) -> None:
    """Draw a plot of a model.

    \b
      efemb plot model map --out map.png
      efemb plot model map --groups products.csv --group-column department
      efemb plot model relations --item milk --data trips.csv
      efemb plot model similarity --item milk --item beer --item chips
      efemb plot model topics -n 6
      efemb plot model weights -n 6 --out neurons.pdf

    \b
    map          all vectors, the most frequent items labeled; tsne takes
                 about a minute for 8,000 items, pca a second
    relations    complements and substitutes of an item
    similarity   cosines between items
    topics       the leading items of each dimension
    weights      neurons and their neighbors, seen from above
    history      score and objective during training
    reliability  observed against predicted probabilities (basket models)
    """
    layout = of.Layout(basket, item_column, count, encoding=encoding)
    is_set = {
        "--method": method != "auto",
        "--groups": groups is not None,
        "--group-column": group_column is not None,
        "--data": data is not None,
        "--basket": basket is not None,
        "--item-column": item_column is not None,
        "--count": count is not None,
        "--encoding": encoding != "utf-8",
        "--item": bool(items),
        "--n": n is not None,
    }
    _check_options(kind, method, is_set)
    check_picture(out)
    loaded = efemb.load(model)
    fitted = embedding_of(loaded, model)
    labels = Labels(fitted)
    shown = [labels.find(typed) for typed in items or []]
    options: dict[str, Any] = {}
    if kind == "map":
        options = {"method": method, "groups": _read_groups(groups, group_column, fitted)}
    if kind == "reliability":
        options = {"loaded": loaded}
    if data is not None:
        options = {"data": _read_baskets(data, fitted, layout)}
    with _report_missing_glyphs():
        write_picture(PICTURES[kind](fitted, shown, n, **options), out, dpi)
    if as_json:
        show_json({"picture": kind, "written": out})
    else:
        echo(f"{kind} written to {out}")


def _check_options(kind: str, method: str, is_set: dict[str, bool]) -> None:
    if kind not in PICTURES:
        raise ParameterError(f"there is no plot {kind!r}; {suggest(kind, PICTURES)}")
    if method not in METHODS:
        raise ParameterError(f"--method {method}: {suggest(method, METHODS)}")
    for option, kinds in OPTIONS.items():
        if is_set[option] and kind not in kinds:
            raise ParameterError(f"{option} applies to {', '.join(kinds)}, not to {kind}")


def _read_baskets(path: Path, model: FittedEmbedding, layout: of.Layout) -> Any:
    """The data behind a model; --item names what to show here, so its column is --item-column."""
    try:
        return read_evidence(path, model, layout)
    except EfembError as error:
        raise type(error)(str(error).replace("--item", "--item-column")) from error


@contextmanager
def _report_missing_glyphs() -> Iterator[None]:
    """Print one remark instead of a warning per character that the font lacks."""
    with warnings.catch_warnings(record=True) as missing:
        warnings.filterwarnings("always", message="Glyph .* missing")
        yield
    if missing:
        remark(
            "the font lacks some characters of the labels: set font.family to one that has them "
            "in a file matplotlibrc"
        )


def _read_groups(
    path: Path | None, column: str | None, model: FittedEmbedding
) -> list[str | None] | None:
    """The group of each item, or None without a table."""
    from efemb.explore.groups import NO_GROUP, read_groups

    groups = read_groups(path, model.entities, column)
    if groups is None:
        return None
    remark(groups.remark())
    return [None if code == NO_GROUP else groups.names[code] for code in groups.codes.tolist()]


def _draw_relations(
    model: FittedEmbedding, items: list[Any], n: int | None, data: Any = None
) -> Any:
    if len(items) != 1:
        raise ParameterError("relations are drawn for a single item: --item LABEL")
    return efemb.plots.relations(model, items[0], n or 8, data=data)


# Functions of the model, the items, their number and further options.
PICTURES: dict[str, Callable[..., Any]] = {
    "map": lambda model, items, n, **options: efemb.plots.embedding_map(
        model, labels=items or n or 40, progress=True, **options
    ),
    "history": lambda model, items, n: efemb.plots.history(model),
    "topics": lambda model, items, n: efemb.plots.topics(model, n=n or 8),
    "relations": _draw_relations,
    "similarity": lambda model, items, n: efemb.plots.similarity(model, items or n or 20),
    "weights": lambda model, items, n: efemb.plots.spatial_weights(model, items or n or 3),
    "reliability": lambda model, items, n, loaded: efemb.plots.reliability(loaded),
}
