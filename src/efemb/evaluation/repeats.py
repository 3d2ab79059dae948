"""Repeats: separate evaluation of entries that the same customer had bought before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.align import in_order
from efemb.data.dataset import Dataset
from efemb.data.owners import Purchases
from efemb.evaluation.adapter import as_dataset
from efemb.evaluation.predictions import Predictions


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
    owner, purchases = _purchases(data, train, user)
    return purchases.has(owner[predictions.row], predictions.entity)


class AmongItsKind:
    """A model that ranks repeats among repeats, and new items among new ones.

    The share and the rank of an entry are then among the items that the customer has in a training
    row if the entry is one of them, and among the others if it is not. Everything else is
    delegated to the model.

    Parameters
    ----------
    model : fitted model of counts or binary data
    train : Dataset
        The training rows; their entities are those of the model, in any order.
    user : str, default="user"
        Row column that names the customer, in the training rows and in those that are predicted.

    Examples
    --------
    >>> from efemb import Dataset
    >>> from efemb.baselines import Popularity
    >>> from efemb.evaluation import leave_one_out
    >>> train = Dataset([[9, 2, 1, 0], [9, 0, 1, 1]], users=["ann", "bob"])
    >>> test = Dataset([[1, 0, 0, 1]], users=["ann"])
    >>> model = Popularity("poisson").fit(train)
    >>> leave_one_out(model, test).rank.tolist()
    [1.0, 3.0]
    >>> leave_one_out(AmongItsKind(model, train), test).rank.tolist()
    [1.0, 1.0]
    """

    def __init__(self, model: Any, train: Any, user: str = "user") -> None:
        self.model, self.train, self.user = model, train, user

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def log_means(self, data: Dataset, rows: Ints, entities: Ints) -> Iterator[Any]:
        """Log means of all entities given rows without an entity, -inf for the other kind.

        Parameters
        ----------
        data : Dataset
        rows, entities : integer arrays of shape (n,)

        Yields
        ------
        slice, array
            Some of the n cells, and the log means of all entities, (cells, N).
        """
        owner, purchases = _purchases(data, self.train, self.user)
        repeated = purchases.has(owner[rows], entities)
        for cells, logs in self.model.log_means(data, rows, entities):
            other_kind = purchases.of_owners(owner[rows[cells]]) != repeated[cells, None]
            masked: Floats = np.where(other_kind, -np.inf, logs)
            yield cells, masked


def _purchases(data: Dataset, train: Any, user: str) -> tuple[Ints, Purchases]:
    """The index of the owner of each row among those of the training rows, and their purchases."""
    past, _ = in_order(as_dataset(train, data.entities), data.entities)
    purchases = Purchases.of(past, user, "train")
    return purchases.owners(data, "X"), purchases
