"""Training, validation and test parts of a `Dataset`, by rows or by single entries."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb.data.array_checks import generator, make_csr
from efemb.data.dataset import Dataset, recount
from efemb.errors import DataError, InputTypeError, ParameterError, suggest


def split(
    data: Dataset,
    test: float = 0.05,
    validation: float = 0.0,
    seed: int = 0,
    by: Literal["rows", "entries"] = "rows",
) -> tuple[Dataset, ...]:
    """Split `data` at random: (train, test) or, if `validation` > 0, (train, validation, test).

    `default_rng(seed).permutation(n)` shuffles the n rows (or entries, row by row); the first
    int(test * n) are the test part, the next int(validation * n) the validation part, the rest the
    training part. Each part keeps the original order, and counts of labels are those of the part.

    Parameters
    ----------
    data : Dataset
    test, validation : float or int
        Fractions in [0, 1), or whole numbers of rows (or entries), 1 or more.
    seed : int
    by : {"rows", "entries"}
        "entries": every part has all rows. Sparse: the non-zero entries are divided, so a held-out
        entry is absent (zero) from the training part. Dense: the observed entries are divided (as
        whole vectors if D > 1), and entries of the other parts are NaN.

    Returns
    -------
    tuple of Dataset

    Examples
    --------
    >>> train, test = split(Dataset(np.eye(10)), test=0.2)
    >>> train.n_rows, test.n_rows
    (8, 2)
    """
    if by not in ("rows", "entries"):
        raise ParameterError(f"by={by!r} is unknown; {suggest(by, ['rows', 'entries'])}")
    total = data.n_rows if by == "rows" else len(_observed(data))
    n_test, n_validation = _size(test, total, "test"), _size(validation, total, "validation")
    if n_test == 0 or n_test + n_validation >= total or (validation and not n_validation):
        raise DataError(
            f"test={test} and validation={validation} of {total:,} {by} give "
            f"{total - n_test - n_validation:,} for training, {n_validation:,} for validation and "
            f"{n_test:,} for test; every part needs at least one"
        )
    order = generator(seed).permutation(total)
    bounds = np.cumsum([n_test, n_validation]) if validation else np.array([n_test])
    pieces = [np.sort(piece) for piece in np.split(order, bounds)]
    # np.split gives test (, validation), training; callers expect training first, test last.
    if by == "rows":
        return tuple(data.take_rows(piece) for piece in reversed(pieces))
    return tuple(_only_entries(data, piece) for piece in reversed(pieces))


def _size(share: float, total: int, name: str) -> int:
    if isinstance(share, bool) or not isinstance(share, int | float | np.number):
        raise InputTypeError(f"{name}={share!r} must be a number")
    if isinstance(share, int | np.integer) and share >= 1:
        return int(share)
    if not 0 <= share < 1:
        raise ParameterError(f"{name}={share!r} must be a fraction in [0, 1) or a whole number")
    return int(share * total)


def _observed(data: Dataset) -> NDArray[Any]:
    """Flat indices, row by row, of the entries that can be held out."""
    if data.is_sparse:
        return np.arange(data.values.nnz)
    present = ~np.isnan(data.values)
    return np.flatnonzero(present if present.ndim == 2 else present.all(axis=2))


def _only_entries(data: Dataset, chosen: NDArray[Any]) -> Dataset:
    """`data` with only the chosen ones of its observed entries."""
    if data.is_sparse:
        matrix = data.values
        before = np.searchsorted(chosen, matrix.indptr)
        parts = (matrix.data[chosen], matrix.indices[chosen], before)
        entries: Any = make_csr(parts, shape=matrix.shape)
        return data._replace(entries, entities=recount(data.entities, entries))
    values = np.full_like(data.values, np.nan)
    rows, columns = np.divmod(_observed(data)[chosen], data.n_entities)
    values[rows, columns] = data.values[rows, columns]
    return data._replace(values, entities=recount(data.entities, values))
