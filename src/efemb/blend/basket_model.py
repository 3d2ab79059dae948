"""BasketModel: models of baskets that combine several distributions of the next item."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from efemb._typing import Floats
from efemb.baselines.base import Baseline
from efemb.data.dataset import Dataset
from efemb.data.matrices import absent_cells, sparse, stored_cells
from efemb.errors import DataError
from efemb.fitted.query_context import is_table, number_of
from efemb.fitted.recommendation import rank_rows
from efemb.fitted.selection import Choice, Options, accepts
from efemb.model.families import Categorical, Family
from efemb.table import Table

USER = "user"  # row column of the customers, unless the model names another


class BasketModel(Baseline, ABC):
    """Shares of all items given a basket; a subclass defines `_log_mean_blocks`."""

    _allow_real = True  # whether fractions are allowed depends on each part

    def _family(self) -> Family:
        return Categorical()

    def _own_log_means(self, data: Dataset) -> Floats:
        """Log shares of absent entities given the whole row, of others given the rest of it."""
        matrix = sparse(data)
        log_shares = np.empty(data.shape)
        rows, absent = absent_cells(matrix)
        for cells, logs in self._log_mean_blocks(data, rows, absent):
            log_shares[rows[cells]] = logs
        rows, entities = stored_cells(matrix)
        entities = entities.astype(np.int64)
        for cells, logs in self._log_mean_blocks(data, rows, entities):
            own = entities[cells]
            log_shares[rows[cells], own] = logs[np.arange(len(own)), own]
        return log_shares

    @accepts(Options)
    def complete(
        self, basket: Any, n: int = 10, *, user: Any = None, **options: Unpack[Options]
    ) -> Table:
        """The most probable next items, given a basket.

        Parameters
        ----------
        basket : list of labels, mapping of labels to amounts, or rows x items
            Its items are excluded from the result; it may be empty. A Dataset or another table of
            rows is answered by `recommend`.
        n : int, default=10
            Number of items; fewer are returned if fewer remain.
        user : label, optional
            The customer, for models that know customers; one that the fit did not see has no
            history.
        where : function of a label, str, boolean array or labels, optional
            Restricts the result to these items; a str matches labels that contain it, ignoring
            case.
        exclude : label or labels, optional
            Items that are never in the result.
        min_count : float, optional
            Restricts the result to items that occur at least this often.
        match : {"exact", "prefix"}, default="exact"
            "prefix" also accepts the beginning of a label, or a part of it, ignoring case.
        unknown : {"error", "skip"}, default="error"
            "skip" ignores unknown labels of the basket.

        Returns
        -------
        Table
            Columns label and probability (among all items outside the basket), the best first.
        """
        check_is_fitted(self, "family_")
        if is_table(basket):
            return self.recommend(basket, n, **options)
        choice = Choice(self._item_labels(), **options)
        row = self._basket_row(basket, choice, user)
        columns = rank_rows(
            self._row_scores(row, exclude_seen=True), n, choice.rows, exclude_seen=True
        )
        labels = choice.vocabulary.labels[columns["entity"]]
        note = "probability: that this is the next item, among the items outside the basket"
        return Table({"label": labels, "probability": columns["score"]}, note)

    def _basket_row(self, basket: Any, choice: Choice, user: Any) -> Dataset:
        """A basket of labels, or of labels with amounts, as a row of data."""
        if isinstance(basket, str) or not isinstance(basket, Iterable):
            basket = [basket]
        amounts = basket if isinstance(basket, Mapping) else None
        asked = list(basket)
        accepted = [label for label in asked if choice.unknown == "error" or choice.knows(label)]
        if asked and not accepted:
            raise DataError(
                "none of the items of the basket is known to the model: correct their labels"
            )
        codes = choice.codes(accepted, needed=False)
        values = [
            1.0 if amounts is None else number_of(label, amounts[label]) for label in accepted
        ]
        cells = (np.zeros(len(codes), dtype=np.int64), codes)
        matrix = csr_array((np.array(values), cells), shape=(1, len(choice.vocabulary)))
        columns = {} if user is None else {getattr(self, "user", None) or USER: [user]}
        return self._known(Dataset(matrix, entities=self.vocabulary_, rows=columns))
