"""`efemb recommend`: the best items for every row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._inputs import Reading, describe_size
from efemb.cli._labels import Labels
from efemb.cli._output import make_reporter, show
from efemb.errors import DataError, ParameterError


def command(
    model: of.Model,
    data: Annotated[
        Path,
        typer.Option(help="Rows to recommend for, in the format of efemb fit.", metavar="FILE"),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV file to write instead of printing.", metavar="FILE"),
    ] = None,
    n: of.Number = 10,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Also list items that are already in the row.")
    ] = False,
    *,
    filters: of.Filters,
    layout: of.Layout,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """List the best items for every row of a file.

    A row is a basket, an order or a customer. For counts, the score is the probability that the
    item is the next one. Items that the model does not know are dropped.

    \b
      efemb recommend model --data new-trips.csv --out recommendations.csv
      efemb recommend model --data customers.csv --basket customer --item sku -n 3
    """
    say = make_reporter(quiet)
    loaded: Any = efemb.load(model)
    if not hasattr(loaded, "recommend"):
        raise DataError(f"{model} holds a {type(loaded).__name__}, which cannot recommend items")
    if out is not None and as_json:
        raise ParameterError("--json prints the answer and --out writes a file: choose one")
    reading = Reading(layout, min_count=1, min_items=1, progress=not quiet, say=say)
    rows = reading.read_for(data, loaded)
    say(describe_size(rows))
    options = {"exclude_seen": not include_seen, "progress": not quiet}
    table = loaded.recommend(rows, n, **Labels(loaded).filters(filters), **options)
    if out is None:
        show(table, as_json, empty="nothing is left to recommend")
        return
    table.to_csv(out)
    say(f"{len(table):,} recommendations for {rows.n_rows:,} rows written to {out}")
