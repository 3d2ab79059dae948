"""Blends, which combine several models into one."""

from __future__ import annotations

from efemb.blend.blend import Blend

__all__ = ["Blend"]
