"""Stores: rows on disk in shards, memory-mapped, checksummed, with an account of every line."""
