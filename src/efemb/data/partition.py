"""Training, validation and test parts of a `Dataset`: by rows, entries, blocks, time or groups."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from efemb.data.array_checks import generator, is_missing_label, make_csr
from efemb.data.dataset import Dataset, recount
from efemb.data.vocabulary import is_number_label, shorten, sorted_order
from efemb.errors import DataError, InputTypeError, ParameterError, check_known, suggest

By = Literal["rows", "entries", "blocks", "time", "groups"]
WAYS = ("rows", "entries", "blocks", "time", "groups")
N_BLOCKS = 40
_YEAR_FIRST = re.compile(r"\d{4}([-/.]?)\d{2}\1\d{2}(\D|$)")
_DAY_FIRST = re.compile(r"\d{1,2}\D\d{1,2}\D\d{2}")  # or the month


def split(
    data: Dataset,
    test: float = 0.05,
    validation: float = 0.0,
    seed: int = 0,
    by: By = "rows",
    column: str | None = None,
) -> tuple[Dataset, ...]:
    """Split `data`: (train, test) or, if `validation` > 0, (train, validation, test).

    `default_rng(seed).permutation(n)` shuffles the n rows (entries, blocks, groups); the first
    int(test * n) are the test part, the next int(validation * n) the validation part, the rest the
    training part. Each part keeps the original order, and counts of labels are those of the part.

    Parameters
    ----------
    data : Dataset
    test, validation : float or int, default=0.05 and 0.0
        Fractions in [0, 1), or whole numbers of rows (entries, blocks, groups, times), 1 or more.
    seed : int, default=0
        Random seed; `by="time"` has no use for it.
    by : {"rows", "entries", "blocks", "time", "groups"}, default="rows"
        "rows": single rows.
        "entries": every part has all rows. Sparse: the non-zero entries are divided, so a held-out
        entry is absent (zero) from the training part. Dense: the observed entries are divided (as
        whole vectors if D > 1), and entries of the other parts are NaN.
        "blocks": stretches of consecutive rows, 40 in all, for contexts that reach other rows
        (`Lagged`).
        "time": the last rows are the test part, those before them the validation part. With a
        `column`, rows of one value stay together, and whole numbers count its values, which are
        numbers, dates, or text that sorts by time (2017-03-28, but not 28.03.2017).
        "groups": all rows of a group are in the same part; `column` names the groups.
        In the last three, stretches of consecutive rows become `recordings` of the parts, so that
        no context reaches across a gap.
    column : str, optional
        Row column of the groups or times, such as "household" or "week".

    Returns
    -------
    tuple of Dataset

    Examples
    --------
    >>> train, test = split(Dataset(np.eye(10)), test=0.2)
    >>> train.n_rows, test.n_rows
    (8, 2)
    >>> weeks = Dataset(np.eye(6), rows={"week": [1, 1, 2, 2, 3, 3]})
    >>> train, test = split(weeks, test=1, by="time", column="week")
    >>> test.rows["week"].tolist()
    [3, 3]
    """
    check_known("by", by, WAYS)
    if by in ("rows", "entries", "blocks") and column is not None:
        raise ParameterError(f"column={column!r} applies to by='groups' and by='time', not {by!r}")
    if by == "rows":
        pieces = _shuffle(data.n_rows, test, validation, seed, "rows")
        return tuple(data.take_rows(piece) for piece in pieces)
    if by == "entries":
        pieces = _shuffle(len(_observed_entries(data)), test, validation, seed, "entries")
        return tuple(_keep_entries(data, piece) for piece in pieces)
    if by == "time" and column is None:
        codes = np.arange(data.n_rows)
    else:
        codes = _blocks(data) if by == "blocks" else _codes(data, column, by)
    n_codes = int(codes.max()) + 1
    if by == "time":
        pieces = _split_by_time(
            codes, test, validation, "rows" if column is None else f"{column} values"
        )
    else:
        pieces = _shuffle(n_codes, test, validation, seed, by)
    return tuple(_with_recordings(data, np.flatnonzero(np.isin(codes, piece))) for piece in pieces)


def _shuffle(
    total: int, test: float, validation: float, seed: int, unit: str
) -> list[NDArray[Any]]:
    """Numbers of the training, validation (if any) and test part, each in order."""
    n_test, n_validation = _size(test, total, "test"), _size(validation, total, "validation")
    _check_sizes(total, n_test, n_validation, test, validation, unit)
    order = generator(seed).permutation(total)
    bounds = np.cumsum([n_test, n_validation]) if validation else np.array([n_test])
    # np.split gives test (, validation), training; callers expect training first, test last.
    return [np.sort(piece) for piece in reversed(np.split(order, bounds))]


def _check_sizes(
    total: int, n_test: int, n_validation: int, test: float, validation: float, unit: str
) -> None:
    if n_test == 0 or n_test + n_validation >= total or (validation and not n_validation):
        raise DataError(
            f"test={test} and validation={validation} of {total:,} {unit} give "
            f"{total - n_test - n_validation:,} for training, {n_validation:,} for validation and "
            f"{n_test:,} for test; every part needs at least one, "
            f"and a whole number such as test=1 counts {unit}"
        )


def _split_by_time(
    codes: NDArray[Any], test: float, validation: float, unit: str
) -> list[NDArray[Any]]:
    """Split by time: fractions refer to the rows, whole numbers to the times."""
    total = int(codes.max()) + 1
    rows_from_end = np.cumsum(np.bincount(codes, minlength=total)[::-1])

    def count_times(share: float, skipped: int, name: str) -> int:
        """Number of times before the last `skipped` ones with at least a share of the rows."""
        count = _size(share, total, name)
        if isinstance(share, int | np.integer):
            return count
        before = rows_from_end[skipped - 1] if skipped else 0
        n_rows = before + int(share * len(codes))
        return int(np.searchsorted(rows_from_end, n_rows)) + 1 - skipped if n_rows > before else 0

    n_test = count_times(test, 0, "test")
    n_validation = count_times(validation, min(n_test, total), "validation") if validation else 0
    _check_sizes(total, n_test, n_validation, test, validation, unit)
    bounds = [total - n_test - n_validation, total - n_test] if validation else [total - n_test]
    return np.split(np.arange(total), bounds)


def _codes(data: Dataset, column: str | None, by: str) -> NDArray[Any]:
    """Numbers of the values of a row column, in sorted order."""
    if column is None:
        raise ParameterError(
            f"by={by!r} needs column=, the name of a row column: {', '.join(data.rows) or 'none'} "
            "in these data"
        )
    if column not in data.rows:
        raise DataError(f"the data have no row column {column!r}; {suggest(column, data.rows)}")
    values = data.rows[column]
    missing = [i for i, value in enumerate(values.tolist()) if is_missing_label(value)]
    if missing:
        raise DataError(
            f"row column {column!r} has no value in {len(missing):,} rows (first in row "
            f"{missing[0]}), so they belong to no part: drop them with take_rows"
        )
    try:
        different, code = np.unique(values, return_inverse=True)
        if all(isinstance(value, str) for value in different.tolist()):
            if by == "time":
                _check_text_of_times(different.tolist(), column)
            # Weeks from a CSV file are text: "9" comes before "10".
            rank = np.argsort(sorted_order(different.tolist()))
            return np.asarray(rank[code.ravel()])
        return np.asarray(code.ravel())
    except TypeError as error:
        raise DataError(f"values of row column {column!r} cannot be ordered: {error}") from error


def _check_text_of_times(labels: list[str], column: str) -> None:
    """Reject text whose alphabetical order need not be that of time, such as 04.01.2011."""
    if all(map(is_number_label, labels)) or all(map(_YEAR_FIRST.match, labels)):
        return
    shapes = {re.sub(r"\d", "0", label) for label in labels}
    if len(shapes) > 1 or _DAY_FIRST.match(labels[0]):
        raise DataError(
            f"row column {column!r} has {shorten(labels[0])}: such text does not sort by time; "
            "write dates as 2017-03-28 (pandas.to_datetime reads other forms) or number the times"
        )


def _blocks(data: Dataset) -> NDArray[Any]:
    """Numbers of stretches of consecutive rows, none of which crosses a recording."""
    length = max(1, -(-data.n_rows // N_BLOCKS))
    if data.recordings is None:
        return np.arange(data.n_rows) // length
    starts = np.r_[True, data.recordings[1:] != data.recordings[:-1]]
    first = np.maximum.accumulate(np.where(starts, np.arange(data.n_rows), 0))
    begins = (np.arange(data.n_rows) - first) % length == 0
    return np.cumsum(begins) - 1


def _with_recordings(data: Dataset, rows: NDArray[Any]) -> Dataset:
    """Some rows; if there are gaps, consecutive rows form recordings."""
    gap = np.diff(rows) != 1
    if data.recordings is not None:
        gap |= np.diff(data.recordings[rows]) != 0
    if not gap.any() and data.recordings is None:
        return data.take_rows(rows)
    run = np.concatenate([[0], np.cumsum(gap)])
    marked = data._replace(data.values, recordings=_spread(run, rows, data.n_rows))
    return marked.take_rows(rows)


def _spread(run: NDArray[Any], rows: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Numbers of the selected rows among all; others are recordings of their own."""
    recordings = len(run) + np.arange(n_rows)
    recordings[rows] = run
    return recordings


