"""Protocols: which entries are predicted, and which data the model may see."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Ints
from efemb.data.align import in_order
from efemb.data.array_checks import generator
from efemb.data.dataset import Dataset
from efemb.errors import DataError, ParameterError, check_integer
from efemb.evaluation.adapter import (
    Judged,
    as_dataset,
    conform,
    missing_unless_stored,
    refuse_overlap,
    stored_entries,
)
from efemb.evaluation.predictions import Expected, Predictions, predict_means, predict_shares


def leave_one_out(model: Any, X: Any, *, progress: bool = False) -> Predictions:
    """Predict every entry from the rest of its row.

    Counts and binary data: each non-zero entry, given the rest of its row. Real data: each
    observed value, given the others; NaN marks missing values, which are neither predicted nor
    used. For an unbiased score, X must consist of rows that were held out from training.

    Parameters
    ----------
    model : fitted estimator, baseline or FittedEmbedding
    X : Dataset, array, sparse matrix or data frame, rows x entities
        Labeled entities may be in another order than the model's.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Predictions
        `n_skipped` entries are alone in their row and have no context.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=400, n_entities=12, n_components=2, seed=0
    ... )
    >>> train, test = trips.data.split(test=0.2, seed=0)
    >>> model = efemb.PoissonEmbedding(2, random_state=0).fit(train)
    >>> predictions = leave_one_out(model, test)
    >>> bool(np.isclose(predictions.normalized_log_likelihood().value, model.score(test)))
    True
    """
    judged = Judged.of(model, X)
    if not judged.by_shares:
        return predict_means(judged, _dense(judged.original), _predict(judged, judged.data))
    stored, row = stored_entries(judged.original)
    alone = (np.diff(stored.indptr) == 1)[row]
    if alone.all():
        raise DataError(
            "no row has two or more non-zero entities, so there is no context to predict from"
        )
    return predict_shares(judged, row, stored.indices, stored.data, alone, progress)


def held_out_entries(model: Any, X: Any, entries: Any, *, progress: bool = False) -> Predictions:
    """Predict entries that were removed from the rows of X, given the rest of those rows.

    Parameters
    ----------
    model : fitted estimator, baseline or FittedEmbedding
    X : rows x entities
        Data without the held-out entries, which are zero in counts and binary data and NaN in real
        data, as in the output of `split(by="entries")`.
    entries : like X, of the same shape
        The held-out entries: non-zero counts, real values that are not NaN, or the stored values
        of a sparse matrix.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Predictions
        `n_skipped` entries belong to rows that are empty without them.
    """
    judged = Judged.of(model, X)
    held = _held_out_data(judged, entries)
    if not judged.by_shares:
        targets = missing_unless_stored(held) if held.is_sparse else held.values
        remaining = _dense(judged.original)
        if judged.family.missing:
            there = ~np.isnan(remaining)
        else:  # counts, which are zero where absent
            targets, there = np.where(targets == 0, np.nan, targets), remaining != 0
        refuse_overlap(~np.isnan(targets) & there)
        return predict_means(judged, targets, _predict(judged, judged.data))
    stored, row = stored_entries(held)
    remaining, _ = stored_entries(judged.original)
    refuse_overlap(stored.multiply(remaining))
    if len(row) == 0:
        raise DataError("entries is empty: there is nothing to predict")
    empty = (np.diff(remaining.indptr) == 0)[row]
    if empty.all():
        raise DataError(
            "the rows of X are empty without the held-out entries: hold out fewer of them"
        )
    return predict_shares(judged, row, stored.indices, stored.data, empty, progress)


def leave_fold_out(
    model: Any, X: Any, *, folds: int = 4, seed: int = 0, progress: bool = False
) -> Predictions:
    """Predict each fold of the entities from the other folds (real data).

    The folds are `default_rng(seed).permutation(N)`, cut into `folds` pieces of (nearly) equal
    size. To predict a fold, its columns are set to NaN, so that they are in no context. Entries
    whose context is empty as a result are predicted by the intercept (or 0) and counted in
    `Predictions.n_empty`; `Predictions.context_sizes()` has the sizes of the reduced contexts. A
    hidden value contributes nothing to a context, just as 0 would: center or difference data
    whose means are far from 0 (raw fluorescence) before the fit, otherwise the score mostly
    measures that distance.

    Parameters
    ----------
    model : fitted estimator, baseline or FittedEmbedding
    X : rows x entities
        Real data; NaN marks missing values.
    folds : int, default=4
        Number of folds, at least 2.
    seed : int, default=0
        Random seed of the folds.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Predictions
    """
    judged = Judged.of(model, X)
    if not judged.family.missing:
        raise ParameterError(
            f"leave_fold_out hides values as missing, which the {judged.family.name()} family "
            "does not support; use leave_one_out or held_out_entries for counts and binary data"
        )
    folds_of_entities = draw_folds(judged.original.n_entities, folds, seed)
    values = _dense(judged.data)
    combined: Expected | None = None
    with progress_bar("predicting folds", len(folds_of_entities), progress) as advance:
        for fold in folds_of_entities:
            hidden = values.copy()
            hidden[:, judged.codes(fold)] = np.nan
            masked = judged.data._replace(hidden)
            expected = _predict(judged, masked)
            combined = expected if combined is None else combined
            for array, new in zip(combined, expected, strict=True):
                if array is not None and new is not None:
                    array[:, fold] = new[:, fold]
            advance(1)
    assert combined is not None  # there are at least two folds
    return predict_means(judged, _dense(judged.original), combined)


def draw_folds(n_entities: int, folds: Any, seed: Any) -> list[Ints]:
    """Entities of each fold, drawn at random."""
    n_folds = check_integer("folds", folds, 2, n_entities)
    return list(np.array_split(generator(seed).permutation(n_entities), n_folds))


def _held_out_data(judged: Judged, entries: Any) -> Dataset:
    """The held-out entries, their entities in the order of the user's X."""
    original = judged.original
    held, _ = in_order(as_dataset(entries, original.entities), original.entities)
    if held.shape != original.shape:
        raise DataError(f"entries has shape {held.shape}, but X has {original.shape}")
    return conform(judged.model, held, judged.family)


def _predict(judged: Judged, data: Dataset) -> Expected:
    """Predictions of the model for data, with columns in the order of the user's X."""
    order = judged.codes(np.arange(data.n_entities))
    mean, variance = judged.moments(data)
    bound = judged.bound(data)
    size = None if bound is None else bound.context_sizes()
    return Expected(
        mean[:, order],
        None if variance is None else variance[:, order],
        None if size is None else size[:, order],
    )


def _dense(data: Dataset) -> Any:
    return data.values.toarray() if data.is_sparse else data.values
