"""How entities move in time: which drift most, and when one changes, with errors.

Both compare scores of the rows at the mean embedding of all slices, as `group_differences` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Bools, Floats, Ints
from efemb.errors import DataError, ParameterError
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.group_models import group_offsets, shared_model
from efemb.inference.group_differences import compare_groups, rank_differences
from efemb.inference.uncertainty import Laplace, laplace
from efemb.table import Table

LEAST_SHARE = 0.02  # of the rows on either side of a change


def drift(
    model: Any, data: Any, n: int = 20, *, min_count: float = 1, progress: bool = False
) -> Table:
    """Entities whose embedding moved most between the earlier and the later half of the rows.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        With `structure=Dynamic(column)`, on rows; neither text nor categorical.
    data : Dataset
        The rows of the fit, with their row column.
    n : int, default=20
        Number of items.
    min_count : float, default=1
        Only items that occur in at least this many rows of either half.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Table
        label, count (rows of the later half with the item), distance (between the embeddings of the
        first and the last slice), ratio (distance between the halves over its standard error if
        nothing moved), p_value and q_value; the smallest p-value first.
    """
    fitted, rows, codes = _rows_by_slice(model, data)
    middle = np.median(codes)
    late = codes >= max(middle, 1)
    if late.all() or not late.any():
        raise ParameterError("the data have rows of one half of the time only")
    parts = [rows.take_rows(np.flatnonzero(half)) for half in (~late, late)]
    mean = shared_model(fitted)
    errors = [laplace(mean, part, sandwich=True) for part in parts]
    precision = fitted.spec.structure.offset_precision(fitted.spec.prior_rho)
    results = compare_groups(errors, fitted, 1.0 if precision is None else precision, progress)
    offsets = group_offsets(fitted)
    results[0] = np.linalg.norm(offsets[-1] - offsets[0], axis=1)
    table = rank_differences(fitted, ["late"], parts[1:], results[:, 1:], n, min_count)
    return Table({name: table[name] for name in table.columns if name != "group"})


def change_points(
    model: Any,
    item: Any,
    data: Any,
    n: int = 3,
    *,
    n_permutations: int = 199,
    seed: int = 0,
    progress: bool = False,
) -> Table:
    """When the embedding of an entity changed, against times that are shuffled among the rows.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        With `structure=Dynamic(column)`, on rows; neither text nor categorical.
    item : label
    data : Dataset
        The rows of the fit, with their row column.
    n : int, default=3
        Number of slices.
    n_permutations : int, default=199
        How often the times are shuffled.
    seed : int, default=0
        Of the shuffles.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Table
        at (the slice that begins the change), rows_before, rows_after, step (length of the step of
        the embedding into this slice), statistic (difference of the scores before and after) and
        p_value (share of shuffles whose largest statistic is as large); the largest first.
    """
    fitted, rows, codes = _rows_by_slice(model, data)
    if n_permutations < 1:
        raise ParameterError(f"n_permutations must be at least 1, got {n_permutations!r}")
    errors = laplace(shared_model(fitted), rows)
    entity = fitted.entities.index_of(item)
    scores = _row_scores(errors, entity, fitted.n_components)
    if len(scores) != len(codes):
        raise ParameterError(f"{item!r} is missing in some rows: change_points takes complete rows")
    sizes = np.bincount(codes, minlength=len(fitted.spec.structure.labels))
    before = np.cumsum(sizes)[:-1]
    least = LEAST_SHARE * len(codes)
    possible = (before >= least) & (before <= len(codes) - least)
    if not possible.any():
        raise DataError("too few rows before and after any slice to look for a change")
    whiten = _whitener(scores)
    whitened = scores @ whiten
    observed = _statistics(whitened[np.argsort(codes, kind="stable")], before, possible)
    rng, largest = np.random.default_rng(seed), np.empty(n_permutations)
    with progress_bar("shuffles", n_permutations, progress) as advance:
        for i in range(n_permutations):
            shuffled = whitened[rng.permutation(len(whitened))]
            largest[i] = _statistics(shuffled, before, possible).max()
            advance(1)
    offsets = group_offsets(fitted)[:, entity]
    step = np.linalg.norm(np.diff(offsets, axis=0), axis=1)
    order = np.argsort(-observed, kind="stable")[:n]
    p_value = (1 + (largest[:, None] >= observed[order]).sum(axis=0)) / (n_permutations + 1)
    labels = np.array(fitted.spec.structure.labels, dtype=object)
    return Table(
        {
            "at": labels[1:][order],
            "rows_before": before[order],
            "rows_after": len(codes) - before[order],
            "step": step[order],
            "statistic": observed[order],
            "p_value": p_value,
        }
    )


def _rows_by_slice(model: Any, data: Any) -> tuple[FittedEmbedding, Any, Ints]:
    """The rows that have a time, and the slice of each."""
    fitted: FittedEmbedding = model.fitted()
    structure = fitted.spec.structure
    if not structure.in_order:
        raise ParameterError(
            f"structure={structure!r} has no slices of time: fit with structure=Dynamic(column)"
        )
    rows = model._bind(data)[1].whole_data
    codes = structure.codes(rows)
    known = np.flatnonzero(codes >= 0)
    return fitted, rows.take_rows(known), codes[known]


def _row_scores(errors: Laplace, entity: int, k: int) -> Floats:
    """Scores of one entity, row by row, (rows, K); intercept and common part taken out."""
    scores, information = errors.row_scores(entity)
    nuisance = information[k:, k:]
    if len(nuisance):
        pull = np.linalg.lstsq(nuisance, information[k:, :k], rcond=None)[0]
        scores = scores[:, :k] - scores[:, k:] @ pull
    return np.asarray(scores - scores.mean(axis=0))


def _whitener(scores: Floats) -> Floats:
    """A matrix that gives the scores unit covariance, where they vary at all."""
    values, vectors = np.linalg.eigh(scores.T @ scores / len(scores))
    known = values > 1e-10 * max(values.max(), 1e-300)
    return np.asarray(vectors[:, known] / np.sqrt(values[known]))


def _statistics(whitened: Floats, before: Ints, possible: Bools) -> Floats:
    """Squared difference of the sums before and after each slice, over its variance by chance."""
    sums = np.cumsum(whitened, axis=0)[before[possible] - 1]
    left, n = before[possible].astype(np.float64), len(whitened)
    values = np.zeros(len(before))
    values[possible] = (sums**2).sum(axis=1) * n / (left * (n - left))
    return values
