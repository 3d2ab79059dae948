"""A basket as a row of data, its completion, and the explanation of a blend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from efemb.blend.members import share_blocks
from efemb.data.dataset import Dataset
from efemb.errors import DataError
from efemb.fitted.query_context import number_of
from efemb.fitted.recommendation import rank_rows
from efemb.fitted.selection import Choice, Options
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.blend.blend import Blend

USER = "user"  # row column of the customers, unless the model names another


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
    columns = {} if user is None else {getattr(blend, "user", None) or USER: [user]}
    row: Dataset = blend._known(Dataset(matrix, entities=blend.vocabulary_, rows=columns))
    return row


def complete_basket(model: Any, basket: Any, n: Any, user: Any, options: Options) -> Table:
    """Label and probability of the most probable items outside a basket."""
    choice = Choice(model._item_labels(), **options)
    scores = model._row_scores(basket_row(model, basket, choice, user), exclude_seen=True)
    columns = rank_rows(scores, n, choice.rows, exclude_seen=True)
    labels = choice.vocabulary.labels[columns["entity"]]
    note = "probability: that this is the next item, among the items outside the basket"
    return Table({"label": labels, "probability": columns["score"]}, note)


def explain_entity(blend: Blend, data: Dataset, entity: int) -> Table:
    """Contribution of each model to the share of an entity in the first row."""
    cell = (np.zeros(1, dtype=np.int64), np.array([entity]))
    ((_, logs),) = share_blocks(blend.models_, blend._labeled(data), *cell)
    columns = blend.pool_.explain(logs[0], entity, list(blend.models_))
    return Table(columns, "what each model says of the item, and how much it counts")
