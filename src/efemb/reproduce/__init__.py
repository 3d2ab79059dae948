"""The paper's study, reproduced: `efemb reproduce` and the parts it is made of."""

from __future__ import annotations

from efemb.reproduce.study import STUDIES, Options, reproduce

__all__ = ["STUDIES", "Options", "reproduce"]
