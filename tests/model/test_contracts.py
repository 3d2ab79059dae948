"""A user's own ingredient that breaks its contract is refused before any work, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.contexts import CellLists, Context, EntityLists
from efemb.model.priors import Normal
from efemb.model.structures import PerEntity
from efemb.model.terms import BoundTerm, Term, TermArray
from efemb.model.terms.cell_values import GroupTable, SparseRows

X = np.random.default_rng(0).poisson(0.7, (60, 6))


class NoContext(Context):
    def bind(self, data: Any) -> Any:
        return [1, 2]


class OneSize(PerEntity):
    def sizes(self, n_entities: int) -> Any:
        return n_entities


class ShortSpread(PerEntity):
    def spread(self, rho: Any, alpha: Any, n_entities: int) -> Any:
        return rho[:-1], alpha


class ShortCollect(PerEntity):
    def collect(self, rho: Any, alpha: Any, n_entities: int) -> Any:
        return rho[:2], alpha


class FailingSpread(PerEntity):
    def spread(self, rho: Any, alpha: Any, n_entities: int) -> Any:
        raise IndexError("no such brand")


class Constant(BoundTerm):
    def __init__(self, width: int) -> None:
        self.width = width

    def row_columns(self, arrays: Any, rows: Any) -> Any:
        return np.ones((len(rows), self.width))

    def pull_back_rows(self, arrays: Any, rows: Any, gradient: Any) -> Any:
        return {}


class Effect(Term):
    """u_tn += gamma_n, twice; right as it stands."""

    width = 2

    @property
    def label(self) -> str:
        return "effect"

    def freeze(self, data: Any) -> Term:
        return self

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        return (TermArray("gamma", (n_entities, 2), Normal(1.0), spread=0.1),)

    def entity_columns(self, arrays: Any, n_entities: int) -> Any:
        return arrays["gamma"]

    def pull_back_entities(self, gradient: Any) -> Any:
        return {"gamma": gradient}

    def bind(self, data: Any) -> Any:
        return Constant(2)


class NarrowEntities(Effect):
    def entity_columns(self, arrays: Any, n_entities: int) -> Any:
        return arrays["gamma"][:, :1]


class OtherGradient(Effect):
    def pull_back_entities(self, gradient: Any) -> Any:
        return {"delta": gradient}


class WideRows(Effect):
    def bind(self, data: Any) -> Any:
        return Constant(3)


class Unbound(Effect):
    def bind(self, data: Any) -> Any:
        return 3


class NoCells(Constant):
    def cells(self, arrays: Any, rows: Any) -> Any:
        return np.zeros((len(rows), 6))


class OneCell(Constant):
    def cells(self, arrays: Any, rows: Any) -> Any:
        n = len(rows)
        return SparseRows(np.arange(n + 1), np.zeros(n, np.int64), np.ones(n))

    def pull_back_cells(self, arrays: Any, rows: Any, gradient: Any) -> Any:
        return {"gamma": gradient}


class DenseCells(Effect):
    has_cells = True

    def bind(self, data: Any) -> Any:
        return NoCells(2)


class CellGradient(Effect):
    has_cells = True

    def bind(self, data: Any) -> Any:
        return OneCell(2)


class Level(Constant):
    """A parameter for each entity, in the one group that all rows are in."""

    n_columns = 6

    def cells(self, arrays: Any, rows: Any) -> Any:
        return GroupTable(np.zeros(len(rows), np.int64), arrays["gamma"][None, : self.n_columns, 0])

    def pull_back_cells(self, arrays: Any, rows: Any, gradient: Any) -> Any:
        back = np.zeros_like(arrays["gamma"])
        back[:, 0] = gradient[0]
        return {"gamma": back}


class NarrowLevel(Level):
    n_columns = 5


class Levels(Effect):
    has_cells = True

    def __init__(self, narrow: bool = False) -> None:
        self.narrow = narrow

    def bind(self, data: Any) -> Any:
        return NarrowLevel(2) if self.narrow else Level(2)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "context": ({"context": NoContext()}, "NoContext.bind must return RowBags"),
    "sizes": ({"structure": OneSize()}, "OneSize.sizes must return the rows of rho"),
    "spread": ({"structure": ShortSpread()}, r"ShortSpread.spread must .* got \[\(5, 2\)"),
    "collect": ({"structure": ShortCollect()}, r"ShortCollect.collect must .* got \[\(2, 2\)"),
    "raises": ({"structure": FailingSpread()}, "FailingSpread.spread fails .* no such brand"),
    "entity side": ({"terms": [NarrowEntities()]}, r"NarrowEntities.entity_columns .* \(6, 1\)"),
    "gradient": ({"terms": [OtherGradient()]}, "OtherGradient.pull_back_entities .*'delta'"),
    "row side": ({"terms": [WideRows()]}, r"Constant.row_columns .* got \(2, 3\)"),
    "cells": ({"terms": [DenseCells()]}, "NoCells.cells must return .*, got ndarray"),
    "of cells": ({"terms": [CellGradient()]}, r"OneCell.pull_back_cells .*'gamma': \(2,\)"),
    "table": ({"terms": [Levels(narrow=True)]}, "NarrowLevel.cells .* a column per entity, 6"),
    "bind": ({"terms": [Unbound()]}, "Unbound.bind must return a BoundTerm, got int"),
}


@pytest.mark.parametrize("case", sorted(BROKEN))
def test_a_broken_contract_is_refused_by_name(case: str) -> None:
    options, message = BROKEN[case]
    model = efemb.PoissonEmbedding(2, max_iter=2, random_state=0, **options)
    with pytest.raises(InputTypeError, match=message):
        model.fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("term", [Effect(), Levels()], ids=["columns", "table of cells"])
def test_what_keeps_its_contract_is_fitted(term: Term) -> None:
    model = efemb.PoissonEmbedding(
        2, max_iter=2, random_state=0, structure=PerEntity(), terms=[term]
    )
    assert np.isfinite(model.fit(X).score(X))


N = X.shape[1]
NEXT = (np.arange(N) + 1) % N
LISTS: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "too large": (
        range(N + 1),
        NEXT + 1,
        DataError,
        "members must lie in 0 ... 5; .* entity 4 has 6",
    ),
    "negative": (range(N + 1), NEXT - 1, DataError, "list of entity 5 has -1"),
    "too short": (
        range(N),
        NEXT,
        DataError,
        r"ptr must have 7 entries \(entities \+ 1\) from 0 to 6",
    ),
    "beyond": (range(0, 2 * N + 1, 2), NEXT, DataError, "got 7 entries from 0 to 12"),
    "falling": ([0, 3, 2, 4, 5, 6, 6], NEXT, DataError, "must not decrease, but does at entity 1"),
    "itself": (range(N + 1), np.arange(N), DataError, "entity 0 is in its own context"),
    "floats": (range(N + 1), NEXT + 0.5, InputTypeError, "members must be integers, got float64"),
    "a matrix": (range(N + 1), NEXT[:, None], InputTypeError, r"one dimension, got shape \(6, 1\)"),
}


class Listed(Context):
    def __init__(self, ptr: Any = (), members: Any = ()) -> None:
        self.ptr = ptr
        self.members = members

    def bind(self, data: Any) -> Any:
        return EntityLists.from_neighbors(data, self.ptr, self.members)


class CellOfItself(Context):
    def bind(self, data: Any) -> Any:
        cells = np.arange(data.n_rows * data.n_entities + 1)
        return CellLists(data, cells, cells[:-1], scale=self.scale, binary=self.binary)


@pytest.mark.parametrize("case", sorted(LISTS))
def test_lists_that_do_not_fit_the_data_are_refused(case: str) -> None:
    ptr, members, error, message = LISTS[case]
    context = Listed(np.asarray(ptr), members)
    with pytest.raises(error, match=message):
        efemb.PoissonEmbedding(2, context=context).fit(X)
    with pytest.raises(error, match=message):
        efemb.checks.check_context(context, X.astype(float))


def test_lists_of_cells_are_checked_likewise() -> None:
    with pytest.raises(DataError, match="cell 0 is in its own context"):
        efemb.PoissonEmbedding(2, context=CellOfItself()).fit(X)


def test_a_scale_that_there_is_not_is_refused() -> None:
    with pytest.raises(ParameterError, match="unknown scale 'mean'"):
        EntityLists.from_neighbors(efemb.Dataset(X), range(N + 1), NEXT, scale="mean")


def test_empty_lists_are_lists() -> None:
    bound = Listed(np.zeros(N + 1, int), []).bind(efemb.Dataset(X))
    assert not bound.context_sizes().any()
