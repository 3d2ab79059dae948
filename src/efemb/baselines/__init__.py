"""Baselines: what embeddings are compared with."""

from __future__ import annotations

from efemb.baselines.sppmi import ShiftedPPMI

__all__ = ["ShiftedPPMI"]
