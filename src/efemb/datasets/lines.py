"""Helpers of the loaders: lines of purchases in memory, readable labels, provenance."""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from efemb.data.dataset import Dataset
from efemb.data.readers.transactions import read_baskets
from efemb.data.vocabulary import Vocabulary
from efemb.datasets.sources import DataSet, Found


def provenance(data: DataSet, files: Found) -> dict[str, Any]:
    """The entries that the report of every data set has."""
    return {"data_set": data.name, "source": files.where, "terms": data.terms}


def distinct(labels: Sequence[str], numbers: Sequence[object]) -> list[str]:
    """Labels made distinct: those that occur more than once get the number of the item.

    >>> distinct(["ham", "yogurt", "yogurt"], [4, 1, 2])
    ['ham', 'yogurt #1', 'yogurt #2']
    """
    times = Counter(labels)
    pairs = zip(labels, numbers, strict=True)
    return [label if times[label] == 1 else f"{label} #{number}" for label, number in pairs]


def relabel(
    data: Dataset, labels: Sequence[str], report: Mapping[str, Any], row_labels: Any = None
) -> Dataset:
    """The same baskets with readable labels and another report."""
    assert data.entities is not None
    changes = {} if row_labels is None else {"row_labels": row_labels}
    entities = Vocabulary(labels, counts=data.entities.counts)
    return data._replace(data.values, entities=entities, report=report, **changes)


def baskets_of_lines(columns: Mapping[str, Sequence[Any] | Any], **options: Any) -> Dataset:
    """Read lines in memory with `read_baskets` and its options; labels become text.

    The lines pass through a temporary file, because a data frame would need a package that efemb
    does not require.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return read_baskets(path, **options)
