"""Choice: the labels that a question names, and those that may be answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal, TypedDict

import numpy as np

from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, suggest
from efemb.types import Bools, Floats, Ints

Unknown = Literal["error", "skip"]
Match = Literal["exact", "prefix"]
CHOICES = {"unknown": ("error", "skip"), "match": ("exact", "prefix")}
_SHOWN = 5


class Options(TypedDict, total=False):
    """What every query takes: see `Choice`."""

    where: Any
    exclude: Any
    min_count: float | None
    match: Match
    unknown: Unknown


class Choice:
    """Labels of a question by their codes, and the entities that may be its answer.

    Parameters
    ----------
    vocabulary : Vocabulary
    where : function of a label, text, boolean array (N,), or labels; optional
        Only these may be answers; a text stands for the labels that contain it in any case.
    exclude : label or labels
        Never part of an answer.
    min_count : number, optional
        Answers must occur at least so often.
    match : {"exact", "prefix"}
        "prefix" also takes part of a label, whatever its case: a label that is equal but for
        case, else one that starts with the text, else one that contains it. More than one such
        label is an error that names them, the most frequent first.
    unknown : {"error", "skip"}
        Skip labels that are not known; at least one must be.
    counts : array (N,), optional
        How often each entity occurs; those of the vocabulary by default.

    Examples
    --------
    >>> choice = Choice(Vocabulary(["Apple pie", "apple juice", "beer"]), where="apple")
    >>> choice.codes(["beer"]), choice.rows
    (array([2]), array([0, 1]))
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        where: Any = None,
        exclude: Any = (),
        min_count: float | None = None,
        match: Match = "exact",
        unknown: Unknown = "error",
        counts: Floats | None = None,
    ) -> None:
        for name, value in (("unknown", unknown), ("match", match)):
            if value not in CHOICES[name]:
                raise ParameterError(f"{name}={value!r}; {suggest(value, CHOICES[name])}")
        self.vocabulary, self.match, self.unknown = vocabulary, match, unknown
        self.counts = vocabulary.counts if counts is None else counts
        self.rows = self._rows(where, exclude, min_count)

    def code(self, label: object) -> int:
        """Code of one label."""
        if self.match == "exact" or label in self.vocabulary or not isinstance(label, str):
            return self.vocabulary.index_of(label)
        found = self._parts_of(label)
        if len(found) > 1:
            shown = ", ".join(shorten(self.vocabulary[i]) for i in found[:_SHOWN])
            more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            raise DataError(
                f"{shorten(label)} is ambiguous: it may be {shown}{more}; write more of the label"
            )
        return found[0] if found else self.vocabulary.index_of(label)

    def knows(self, label: object) -> bool:
        """Whether `code` would find the label, or several."""
        if label in self.vocabulary:
            return True
        return self.match == "prefix" and isinstance(label, str) and bool(self._parts_of(label))

    def codes(self, labels: Any, *, needed: bool = True) -> Ints:
        """Codes of one label or several; `needed`: at least one must be left."""
        one = isinstance(labels, str) or not isinstance(labels, Iterable)
        asked = [labels] if one else list(labels)
        known = asked if self.unknown == "error" else [one for one in asked if self.knows(one)]
        if needed and not known:
            shown = ", ".join(shorten(one) for one in asked[:_SHOWN])
            what = f"none of the labels is known: {shown}" if asked else "no label was given"
            raise DataError(f"{what}; at least one is needed")
        return np.array([self.code(one) for one in known], dtype=np.int64)

    def without(self, codes: Ints) -> Ints | None:
        """`rows` less some codes."""
        if len(codes) == 0:
            return self.rows
        kept = np.ones(len(self.vocabulary), dtype=bool)
        if self.rows is not None:
            kept[:] = False
            kept[self.rows] = True
        kept[codes] = False
        return np.flatnonzero(kept)

    @cached_property
    def _folded(self) -> list[str]:
        return [str(label).casefold() for label in self.vocabulary]

    def _parts_of(self, label: str) -> list[int]:
        """Labels equal to the text but for case, else those that start with it, else contain it."""
        text = label.casefold()
        tests: tuple[Callable[[str], bool], ...] = (
            lambda one: one == text,
            lambda one: one.startswith(text),
            lambda one: text in one,
        )
        for test in tests if text else ():
            if found := [i for i, one in enumerate(self._folded) if test(one)]:
                return found if self.counts is None else sorted(found, key=self._rarity)
        return []

    def _rarity(self, code: int) -> float:
        return -float(self.counts[code]) if self.counts is not None else 0.0

    def _rows(self, where: Any, exclude: Any, min_count: float | None) -> Ints | None:
        """Codes of the possible answers, ascending; None where all are."""
        left_out = self.codes(exclude, needed=False)
        if where is None and min_count is None and len(left_out) == 0:
            return None
        kept = np.ones(len(self.vocabulary), dtype=bool)
        if where is not None:
            kept &= self._chosen(where)
        if min_count is not None:
            kept &= self._frequent(min_count)
        kept[left_out] = False
        return np.flatnonzero(kept)

    def _chosen(self, where: Any) -> Bools:
        size = len(self.vocabulary)
        if isinstance(where, str):
            text = where.casefold()
            return np.array([text in one for one in self._folded], dtype=bool)
        if callable(where):
            return np.array([bool(where(label)) for label in self.vocabulary], dtype=bool)
        if not isinstance(where, Iterable):
            raise InputTypeError(
                "where must be a function of a label, a text that labels contain, a boolean "
                f"array or labels, got {where!r}"
            )
        given = where if isinstance(where, np.ndarray) else list(where)
        if len(given) and all(isinstance(one, bool | np.bool_) for one in given):
            if len(given) != size:
                raise DataError(f"where has {len(given)} truth values for {size} entities")
            return np.array(given, dtype=bool)
        kept = np.zeros(size, dtype=bool)
        kept[self.codes(given, needed=False)] = True
        return kept

    def _frequent(self, min_count: Any) -> Bools:
        if isinstance(min_count, bool) or not isinstance(min_count, int | float | np.number):
            raise InputTypeError(f"min_count must be a number, got {min_count!r}")
        if not min_count >= 0:
            raise ParameterError(f"min_count must be at least 0, got {min_count}")
        if self.counts is None:
            raise ParameterError(
                "min_count needs to know how often each entity occurs, which this model does not: "
                "leave it out, or choose entities with where="
            )
        return np.asarray(self.counts >= min_count)
