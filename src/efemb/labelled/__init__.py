"""Vectors with labels, which labels are meant, and which may be answers."""

from __future__ import annotations

from efemb.labelled.choice import Choice, Options
from efemb.labelled.vectors import EPSILON, LabelledVectors, check_labelled

__all__ = ["EPSILON", "Choice", "LabelledVectors", "Options", "check_labelled"]
