"""Rivals from other packages: one adapter per file, and no package imported before it is used."""

from __future__ import annotations

from benchmarks.rivals.base import Package, Rival
from benchmarks.rivals.hpfrec import Hpfrec
from benchmarks.rivals.implicit import ImplicitALS

RIVALS: tuple[type[Rival], ...] = (ImplicitALS, Hpfrec)

__all__ = ["RIVALS", "Hpfrec", "ImplicitALS", "Package", "Rival"]
