"""The paper's empirical study, reproduced: what `efemb reproduce` runs."""

from __future__ import annotations

from efemb.reproduce.study import STUDIES, Options, reproduce

__all__ = ["STUDIES", "Options", "reproduce"]
