"""Data: labels become integers once, rows x entities become a `Dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from efemb.data.align import aligned
    from efemb.data.corpus import Corpus
    from efemb.data.dataset import Dataset
    from efemb.data.partition import split
    from efemb.data.readers.matrix import read_matrix
    from efemb.data.readers.neural import read_suite2p, read_traces
    from efemb.data.readers.text.read import read_text
    from efemb.data.readers.transactions import read_baskets
    from efemb.data.vocabulary import Vocabulary

__all__ = [
    "Corpus",
    "Dataset",
    "Vocabulary",
    "aligned",
    "read_baskets",
    "read_matrix",
    "read_suite2p",
    "read_text",
    "read_traces",
    "split",
]

_HOME = {
    "aligned": "efemb.data.align",
    "Corpus": "efemb.data.corpus",
    "Dataset": "efemb.data.dataset",
    "Vocabulary": "efemb.data.vocabulary",
    "read_baskets": "efemb.data.readers.transactions",
    "read_matrix": "efemb.data.readers.matrix",
    "read_suite2p": "efemb.data.readers.neural",
    "read_text": "efemb.data.readers.text.read",
    "read_traces": "efemb.data.readers.neural",
    "split": "efemb.data.partition",
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
