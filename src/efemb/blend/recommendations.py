"""Recommendations of a blend for rows and baskets, and their explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.baselines.arrays import sparse
from efemb.blend.members import absent_cells, share_blocks
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError
from efemb.fitted.nearest import checked_number, largest
from efemb.fitted.query_context import number_of
from efemb.fitted.selection import Choice
from efemb.model.contexts.base import gather_rows
from efemb.model.score import log_sums
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.blend.blend import Blend


Blocks = Callable[..., Iterator[tuple[slice, Floats]]]


def entities_of(blend: Any) -> Vocabulary:
    """The labels of the entities; numbers from 0 if the data had none."""
    labels: Vocabulary | None = blend.vocabulary_
    return Vocabulary(range(blend.n_features_in_)) if labels is None else labels


def rank_entities(
    blend: Any,
    data: Dataset,
    n: Any,
    *,
    exclude_seen: bool,
    allowed: Ints | None = None,
    blocks: Blocks | None = None,
) -> dict[str, Any]:
    """Row, entity, rank (from 1) and probability of the `n` most probable entities of each row.

    Probabilities are shares among the entities that are not excluded. `allowed` : codes of the
    entities that may be listed. `blocks` : log shares of some cells, by default those of the model.
    """
    size = checked_number(n)
    matrix = sparse(data)
    rows, absent = absent_cells(matrix)
    hidden = np.zeros(0, dtype=np.int64)
    if allowed is not None:
        hidden = np.setdiff1d(np.arange(data.n_entities), allowed)
    columns: dict[str, list[Any]] = {"row": [], "entity": [], "rank": [], "probability": []}
    with progress_bar("recommending", len(rows), bool(blend.verbose)) as advance:
        for cells, logs in (blocks or blend._log_mean_blocks)(data, rows, absent):
            if exclude_seen:
                _exclude(logs, matrix, rows[cells])
            shares = np.exp(logs - log_sums(logs)[:, None])
            logs[:, hidden] = -np.inf
            for row, log_share, share in zip(rows[cells], logs, shares, strict=True):
                best = largest(log_share, size)
                columns["row"].append(np.full(len(best), row))
                columns["entity"].append(best)
                columns["rank"].append(np.arange(1, len(best) + 1))
                columns["probability"].append(share[best])
            advance(len(logs))
    empty = {"probability": np.zeros(0)}
    none = np.zeros(0, dtype=np.int64)
    return {
        name: np.concatenate([empty.get(name, none), *values]) for name, values in columns.items()
    }


def _exclude(logs: Floats, matrix: Any, rows: Ints) -> None:
    """Set the log shares of the entities of each row to -infinity, in place."""
    ptr, stored = gather_rows(matrix.indptr, rows)
    cell = np.repeat(np.arange(len(rows)), np.diff(ptr))
    logs[cell, matrix.indices[stored]] = -np.inf


def basket_row(blend: Any, basket: Any, choice: Choice, user: Any) -> Dataset:
    """A basket of labels, or of labels with amounts, as a row of data."""
    if isinstance(basket, str) or not isinstance(basket, Iterable):
        basket = [basket]
    amounts = basket if isinstance(basket, Mapping) else None
    asked = list(basket)
    known = [label for label in asked if choice.unknown == "error" or choice.knows(label)]
    if asked and not known:
        raise DataError(
            "none of the items of the basket is known to the model: correct their labels"
        )
    codes = choice.codes(known, needed=False)
    values = [1.0 if amounts is None else number_of(label, amounts[label]) for label in known]
    cells = (np.zeros(len(codes), dtype=np.int64), codes)
    matrix = csr_array((np.array(values), cells), shape=(1, len(choice.vocabulary)))
    users = None if user is None else [user]
    row: Dataset = blend._known(Dataset(matrix, entities=blend.vocabulary_, users=users))
    return row


def explain_entity(blend: Blend, data: Dataset, entity: int) -> Table:
    """Contribution of each model to the share of an entity in the first row."""
    cell = (np.zeros(1, dtype=np.int64), np.array([entity]))
    ((_, logs),) = share_blocks(blend.models_, blend._labeled(data), *cell)
    return Table(blend.pool_.explain(logs[0], entity, list(blend.models_)))
