"""Overviews of a Dataset or a Corpus for notebooks, as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.table import Table

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.dataset import Dataset

SHOWN = 5  # labels


def dataset_overview(data: Dataset) -> Table:
    """Sizes, values, labels and further columns of a Dataset."""
    entries: dict[str, Any] = {"rows": f"{data.n_rows:,}", "entities": f"{data.n_entities:,}"}
    n_cells = max(int(np.prod(data.shape)), 1)
    if data.is_sparse:
        stored = data.values.nnz
        entries["values"] = f"{data.values.dtype}, {stored:,} non-zeros ({stored / n_cells:.2%})"
    else:
        missing = int(np.isnan(data.values).sum())
        entries["values"] = f"{data.values.dtype}, {missing:,} missing ({missing / n_cells:.2%})"
    if data.entities is not None:
        entries["labels"] = _first(data.entities)
    if data.positions is not None:
        entries["positions"] = f"{data.positions.shape[1]} coordinates"
    entries |= {f"row column {name}": _first(column) for name, column in data.rows.items()}
    entries |= {f"feature {name}": _first(column) for name, column in data.features.items()}
    entries |= {f"table {name}": f"by {table.by}" for name, table in data.cells.items()}
    return _table(entries, "Dataset")


def corpus_overview(corpus: Corpus) -> Table:
    """Sizes and words of a Corpus."""
    entries = {
        "documents": f"{corpus.n_documents:,}",
        "tokens": f"{corpus.n_tokens:,}",
        "words": f"{corpus.n_entities:,}",
        "labels": _first(corpus.vocabulary),
    }
    return _table(entries, "Corpus")


def _first(values: Iterable[Any]) -> str:
    shown = [str(value) for value, _ in zip(values, range(SHOWN + 1), strict=False)]
    return ", ".join(shown[:SHOWN]) + (", ..." if len(shown) > SHOWN else "")


def _table(entries: dict[str, Any], kind: str) -> Table:
    return Table({kind: list(entries), "": list(entries.values())})
