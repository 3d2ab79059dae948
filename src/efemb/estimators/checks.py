"""Checks of data against a model, before the fit starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Bools, Floats
from efemb.data.dataset import Dataset
from efemb.data.matrices import far_from_zero
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec

MOST_COMPONENTS = 65_536
ROUNDING = 1e-5  # relative to the longest vector: what remains if a solver stops short of 0


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[dict[str, Any]]:
    """Restore the state of an estimator, which this yields, if a fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield before
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_components(n_components: Any) -> int:
    """K as an integer between 1 and the limit."""
    return check_integer("n_components", n_components, 1, MOST_COMPONENTS)


def check_same_entities(labels: Vocabulary | None, known: Vocabulary | None) -> None:
    """A fit that continues from vectors needs the same entities in the same order."""
    if labels is None or known is None or labels == known:
        return
    codes = [known.index_of(label) if label in known else -1 for label in labels]
    if codes != list(range(len(known))):  # a number and its text are one label
        raise DataError(
            "warm_start continues from the vectors of the last fit, but the data have other "
            "entities or another order: reorder them with efemb.data.aligned(Dataset(X), "
            "model.vocabulary_), add new ones with partial_fit, or pass warm_start=False"
        )


def check_shape(data: Dataset) -> None:
    """At least two rows and two entities."""
    if data.n_rows < 2:
        raise DataError(f"a model needs at least 2 rows, got n_samples={data.n_rows}")
    if data.n_entities < 2:
        raise DataError(
            f"a context needs at least 2 entities, got n_features={data.n_entities} (1 feature(s))"
        )


def never_observed(data: Dataset) -> Bools:
    """Mask of the entities without any observed value."""
    if data.is_sparse:
        return np.zeros(data.n_entities, dtype=bool)
    flat = data.values.reshape(data.n_rows, data.n_entities, -1)
    return np.asarray(np.isnan(np.fmax.reduce(flat, axis=0)).any(axis=1))


def check_variation(data: Dataset, report: dict[str, Any], *, complete: bool = True) -> None:
    """Report entities that never vary, which are predicted by their mean; raise if none varies.

    If the data must be `complete`, every entity needs an observed value.
    """
    if data.is_sparse:
        return
    flat = data.values.reshape(data.n_rows, data.n_entities, -1)
    low, high = _extremes(flat)
    constant = np.flatnonzero((low == high).all(axis=1))
    if len(constant) == data.n_entities:
        raise DataError("every entity is constant over the rows: there is nothing to predict")
    report["constant_entities"] = constant.tolist()
    never = np.flatnonzero(np.isnan(low).any(axis=1))
    if len(never) and complete:
        first = never[0] if data.entities is None else shorten(data.entities[never[0]])
        raise DataError(
            f"columns without an observed value: {len(never):,} (first: {first}); drop such "
            "columns, for instance with Dataset.take_entities"
        )


def warn_uncentered(data: Dataset, *, may_center: bool) -> None:
    """Warn that missing values of columns that are far from 0 bias the predictions."""
    if data.is_sparse or data.n_dims > 1:
        return
    incomplete = np.flatnonzero(np.isnan(data.values).any(axis=0))
    biased = incomplete[far_from_zero(data.values[:, incomplete])]
    if len(biased):
        first = biased[0] if data.entities is None else shorten(data.entities[biased[0]])
        center = "pass center=True, or " if may_center else ""
        warnings.warn(
            "a missing value counts as 0 in the contexts of others, which biases predictions "
            f"where columns are far from 0 on average, as {len(biased):,} of the "
            f"{len(incomplete):,} columns with missing values are (first: {first}); "
            f"{center}subtract the mean of each column first",
            UserWarning,
            stacklevel=4,  # the line that calls fit
        )


def zero_constant_vectors(
    parameters: Parameters, spec: Spec, n_entities: int, report: dict[str, Any]
) -> None:
    """Set the vectors of constant entities to exactly zero; rounding errors would point somewhere.

    Under a Gaussian the intercept alone is optimal, wherever early stopping left the vectors.
    Positive vectors cannot be 0 and shared ones belong to several entities: both are unchanged.
    """
    constant = np.array(report.get("constant_entities", ()), dtype=np.int64)
    if not len(constant) or spec.positive_rho or not spec.structure.own_rows[0]:
        return
    rho = parameters.rho
    sizes = np.abs(rho).reshape(len(rho), -1).max(axis=1)
    alone = spec.intercept and not spec.structure.tied
    solved = alone and spec.family.quadratic and spec.link.is_identity
    negligible = constant if solved else constant[sizes[constant] < ROUNDING * sizes.max()]
    rho[negligible] = 0.0
    if spec.structure.tied:
        parameters.alpha[negligible] = 0.0  # equal to rho, but perhaps a copy


def _extremes(flat: Floats) -> tuple[Floats, Floats]:
    """Minimum and maximum of each column, NaN if nothing is observed."""
    return np.fmin.reduce(flat, axis=0), np.fmax.reduce(flat, axis=0)


def drop_empty_rows(
    data: Dataset, weight: Floats | None, held: Dataset | None, report: dict[str, Any]
) -> tuple[Dataset, Floats | None, Dataset | None]:
    """Drop rows without any non-zero entity, which have no context, and count them in the report.

    Validation entries of the same rows are dropped with them.
    """
    filled = data.filled_rows()
    report["empty_rows_dropped"] = int((~filled).sum())
    if filled.all():
        return data, weight, held
    if not filled.any():
        raise DataError("every row is empty: there is nothing to learn from")
    if held is not None and held.shape == data.shape and not _share_entries(data, held):
        held = held.take_rows(filled)
    filled_data = data.take_rows(filled)
    # Empty rows contain no entity, so that the known counts remain correct.
    filled_data = filled_data._replace(filled_data.values, entities=data.entities)
    return filled_data, None if weight is None else weight[filled], held


def _share_entries(data: Dataset, held: Dataset) -> bool:
    """Whether both have a value in the same cell, so that they must be different rows."""
    entries, held_entries = (
        csr_array(dataset.values if dataset.is_sparse else _flatten(dataset)).astype(bool)
        for dataset in (data, held)
    )
    return bool(entries.multiply(held_entries).nnz)


def _flatten(data: Dataset) -> Floats:
    """Values as a matrix, 0 where missing."""
    return np.asarray(np.nan_to_num(data.values.reshape(data.n_rows, -1)))


def check_row_contexts(data: Dataset, report: dict[str, Any]) -> None:
    """Raise unless a row has two entities; report entities that never occur."""
    if data.is_sparse:
        sizes = np.diff(data.values.indptr)
        occurs = np.bincount(data.values.indices, minlength=data.n_entities) > 0
    else:
        present = (np.nan_to_num(data.values).reshape(data.n_rows, data.n_entities, -1) != 0).any(2)
        sizes, occurs = present.sum(axis=1), present.any(axis=0)
    if sizes.max() < 2:
        raise DataError(
            "every row contains only one entity, so no observation has a context; "
            "group the data into larger rows (trips, users, sessions)"
        )
    report["unused_entities"] = np.flatnonzero(~occurs).tolist()


def generator(random_state: Any, passes: int = 0) -> np.random.Generator:
    """A Generator from None, an int, a RandomState or a Generator.

    An int gives a different one after each of the `passes`, which would otherwise draw equal zeros.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ParameterError(f"random_state must be >= 0, got {random_state}")
        return np.random.default_rng([int(random_state), passes] if passes else int(random_state))
    raise InputTypeError(
        f"random_state must be None, an int, a RandomState or a Generator, got {random_state!r}"
    )
