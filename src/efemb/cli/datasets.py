"""`efemb datasets`: which public data there are, where they are, and fetching one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from efemb.table import Table


def command(
    name: Annotated[
        str | None, typer.Argument(help="Data set to fetch; without it all are listed.")
    ] = None,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of data sets; else EFEMB_DATA.")
    ] = None,
    download: Annotated[
        bool, typer.Option(help="Fetch what is not on this machine, into the cache.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the public data sets, or fetch one of them."""
    from efemb.datasets.catalogue import fetch, list_datasets

    if name is None:
        table = list_datasets(data_home)
        if as_json:
            typer.echo(json.dumps(list(table), indent=2, ensure_ascii=False))
        else:
            _print_list(table)
        return
    found = fetch(name, data_home, download=download)
    told = described(name, found)
    if as_json:
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    typer.echo(repr(found))
    for key in ("source", "terms"):
        typer.echo(f"{key}: {told[key]}")


def described(name: str, data: Any) -> dict[str, Any]:
    """Sizes of a data set and the plain parts of its report."""
    from efemb.data.corpus import Corpus

    if isinstance(data, Corpus):
        sizes = {"documents": data.n_documents, "tokens": data.n_tokens, "words": data.n_entities}
    else:
        sizes = {"rows": data.n_rows, "entities": data.n_entities}
        if data.is_sparse:
            sizes["non_zeros"] = int(data.values.nnz)
    plain = {key: value for key, value in data.report.items() if isinstance(value, int | str)}
    return {"name": name, **sizes, **plain}


def _print_list(table: Table) -> None:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from efemb.datasets.cache import cache_folder

    grid = Grid(box=None, padding=(0, 2, 1, 0), show_header=False)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for row in table:
        found = f"on this machine: {row['where']}" if row["here"] else row["where"]
        text = f"{row['shape']} ({row['megabytes']:g} MB)\n{found}\nterms: {row['terms']}"
        grid.add_row(row["name"], Text(text))
    console = Console()
    console.print(grid)
    console.print(f"`efemb datasets NAME` fetches one into {cache_folder()} (EFEMB_CACHE).")
