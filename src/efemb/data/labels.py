"""What counts as a label, and the order of labels."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import re
from collections.abc import Container, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from efemb.errors import InputTypeError

Label: TypeAlias = str | int | float

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE_FLOATS_END = 2.0**53
_LONGEST_NUMBER = 300


def canonical_label(value: object) -> Label | None:
    """The label that `value` stands for; None if it is missing (None, NaN, NaT, empty text).

    >>> canonical_label(3.0), canonical_label("3.0"), canonical_label(float("nan"))
    (3, '3.0', None)
    """
    if isinstance(value, np.generic):
        value = _python_value(value)
    if isinstance(value, str):
        return str(value) or None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float):
        return _float_label(value)
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return None
    return _rare_label(value)


def _python_value(value: np.generic) -> object:
    """A value as Python has it; of times in nanoseconds NumPy would give a number."""
    found: object = value.item()
    if isinstance(value, np.datetime64) and isinstance(found, int):
        return value.astype("M8[us]").item()
    return found


def column_labels(values: Any, known: Container[object] = ()) -> list[Any] | None:
    """Names of the columns of a data frame; None where it has none, or only 0, 1, ...

    Such numbers are names where a model knows any of them: it then refuses the others.

    >>> column_labels([[1, 2]]) is None
    True
    """
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if columns is None:
        return None
    labels = list(columns)
    if labels == list(range(len(labels))) and not any(label in known for label in labels):
        return None
    return labels


def _rare_label(value: object) -> Label | None:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return None if value.is_nan() else str(value)
    raise InputTypeError(
        f"a label must be text, a number or a date, not {type(value).__name__} ({value!r:.60})"
    )


def _float_label(value: float) -> Label | None:
    if math.isnan(value):
        return None
    # pandas turns an integer column with gaps into floats: 17850.0 is customer 17850.
    if value.is_integer() and abs(value) < _WHOLE_FLOATS_END:
        return int(value)
    return float(value)


def sorted_order(labels: Sequence[Label]) -> NDArray[np.int64]:
    """Places of `labels` in sorted order: by value if all are numbers, else by text.

    Text that reads as a number is a number here, because a CSV file has no types. In a mixture
    of types the numbers come first.

    >>> sorted_order(["10", "9", "100"]).tolist(), sorted_order(["10", "9", "x"]).tolist()
    ([1, 0, 2], [0, 1, 2])
    """
    if all(map(_is_number, labels)):
        return _order_of_numbers(labels)
    if all(isinstance(label, str) for label in labels):
        return _order_by(labels)
    return _order_by([(isinstance(label, str), label) for label in labels])


def _order_of_numbers(labels: Sequence[Label]) -> NDArray[np.int64]:
    values = [_value(label) for label in labels]
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        array = np.array(values, dtype=np.int64)
        if len(np.unique(array)) == len(array):
            return np.argsort(array)
    # "1", "01" and 1 are three labels of one value: their text decides, then their type.
    pairs = zip(values, labels, strict=True)
    return _order_by([(value, str(label), isinstance(label, str)) for value, label in pairs])


def _order_by(keys: Sequence[Any]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _is_number(label: Label) -> bool:
    if not isinstance(label, str):
        return True
    return len(label) <= _LONGEST_NUMBER and _NUMBER.fullmatch(label) is not None


def _value(label: Label) -> int | float:
    if not isinstance(label, str):
        return label
    # Whole numbers stay exact: identifiers often exceed 2**53.
    return int(label) if label.lstrip("+-").isdigit() else float(label)
