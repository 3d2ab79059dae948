"""Stores of shards: rows of any size are read once into a store, and fitted from there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from glob import has_magic
from typing import Any, Literal

import numpy as np

from efemb._files import check_path
from efemb._terminal import progress_bar
from efemb.data.readers.text.read import read_text
from efemb.data.readers.transactions import LineColumns, check_filters, line_columns
from efemb.data.store.build import Filters, build_store, fingerprint_files
from efemb.data.store.documents import read_lines, store_corpus
from efemb.data.store.executors import Executor, SerialExecutor
from efemb.data.store.pieces import Dealing, PieceJob
from efemb.data.store.recording import store_recording
from efemb.data.store.remote import is_remote, list_files
from efemb.data.store.shard_store import BUILDING, ShardStore
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer

DEFAULT_SHARDS = 32
LINES_OF_SHARD = 2_000_000
BYTES_OF_LINE = 4  # of a packed Parquet file; text has more
JOB_BYTES, JOB_FILES = 256 << 20, 1000  # of the files that one task reads


def open_store(path: str | os.PathLike[str]) -> ShardStore:
    """Open a store that `prepare` has made.

    Parameters
    ----------
    path : path of the folder

    Returns
    -------
    ShardStore
    """
    return ShardStore.open(path)


def prepare(  # noqa: PLR0913 - every option of a reader is its own keyword
    source: Any,
    store: str | os.PathLike[str],
    *,
    basket: str | Sequence[str] | None = None,
    item: str | None = None,
    count: str | None = None,
    rows: Mapping[str, str] | None = None,
    together: str | None = None,
    n_shards: int | None = None,
    held_out: float = 0.0,
    min_count: int = 1,
    top_n: int | None = None,
    min_items_per_basket: int = 1,
    returns: Literal["bad", "net"] = "bad",
    separator: str | None = None,
    encoding: str = "utf-8",
    header: Sequence[str] | None = None,
    on_bad: Literal["error", "drop"] = "error",
    seed: int = 0,
    progress: bool = False,
    executor: Executor | None = None,
) -> ShardStore:
    """Read transactions of any size into a store of shards.

    The lines of a basket may be in any number of files: a hash of the basket's label decides its
    shard. Memory is bounded by the largest shard and the list of items, whatever the number of
    lines. The store has the same bits for any order of the lines and any cut into files. An
    interrupted preparation continues where it stopped if it is called again.

    Parameters
    ----------
    source : path, URI, table, or list of paths
        CSV or Parquet with one line per item of a basket: a file, a pattern
        (``"lines/*.parquet"``), a folder of Parquet files, a list of these, or a URI that pyarrow
        reads (``s3://``, ``gs://``). A pandas, polars or pyarrow table, an iterator of tables, or
        a Dask data frame, whose partitions are read one by one.
    store : path of the folder
        Made here. If it holds a complete store of the same files with the same settings, that
        store is returned. On a cluster every worker must see it under this path.
    basket, item, count : str, optional
        Names of the columns, as in `read_baskets`.
    rows : mapping of str to str, optional
        Further columns with one value per basket, by the names they get, as in `read_baskets`:
        ``{"household": "household_id", "week": "week_no"}``. Terms and groups of rows need them.
    together : str, optional
        One of `rows`, such as "household": all baskets of a household go to one shard, and the
        column becomes part of what identifies a basket. Pass the column of `RowVectors` here:
        vectors of households are then learned by one replica each, not averaged.
    n_shards : int, optional
        Number of shards. By default 32, or a multiple of it such that a shard has about two
        million lines. Results of a fit depend on it.
    held_out : float, default=0
        Share of the baskets that is kept apart as ``store.test``.
    min_count, top_n, min_items_per_basket, returns : as in `read_baskets`
        Items are counted over the training baskets.
    separator, encoding, header, on_bad : as in `read_baskets`
    seed : int, default=0
        Decides which baskets share a shard or are held out.
    progress : bool, default=False
        Show a progress bar.
    executor : optional
        Where to run the tasks, by default in this process; `efemb.dask.prepare` passes a cluster.

    Returns
    -------
    ShardStore
        Its `report` accounts for every line: ``lines`` is ``lines_stored`` plus the numbers in
        ``lines_dropped``, each line under its first problem.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> lines = pd.DataFrame({"trip": [7, 7, 9, 9], "what": ["beer", "milk", "beer", "beer"]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = prepare(lines, folder.name, basket="trip", item="what", n_shards=2)
    >>> store.n_rows, store.n_entries, store.report["duplicates_summed"]
    (2, 3, 1)
    >>> folder.cleanup()
    """
    check_filters(min_count, top_n, min_items_per_basket, on_bad)
    columns = _line_columns(basket, item, count, rows or {}, together)
    folder = _store_folder(store)
    sizes = list_files(source)
    if n_shards is None:
        n_shards = _default_shards(sizes)
    dealing = _dealing(n_shards, held_out, seed, together)
    options: dict[str, Any] = {"separator": separator, "encoding": encoding, "header": header}
    options |= {"net": returns == "net", "on_bad": on_bad}
    jobs = [
        PieceJob(files, columns, dealing, folder / BUILDING / "pieces" / str(number), **options)
        for number, files in enumerate(_groups(sizes))
    ]
    if sizes is None:
        place = folder / BUILDING / "pieces" / "0"
        jobs = [PieceJob((), columns, dealing, place, **options, table=source)]
    filters = Filters(min_count, top_n, min_items_per_basket, returns == "net")
    settings = {
        "columns": columns.lines,
        "rows": columns.rows,
        **vars(dealing),
        **vars(filters),
        **options,
    }
    identity = {"settings": settings, "source": fingerprint_files(sizes)}
    with progress_bar(f"preparing {folder}", 1000, progress) as advance:
        shown = [0]

        def watch(done: float) -> bool:
            advance(int(1000 * done) - shown[0])
            shown[0] = int(1000 * done)
            return False

        return build_store(folder, jobs, filters, identity, executor or SerialExecutor(), watch)


def prepare_text(
    source: Any,
    store: str | os.PathLike[str],
    *,
    n_shards: int = DEFAULT_SHARDS,
    held_out: float = 0.0,
    min_count: int = 5,
    max_vocab: int | None = None,
    lower: bool = False,
    encoding: str = "utf-8",
    seed: int = 0,
    progress: bool = False,
) -> ShardStore:
    """Read text of any size, one document per line, into a store of shards of whole documents.

    Parameters
    ----------
    source : path, pattern, list of paths, iterable of documents or Corpus
        As in `read_text`; several files are read one after the other.
    store : path of the folder
        Made here; must not hold a store.
    n_shards : int, default=32
        Number of shards. Results of a fit depend on it.
    held_out : float, default=0
        Share of the documents that is kept apart as ``store.test``.
    min_count, max_vocab, lower, encoding : as in `read_text`
    seed : int, default=0
        Decides which documents share a shard or are held out.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    ShardStore
        Counts of words are those of the training documents.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> text = ["the cat sat on the mat", "the dog sat on the cat"] * 10
    >>> store = prepare_text(text, folder.name, n_shards=2, min_count=1)
    >>> store.n_rows, store.n_entries
    (20, 120)
    >>> folder.cleanup()
    """
    folder, dealing = _store_folder(store), _dealing(n_shards, held_out, seed)
    files = list_files(source) if _names_files(source) else None
    options: dict[str, Any] = {"min_count": min_count, "max_vocab": max_vocab, "lower": lower}
    text = source if files is None else read_lines(list(files), encoding)
    corpus = read_text(text, **options, encoding=encoding, progress=progress)
    return store_corpus(corpus, folder, dealing)


def prepare_recording(
    values: Any,
    store: str | os.PathLike[str],
    *,
    n_shards: int = DEFAULT_SHARDS,
    positions: Any = None,
    entities: Sequence[Any] | None = None,
) -> ShardStore:
    """Cut a recording, time x cells, into a store of shards of consecutive rows.

    Parameters
    ----------
    values : path of a .npy file, array or Dask array of shape (time, cells)
        A file is mapped into memory, and of a Dask array only the rows of a shard are computed.
    store : path of the folder
        Made here; must not hold a store.
    n_shards : int, default=32
        Number of shards.
    positions : array of shape (cells, p), optional
        Coordinates, from which neighbors are found.
    entities : sequence, optional
        Labels of the cells, by default their numbers.

    Returns
    -------
    ShardStore
        For `GaussianEmbedding` with neighbors by position, or with a `Graph`.
    """
    if isinstance(values, str | os.PathLike):
        path = check_path(values, "a recording is an array or the path of a .npy file")
        try:
            values = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read: {error}") from error
    check_integer("n_shards", n_shards)
    return store_recording(values, _store_folder(store), n_shards, positions, entities)


def _names_files(source: Any) -> bool:
    """Whether a source is a path or a list of them; other lists are documents."""
    names = source if isinstance(source, list) else [source]
    return all(
        isinstance(name, os.PathLike) or (isinstance(name, str) and _is_file(name))
        for name in names
    )


def _is_file(name: str) -> bool:
    return "\n" not in name and (has_magic(name) or os.path.exists(name))


def _line_columns(
    basket: Any, item: Any, count: Any, rows: Mapping[str, str], together: str | None
) -> LineColumns:
    """The columns to read; what stays together is a part of the key of a basket."""
    if together is not None and together not in rows:
        raise ParameterError(
            f"together={together!r} must be one of the row columns: pass "
            f"rows={{{together!r}: name of its column}}"
        )
    columns = line_columns(basket, item, count, None, rows)
    if together is not None and rows[together] not in columns.keys.values():
        keys = [*columns.keys.values(), rows[together]]
        columns = line_columns(keys, item, count, None, rows)
    return LineColumns(columns.lines, dict(rows), frozenset())


def _dealing(n_shards: int, held_out: float, seed: int, together: str | None = None) -> Dealing:
    check_integer("n_shards", n_shards)
    check_integer("seed", seed, 0)
    if not 0.0 <= held_out < 1.0:
        raise ParameterError(f"held_out must be at least 0 and below 1, got {held_out!r}")
    n_test = max(1, round(n_shards * held_out)) if held_out else 0
    return Dealing(n_shards, n_test, held_out, seed, together)


def _store_folder(store: Any) -> Any:
    if is_remote(store):
        raise InputTypeError(
            f"a store is a folder that is mapped into memory, not {store!r}: use a local or a "
            "shared file system"
        )
    return check_path(store, "a store is a folder: pass its path")


def _default_shards(sizes: Mapping[str, int] | None) -> int:
    """Enough shards for eight replicas and four rounds, and for small tasks."""
    n_lines = 0 if sizes is None else sum(sizes.values()) // BYTES_OF_LINE
    return DEFAULT_SHARDS * max(1, -(-n_lines // (DEFAULT_SHARDS * LINES_OF_SHARD)))


def _groups(sizes: Mapping[str, int] | None) -> list[tuple[str, ...]]:
    """Files of one task: many small ones, or a few large ones."""
    groups: list[list[str]] = []
    room = 0
    for name, size in (sizes or {}).items():
        if not groups or room < size or len(groups[-1]) >= JOB_FILES:
            groups.append([])
            room = JOB_BYTES
        groups[-1].append(name)
        room -= size
    return [tuple(group) for group in groups]
