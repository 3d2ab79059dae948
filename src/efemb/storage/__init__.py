"""Folders that are written atomically, verified when read, and free of pickles."""

from __future__ import annotations

from efemb.storage.encoding import register

__all__ = ["register"]