def _size(share: float, total: int, name: str) -> int:
    if isinstance(share, bool) or not isinstance(share, int | float | np.number):
        raise InputTypeError(f"{name}={share!r} must be a number")
    if isinstance(share, int | np.integer) and share >= 1:
        return int(share)
    if not 0 <= share < 1:
        raise ParameterError(f"{name}={share!r} must be a fraction in [0, 1) or a whole number")
    return int(share * total)


def _observed_entries(data: Dataset) -> NDArray[Any]:
    """Flat indices, row by row, of the entries that can be held out."""
    if data.is_sparse:
        return np.arange(data.values.nnz)
    present = ~np.isnan(data.values)
    return np.flatnonzero(present if present.ndim == 2 else present.all(axis=2))


def _keep_entries(data: Dataset, chosen: NDArray[Any]) -> Dataset:
    """`data` with only the chosen ones of its observed entries."""
    if data.is_sparse:
        matrix = data.values
        before = np.searchsorted(chosen, matrix.indptr)
        arrays = (matrix.data[chosen], matrix.indices[chosen], before)
        entries: Any = make_csr(arrays, shape=matrix.shape)
        return data._replace(entries, entities=recount(data.entities, entries))
    values = np.full_like(data.values, np.nan)
    rows, columns = np.divmod(_observed_entries(data)[chosen], data.n_entities)
    values[rows, columns] = data.values[rows, columns]
    return data._replace(values, entities=recount(data.entities, values))


def cut_documents(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Boundaries of stretches of about equal length, none across the start of a document."""
    n_tokens = int(starts[-1])
    # 200 stretches make any fraction accurate enough, but short ones lack context. Short texts
    # have 40 (at least 20, depending on where documents end, so that the default of 5% is one of
    # them), and none is a single token.
    length = min(1000, max(n_tokens // 200, min(20, n_tokens // 40), 2))
    pieces = [
        np.linspace(start, end, max(1, (end - start) // length), endpoint=False).astype(np.int64)
        for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        if end > start
    ]
    return np.concatenate([*pieces, starts[-1:]])


def join_neighbors(
    chosen: NDArray[np.int64], cuts: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of the chosen stretches; adjacent ones in a document are merged."""
    begin, end = cuts[chosen], cuts[chosen + 1]
    apart = (begin[1:] != end[:-1]) | np.isin(begin[1:], starts)
    return begin[np.r_[True, apart]], end[np.r_[apart, True]]
