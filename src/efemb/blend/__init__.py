"""Blends: several models as one."""

from __future__ import annotations

from efemb.blend.blend import Blend

__all__ = ["Blend"]
