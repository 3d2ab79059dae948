"""Checks whether data are in the support of a family, and conversion to binary data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Bools, Floats
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.families.base import Family, Interval

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

LARGEST = 1e12  # squares of gradients must stay finite in single precision


def check_support(
    data: Dataset,
    family: Family,
    *,
    allow_real: bool,
    way_out: str,
    as_context: bool = False,
    missing: bool = False,
) -> None:
    """Raise `DataError` naming the first bad value if the family cannot have produced the data.

    With `as_context` the data only serve as context, and values may be larger than in the support
    (two units of an item in a model of presence). Missing values are allowed if the family or
    the argument `missing` allows them.
    """
    if family.mixes:
        for entities, part in family.parts(data):
            selected = data.take_entities(entities)
            rules: Any = {"allow_real": allow_real, "way_out": way_out, "as_context": as_context}
            check_support(selected, part, **rules, missing=True)
        return
    support = family.support
    if allow_real:
        support = Interval(low=support.low, high=np.inf if as_context else support.high)
    stored = data.values.data if data.is_sparse else data.values
    if _clearly_within(stored, support):
        return
    absent = np.isnan(stored)
    if absent.any() and not (family.missing or missing):
        remedy = "drop those rows, or store the counts sparsely: absent entries are zeros"
        _refuse(data, absent, f"{family.name()} needs observed values", remedy)
    bad = support.broken_by(stored)
    if bad.any():
        first = stored[bad].ravel()[0]
        if first < support.low:
            check_not_negative(data, f"{family.name()} needs {support}")
        hint = way_out if np.isfinite(first) else "remove infinite values"
        _refuse(data, bad, f"{family.name()} needs {support}", hint)
    huge = np.abs(stored) > LARGEST
    if huge.any():
        _refuse(data, huge, f"values must not exceed {LARGEST:g}", "scale the data")


def _clearly_within(stored: Floats, support: Interval) -> bool:
    """Whether the extremes already show that all values are valid, as in most data."""
    if support.integer or stored.size == 0:
        return False
    low, high = float(stored.min()), float(stored.max())  # NaN where anything is missing
    return support.low <= low and high <= support.high and max(-low, high) <= LARGEST


def check_not_negative(data: Dataset, rule: str = "values must be >= 0") -> None:
    """Reject values below 0."""
    stored = data.values.data if data.is_sparse else data.values
    bad = stored < 0
    if bad.any():
        _refuse(data, bad, f"Negative values in data: {rule}", "remove or correct such values")


def _refuse(data: Dataset, bad: Bools, rule: str, way_out: str) -> None:
    if data.is_sparse:
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(data.values.indptr, place, side="right")) - 1
        entity, value = int(data.values.indices[place]), data.values.data[place]
    else:
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        row, entity, value = index[0], index[1], data.values[index]
    name = f"entity {entity}"
    if data.entities is not None:
        name = f"column {shorten(data.entities.labels[entity])}"
    n_others = int(bad.sum()) - 1
    further = f", and {n_others:,} more" if n_others else ""
    shown = "NaN" if np.isnan(value) else f"{value:g}"
    raise DataError(f"{rule}; {name} has {shown} (first in row {row}{further}); {way_out}")


def check_sample_weight(weight: Any, n_rows: int) -> Floats | None:
    """Check the weights of rows: one finite number >= 0 per row."""
    if weight is None:
        return None
    try:
        weights = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError("sample_weight must hold numbers") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have one number for each of {n_rows} rows")
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.sum() == 0:
        raise DataError("sample_weight must be finite, >= 0 and not all zero")
    return weights


def refuse_weights(weight: Any, positions: Any = None) -> None:
    """Text models have neither rows to weight nor entities with a position."""
    if positions is not None:
        raise ParameterError("text models do not take positions: words have none")
    if weight is not None:
        raise ParameterError("text models do not take sample_weight: repeat documents instead")


def binarized(data: Dataset) -> Dataset:
    """The data with every nonzero value replaced by 1."""
    return data._replace(_to_binary(data.values))


def _to_binary(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return np.where(np.isnan(values), np.nan, (values != 0).astype(values.dtype))
    ones = values.copy()
    ones.data = np.where(np.isnan(ones.data), np.nan, 1).astype(ones.dtype)
    return ones
