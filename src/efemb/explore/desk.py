"""The desk of a served explorer: questions about one model, with checked values.

Requests name items by their number; nothing in a request is a path or a name of a function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from efemb.errors import EfembError
from efemb.explore.contents import Contents
from efemb.explore.maps import POSITIONS, PROJECTIONS
from efemb.explore.pair_lists import NUMBERS, relation_table
from efemb.explore.prediction import row_columns
from efemb.explore.slices import follow_items

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.table import Table

N_ANSWERS, MOST_ANSWERS = 10, 200
MOST_MEMBERS = 1_000
METHODS = (*PROJECTIONS, POSITIONS)
NO_ROW: Mapping[str, Any] = MappingProxyType({})
Check = Callable[[Any], Any]


class BadRequestError(Exception):
    """A request that cannot be answered; the message tells why."""


class Desk:
    """Answers questions about one model: each is a method, whose arguments a request names.

    Items, tables and groups of rows are numbers or names that the model has; `_checks` says what a
    value of each name must be.
    """

    QUESTIONS = (
        *("similar", "analogy", "complements", "substitutes", "complete", "explain"),
        *("what_if", "share", "weights", "trajectory", "map"),
    )

    def __init__(self, contents: Contents) -> None:
        self.contents, self.model, self.whole = contents, contents.model, contents.whole
        self.labels = contents.model.entities.labels
        self.busy = threading.Lock()
        spec, n = self.model.spec, len(self.labels)
        code, members = check_integer(0, n), _items(MOST_MEMBERS, n)
        self._checks: dict[str, Check] = {
            "item": code,
            "items": _items(n, n),
            "positive": members,
            "negative": members,
            "basket": self._basket,
            "row": self._row,
            "group": check_integer(0, len(spec.structure.labels)),
            "space": _one_of("rho", "alpha", ""),
            "method": _one_of(*METHODS),
            "table": _one_of(*(name for term in spec.terms for name in term.tables)),
            "factor": _number,
            "n": check_integer(1, MOST_ANSWERS + 1),
        }
        for question in (self.similar, self.substitutes):  # what is made once, before anyone waits
            with suppress(EfembError):
                question(0)

    def ask(self, question: str, body: dict[str, Any]) -> Any:
        """Answer a question of `QUESTIONS` with the checked values of a request."""
        answer, values = getattr(self, question), {}
        for name, parameter in signature(answer).parameters.items():
            if name in body:
                values[name] = self._checked(name, body.pop(name))
            elif parameter.default is parameter.empty:
                raise BadRequestError(f"{name} is missing")
        if body:
            raise BadRequestError(f"unknown: {', '.join(sorted(body))[:200]}")
        return answer(**values)

    # -- values ---------------------------------------------------------------------------------

    def _checked(self, name: str, value: Any) -> Any:
        try:
            return self._checks[name](value)
        except BadRequestError as error:
            raise BadRequestError(f"{name}: {error}") from None

    def _basket(self, value: Any) -> dict[Any, float]:
        if not isinstance(value, list) or len(value) > MOST_MEMBERS:
            raise BadRequestError(f"a basket is a list of up to {MOST_MEMBERS:,} pairs")
        basket: dict[Any, float] = {}
        for pair in value:
            if not isinstance(pair, list) or len(pair) != 2:
                raise BadRequestError("a basket is a list of pairs of an item and its amount")
            label = self.labels[self._checks["item"](pair[0])]
            basket[label] = basket.get(label, 0.0) + _number(pair[1])
        return basket

    def _row(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > 50:
            raise BadRequestError("row takes names and values of row columns")
        known = row_columns(self.model, self.whole)
        for name, one in value.items():
            if name not in known:
                raise BadRequestError(f"the model has no row column {name[:60]!r}")
            if isinstance(one, bool) or not isinstance(one, str | int | float):
                raise BadRequestError(f"the value of {name[:60]!r} must be a text or a number")
        return value

    def _context(self, basket: dict[Any, float]) -> Any:
        """A basket as the model takes it: words of a text are repeated."""
        if not self.model.spec.context.reads_text:
            return basket
        if sum(basket.values()) > MOST_MEMBERS:
            raise BadRequestError(f"a gap has up to {MOST_MEMBERS:,} words around it")
        return [word for word, amount in basket.items() for _ in range(round(amount))]

    def _of(self, group: int | None) -> FittedEmbedding:
        """The model of a group of rows, or of all of them."""
        labels = self.model.spec.structure.labels
        return self.model if group is None else self.model.of_group(labels[group])

    def _rows(self, table: Table, *names: str) -> list[dict[str, Any]]:
        """Rows of a table with the number of the item, and those columns that it has."""
        columns = [name for name in names if name in table.columns]
        index_of = self.model.entities.index_of
        return [
            {"code": index_of(row["label"]), **{name: row[name] for name in columns}}
            for row in table
        ]

    # -- questions ------------------------------------------------------------------------------

    def similar(
        self, item: int, space: str = "rho", n: int = N_ANSWERS, group: int | None = None
    ) -> Any:
        """Items with similar vectors."""
        which: Literal["rho", "alpha"] = "alpha" if space == "alpha" else "rho"
        table = self._of(group).similar(self.labels[item], n, which=which)
        return self._rows(table, "similarity")

    def analogy(
        self,
        positive: list[int],
        negative: Sequence[int] = (),
        n: int = N_ANSWERS,
        group: int | None = None,
    ) -> Any:
        """Items near all of the first and far from the second."""
        if not positive:
            raise BadRequestError("positive needs at least one item")
        plus, minus = ([self.labels[code] for code in side] for side in (positive, negative))
        return self._rows(self._of(group).analogy(plus, minus, n), "similarity")

    def complements(self, item: int, n: int = N_ANSWERS, group: int | None = None) -> Any:
        """Items that another one makes more likely."""
        table = relation_table(self.contents, "complements", self.labels[item], n, group)
        return self._rows(table, "kind", *NUMBERS)

    def substitutes(self, item: int, n: int = N_ANSWERS, group: int | None = None) -> Any:
        """Items that share their contexts without coming together, then those that might."""
        table = relation_table(self.contents, "substitutes", self.labels[item], n, group)
        return self._rows(table, "kind", *NUMBERS)

    def trajectory(self, item: int) -> Any:
        """An item in every slice of time."""
        columns = follow_items(self.contents, np.array([item]))
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]

    def complete(
        self,
        basket: dict[Any, float],
        row: Mapping[str, Any] = NO_ROW,
        n: int = N_ANSWERS,
    ) -> Any:
        """Items to add to a basket."""
        model = self.model if self.whole is None else self.whole
        return self._rows(model.complete(self._context(basket), n, **row), "probability", "mean")

    def what_if(
        self,
        table: str,
        item: int,
        factor: float,
        basket: Mapping[Any, float] = NO_ROW,
        row: Mapping[str, Any] = NO_ROW,
        n: int = N_ANSWERS,
    ) -> Any:
        """What another price of an item changes."""
        changes: dict[str, Any] = {table: {self.labels[item]: factor}}
        answer = self.model.what_if(self._context(dict(basket)), n=n, **row, **changes)
        rows = self._rows(answer, "before", "after", "change", "ratio")
        return [row for row in rows if row["change"] != 0]

    def explain(self, basket: dict[Any, float], item: int, row: Mapping[str, Any] = NO_ROW) -> Any:
        """What each member of a basket, and each term, adds to the prediction of an item."""
        if self.whole is not None:
            return _sum_by_kind(self.whole.explain(basket, self.labels[item], **row))
        table = self.model.explain(self._context(basket), self.labels[item], **row)
        return [{"term": str(part["term"]), "contribution": part["contribution"]} for part in table]

    def share(self, items: list[int], group: int | None = None) -> Any:
        """Items in the middle of a selection, and the nearest ones outside of it."""
        if not items:
            raise BadRequestError("items needs at least one item")
        model, inside = self._of(group), np.zeros(len(self.labels), dtype=bool)
        inside[items] = True
        middle = model.vectors().unit_vectors[inside].sum(axis=0, dtype=np.float64)
        answer = {"central": model.similar(middle, 5, where=inside)}
        if not inside.all():
            answer["near"] = model.similar(middle, 5, where=~inside)
        rows = {name: self._rows(table, "similarity") for name, table in answer.items()}
        return {"near": [], **rows}

    def weights(self, item: int) -> Any:
        """Weights of the neighbors of a neuron."""
        table = self.model.weights(self.labels[item])
        index_of = self.model.entities.index_of
        return [{"code": index_of(row["neighbor"]), "weight": row["weight"]} for row in table]

    def map(self, space: str, method: str) -> Any:
        """Coordinates of all items, made when they are first asked for."""
        with self.busy:  # a map takes a while: one at a time
            points = self.contents.maps.points(space, method)
        return points.ravel().round(5).tolist()


def _sum_by_kind(experts: Table) -> list[dict[str, Any]]:
    """Shares of the kinds of experts of a mixture, such as those of all powers of `pairs`."""
    shares: dict[str, float] = {}
    for row in experts:
        kind = row["expert"].partition("^")[0].partition(" (")[0]
        shares[kind] = shares.get(kind, 0.0) + row["responsibility"]
    largest = sorted(shares.items(), key=lambda share: -share[1])
    return [{"term": kind, "contribution": share} for kind, share in largest]


def check_integer(low: int, high: int) -> Check:
    """A check for whole numbers from `low` to `high` - 1."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < high:
            known = f"a whole number from {low} to {high - 1}" if high > low else "no value"
            raise BadRequestError(f"expected {known}")
        return value

    return check


def _items(most: int, n_items: int) -> Check:
    code = check_integer(0, n_items)

    def check(value: Any) -> list[int]:
        if not isinstance(value, list) or len(value) > most:
            raise BadRequestError(f"expected a list of up to {most:,} items")
        return [code(one) for one in value]

    return check


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e9:
        raise BadRequestError("an amount must be a number of at most 1e9")
    return float(value)


def _one_of(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise BadRequestError(f"expected one of {', '.join(filter(None, choices))}")
        return str(value)

    return check
