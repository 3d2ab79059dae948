"""Data: labels become integers once, rows x entities become a `Dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.dataset import Dataset
    from efemb.data.readers.baskets import read_baskets
    from efemb.data.readers.matrix import read_matrix
    from efemb.data.readers.words import read_text
    from efemb.data.splits import split
    from efemb.data.vocabulary import Vocabulary

__all__ = [
    "Corpus",
    "Dataset",
    "Vocabulary",
    "read_baskets",
    "read_matrix",
    "read_text",
    "split",
]

_HOME = {
    "Corpus": "efemb.data.corpus",
    "Dataset": "efemb.data.dataset",
    "Vocabulary": "efemb.data.vocabulary",
    "read_baskets": "efemb.data.readers.baskets",
    "read_matrix": "efemb.data.readers.matrix",
    "read_text": "efemb.data.readers.words",
    "split": "efemb.data.splits",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
