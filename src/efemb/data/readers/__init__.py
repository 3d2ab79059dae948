"""Readers: files and tables become a `Dataset`."""
