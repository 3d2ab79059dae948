"""`efemb datasets`: list public data sets, or fetch one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import efemb
from efemb._files import check_writable, complete_or_absent, file_target, table_writer
from efemb.cli import _arguments as of
from efemb.cli._output import echo, show_json
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.table import Table

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TEXT = ".txt"


def command(
    name: Annotated[
        str | None,
        typer.Argument(help="Data set to fetch; by default, list all.", metavar="NAME"),
    ] = None,
    data_home: Annotated[
        Path | None,
        typer.Option(help="Folder of data sets; by default $EFEMB_DATA.", metavar="FOLDER"),
    ] = None,
    download: Annotated[bool, typer.Option(help="Download missing files into the cache.")] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write as input for efemb fit: CSV, TSV, or TXT for text. Positions "
            "go to a second file.",
            metavar="FILE",
        ),
    ] = None,
    as_json: of.Json = False,
) -> None:
    """List public data sets, or fetch one of them.

    \b
      efemb datasets
      efemb datasets sample-trips --out trips.csv    simulated; works offline
      efemb datasets groceries
      efemb datasets groceries --out trips.csv       a file for efemb fit
    """
    from efemb.datasets.catalog import fetch, list_datasets

    if out is not None:
        _check_target(out, name)
    if name is None:
        table = list_datasets(data_home)
        if as_json:
            show_json(list(table))
        else:
            _print_list(table)
        return
    data = fetch(name, data_home, download=download)
    fields = describe_data(name, data)
    if out is not None:
        fields["written"] = " and ".join(map(str, write_data(data, out)))
    if as_json:
        show_json(fields)
        return
    echo(repr(data))
    for key in ("source", "terms", "written"):
        if key in fields:
            echo(f"{key}: {fields[key]}")


def describe_data(name: str, data: Any) -> dict[str, Any]:
    """Sizes of a data set, and the numbers and texts of its report."""
    if isinstance(data, efemb.Corpus):
        sizes = {"documents": data.n_documents, "tokens": data.n_tokens, "words": data.n_entities}
    else:
        sizes = {"rows": data.n_rows, "entities": data.n_entities}
        if data.is_sparse:
            sizes["non_zeros"] = int(data.values.nnz)
    plain = {key: value for key, value in data.report.items() if isinstance(value, int | str)}
    return {"name": name, **sizes, **plain}


def _check_target(out: Path, name: str | None) -> None:
    """Reject a file that cannot be written, before the work."""
    if name is None:
        raise ParameterError("--out writes one data set: efemb datasets NAME --out FILE")
    if not any(suffix.lower() in (*SEPARATORS, TEXT) for suffix in out.suffixes):
        raise ParameterError(
            f"{out}: the name must end in {' or '.join((*SEPARATORS, TEXT))}, compressed or not"
        )
    check_writable(file_target(out).parent)


def write_data(data: Any, out: Path) -> list[Path]:
    """Write baskets, a matrix (and its positions) or text; the files that were written."""
    is_text = isinstance(data, efemb.Corpus)
    if is_text != any(suffix.lower() == TEXT for suffix in out.suffixes):
        kind, endings = ("text", TEXT) if is_text else ("a table", " or ".join(SEPARATORS))
        raise ParameterError(f"{out}: the data are {kind}, so the name must end in {endings}")
    if is_text:
        _write_text(data, out)
    elif data.is_sparse and data.entities is not None:
        write_baskets(data, out)
    else:
        return _write_matrix(data, out)
    return [out]


def _write_text(corpus: efemb.Corpus, out: Path) -> None:
    """One document per line."""
    labels = corpus.vocabulary.labels
    with complete_or_absent(file_target(out)) as stream:
        for start, end in zip(corpus.starts[:-1], corpus.starts[1:], strict=True):
            words = (str(labels[code]) for code in corpus.tokens[start:end])
            stream.write((" ".join(words) + "\n").encode("utf-8"))


def _write_matrix(data: Any, out: Path) -> list[Path]:
    """Rows x entities with a header of labels; positions beside it, matched by label."""
    dense = data.values.toarray() if data.is_sparse else data.values
    if dense.ndim != 2:
        raise ParameterError(f"{out}: a matrix has one number per entry, but these data have more")
    labels = range(data.n_entities) if data.entities is None else list(data.entities)
    tables: dict[Path, tuple[list[Any], Any]] = {out: (list(labels), dense)}
    if data.positions is not None:
        axes = ["x", "y", "z"][: data.positions.shape[1]]
        beside = out.with_name(f"{out.name.partition('.')[0]}-positions.csv")
        lines = ([label, *position] for label, position in zip(labels, data.positions, strict=True))
        tables[beside] = (["label", *axes], lines)
    for path, (header, rows) in tables.items():
        separator = _separator(path)
        target = file_target(path)
        with complete_or_absent(target) as stream, table_writer(stream, separator) as writer:
            writer.writerow(header)
            writer.writerows([_cell(value) for value in row] for row in rows)
    return list(tables)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value != value else str(value)  # the shortest text that restores the number


def _separator(out: Path) -> str:
    endings = [suffix.lower() for suffix in out.suffixes]
    return next(SEPARATORS[ending] for ending in endings if ending in SEPARATORS)


def write_baskets(data: Any, out: Path) -> None:
    """One line per item of a basket, as `efemb fit` reads them."""
    separator = _separator(out)
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
    grid.add_column(overflow="fold")  # so that paths and addresses can be copied
    for row in table:
        source = f"on this machine: {row['where']}" if row["here"] else row["where"]
        text = f"{row['shape']} ({row['megabytes']:g} MB)\n{source}\nterms: {row['terms']}"
        grid.add_row(row["name"], Text(text))
    console = Console()
    console.print(grid)
    console.print(f"`efemb datasets NAME` fetches one into {cache_folder()} (EFEMB_CACHE).")
