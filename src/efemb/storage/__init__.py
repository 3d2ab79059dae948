"""Folders on disk that appear at once, are checked when read, and hold no pickle."""

from __future__ import annotations

from efemb.storage.encoding import register

__all__ = ["register"]
