"""A sample of every shipped term, and the row columns that they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import efemb
from efemb.data import CellTable
from efemb.model.terms import CellCovariate, Term
from efemb.model.terms.covariate import Covariate


def rows_of(n_rows: int) -> dict[str, Any]:
    """Row columns for any number of rows."""
    rng = np.random.default_rng(0)
    return {
        "user": rng.choice(["ann", "bob", "eve"], n_rows),
        "temperature": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(15, 8, n_rows)),
        "week": np.where(rng.random(n_rows) < 0.1, np.nan, rng.integers(0, 4, n_rows)),
    }


def cells_of(n_entities: int) -> dict[str, CellTable]:
    """Tables of the same row columns, for any number of entities."""
    rng = np.random.default_rng(1)
    price = np.exp(rng.normal(0.0, 0.3, (4, n_entities)))
    price[rng.random(price.shape) < 0.1] = np.nan
    groups = [0.0, 1.0, 2.0, 3.0]
    shelf = csr_array(np.where(rng.random(price.shape) < 0.3, price, 0.0))
    everything = np.where(rng.random(price.shape) < 0.2, np.nan, 1.0)
    return {
        "available": CellTable(everything, by="week", groups=groups),
        "price": CellTable(price, by="week", groups=groups),
        "shelf": CellTable(csr_array(np.nan_to_num(shelf.toarray())), by="week", groups=groups),
    }


TERMS: dict[str, Callable[[], Term]] = {
    "available": efemb.Available,
    "cell-covariate": lambda: CellCovariate("price", log=True),
    "covariate": lambda: Covariate("temperature"),
    "history": lambda: efemb.History("user", kappa=2.0),
    "item-pairs": lambda: efemb.ItemPairs(penalty=2.0, n_neighbors=4),
    "offset": lambda: efemb.Offset("shelf"),
    "row-vectors": lambda: efemb.RowVectors("user", 2),
}
