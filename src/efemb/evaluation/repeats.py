"""Repeats: entries that the same customer had bought before, apart from new ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Bools
from efemb.data.align import in_order
from efemb.data.matrices import sparse
from efemb.errors import DataError
from efemb.evaluation.adapter import as_dataset
from efemb.evaluation.predictions import Predictions
from efemb.model.terms.base import new_labels


def is_repeat(predictions: Predictions, X: Any, train: Any, user: str = "user") -> Bools:
    """Whether the customer of each entry has the entity in a training row.

    Parameters
    ----------
    predictions : Predictions
        Entries of the rows of X.
    X : Dataset
        The rows that were predicted.
    train : Dataset
        The training rows; their entities are those of X, in any order.
    user : str, default="user"
        Row column of both that names the customer.

    Returns
    -------
    boolean array of shape (n,)
        False for customers who are unknown or missing.

    Examples
    --------
    >>> from efemb import Dataset
    >>> train = Dataset([[1, 0], [0, 1]], users=["ann", "bob"])
    >>> test = Dataset([[1, 1], [1, 1]], users=["ann", "eve"])
    >>> entries = Predictions(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.ones(4))
    >>> is_repeat(entries, test, train).tolist()
    [True, False, False, False]
    """
    data = as_dataset(X)
    past, _ = in_order(as_dataset(train, data.entities), data.entities)
    for rows, which in ((data, "X"), (past, "train")):
        if user not in rows.rows:
            raise DataError(
                f"{which} has no row column {user!r}, which tells what a customer bought before: "
                "pass Dataset(values, users=...), or name another column"
            )
    known = new_labels(past.rows[user].tolist())
    place = {label: i for i, label in enumerate(known)}
    owner = np.array([place.get(label, -1) for label in past.rows[user].tolist()], dtype=np.int64)
    matrix = sparse(past)
    lines = np.repeat(owner, np.diff(matrix.indptr))
    stored = lines[lines >= 0] * past.n_entities + matrix.indices[lines >= 0]
    asking = np.array([place.get(label, -1) for label in data.rows[user].tolist()], dtype=np.int64)
    asked = asking[predictions.row]
    cells = asked * past.n_entities + predictions.entity
    return np.asarray((asked >= 0) & np.isin(cells, stored))
