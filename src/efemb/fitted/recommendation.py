"""Recommendations: the best items of every row of data at once, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Bools, Floats, Ints
from efemb.data.matrices import absent_cells, sparse
from efemb.errors import check_integer
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.nearest import largest
from efemb.fitted.selection import Choice, Options, accepts
from efemb.model.contexts.base import gather_rows
from efemb.model.ingredient import flag
from efemb.model.objective import log_sums
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.data.vocabulary import Vocabulary

ROWS_AT_ONCE = 1 << 14
LogMeans = Callable[[Ints, Ints], Iterator[tuple[slice, Floats]]]


@dataclass(frozen=True)
class RowScores:
    """Scores of all entities of some rows, given the whole rows.

    data : the rows
    blocks : some rows, and scores of their entities, (rows, N)
    shares : whether scores are logarithms of means of counts or binary data, of which only the
        shares are reported; otherwise they are means
    missing : whether absent values are NaN; otherwise they are zeros
    bought : entities that the customers of some rows have in earlier rows, (rows, N)
    """

    data: Dataset
    blocks: Iterator[tuple[Ints, Floats]]
    shares: bool
    missing: bool = False
    bought: Callable[[Ints], Bools] | None = None

    def seen(self, rows: Ints) -> Bools:
        """Entities that the rows contain, (rows, N)."""
        values = self.data.values
        if not self.data.is_sparse:
            return np.asarray(~np.isnan(values[rows]) if self.missing else values[rows] != 0)
        ptr, stored = gather_rows(values.indptr, rows)
        is_seen = np.zeros((len(rows), self.data.n_entities), dtype=bool)
        is_seen[np.repeat(np.arange(len(rows)), np.diff(ptr)), values.indices[stored]] = True
        return is_seen


@fill_docstrings
class Recommender:
    """`recommend`, for every model that predicts rows of data."""

    if TYPE_CHECKING:

        def _row_scores(self, X: Any, *, exclude_seen: bool) -> RowScores: ...
        def _item_labels(self) -> Vocabulary: ...
        def _skip_unknown(self, X: Any) -> Any: ...

    @accepts(Options)
    def recommend(
        self,
        data: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        past: Dataset | None = None,
        user: str = "user",
        progress: bool = False,
        **options: Unpack[Options],
    ) -> Table:
        """List the best items of every row: what to offer to each customer.

        Rows are processed in blocks, so that memory does not grow with their number.

        Parameters
        ----------
        data : like the X of `fit`
            The rows, each with what the customer has already.
        n : int, default=10
            Number of items per row; fewer are listed if fewer are left.
        exclude_seen : bool, default=True
            Leave out items that are in the row already (for real data: that are observed).
            Otherwise they are ranked given the whole row, including themselves.
        past : Dataset, optional
            Earlier rows of the customers. Items that the customer of a row has in them are left
            out, so that only what is new to the customer is listed.
        user : str, default="user"
            Row column of `data` and `past` that names the customer.
        %(progress)s
        %(select)s
        match : {"exact", "prefix"}, default="exact"
            How labels of `where` and `exclude` are looked up.
        unknown : {"error", "skip"}, default="error"
            Whether columns of `data` that the model does not know raise an error or are ignored.

        Returns
        -------
        Table
            row (its label in the data, otherwise its number), label, rank (from 1) and score. For
            counts and binary data the score is the probability that this is the next item, among
            all items that are not excluded; for real data, and contexts that are not rows, it is
            the conditional mean.

        Examples
        --------
        >>> import efemb
        >>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [1, 0, 1, 0]] * 20
        >>> trips = efemb.Dataset(X, entities=["bread", "butter", "beer", "chips"])
        >>> model = efemb.PoissonEmbedding(2, random_state=0).fit(trips)
        >>> model.recommend([[1, 0, 0, 0], [0, 0, 1, 0]], n=1)["label"].tolist()
        ['butter', 'chips']
        """
        flag("exclude_seen", exclude_seen)
        choice = Choice(self._item_labels(), **options)
        if choice.unknown == "skip":
            data = self._skip_unknown(data)
        scores = self._row_scores(data, exclude_seen=bool(exclude_seen))
        if past is not None:
            from efemb.data.owners import find_bought

            scores = replace(scores, bought=find_bought(scores.data, past, user))
        shown = progress or bool(getattr(self, "verbose", 0))
        columns = rank_rows(scores, n, choice.rows, exclude_seen=exclude_seen, progress=shown)
        row_labels = scores.data.row_labels
        rows = columns["row"] if row_labels is None else row_labels[columns["row"]]
        labels = choice.vocabulary.labels[columns["entity"]]
        first = {"row": rows, "label": labels}
        note = "score: expected value"
        if scores.shares:
            among = "the items that are not in the row" if exclude_seen else "all items"
            among += "" if past is None else " and new to the customer"
            note = f"score: probability that this is the next item, among {among}"
        return Table({**first, "rank": columns["rank"], "score": columns["score"]}, note)


def whole_row_blocks(
    data: Dataset, log_means: LogMeans, *, exclude_seen: bool
) -> Iterator[tuple[Ints, Floats]]:
    """Log means of all entities given each whole row, from those given rows that lack a cell.

    In a row that holds every entity, each one is predicted from the others; there is nothing to
    recommend if they are excluded.
    """
    rows, absent = absent_cells(sparse(data))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        block_rows = rows[start : start + ROWS_AT_ONCE]
        for cells, logs in log_means(block_rows, absent[start : start + ROWS_AT_ONCE]):
            yield block_rows[cells], logs
    entities = np.arange(data.n_entities)
    full = [] if exclude_seen else np.setdiff1d(np.arange(data.n_rows), rows).tolist()
    for row in full:
        own = np.empty((1, data.n_entities))
        for cells, logs in log_means(np.full(data.n_entities, row), entities):
            index = np.arange(len(logs))
            own[0, cells] = logs[index, entities[cells]] - log_sums(logs)
        yield np.array([row]), own


def rank_rows(
    scores: RowScores,
    n: Any,
    allowed: Ints | None,
    *,
    exclude_seen: bool,
    progress: bool = False,
) -> dict[str, Any]:
    """Row, entity, rank (from 1) and score of the `n` best entities of each row.

    Shares are among the entities that are not excluded, of which only `allowed` may be listed.
    """
    size, data = check_integer("n", n), scores.data
    hidden = np.zeros(data.n_entities, dtype=bool)
    if allowed is not None:
        hidden = ~np.isin(np.arange(data.n_entities), allowed)
    none = np.zeros(0, dtype=np.int64)
    listed: dict[str, list[Any]]
    listed = {"row": [none], "entity": [none], "rank": [none], "score": [np.zeros(0)]}
    with progress_bar("recommending", data.n_rows, progress) as advance:
        for rows, block in scores.blocks:
            values = _mask_excluded(scores, rows, block, exclude_seen=exclude_seen)
            shown = _shares(values) if scores.shares else values
            for i, row in enumerate(rows.tolist()):
                best = largest(np.where(hidden, -np.inf, values[i]), size)
                listed["row"].append(np.full(len(best), row))
                listed["entity"].append(best)
                listed["rank"].append(np.arange(1, len(best) + 1))
                listed["score"].append(shown[i, best])
            advance(len(rows))
    columns = {name: np.concatenate(blocks) for name, blocks in listed.items()}
    order = np.argsort(columns["row"], kind="stable")  # full rows come last
    return {name: values[order] for name, values in columns.items()}


def _mask_excluded(scores: RowScores, rows: Ints, block: Floats, *, exclude_seen: bool) -> Floats:
    """Scores with -inf for entities that are not listed."""
    values = block.astype(np.float64)
    if exclude_seen:
        values[scores.seen(rows)] = -np.inf
    if scores.bought is not None:
        values[scores.bought(rows)] = -np.inf
    return values


def _shares(logs: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # all entities of a row may be excluded
        return np.asarray(np.exp(logs - log_sums(logs)[:, None]))
