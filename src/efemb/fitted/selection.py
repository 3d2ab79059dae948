"""Choice: the labels that a question names, and those that may be answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, check_number, suggest

if TYPE_CHECKING:
    from efemb.fitted.relation import Direction, ProductErrors

P = ParamSpec("P")
R = TypeVar("R")
Unknown = Literal["error", "skip"]
Match = Literal["exact", "prefix"]
CHOICES = {"unknown": ("error", "skip"), "match": ("exact", "prefix")}
_SHOWN = 5


def check_choice(name: str, value: object) -> None:
    """Raise unless `value` is one of the choices of an option."""
    if value not in CHOICES[name]:
        raise ParameterError(f"{name}={value!r}; {suggest(value, CHOICES[name])}")


class Options(TypedDict, total=False):
    """Options that every query takes; see `Choice`."""

    where: Any
    exclude: Any
    min_count: float | None
    match: Match
    unknown: Unknown


class PairOptions(Options, total=False):
    """Options of questions about pairs of entities; see `complements`."""

    direction: Direction
    center: bool
    data: Any
    min_support: float | None
    confidence: float
    errors: ProductErrors | None


def accepts(options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a question that passes `options`, a TypedDict, on to others.

    A keyword that is neither one of its parameters nor one of `options` is refused here, under the
    name of the question.
    """

    def decorate(question: Callable[P, R]) -> Callable[P, R]:
        named = [each.name for each in signature(question).parameters.values()][1:-1]
        names = [*named, *options.__annotations__]  # without self, and without **options

        @wraps(question)
        def ask(*args: P.args, **keywords: P.kwargs) -> R:
            for name in keywords:
                if name not in names:
                    raise InputTypeError(
                        f"{question.__name__}() has no parameter {name!r}; {suggest(name, names)}"
                    )
            return question(*args, **keywords)

        return ask

    return decorate


class Choice:
    """Labels of a question by their codes, and the entities that may be its answer.

    Parameters
    ----------
    vocabulary : Vocabulary
    where : function of a label, text, boolean array (N,), or labels; optional
        Only these may be answers; a string selects the labels that contain it, in any case.
    exclude : label or labels, default=()
        Never part of an answer.
    min_count : number, optional
        Answers must occur at least this often.
    match : {"exact", "prefix"}, default="exact"
        "prefix" also accepts part of a label, ignoring case: the label that equals the text,
        otherwise one that starts with it, otherwise one that contains it. If several labels
        match, an error names them, the most frequent first.
    unknown : {"error", "skip"}, default="error"
        Skip labels that are not known; at least one must be.
    counts : array of shape (N,), optional
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
            check_choice(name, value)
        self.vocabulary, self.match, self.unknown = vocabulary, match, unknown
        self.counts = vocabulary.counts if counts is None else counts
        self.rows = self._select(where, exclude, min_count)

    def code(self, label: object) -> int:
        """Code of one label."""
        if self.match == "exact" or label in self.vocabulary or not isinstance(label, str):
            return self.vocabulary.index_of(label)
        codes = self._match_text(label)
        if len(codes) > 1:
            shown = ", ".join(shorten(self.vocabulary[i]) for i in codes[:_SHOWN])
            tail = f" and {len(codes) - _SHOWN:,} more" if len(codes) > _SHOWN else ""
            raise DataError(
                f"{shorten(label)} is ambiguous: it may be {shown}{tail}; write more of the label"
            )
        return codes[0] if codes else self.vocabulary.index_of(label)

    def knows(self, label: object) -> bool:
        """Whether `code` would find the label, or several."""
        if label in self.vocabulary:
            return True
        return self.match == "prefix" and isinstance(label, str) and bool(self._match_text(label))

    def codes(self, labels: Any, *, needed: bool = True) -> Ints:
        """Codes of one label or several; `needed`: at least one must be left."""
        single = isinstance(labels, str) or not isinstance(labels, Iterable)
        named = [labels] if single else list(labels)
        known = (
            named if self.unknown == "error" else [label for label in named if self.knows(label)]
        )
        if needed and not known:
            shown = ", ".join(shorten(label) for label in named[:_SHOWN])
            problem = f"none of the labels is known: {shown}" if named else "no label was given"
            raise DataError(f"{problem}; at least one is needed")
        try:
            return np.array([self.code(label) for label in known], dtype=np.int64)
        except DataError as error:
            if len(named) == 1:
                raise
            raise DataError(f"{error} (unknown='skip' ignores unknown labels)") from None

    def without(self, codes: Ints) -> Ints | None:
        """`rows` less some codes."""
        if len(codes) == 0:
            return self.rows
        allowed = np.ones(len(self.vocabulary), dtype=bool)
        if self.rows is not None:
            allowed[:] = False
            allowed[self.rows] = True
        allowed[codes] = False
        return np.flatnonzero(allowed)

    @cached_property
    def _folded(self) -> list[str]:
        return [str(label).casefold() for label in self.vocabulary]

    def _match_text(self, label: str) -> list[int]:
        """Labels equal to the text but for case, else those that start with it, else contain it."""
        text = label.casefold()
        tests: tuple[Callable[[str], bool], ...] = (
            lambda other: other == text,
            lambda other: other.startswith(text),
            lambda other: text in other,
        )
        for test in tests if text else ():
            if codes := [i for i, other in enumerate(self._folded) if test(other)]:
                return codes if self.counts is None else sorted(codes, key=self._rarity)
        return []

    def _rarity(self, code: int) -> float:
        return -float(self.counts[code]) if self.counts is not None else 0.0

    def _select(self, where: Any, exclude: Any, min_count: float | None) -> Ints | None:
        """Codes of the possible answers, ascending; None where all are."""
        left_out = self.codes(exclude, needed=False)
        if where is None and min_count is None and len(left_out) == 0:
            return None
        allowed = np.ones(len(self.vocabulary), dtype=bool)
        if where is not None:
            allowed &= self._evaluate_where(where)
        if min_count is not None:
            allowed &= self._select_frequent(min_count)
        allowed[left_out] = False
        return np.flatnonzero(allowed)

    def _evaluate_where(self, where: Any) -> Bools:
        size = len(self.vocabulary)
        if isinstance(where, str):
            text = where.casefold()
            return np.array([text in item for item in self._folded], dtype=bool)
        if callable(where):
            return np.array([bool(where(label)) for label in self.vocabulary], dtype=bool)
        if not isinstance(where, Iterable):
            raise InputTypeError(
                "where must be a function of a label, a string that labels contain, a boolean "
                f"array or labels, got {where!r}"
            )
        listed = where if isinstance(where, np.ndarray) else list(where)
        if len(listed) and all(isinstance(item, bool | np.bool_) for item in listed):
            if len(listed) != size:
                raise DataError(f"where has {len(listed)} truth values for {size} entities")
            return np.array(listed, dtype=bool)
        allowed = np.zeros(size, dtype=bool)
        allowed[self.codes(listed, needed=False)] = True
        return allowed

    def _select_frequent(self, min_count: Any) -> Bools:
        check_number("min_count", min_count, low=0)
        if self.counts is None:
            raise ParameterError(
                "min_count needs entity counts, which this model does not store: leave it out, or "
                "select entities with where="
            )
        return np.asarray(self.counts >= min_count)
