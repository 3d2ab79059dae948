"""Shards: rows that do not fit into memory are read once into a store, and fitted from there."""

from efemb.data.store.shard_store import ShardStore
from efemb.shards.stores import open_store, prepare, prepare_recording, prepare_text
from efemb.shards.training import fit, score

__all__ = [
    "ShardStore",
    "fit",
    "open_store",
    "prepare",
    "prepare_recording",
    "prepare_text",
    "score",
]
