"""Groups of items, such as departments, from a mapping, a sequence or a table in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Ints
from efemb.data.array_checks import is_missing_label
from efemb.errors import DataError, InputTypeError, ParameterError, suggest

if TYPE_CHECKING:
    from efemb.data.vocabulary import Vocabulary

NO_GROUP = -1


@dataclass(frozen=True)
class Groups:
    """The group of each item.

    title : what the groups are;  names : of the groups, the largest first
    codes : (N,) place of each item's group among the names, -1 without one
    n_missing : items without a group;  n_unknown : items of the source that the model lacks
    """

    title: str
    names: list[str]
    codes: Ints
    n_missing: int
    n_unknown: int

    def remark(self) -> str:
        """How the source and the model fit together, in one sentence."""
        known = len(self.codes) - self.n_missing
        text = f"{self.title}: {len(self.names):,} groups of {known:,} items"
        if self.n_missing:
            text += f"; {self.n_missing:,} items have no group"
        if self.n_unknown:
            text += f"; {self.n_unknown:,} of the grouped items not in the model"
        return text


def read_groups(source: Any, items: Vocabulary, column: str | None = None) -> Groups | None:
    """Match groups to the items of a model.

    source : mapping of labels to groups, one group per item, path of a table, or None
    column : of a table, the column of the groups, by default the first beside the items; of other
        sources, what the groups are called
    """
    if source is None:
        if column is not None:
            raise ParameterError("group_column needs the table it is a column of: pass groups")
        return None
    if isinstance(source, str | os.PathLike):
        return _match(items, *_read_table(source, items, column))
    title = column or "group"
    if isinstance(source, Mapping):
        return _match(items, title, source.items())
    if not hasattr(source, "__len__"):
        raise InputTypeError(
            "groups must be a mapping of labels to groups, one group per item, or the path of a "
            f"table, not {type(source).__name__}"
        )
    if len(source) != len(items):
        raise DataError(
            f"groups has {len(source):,} entries for {len(items):,} items; pass one per item, or a "
            "mapping of labels to groups"
        )
    return _match(items, title, zip(items, source, strict=True))


def _match(items: Vocabulary, title: str, pairs: Any) -> Groups:
    """The groups of items by their labels; the last line of an item counts."""
    of_item: dict[int, str] = {}
    unknown = set()
    for label, group in pairs:
        if label not in items:
            unknown.add(label)
        elif not is_missing_label(group):
            of_item[items.index_of(label)] = str(group)
    names, sizes = np.unique(np.array(list(of_item.values()), dtype=object), return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    place = {str(names[old]): new for new, old in enumerate(order)}
    codes = np.full(len(items), NO_GROUP, dtype=np.int64)
    for code, group in of_item.items():
        codes[code] = place[group]
    n_missing = len(items) - len(of_item)
    if not of_item:
        raise DataError(
            f"{title}: none of the items of the groups is an item of the model (such as "
            f"{items[0]!r}); the column of the items must hold the labels of the model"
        )
    return Groups(title, list(place), codes, n_missing, len(unknown))


def _read_table(
    source: str | os.PathLike[str], items: Vocabulary, column: str | None
) -> tuple[str, Iterator[tuple[Any, Any]]]:
    """Title and (label, group) of each line; the items are in the column that has most of them."""
    from efemb.data.readers.input_file import existing_file, inner_suffix

    path = existing_file(source)
    header, columns = _columns(path, inner_suffix(path))
    if len(set(header)) < 2 or len(set(header)) < len(header):
        raise DataError(
            f"{path} needs two columns of different names, one of items and one of groups; it has "
            f"{header}"
        )
    if column is not None and column not in header:
        raise DataError(f"{path} has no column {column!r}; {suggest(column, header)}")
    matches = {
        name: sum(label in items for label in set(columns[name]))
        for name in header
        if name != column
    }
    of_items = max(matches, key=lambda name: matches[name])
    of_groups = column or next(name for name in header if name != of_items)
    return of_groups, zip(columns[of_items], columns[of_groups], strict=True)


def _columns(path: Path, suffix: str) -> tuple[list[str], dict[str, list[Any]]]:
    """All columns of a table."""
    if suffix in {".parquet", ".pq"}:
        from efemb.data.readers.arrow import read_parquet

        table = read_parquet(path)
        return list(table.column_names), table.to_pydict()
    from efemb.data.readers.badlines import BadLines
    from efemb.data.readers.csv import CsvSource

    text, bad = CsvSource(path, None, "utf-8"), BadLines(str(path), "line")
    rows = [row for _, rows in text.records(bad, lambda _: None) for row in rows]
    if bad:
        raise bad.error("Correct these lines.")
    return text.header, {
        name: [row[place] for row in rows] for place, name in enumerate(text.header)
    }
