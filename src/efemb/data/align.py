"""Rearrange data to the entities of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._typing import Floats, Ints
from efemb.data.array_checks import make_csr, transposed_hint
from efemb.data.containers import in_memory
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary, column_labels, shorten
from efemb.errors import DataError

_WAY = (
    "unknown='skip' (score, evaluate, compare, recommend) ignores unknown entities, and "
    "efemb.data.aligned(data, vocabulary) rearranges a Dataset to the model's vocabulary"
)


def aligned(data: Dataset, vocabulary: Vocabulary, absent: float | None = None) -> Dataset:
    """The data over exactly the entities of `vocabulary`, in its order.

    Unknown entities are dropped and counted in ``report["unknown_entities"]``. Entities that the
    data lack become zeros in sparse data, which then lose their positions; in dense data they
    become `absent`, or are an error if that is None.

    Parameters
    ----------
    data : Dataset
        Data with labels.
    vocabulary : Vocabulary
        The entities of a model, such as `model.vocabulary_`.
    absent : float, optional
        Value in dense data of entities that the data lack: 0 for counts, NaN for missing values.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> data = Dataset(csr_array([[1.0, 2.0]]), entities=["milk", "tea"])
    >>> aligned(data, Vocabulary(["beer", "milk"])).values.toarray().tolist()
    [[0.0, 1.0]]
    """
    labels = data.entities
    if labels is None:
        raise DataError("data without labels cannot be aligned with a vocabulary")
    code = np.array([vocabulary.index_of(label) if label in vocabulary else -1 for label in labels])
    columns = np.flatnonzero(code >= 0)
    if not len(columns):
        raise DataError(
            f"none of the {len(labels):,} entities of the data is one of the model's "
            f"{len(vocabulary):,}"
        )
    report = {**data.report, "unknown_entities": len(labels) - len(columns)}
    if not data.is_sparse and (absent is None or len(columns) == len(vocabulary)):
        ordered, _ = in_order(data.take_entities(columns), vocabulary)
        return ordered._replace(ordered.values, report=report)
    if absent is not None and not data.is_sparse:
        data, code = data.take_entities(columns), code[columns]
        filled = _move(data, code, len(vocabulary), absent)
        moved = data._place_entities(filled, vocabulary, code)
        return moved._replace(moved.values, report=report)
    moved = data._place_entities(_move(data, code, len(vocabulary)), vocabulary, code)
    return moved._replace(moved.values, report=report)


def label_columns(X: Any, known: Vocabulary | None) -> Dataset:
    """X as a Dataset; columns named 0, 1, ... have labels only if the model knows them."""
    if isinstance(X, Dataset):
        return X
    X = in_memory(X)
    return Dataset(X, entities=column_labels(X, known or ()))


def skip_unknown(X: Any, vocabulary: Vocabulary | None, absent: float) -> Any:
    """X as a Dataset over the entities of a vocabulary; X itself if either has no labels.

    absent : value of entities that dense data lack
    """
    X = in_memory(X)  # a stream can be read only once
    data = label_columns(X, vocabulary)
    if vocabulary is None or data.entities is None or data.entities == vocabulary:
        return X
    return aligned(data, vocabulary, absent)


def _move(data: Dataset, index: Ints, size: int, absent: float = 0.0) -> Any:
    """The values with column n moved to index[n], or dropped if that is -1 (sparse data only)."""
    if not data.is_sparse:
        shape = (data.n_rows, size, *data.shape[2:])
        values: Floats = np.full(shape, absent, dtype=data.values.dtype)
        values[:, index] = data.values
        return values
    column = index[data.values.indices]
    row = np.repeat(np.arange(data.n_rows), np.diff(data.values.indptr))
    is_kept = column >= 0
    cells = (row[is_kept], column[is_kept])
    matrix = make_csr((data.values.data[is_kept], cells), shape=(data.n_rows, size))
    matrix.sort_indices()
    return matrix


def check_entities(data: Dataset, known: Vocabulary | None, n_known: int) -> None:
    """Raise an error unless the data have the known entities in the same order."""
    if data.n_entities != n_known:
        labeled = known is not None and data.entities is not None
        way = f"; {_WAY}" if labeled else transposed_hint(n_known, data.n_rows)
        raise DataError(
            f"the data have {data.n_entities:,} entities, the model has {n_known:,}{way}"
        )
    check_order(data, known)


def check_order(data: Dataset, known: Vocabulary | None) -> None:
    """Raise an error if labeled data have other entities, or the same in another order."""
    labels = data.entities
    if known is None or labels is None or labels == known:
        return
    for column, (own, label) in enumerate(zip(labels, known, strict=True)):
        if own not in known or known.index_of(own) != column:
            raise DataError(
                f"the entities of the data are not those of the model in the same order: column "
                f"{column} is {shorten(own)}, the model has {shorten(label)} there; {_WAY}"
            )


def in_order(data: Dataset, known: Vocabulary | None) -> tuple[Dataset, Ints | None]:
    """The data with their entities in the order of `known`, and the new code of each entity."""
    labels = data.entities
    if known is None or labels is None or labels == known:
        return data, None
    missing = [label for label in known if label not in labels]
    unknown = [label for label in labels if label not in known]
    if missing or unknown:
        lacks = f"lack {shorten(missing[0])}" if missing else f"have {shorten(unknown[0])}"
        raise DataError(
            f"the entities of the data are not those of the model: the data {lacks} "
            f"({len(missing):,} of the model's {len(known):,} are missing, {len(unknown):,} are "
            "unknown to it); read both with the same labels, then split, or pass unknown='skip' to "
            "ignore unknown ones"
        )
    order = np.array([labels.index_of(label) for label in known], dtype=np.int64)
    sorted_ = data.take_entities(order)
    # A number and its text are the same label, so the labels of the model are kept.
    return sorted_._replace(sorted_.values, entities=known), np.argsort(order)


def with_new(data: Dataset, known: Vocabulary | None, n_known: int, *, absent: float) -> Dataset:
    """The data with known entities in their order, then new ones in the order of the data.

    Parameters
    ----------
    data : Dataset
    known : Vocabulary, or None: the first `n_known` columns are the known entities
    absent : value of known entities that the data lack (dense data)

    Examples
    --------
    >>> data = Dataset([[1, 2, 3]], entities=["new", "b", "a"])
    >>> extended = with_new(data, Vocabulary(["a", "b", "c"]), 3, absent=0.0)
    >>> extended.values.tolist(), extended.entities.labels.tolist()
    ([[3.0, 2.0, 0.0, 1.0]], ['a', 'b', 'c', 'new'])
    """
    if known is None:
        if data.n_entities < n_known:
            raise DataError(
                f"the data have {data.n_entities} columns, the model {n_known} entities"
            )
        return data
    if data.entities is None:
        raise DataError("the model has labels, so data with new entities need labels")
    index, labels = _places(data.entities, known)
    if labels == data.entities:
        return data
    placed = data._place_entities(_move(data, index, len(labels), absent), labels, index)
    return placed._replace(placed.values, positions=None)


def places(data: Dataset, known: Vocabulary | None) -> Ints:
    """Column of each entity of the data among the aligned ones."""
    if known is None or data.entities is None:
        return np.arange(data.n_entities)
    return _places(data.entities, known)[0]


def positions_with_new(data: Dataset, moved: Dataset, known: Vocabulary | None, at: Any) -> Floats:
    """Positions of all entities: the known ones stay where they are.

    data : the original;  moved : with known entities first;  at : positions of known entities
    """
    if data.positions is None and moved.n_entities > len(at):
        raise DataError("the model has positions, so data with new entities need positions")
    if data.positions is not None and data.positions.shape[1] != at.shape[1]:
        raise DataError(
            f"the data have positions of {data.positions.shape[1]} numbers, the model of "
            f"{at.shape[1]}"
        )
    positions = np.empty((moved.n_entities, at.shape[1]))
    if data.positions is not None:
        positions[places(data, known)] = data.positions
    positions[: len(at)] = at
    return positions


def _places(labels_read: Vocabulary, known: Vocabulary) -> tuple[NDArray[np.int64], Vocabulary]:
    new = [label for label in labels_read if label not in known]
    labels = Vocabulary([*known, *new])
    return np.array([labels.index_of(label) for label in labels_read], dtype=np.int64), labels
