"""Tables that turn raw cells into integer codes and counts, each distinct cell looked at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from efemb.data.labels import Label, canonical_label
from efemb.errors import InputTypeError

MISSING = -1


class Coded(NamedTuple):
    """A column as places in a list of distinct cells; place -1 is a missing cell."""

    cells: Sequence[Any]
    places: NDArray[np.integer[Any]]


# A column of a batch: plain cells, coded cells, or (counts only) numbers.
Column = list[Any] | Coded | NDArray[np.float64]


class LabelTable(dict[Any, int]):
    """Code of every label seen so far; a missing cell, or one of the `absent` texts, has code -1.

    Where there are absent texts, those of spaces are, too: columns of fixed width are filled up.

    A dictionary that fills itself, so that `map(table.__getitem__, cells)` runs in C. A number and
    its text are one label, as in `Vocabulary`: the one that comes first.
    """

    def __init__(self, absent: Sequence[str] = ()) -> None:
        super().__init__(dict.fromkeys(absent, MISSING))
        self._blank_is_absent = bool(absent)
        self.labels: list[Label] = []

    def __missing__(self, cell: Any) -> int:
        label = canonical_label(cell)
        text = str(label)
        if label is None or (self._blank_is_absent and text.isspace()):
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


class CountTable(dict[Any, float]):
    """Number that each cell stands for; NaN if it is missing or no number."""

    def __missing__(self, cell: Any) -> float:
        number = _number(cell)
        # NaN never equals itself and would be stored again and again.
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


def _number(cell: Any) -> float:
    if isinstance(cell, str) and "_" in cell:  # Python's own notation, nobody's data
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _spread(values: NDArray[Any], places: NDArray[Any], missing: float) -> NDArray[Any]:
    """`values` at `places`; `missing` at place -1."""
    padded = np.append(values, np.array([missing], dtype=values.dtype))
    return padded.take(places, mode="wrap")
