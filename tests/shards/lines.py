"""Simulated stores for tests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import efemb
from efemb.shards import ShardStore, prepare


def simulated_lines(n_rows: int = 1200, n_entities: int = 40, seed: int = 0) -> pd.DataFrame:
    """Lines of baskets of items in groups that are bought together."""
    group = np.random.default_rng(9).integers(4, size=n_entities)
    base = np.random.default_rng(8).gamma(1.0, 0.15, n_entities)
    rng = np.random.default_rng(seed)
    liked = group == rng.integers(4, size=(n_rows, 1))
    X = rng.poisson(np.where(liked, 5.0, 0.3) * base)
    row, column = np.nonzero(X)
    return pd.DataFrame({"trip": row, "what": column, "n": X[row, column]})


def simulated_store(folder: Path, n_shards: int = 8, **options: Any) -> ShardStore:
    """A store of them; `n_rows` is that of all baskets."""
    table = simulated_lines(options.pop("n_rows", 900))
    names: dict[str, Any] = {"basket": "trip", "item": "what", "count": "n"}
    return prepare(
        table, folder, **names, n_shards=n_shards, min_items_per_basket=2, held_out=0.1, **options
    )


def all_rows(store: ShardStore) -> efemb.Dataset:
    """Every row of a store in memory."""
    from scipy import sparse

    parts = [store.shard(i).values for i in range(store.n_shards) if store.shards[i].n_rows]
    return efemb.Dataset(sparse.csr_array(sparse.vstack(parts)), entities=store.vocabulary)


def checksum(model: Any) -> str:
    """Of all parameters, bit for bit."""
    digest = hashlib.sha256()
    for array in model.parameters_.arrays():
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
