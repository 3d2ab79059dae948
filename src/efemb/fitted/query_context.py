"""QueryContext: the context of a question, as numbers and as a data set of one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.containers import is_lazy
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, ParameterError, suggest
from efemb.fitted.selection import Choice, Options

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.model.contexts.base import BoundContext
    from efemb.model.factors import Factors

LONGEST_TEXT = 1 << 20  # words around a gap


@dataclass(frozen=True)
class QueryContext:
    """Members of a context: codes and amounts, in the order of the text where there is one.

    The code -1 keeps the place of an unknown word. `row` has values of row columns, for the terms
    of the model; those that it lacks are missing. `tables` has changes of cell tables: codes of
    entities, and a number for each.
    """

    codes: Ints
    amounts: Floats
    row: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)

    @property
    def members(self) -> Ints:
        """Codes of the known members."""
        return self.codes[self.codes >= 0]

    def set_amounts(self, codes: Ints, amounts: Floats) -> QueryContext:
        """The context with other amounts of some entities, which are its own or new."""
        return self.remove(codes).append(QueryContext(codes, amounts))

    def remove(self, codes: Ints) -> QueryContext:
        """The context less some entities."""
        rest = ~np.isin(self.codes, codes)
        return replace(self, codes=self.codes[rest], amounts=self.amounts[rest])

    def append(self, other: QueryContext) -> QueryContext:
        """The members of both, one after the other."""
        codes = np.concatenate([self.codes, other.codes])
        return replace(self, codes=codes, amounts=np.concatenate([self.amounts, other.amounts]))

    def amount_of(self, code: int) -> float:
        """Amount of an entity, 0 if it is not in the context."""
        return float(self.amounts[self.codes == code].sum())

    def bind(self, model: FittedEmbedding) -> tuple[BoundContext, Factors, int]:
        """The question as data: bound context, vectors, and the row to predict."""
        context = model.spec.context
        if context.reads_text:
            words = np.repeat(self.codes, self.amounts.astype(np.int64))
            bound, row = context.bind_gap(words, model.entities, self._row_values(model))
            return bound, model._factors(bound), row
        _, bound, factors = model._bound(self._as_dataset(model))
        return bound, factors, 0

    def _row_values(self, model: FittedEmbedding) -> dict[str, Any]:
        """The row columns that the model reads, of one row."""
        return {name: np.array([self.row.get(name)]) for name in row_columns(model)}

    def _as_dataset(self, model: FittedEmbedding) -> Any:
        """A Dataset of one row; dense, because a question is answered without SciPy."""
        from efemb.data.dataset import Dataset
        from efemb.model.support import binarized

        context, lists = model.spec.context, model.lists
        reaches = (
            context.reaches_other_rows
            if lists is None
            else any(members.reaches_other_rows for members in lists)
        )
        if reaches:
            raise ParameterError(
                f"contexts of this model reach other rows ({context!r}), so labels alone do not "
                "determine them: use conditional(X) with whole rows"
            )
        if model.parameters.rho.ndim > 2:
            raise ParameterError("this needs scalar observations, not vectors of them")
        values = np.full((1, model.n_entities), context.unnamed if lists is None else np.nan)
        values[0, self.codes] = self.amounts
        cells = {
            name: term.change_table(self.row, *self.tables[name])
            for term in model.spec.terms
            for name in term.tables
            if name in self.tables
        }
        data = Dataset(values, rows=self._row_values(model), cells=cells)
        return binarized(data) if model.binarize else data


def is_table(context: Any) -> bool:
    """Whether a context is a Dataset, array or frame of rows x items instead of labels."""
    streams = hasattr(type(context), "__arrow_c_stream__") or is_lazy(context)
    return streams or len(getattr(context, "shape", ())) > 1


def row_columns(model: FittedEmbedding) -> list[str]:
    """Row columns that the terms and the structure of a model read, each once."""
    columns = [column for term in model.spec.terms for column in term.columns]
    return list(dict.fromkeys([*columns, *model.spec.structure.columns]))


def read_keywords(
    model: FittedEmbedding, keywords: Mapping[str, Any], question: str, parameters: Iterable[str]
) -> tuple[Options, dict[str, Any]]:
    """Keywords of a question: options of `Choice`, and values of row columns that terms read.

    `question` and `parameters` are what an error names: the method and its own parameters.
    """
    names = list(Options.__annotations__)
    columns = row_columns(model)
    row = {name: value for name, value in keywords.items() if name not in names}
    for name, value in row.items():
        if name not in columns:
            rule = (
                f"{', '.join(columns)}: row columns of its terms"
                if columns
                else "the model has no terms, so it takes no values of row columns"
            )
            choices = suggest(name, [*parameters, *names, *columns])
            raise InputTypeError(f"{question}() has no parameter {name!r}; {choices} ({rule})")
        if np.ndim(value) > 0 or isinstance(value, Mapping | set):
            raise InputTypeError(
                f"{name} takes a single value, which applies to every context, got {value!r:.60}"
            )
    options: Any = {name: value for name, value in keywords.items() if name in names}
    return options, row


def read_contexts(
    model: FittedEmbedding, context: Any, choice: Choice, row: Mapping[str, Any]
) -> tuple[bool, list[QueryContext]]:
    """Whether several contexts were passed, and each of them as numbers."""
    several = (
        isinstance(context, list | tuple)
        and len(context) > 0
        and all(isinstance(item, Iterable) and not isinstance(item, str) for item in context)
    )
    contexts = context if several else [context]
    return several, [
        read_context(model, labels, choice, row, empty=bool(row)) for labels in contexts
    ]


def read_context(
    model: FittedEmbedding,
    context: Any,
    choice: Choice,
    row: Mapping[str, Any] | None = None,
    *,
    empty: bool = False,
) -> QueryContext:
    """Codes and amounts of labels, or of a mapping of labels to amounts.

    Labels that are skipped keep their place in a text, and add nothing. `empty`: a context without
    members is allowed.
    """
    text, observed_zeros = model.spec.context.reads_text, model.lists is not None
    codes, amounts = [], []
    for label, amount in _labels_and_amounts(model, context):
        if choice.unknown == "error" or choice.knows(label):
            codes.append(choice.code(label))
            amounts.append(_check_amount(model, label, amount))
        elif text:
            codes.append(-1)
            amounts.append(1.0)
    named = QueryContext(
        np.array(codes, dtype=np.int64), np.array(amounts, dtype=np.float64), row or {}
    )
    if not empty and not (len(codes) if observed_zeros else named.amounts[named.codes >= 0].any()):
        raise DataError("the context is empty: pass at least one label that the model knows")
    if text:
        _check_length(named)
        return named
    return _sum_amounts(named, keep_zeros=observed_zeros)


def _labels_and_amounts(model: FittedEmbedding, context: Any) -> Iterable[tuple[Any, Any]]:
    """The parts of a question; a single text is split into words where the model is one of text."""
    if isinstance(context, str | int | float | np.generic) and context in model.entities:
        context = [context]
    elif isinstance(context, str):
        context = context.split() if model.spec.context.reads_text else [context]
    if not isinstance(context, Iterable):
        raise InputTypeError(f"context must be a list of labels or a mapping, got {context!r}")
    if isinstance(context, Mapping):
        return context.items()
    return ((label, 1.0) for label in context)


def _sum_amounts(named: QueryContext, *, keep_zeros: bool) -> QueryContext:
    """Each entity once, in the order of the first mention."""
    unique, first, position = np.unique(named.codes, return_index=True, return_inverse=True)
    total = np.asarray(np.bincount(position, named.amounts, len(unique)), np.float64)
    order = np.argsort(first)
    if not keep_zeros:
        order = order[total[order] != 0]
    return replace(named, codes=unique[order], amounts=total[order])


def _check_length(words: QueryContext) -> None:
    if words.amounts.sum() > LONGEST_TEXT:
        raise DataError(
            f"the context has {words.amounts.sum():g} words, more than {LONGEST_TEXT:,}: pass the "
            "words around the gap"
        )


def number_of(label: object, amount: Any) -> float:
    """The amount of a label, checked to be a finite number."""
    if isinstance(amount, bool | np.bool_) or not isinstance(amount, int | float | np.number):
        raise InputTypeError(f"the amount of {shorten(label)} must be a number, got {amount!r}")
    if not np.isfinite(amount):
        raise DataError(f"the amount of {shorten(label)} must be a finite number, got {amount!r}")
    return float(amount)


def _check_amount(model: FittedEmbedding, label: object, amount: Any) -> float:
    number = number_of(label, amount)
    family, context = model.spec.family, model.spec.context
    scales = [source.scale for source in ([context] if model.lists is None else model.lists)]
    if number < 0 and (family.support.low >= 0 or "total" in scales):
        rule = (
            f"the {family.name()} family has values >= 0"
            if family.support.low >= 0
            else "contexts with scale='total' have values >= 0"
        )
        raise DataError(f"{rule}; the amount of {shorten(label)} is {amount!r}")
    if context.reads_text and number % 1:
        raise DataError(
            f"a word occurs a whole number of times; the amount of {shorten(label)} is {amount!r}"
        )
    return number
