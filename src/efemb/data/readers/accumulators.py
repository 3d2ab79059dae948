"""Accumulators of streamed batches: codes of labels, numbers of cells, sums of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efemb._files import bare
from efemb.data.readers.dialect import explain_number
from efemb.data.vocabulary import Label, canonical_label
from efemb.errors import InputTypeError

MISSING = -1
# With fewer pending lines, sorting is not worthwhile.
_PENDING = 1 << 22


class Coded(NamedTuple):
    """A column as indices into a list of distinct cells; -1 is a missing cell."""

    cells: Sequence[Any]
    places: NDArray[np.integer[Any]]


# A column of a batch: plain cells, coded cells, or (counts only) numbers.
Column = list[Any] | Coded | NDArray[np.float64]


class LabelTable(dict[Any, int]):
    """Code of every label seen so far; a missing cell, or one of the `absent` texts, has code -1.

    If there are absent texts, the cells are those of a table: cells of spaces are absent as well
    (fixed-width columns are padded), and the apostrophe before a formula is not part of a label.

    The dictionary fills itself, so that `map(table.__getitem__, cells)` runs in C. A number and its
    text are the same label, as in `Vocabulary`; whichever comes first is kept.
    """

    def __init__(self, absent: Sequence[str] = ()) -> None:
        super().__init__(dict.fromkeys(absent, MISSING))
        self._of_table = bool(absent)
        self.labels: list[Label] = []

    def __missing__(self, cell: Any) -> int:
        label = canonical_label(cell)
        if self._of_table and isinstance(label, str):
            label = bare(label)
        text = str(label)
        if label is None or (self._of_table and text.isspace()):
            return MISSING
        code = self.get(text)
        if code is None:
            code = self[text] = len(self.labels)
            self.labels.append(label)
        self[cell] = code
        return code

    def codes(self, column: Column) -> NDArray[np.int64]:
        """Code of every cell of a column."""
        if isinstance(column, Coded):
            return _spread(self._look_up(column.cells), column.places, MISSING)
        return self._look_up(column)

    def _look_up(self, cells: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
        try:
            return np.fromiter(map(self.__getitem__, cells), np.int64, len(cells))
        except TypeError as error:
            if isinstance(error, InputTypeError):
                raise
            raise InputTypeError(f"a label must be text, a number or a date: {error}") from error


class KeyTable:
    """Code of every combination of the labels of one or more columns.

    A combination with a missing cell has code -1. The label of a combination is its labels,
    separated by spaces.
    """

    def __init__(self, n_columns: int, absent: Sequence[str] = ()) -> None:
        self._tables = [LabelTable(absent) for _ in range(n_columns)]
        self._codes: dict[tuple[int, ...], int] = {}
        self._labels: list[Label] = []

    @property
    def labels(self) -> list[Label]:
        """Label of each code."""
        return self._labels if len(self._tables) > 1 else self._tables[0].labels

    def codes(self, columns: Sequence[Column]) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
        """Code of every line, and the codes of each column."""
        by_column = [
            table.codes(column) for table, column in zip(self._tables, columns, strict=True)
        ]
        if len(by_column) == 1:
            return by_column[0], by_column
        keys, inverse = np.unique(np.stack(by_column, axis=1), axis=0, return_inverse=True)
        codes = np.array([self._code(tuple(key)) for key in keys.tolist()], dtype=np.int64)
        return codes[inverse.ravel()], by_column

    def _code(self, key: tuple[int, ...]) -> int:
        if MISSING in key:
            return MISSING
        code = self._codes.setdefault(key, len(self._labels))
        if code == len(self._labels):
            pairs = zip(self._tables, key, strict=True)
            self._labels.append(" ".join(str(table.labels[i]) for table, i in pairs))
        return code


class CountTable(dict[Any, float]):
    """Number of each cell; NaN if it is missing or not a number."""

    def __missing__(self, cell: Any) -> float:
        number = _number(cell)
        # NaN never equals itself and would be stored repeatedly.
        if not math.isnan(number):
            self[cell] = number
        return number

    def numbers(self, column: Column) -> NDArray[np.float64]:
        """Number of every cell of a column."""
        if isinstance(column, np.ndarray):
            return column
        cells = column.cells if isinstance(column, Coded) else column
        numbers = np.fromiter(map(self.__getitem__, cells), np.float64, len(cells))
        if isinstance(column, Coded):
            return _spread(numbers, column.places, math.nan)
        return numbers


def cell_at(column: Column, place: Any) -> Any:
    """A cell of a column; None if it is missing."""
    if isinstance(column, Coded):
        code = int(column.places[place])
        return None if code == MISSING else column.cells[code]
    return column[place]


def text_in_numbers(cells: Sequence[Any]) -> tuple[NDArray[np.int64], str]:
    """Places of cells that are neither numbers nor missing, and what is wrong with the first."""
    wrong = np.isnan(CountTable().numbers(list(cells)))
    problems = {place: explain_number(cells[place]) for place in np.flatnonzero(wrong).tolist()}
    places = np.array([place for place, text in problems.items() if text], dtype=np.int64)
    return places, problems[int(places[0])] if len(places) else ""


def _number(cell: Any) -> float:
    if isinstance(cell, str) and "_" in cell:  # Python's notation, not one of data files
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _spread(values: NDArray[Any], indices: NDArray[Any], missing: float) -> NDArray[Any]:
    """`values` at `indices`; `missing` at place -1."""
    padded = np.append(values, np.array([missing], dtype=values.dtype))
    return padded.take(indices, mode="wrap")


def narrow(counts: NDArray[np.float64]) -> NDArray[Any]:
    """`counts` as float32 if that loses nothing."""
    with np.errstate(over="ignore"):
        small = counts.astype(np.float32)
    return small if np.array_equal(small, counts) else counts


class PairSums:
    """Accumulates batches of (row, column, count); equal pairs are summed periodically.

    Lines are kept pending until there are as many of them as summed pairs, so that all sorting
    together costs O(lines log lines) and memory stays proportional to the number of distinct pairs.
    """

    def __init__(self, pending: int = _PENDING) -> None:
        self._parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._least = pending
        self._waiting = 0
        self._summed = 0
        self.lines = 0

    def add(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], counts: NDArray[np.float64]
    ) -> None:
        """Add a batch of lines."""
        self._parts.append((rows.astype(np.int32), columns.astype(np.int32), narrow(counts)))
        self.lines += len(rows)
        self._waiting += len(rows)
        if self._waiting >= max(self._least, self._summed):
            self._compact()

    def finish(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]:
        """Rows, columns and sums of the distinct pairs, sorted by row, then column."""
        self._compact()
        return self._parts[0]

    def _compact(self) -> None:
        if not self._parts:
            empty = np.empty(0, np.int32)
            self._parts = [(empty, empty, np.empty(0, np.float32))]
        pairs = np.concatenate([_key(rows, columns) for rows, columns, _ in self._parts])
        counts = np.concatenate([batch[2] for batch in self._parts])
        self._parts = []
        # Stable: equal pairs are summed in the order of the lines.
        order = np.argsort(pairs, kind="stable")
        pairs, counts = pairs[order], counts[order]
        del order
        starts = np.flatnonzero(np.r_[True, pairs[1:] != pairs[:-1]][: len(pairs)])
        if len(starts) < len(pairs):
            counts = narrow(np.add.reduceat(counts.astype(np.float64), starts))
            pairs = pairs[starts]
        rows = (pairs >> 32).astype(np.int32)
        self._parts = [(rows, (pairs & 0xFFFFFFFF).astype(np.int32), counts)]
        self._summed, self._waiting = len(rows), 0


def _key(rows: NDArray[np.int32], columns: NDArray[np.int32]) -> NDArray[np.int64]:
    return (rows.astype(np.int64) << 32) | columns
