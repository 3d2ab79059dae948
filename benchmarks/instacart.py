"""Instacart: 0/1 orders of 14,127 products; p-emb and ap-emb beside popularity and the rivals."""

from __future__ import annotations

from benchmarks.data import instacart
from benchmarks.harness import Report, Settings
from benchmarks.peers import contest


def run(settings: Settings) -> Report:
    """The fits of `peers`, on 0/1 data."""
    report = Report("instacart", settings)
    contest(report, "orders", instacart(settings), 10 if settings.quick else 50)
    return report
