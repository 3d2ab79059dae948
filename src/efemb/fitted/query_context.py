"""Given: a context in numbers, as a question names it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError
from efemb.fitted.selection import Choice
from efemb.model.contexts.window import Window

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


@dataclass(frozen=True)
class Given:
    """Members of a context: codes and amounts, in the order of the window where there is one.

    The code -1 with amount 0 keeps the place of an unknown word.
    """

    codes: Ints
    amounts: Floats

    @property
    def members(self) -> Ints:
        """Codes of the known members."""
        return self.codes[self.codes >= 0]

    def changed(self, codes: Ints, amounts: Floats) -> Given:
        """The context with other amounts of some entities, which are its own or new."""
        rest = self.without(codes)
        return Given(np.concatenate([rest.codes, codes]), np.concatenate([rest.amounts, amounts]))

    def without(self, codes: Ints) -> Given:
        """The context less some entities."""
        rest = ~np.isin(self.codes, codes)
        return Given(self.codes[rest], self.amounts[rest])

    def amount_of(self, code: int) -> float:
        """Amount of an entity, 0 if it is not in the context."""
        return float(self.amounts[self.codes == code].sum())


def read_contexts(model: FittedEmbedding, context: Any, choice: Choice) -> tuple[bool, list[Given]]:
    """Whether several contexts were given, and each of them in numbers."""
    several = (
        isinstance(context, list | tuple)
        and len(context) > 0
        and all(isinstance(one, Iterable) and not isinstance(one, str) for one in context)
    )
    asked = context if several else [context]
    return several, [read_context(model, one, choice) for one in asked]


def read_context(
    model: FittedEmbedding, context: Any, choice: Choice, *, empty: bool = False
) -> Given:
    """Codes and amounts of labels, or of a mapping of labels to amounts.

    Labels that are skipped keep their place in a window, and add nothing. `empty`: a context
    without members is allowed.
    """
    window = isinstance(model.spec.context, Window)
    if isinstance(context, str | int | float | np.generic) and context in model.entities:
        context = [context]
    elif isinstance(context, str):
        context = context.split() if window else [context]
    if not isinstance(context, Iterable):
        raise InputTypeError(f"context must be a list of labels or a mapping, got {context!r}")
    pairs = context.items() if isinstance(context, Mapping) else ((one, 1.0) for one in context)
    found = []
    for label, amount in pairs:
        known = choice.unknown == "error" or choice.knows(label)
        if known or window:
            code, value = (
                (choice.code(label), _amount(model, label, amount)) if known else (-1, 0.0)
            )
            found.append((code, value))
    listed = model.lists is not None  # there, a zero is an observation
    if not empty and not (found if listed else any(amount for _, amount in found)):
        raise DataError("the context is empty: give at least one label that the model knows")
    codes = np.array([code for code, _ in found], dtype=np.int64)
    amounts = np.array([amount for _, amount in found], dtype=np.float64)
    return Given(codes, amounts) if window else _summed(codes, amounts, keep_zeros=listed)


def _summed(codes: Ints, amounts: Floats, *, keep_zeros: bool) -> Given:
    """Each entity once, in the order of the first mention."""
    unique, first, place = np.unique(codes, return_index=True, return_inverse=True)
    total = np.asarray(np.bincount(place, amounts, len(unique)), np.float64)
    order = np.argsort(first)
    kept = order if keep_zeros else order[total[order] != 0]
    return Given(unique[kept], total[kept])


def number_of(label: object, amount: Any) -> float:
    """The amount of a label, checked to be a finite number."""
    if isinstance(amount, bool | np.bool_) or not isinstance(amount, int | float | np.number):
        raise InputTypeError(f"the amount of {shorten(label)} must be a number, got {amount!r}")
    if not np.isfinite(amount):
        raise DataError(f"the amount of {shorten(label)} must be a finite number, got {amount!r}")
    return float(amount)


def _amount(model: FittedEmbedding, label: object, amount: Any) -> float:
    number = number_of(label, amount)
    family, context = model.spec.family, model.spec.context
    scales = [part.scale for part in ([context] if model.lists is None else model.lists)]
    if number < 0 and (family.support.low >= 0 or "total" in scales):
        rule = (
            f"the {family.name()} family has values >= 0"
            if family.support.low >= 0
            else "contexts with scale='total' have values >= 0"
        )
        raise DataError(f"{rule}; the amount of {shorten(label)} is {amount!r}")
    return number
