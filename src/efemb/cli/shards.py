"""`efemb shards`: convert transactions of any size to a store of shards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from efemb.cli import _arguments as of
from efemb.cli._inputs import Reading
from efemb.cli._output import echo, make_reporter, show_json
from efemb.cli._shards import Cluster, connect, prepare_store


def command(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, TSV or Parquet files of transactions, a pattern in quotes, or a folder of "
            "Parquet files.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the store.", metavar="FOLDER")
    ],
    basket: of.Basket = None,
    item: of.Item = None,
    count: of.Count = None,
    header: of.Header = None,
    net_returns: of.NetReturns = False,
    min_count: of.Rarest = 5,
    shards: Annotated[
        int | None,
        typer.Option(
            help="Number of shards; by default 32, and more above 64 million lines.",
            min=1,
            metavar="N",
        ),
    ] = None,
    test: Annotated[
        float,
        typer.Option(help="Share of baskets to hold out.", min=0, max=0.9, metavar="X"),
    ] = 0.05,
    cluster: Cluster = None,
    seed: of.Seed = 0,
    encoding: of.Encoding = "utf-8",
    strict: of.Strict = False,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Read transactions of any size into a store of shards on disk.

    Memory is bounded by the largest shard. The lines of a basket may be spread over any number of
    files. If the command is interrupted, repeat it to resume.

    \b
      efemb shards "lines/*.parquet" --basket order --item sku --out store
      efemb fit store --out model
      efemb fit store --cluster local:4 --checkpoint run --out model
    """
    reading = Reading(
        of.Layout(basket, item, count, header=header, encoding=encoding),
        min_count=min_count,
        strict=strict,
        progress=not quiet,
        say=make_reporter(quiet),
        net_returns=net_returns,
    )
    with connect(cluster) as client:
        store = prepare_store(reading, data, out, test, seed, client, n_shards=shards)
    summary = {"store": str(store.path), "shards": store.n_shards, "rows": store.n_rows}
    summary |= {"items": store.n_entities, **store.report}
    if as_json:
        show_json(summary)
    else:
        echo(f"{store!r}")
