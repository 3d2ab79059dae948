"""Recordings in shards: consecutive rows of time x cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.array_checks import check_dense, check_positions
from efemb.data.store.shard_store import ShardStore, check_new, write_manifest, write_shard
from efemb.errors import DataError


def store_recording(
    values: Any, path: Path, n_shards: int, positions: Any, entities: Sequence[Any] | None
) -> ShardStore:
    """Write an array of time x cells into shards, a stretch of rows at a time."""
    check_new(path)
    if len(values.shape) != 2:
        raise DataError(f"a recording is an array of time x cells, not of shape {values.shape}")
    n_rows, n_cells = values.shape
    coordinates = check_positions(positions, n_cells, n_rows)
    edges = [n_rows * k // n_shards for k in range(n_shards + 1)]
    files, observed = [], np.zeros(n_cells)
    for number in range(n_shards):
        rows = values[edges[number] : edges[number + 1]]
        # Of a Dask array only these rows are computed.
        block: NDArray[Any] = check_dense(rows.compute() if hasattr(rows, "compute") else rows)
        observed += (~np.isnan(block)).sum(axis=0)
        arrays = {"values": block}
        files.append(write_shard(path / "shards", f"{number:05d}", len(block), block.size, arrays))
    labels = list(range(n_cells)) if entities is None else list(entities)
    if len(labels) != n_cells:
        raise DataError(f"there are {len(labels)} labels for {n_cells} cells")
    report: dict[str, Any] = {"frames": n_rows}
    report |= {} if coordinates is None else {"positions": coordinates.tolist()}
    write_manifest(path, "recording", (labels, observed.tolist()), files, [], report)
    return ShardStore.open(path)
