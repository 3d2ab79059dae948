"""Stores: rows on disk in shards, memory-mapped and checksummed, with an account of all lines."""
