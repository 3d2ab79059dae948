"""Vocabulary: the labels of entities, in order, and the integer code of each."""

from __future__ import annotations

import datetime
import decimal
import difflib
import math
import numbers
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from efemb.errors import DataError, InputTypeError

# difflib is quadratic in the label's length: error messages must stay instant.
_MOST_COMPARED = 20_000
Label: TypeAlias = str | int | float
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE_FLOATS_END = 2.0**53
_LONGEST_NUMBER = 300


class Vocabulary:
    """Immutable, ordered set of labels; the code of a label is its position.

    Labels are text or numbers. Whole floats become integers, dates become ISO text.
    A number and its text are the same label: `17` finds the text `"17"` of a CSV file, and a
    vocabulary never has both.

    Parameters
    ----------
    labels : iterable of str, int, float or date
        All distinct, also as text.
    counts : array of shape (n,), optional
        Number of occurrences of each label (for baskets: the number of baskets).

    Examples
    --------
    >>> words = Vocabulary(["bread", "milk"])
    >>> words.index_of("milk"), "beer" in words, len(words)
    (1, False, 2)
    """

    __slots__ = ("_codes", "_counts", "_labels")

    _labels: NDArray[Any]
    _counts: NDArray[np.float64] | None
    _codes: dict[str, int]  # by text: a number and its text are one label

    def __init__(self, labels: Iterable[object], *, counts: object = None) -> None:
        canonical = _canonical(list(labels))
        codes = dict(zip(map(str, canonical), range(len(canonical)), strict=True))
        if len(codes) != len(canonical):
            raise _duplicate_error(canonical, codes)
        array = np.empty(len(canonical), dtype=object)
        array[:] = canonical
        array.setflags(write=False)
        object.__setattr__(self, "_labels", array)
        object.__setattr__(self, "_codes", codes)
        object.__setattr__(self, "_counts", _check_counts(counts, len(canonical)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Vocabulary is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (list(self._labels), self._counts)

    @property
    def labels(self) -> NDArray[Any]:
        """Labels in the order of their codes, a read-only object array."""
        return self._labels

    @property
    def counts(self) -> NDArray[np.float64] | None:
        """Number of occurrences of each label, if known."""
        return self._counts

    def index_of(self, label: object) -> int:
        """Code of `label`.

        Parameters
        ----------
        label : str or int
            A label; a number and its text are the same label.

        Returns
        -------
        int

        Raises
        ------
        DataError
            If there is no such label; the message names the nearest ones.
        """
        code = self._find(label)
        if code is None:
            near = ", ".join(shorten(near_label) for near_label in self.nearest(label))
            known = ", ".join(shorten(known_label) for known_label in self._labels[:3])
            hint = f"; did you mean {near}?" if near else f"; the first are {known}"
            raise DataError(f"unknown label {shorten(label)} ({len(self):,} are known){hint}")
        return code

    def nearest(self, label: object, n: int = 3) -> list[Label]:
        """Known labels that look like `label`, the nearest first.

        Parameters
        ----------
        label : object
            Any text or number.
        n : int, default=3
            Maximum number of labels.

        Returns
        -------
        list of labels
        """
        query = str(label).casefold()
        folded = [str(text).casefold() for text in self._labels]
        inside = [i for i, text in enumerate(folded) if query and query in text]
        inside.sort(key=lambda i: len(folded[i]))
        size = len(query)
        similar = [i for i, text in enumerate(folded) if size <= 2 * len(text) <= 4 * size]
        index_of_text = {folded[i]: i for i in reversed(similar[:_MOST_COMPARED])}
        close = difflib.get_close_matches(query[:200], index_of_text, n=n) if size <= 200 else []
        ranked = dict.fromkeys(inside[:n] + [index_of_text[text] for text in close])
        # A misspelled word of a long label is not close to the whole.
        if len(ranked) < n and size <= 200:
            ranked |= dict.fromkeys(_with_words_like(query.split(), folded)[:n])
        return [self._labels[i] for i in list(ranked)[:n]]

    def take(self, index: NDArray[np.int64]) -> Vocabulary:
        """Vocabulary of some of the labels, with their counts.

        Parameters
        ----------
        index : array of int
            Codes of the labels, in the new order.

        Returns
        -------
        Vocabulary
        """
        counts = None if self._counts is None else self._counts[index]
        return Vocabulary(self._labels[index], counts=counts)

    def with_counts(self, counts: object) -> Vocabulary:
        """The same labels with other counts.

        Parameters
        ----------
        counts : array of N numbers >= 0, or None
            How often each label occurs.

        Returns
        -------
        Vocabulary
        """
        vocabulary = object.__new__(Vocabulary)
        object.__setattr__(vocabulary, "_labels", self._labels)
        object.__setattr__(vocabulary, "_codes", self._codes)
        object.__setattr__(vocabulary, "_counts", _check_counts(counts, len(self)))
        return vocabulary

    def _find(self, label: object) -> int | None:
        try:
            canonical = canonical_label(label)
        except TypeError:
            return None
        return None if canonical is None else self._codes.get(str(canonical))

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Label]:
        return iter(self._labels)

    def __getitem__(self, code: int) -> Label:
        label: Label = self._labels[code]
        return label

    def __contains__(self, label: object) -> bool:
        return self._find(label) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return list(self._labels) == list(other._labels)

    def __hash__(self) -> int:
        return hash(tuple(self._labels))

    def __repr__(self) -> str:
        shown = [shorten(label) for label in self._labels[:3]]
        dots = ", ..." if len(self) > len(shown) else ""
        return f"Vocabulary({len(self):,} labels: {', '.join(shown)}{dots})"


def _with_words_like(query_words: list[str], labels: list[str]) -> list[int]:
    """Indices of labels that contain words similar to the wanted ones, the most similar first."""
    # Labels of a single word have already been compared as a whole.
    of_label = [label.split() if " " in label.strip() else [] for label in labels]
    vocabulary_words = list(
        islice(dict.fromkeys(word for words in of_label for word in words), _MOST_COMPARED)
    )
    alike = [
        set(difflib.get_close_matches(word, vocabulary_words, n=3, cutoff=0.75))
        for word in query_words
    ]
    n_alike = [sum(not near.isdisjoint(words) for near in alike) for words in of_label]
    matches = [i for i, number in enumerate(n_alike) if number]
    return sorted(matches, key=lambda i: (-n_alike[i], len(labels[i])))


def shorten(label: object, width: int = 60) -> str:
    """`repr` of a label; a long one is cut in the middle."""
    text = label if isinstance(label, str) else str(label)
    if len(text) > width:
        half = width // 2
        return f"{text[:half]!r}...{text[-half:]!r} ({len(text):,} characters)"
    return repr(label)


def _canonical(labels: list[Any]) -> list[Label]:
    """Labels in canonical form; non-empty text needs no conversion, and there may be millions."""
    if set(map(type, labels)) <= {str} and "" not in labels:
        return labels
    return [_require_label(label, number) for number, label in enumerate(labels)]


def _require_label(label: object, number: int) -> Label:
    canonical = canonical_label(label)
    if canonical is None:
        raise DataError(f"label {number} is missing ({label!r}); every entity needs a label")
    return canonical


def _duplicate_error(labels: list[Label], codes: dict[str, int]) -> DataError:
    """The first label that occurs twice, possibly once as a number and once as text."""
    first = next(label for number, label in enumerate(labels) if codes[str(label)] != number)
    again = labels[codes[str(first)]]
    if again == first:
        return DataError(f"label {shorten(first)} occurs more than once; labels must be distinct")
    return DataError(
        f"labels {shorten(first)} and {shorten(again)}: a number and its text are the same label; "
        "rename one of them, or merge the two columns"
    )


def _check_counts(counts: object, size: int) -> NDArray[np.float64] | None:
    if counts is None:
        return None
    array = np.array(counts, dtype=np.float64)
    if array.shape != (size,):
        raise DataError(f"counts has shape {array.shape}, but there are {size} labels")
    array.setflags(write=False)
    return array


def _restore(labels: list[Label], counts: object) -> Vocabulary:
    return Vocabulary(labels, counts=counts)


def canonical_label(value: object) -> Label | None:
    """The label of `value`; None if it is missing (None, NaN, NaT, empty text).

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
    """A NumPy value as a Python object; NumPy turns times in nanoseconds into integers."""
    plain: object = value.item()
    if isinstance(value, np.datetime64) and isinstance(plain, int):
        return value.astype("M8[us]").item()
    return plain


def column_labels(values: Any, known: Container[object] = ()) -> list[Any] | None:
    """Names of the columns of a data frame; None if it has none, or only 0, 1, ...

    Such numbers count as names if a model knows any of them; it then rejects the others.

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
    """Indices that sort `labels`: by value if all are numbers, otherwise by text.

    Text that looks like a number is a number here, because a CSV file has no types. In a mixture
    of types the numbers come first.

    >>> sorted_order(["10", "9", "100"]).tolist(), sorted_order(["10", "9", "x"]).tolist()
    ([1, 0, 2], [0, 1, 2])
    """
    if all(map(is_number_label, labels)):
        return _order_of_numbers(labels)
    if all(isinstance(label, str) for label in labels):
        return _order_by(labels)
    return _order_by([(isinstance(label, str), label) for label in labels])


def _order_of_numbers(labels: Sequence[Label]) -> NDArray[np.int64]:
    values = [_sort_value(label) for label in labels]
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        array = np.array(values, dtype=np.int64)
        if len(np.unique(array)) == len(array):
            return np.argsort(array)
    # "1", "01" and 1 are three labels with one value: order them by text, then by type.
    pairs = zip(values, labels, strict=True)
    return _order_by([(value, str(label), isinstance(label, str)) for value, label in pairs])


def _order_by(keys: Sequence[Any]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def is_number_label(label: Label) -> bool:
    """Whether a label is a number, or text that looks like one."""
    if not isinstance(label, str):
        return True
    return len(label) <= _LONGEST_NUMBER and _NUMBER.fullmatch(label) is not None


def _sort_value(label: Label) -> int | float:
    if not isinstance(label, str):
        return label
    # Whole numbers stay exact: identifiers often exceed 2**53.
    return int(label) if label.lstrip("+-").isdigit() else float(label)
