"""Public data sets, ready to fit; each loader is a file."""

from __future__ import annotations

from efemb.datasets.complete_journey import fetch_complete_journey

__all__ = ["fetch_complete_journey"]
