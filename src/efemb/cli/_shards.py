"""Stores of shards on the command line: creation, automatic choice, and fits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from efemb.cli._inputs import Reading
from efemb.cli._models import choose_components, choose_model, make_model, warnings_as_remarks
from efemb.cli._output import Say
from efemb.data import memory
from efemb.data.dataset import Dataset
from efemb.data.store.executors import describe_lost
from efemb.errors import EfembError, ParameterError

# Bytes of memory per byte of the file, as measured for 100 bytes per line.
BYTES_BY_SUFFIX = {".parquet": 30, ".pq": 30, ".csv": 6, ".tsv": 6}

Cluster = Annotated[
    str | None,
    typer.Option(
        help="Run on a Dask cluster: tcp://host:8786, or local:4 for four processes here.",
        metavar="ADDRESS",
    ),
]


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """A client of the cluster at an address, None without one."""
    if address is None:
        yield None
        return
    from efemb.dask.cluster import open_cluster

    with open_cluster(address) as client:
        yield client


def prepare_store(
    reading: Reading,
    files: Sequence[Path],
    folder: Path,
    test: float,
    seed: int,
    client: Any,
    n_shards: int | None = None,
) -> Any:
    """Read files into a store, with columns that are inferred from the first of them."""
    from efemb import shards
    from efemb.data.store.remote import is_remote, list_files

    names = [_typed_address(path) for path in files]
    listed = list(list_files(names) or ())
    first = None if is_remote(listed[0]) else Path(listed[0])
    columns = reading.columns(first)
    options: dict[str, Any] = {
        **columns,
        "n_shards": n_shards,
        "held_out": test,
        "min_count": reading.min_count,
        "min_items_per_basket": reading.min_items,
        "returns": "net" if reading.net_returns else "bad",
        "on_bad": "error" if reading.strict else "drop",
        "encoding": reading.layout.encoding,
        "seed": seed,
        "progress": reading.progress,
    }
    source = names if len(names) > 1 else names[0]
    if client is None:
        store = shards.prepare(source, folder, **options)
    else:
        from efemb import dask

        store = dask.prepare(source, folder, client=client, **options)
    _report(store.report, reading.say)
    return store


def _typed_address(path: Path) -> str:
    """A path as it was typed: pathlib merges the slashes of an address."""
    text = str(path)
    for scheme in ("s3", "gs", "gcs", "hdfs", "abfs", "file"):
        if text.startswith(f"{scheme}:/") and not text.startswith(f"{scheme}://"):
            return text.replace(":/", "://", 1)
    return text


def _report(report: dict[str, Any], say: Say) -> None:
    for reason, number in report["lines_dropped"].items():
        say(f"dropped {number:,} of {report['lines']:,} lines: {reason}")
    say(
        f"{report['lines_stored']:,} lines of {report['baskets']:,} baskets stored; dropped "
        f"{report['items_dropped']:,} items and {report['baskets_dropped']:,} baskets"
    )
    _report_lost(report, say)


def _report_lost(report: dict[str, Any], say: Say) -> None:
    if deaths := report.get("deaths"):
        say(describe_lost(deaths))


@dataclass(frozen=True)
class ShardRun:
    """Where a fit on shards runs: store, cluster, checkpoint, and the held-out share."""

    store: Path
    cluster: str | None
    replicas: int | None
    checkpoint: Path | None
    test: float
    seed: int


def choose_store(
    files: Sequence[Path], store: Path | None, out: Path, say: Say, *, forced: bool
) -> Path | None:
    """The folder of the store to fit from; None if the data are to be read into memory."""
    from efemb.data.store.shard_store import FORMAT
    from efemb.storage.folder import format_of

    if len(files) == 1 and files[0].is_dir() and format_of(files[0]) == FORMAT:
        return files[0]
    if store is not None or forced:
        return store or out.with_name(f"{out.name}-store")
    need, free = _estimate(files)
    if free is None or need <= free:
        return None
    folder = out.with_name(f"{out.name}-store")
    required, available = memory.in_words(need), memory.in_words(free)
    say(
        f"about {required} would be needed to read these lines, {available} are free: "
        f"they are kept as shards in {folder}"
    )
    return folder


def _estimate(files: Sequence[Path]) -> tuple[int, int | None]:
    """Bytes needed to read and fit lines in memory, and free bytes."""
    tables = {".parquet", ".pq", ".csv", ".tsv", ".gz", ".bz2", ".xz"}
    need = 0
    for path in files:
        if path.is_file() and path.suffix.lower() in tables:
            need += path.stat().st_size * BYTES_BY_SUFFIX.get(path.suffix.lower(), 20)
        elif path.is_dir() or any(sign in str(path) for sign in "*?["):
            from efemb.data.store.remote import list_files

            with suppress(EfembError):  # reported when the files are read
                listed = list_files(str(path)) or {}
                need += sum(
                    size * BYTES_BY_SUFFIX.get(Path(name).suffix.lower(), 20)
                    for name, size in listed.items()
                )
    return need, memory.available_memory()


def fit_from_shards(
    reading: Reading,
    files: Sequence[Path],
    run: ShardRun,
    model_name: str | None,
    components: int | None,
    options: dict[str, Any],
) -> tuple[Any, dict[str, Any]]:
    """Prepare a store unless there is one, and fit from it; returns the model and its summary."""
    from efemb import shards

    if reading.rows or reading.week or reading.price or reading.layout.layout:
        raise ParameterError(
            "--row, --week, --price and --layout cannot be used with a store of shards: leave them "
            "out, or fit in memory"
        )
    if run.replicas is not None and run.cluster is None:
        raise ParameterError("--replicas needs --cluster: one machine trains one model")
    say, start = reading.say, time.perf_counter()
    with connect(run.cluster) as client:
        if len(files) == 1 and files[0] == run.store:
            store = shards.open_store(run.store)
        else:
            store = prepare_store(reading, files, run.store, run.test, run.seed, client)
        say(f"{store!r}")
        first: Any = next(
            store.shard(number) for number, shard in enumerate(store.shards) if shard.n_rows
        )
        name = choose_model(model_name, first, say)
        k = choose_components(components, store.n_entries, store.n_entities, say, name)
        model = make_model(name, k, first, neighbors=None, window=None, **options)
        with warnings_as_remarks(say):
            if client is None:
                shards.fit(model, store, checkpoint=run.checkpoint)
            else:
                from efemb import dask

                n = 8 if run.replicas is None else run.replicas
                dask.fit(model, store, client=client, n_replicas=n, checkpoint=run.checkpoint)
    _report_lost(model.report_, say)
    summary = {"model": name, "components": k, "passes": model.n_iter_}
    summary |= {"seconds": time.perf_counter() - start}
    if store.test_shards and sum(shard.n_rows for shard in store.test_shards):
        summary["score"] = shards.score(model, store.test)
        if isinstance(first, Dataset) and first.is_sparse:
            binary = bool(getattr(model, "binarize", False))
            summary["popularity"] = _score_popularity(store, binary=binary)
    return model, summary


def _score_popularity(store: Any, *, binary: bool) -> float:
    """Score of baselines.Popularity on the held-out rows, from one pass over the store."""

    def totals(part: Any, fewest: int) -> Any:
        counts = np.zeros(part.n_entities)
        for number in range(part.n_shards):
            values = part.shard(number).values
            values = values[np.diff(values.indptr) >= fewest]
            counts += np.asarray(((values > 0) if binary else values).sum(axis=0)).ravel()
        return counts

    shares = np.maximum(totals(store, 1), 0.5)
    asked = totals(store.test, 2)  # one item alone has no score
    return float(asked @ np.log(shares / shares.sum()) / asked.sum())
