"""`efemb datasets`: which public data there are, where they are, and fetching one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.table import Table

SEPARATORS = {".csv": ",", ".tsv": "\t"}


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
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write baskets as a CSV or TSV file.", metavar="FILE"),
    ] = None,
    as_json: of.Json = False,
) -> None:
    """List the public data sets, or fetch one of them.

    \b
      efemb datasets
      efemb datasets groceries
      efemb datasets groceries --out trips.csv    a file for efemb fit
    """
    from efemb.cli._show import show_json
    from efemb.datasets.catalogue import fetch, list_datasets

    if out is not None:
        _check_target(out, name)
    if name is None:
        table = list_datasets(data_home)
        if as_json:
            show_json(list(table))
        else:
            _print_list(table)
        return
    found = fetch(name, data_home, download=download)
    told = described(name, found)
    if out is not None:
        write_baskets(found, name, out)
        told["written"] = str(out)
    if as_json:
        show_json(told)
        return
    typer.echo(repr(found))
    for key in ("source", "terms", "written"):
        if key in told:
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


def _check_target(out: Path, name: str | None) -> None:
    """Refuse what cannot be written, before the work."""
    from efemb.files import check_writable, file_target

    if name is None:
        raise ParameterError("--out writes one data set: efemb datasets NAME --out FILE")
    if not any(suffix.lower() in SEPARATORS for suffix in out.suffixes):
        raise ParameterError(f"{out}: the file ends in {' or '.join(SEPARATORS)}, packed or not")
    check_writable(file_target(out).parent)


def write_baskets(data: Any, name: str, out: Path) -> None:
    """One line for each item of each basket, as `efemb fit` reads them."""
    from efemb.files import complete_or_absent, file_target, table_writer

    if not getattr(data, "is_sparse", False) or data.entities is None:
        raise ParameterError(
            f"--out writes baskets, and {name} has none; in Python: efemb.datasets"
        )
    separator = next(SEPARATORS[one] for one in map(str.lower, out.suffixes) if one in SEPARATORS)
    cells = data.values.tocoo()
    baskets = range(data.n_rows) if data.row_labels is None else data.row_labels.tolist()
    labels = data.entities.labels
    lines = zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True)
    with complete_or_absent(file_target(out)) as stream, table_writer(stream, separator) as writer:
        writer.writerow(("basket", "item", "count"))
        writer.writerows((baskets[t], labels[n], f"{x:.17g}") for t, n, x in lines)


def _print_list(table: Table) -> None:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from efemb.datasets.cache import cache_folder

    grid = Grid(box=None, padding=(0, 2, 1, 0), show_header=False)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")  # a path or an address is there to be copied
    for row in table:
        found = f"on this machine: {row['where']}" if row["here"] else row["where"]
        text = f"{row['shape']} ({row['megabytes']:g} MB)\n{found}\nterms: {row['terms']}"
        grid.add_row(row["name"], Text(text))
    console = Console()
    console.print(grid)
    console.print(f"`efemb datasets NAME` fetches one into {cache_folder()} (EFEMB_CACHE).")
