"""Tables of states (answers, labels) as indicator vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from efemb.data.array_checks import is_missing_label
from efemb.data.dataset import Dataset
from efemb.errors import DataError, InputTypeError


def indicators(
    table: Any,
    states: Sequence[Any] | None = None,
    entities: Iterable[Any] | None = None,
    **columns: Any,
) -> Dataset:
    """Turn a table of states into observations of D indicators each.

    Parameters
    ----------
    table : array or data frame, rows x entities
        One state per cell: text or whole numbers. None, NaN and "" are missing.
    states : sequence, optional
        All states, in the order of the indicators; by default those of the table, sorted.
    entities : iterable of labels, optional
        By default the columns of a data frame.
    **columns
        Further arguments of `Dataset`, such as ``rows={...}``.

    Returns
    -------
    Dataset
        Of shape (rows, entities, D), for `Nominal(D)`; missing cells are NaN.

    Examples
    --------
    >>> data = indicators([["yes", "no"], ["no", None]])
    >>> data.shape, data.values[0].tolist()
    ((2, 2, 2), [[0.0, 1.0], [1.0, 0.0]])
    """
    if entities is None and hasattr(table, "columns"):
        entities = [str(label) for label in table.columns]
    cells = np.asarray(table, dtype=object)
    if cells.ndim != 2:
        raise InputTypeError(f"a table of states has rows and entities, got shape {cells.shape}")
    missing = np.array([[is_missing_label(cell) for cell in row] for row in cells], dtype=bool)
    missing = missing.reshape(cells.shape)
    present = set(cells[~missing].tolist())
    order = (
        sorted(present, key=lambda state: (str(type(state)), state)) if states is None else states
    )
    code_of = {state: code for code, state in enumerate(order)}
    unknown = sorted(map(repr, present - set(code_of)))
    if unknown:
        raise DataError(f"the table has states that `states` does not list, such as {unknown[0]}")
    if len(code_of) < 2:
        raise DataError(f"a table of states needs at least 2 of them, got {list(code_of)}")
    values = np.full((*cells.shape, len(code_of)), np.nan)
    rows, columns_of = np.nonzero(~missing)
    values[rows, columns_of] = 0.0
    values[rows, columns_of, [code_of[cell] for cell in cells[~missing].tolist()]] = 1.0
    labels = None if entities is None else list(entities)
    return Dataset(values, entities=labels, **columns)
