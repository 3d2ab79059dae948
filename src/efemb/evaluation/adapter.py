"""Adapters that give evaluation a model (ours or third-party) and its data in a common order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.align import in_order
from efemb.data.containers import in_memory
from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.matrices import sparse, stored_cells
from efemb.data.readers.matrix import read_matrix
from efemb.data.vocabulary import Vocabulary, column_labels
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.contexts.base import BoundContext
from efemb.model.families import Family
from efemb.model.support import binarized, check_not_negative, check_support


@dataclass(frozen=True)
class Judged:
    """A model and the data it is evaluated on.

    original : the data with entities in the user's order;  data : in the model's order
    code : (N,) code in the model of each entity of `original`; None if the orders agree
    """

    model: Any
    family: Family
    original: Dataset
    data: Dataset
    code: Ints | None = None

    @classmethod
    def of(cls, model: Any, X: Any) -> Judged:
        """Read X, check it against the family, and bring its entities into the model's order."""
        family = family_of(model)
        if isinstance(X, Corpus) or getattr(_context(model), "reads_text", False):
            raise ParameterError(
                "text does not consist of rows x entities: use efemb.evaluation.held_out_words"
            )
        vocabulary = vocabulary_of(model)
        original = conform(model, as_dataset(X, vocabulary), family)
        return cls(model, family, original, *in_order(original, vocabulary))

    @property
    def by_shares(self) -> bool:
        """Whether entries are scored by the share of their mean: counts or binary data on rows."""
        if not self.family.normalized_score or self.data.n_dims > 1:
            return False
        bound = self.bound(self.data)
        if bound is None and not hasattr(self.model, "log_means"):
            raise InputTypeError(
                f"{_name(self.model)} has no log_means method, which models of counts need"
            )
        return bound is None or bound.shares_rows

    def bound(self, data: Dataset) -> BoundContext | None:
        """The contexts of an embedding on data; None for other models."""
        bind = getattr(self.model, "_bind", None)
        if bind is None:
            return None
        bound: BoundContext = bind(data)[1]
        return bound

    def conditional(self, data: Dataset) -> Floats:
        """The model's conditional means of all cells, in the shape of the data."""
        means = np.asarray(self.model.conditional(data))
        if means.shape != data.shape:
            raise DataError(
                f"{_name(self.model)}.conditional returned shape {means.shape} for data of shape "
                f"{data.shape}"
            )
        return means

    def moments(self, data: Dataset) -> tuple[Floats, Floats | None]:
        """Means of all cells, and their variances if a baseline reports them.

        The variances of an embedding follow from its family.
        """
        if not hasattr(self.model, "moments"):
            return self.conditional(data), None
        mean, variance = self.model.moments(data)
        return mean, variance

    def codes(self, entity: Ints) -> Ints:
        """Codes in the model of entities of `original`."""
        return entity if self.code is None else self.code[entity]


def as_dataset(X: Any, known: Vocabulary | None = None) -> Dataset:
    """X as a Dataset; columns of a frame become labels unless they merely count 0, 1, ..."""
    if isinstance(X, Dataset):
        return X
    X = in_memory(X)
    data = read_matrix(X)
    if hasattr(X, "columns") and column_labels(X, known or ()) is None:
        return data._replace(data.values, entities=None)
    return data


def conform(model: Any, data: Dataset, family: Family) -> Dataset:
    """Check data against the model's family; binarize them if the model does."""
    if getattr(model, "binarize", False):
        check_not_negative(data)
        data = binarized(data)
    # Whether fractions are allowed depends on the model.
    check_support(data, family, allow_real=True, way_out="remove or correct such values")
    return data


def family_of(model: Any) -> Family:
    """The family of a fitted model."""
    if not hasattr(model, "conditional") and not hasattr(model, "log_means"):
        raise InputTypeError(
            f"expected a fitted model with conditional or log_means, not {type(model).__name__}"
        )
    spec = getattr(model, "spec", None)
    sources = ((model, "family_"), (spec, "family"), (model, "family"))
    candidates: list[Any] = [getattr(owner, name, None) for owner, name in sources]
    for family in candidates:  # an option may still be the name of a family
        if hasattr(family, "normalized_score"):
            return cast(Family, family)
    raise ParameterError(f"{_name(model)} has no family_: call fit first")


def vocabulary_of(model: Any) -> Vocabulary | None:
    """The labels that a model was fitted to, or None."""
    for name in ("vocabulary_", "vocabulary"):
        labels = getattr(model, name, None)
        if isinstance(labels, Vocabulary):
            return labels
    columns = getattr(model, "feature_names_in_", None)  # set by scikit-learn for data frames
    return None if columns is None else Vocabulary(columns)


def _context(model: Any) -> Any:
    spec = getattr(model, "spec", None)
    return getattr(model, "context", None) if spec is None else spec.context


def _name(model: Any) -> str:
    return type(model).__name__


def stored_entries(data: Dataset) -> tuple[Any, Ints]:
    """Non-zero entries of scalar data as a csr_array, and the row of each; NaN does not count."""
    matrix = sparse(data)
    return matrix, stored_cells(matrix)[0]


def missing_unless_stored(data: Dataset) -> Floats:
    """Sparse data as a dense array, NaN where nothing is stored."""
    stored, row = stored_entries(data)
    values = np.full(data.shape, np.nan)
    values[row, stored.indices] = stored.data
    return values


def refuse_overlap(overlap: Any) -> None:
    """Held-out entries must not be in X, where they would be used to predict themselves."""
    rows, entities = overlap.nonzero()[:2]
    if len(rows):
        raise DataError(
            f"{len(rows):,} held-out entries are still in X, the first in row {rows[0]}, entity "
            f"{entities[0]}; remove them first, as split(by='entries') does"
        )
