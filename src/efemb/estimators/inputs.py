"""Reading X: rows of numbers in any form become a Dataset, text in any form a Corpus."""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from efemb._typing import Floats
from efemb.data.align import check_entities
from efemb.data.array_checks import (
    check_indices,
    is_masked,
    is_sparse,
    list_first,
    too_large,
    unmask,
)
from efemb.data.containers import check_array_like, in_memory, open_container, refuse_remote
from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.readers.accumulators import text_in_numbers
from efemb.data.readers.column_roles import entity_columns
from efemb.data.readers.text.read import read_text, recode
from efemb.data.vocabulary import Vocabulary, column_labels
from efemb.engine.limits import check_columns
from efemb.errors import DataError, InputTypeError
from efemb.estimators import checks
from efemb.model.ingredient import flag
from efemb.model.support import (
    binarized,
    check_not_negative,
    check_sample_weight,
    check_support,
    refuse_weights,
)

_LONGEST = 500  # characters of a message


@dataclass(frozen=True)
class Prepared:
    """Checked data of a fit, and a report of what was dropped or looks unusual."""

    data: Any
    weight: Floats | None
    validation: Any
    report: dict[str, Any]


def prepare(
    estimator: Any, X: Any, positions: Any, sample_weight: Any, validation: Any, *, reset: bool
) -> Prepared:
    """Read and check everything that `fit` receives."""
    check_size(X, checks.check_components(estimator.n_components))
    data = read_data(estimator, X, reset=reset, positions=positions)
    spec = estimator._spec()
    if spec.context.reads_text:
        refuse_weights(sample_weight, positions)
        words = None if validation is None else recode(validation, data.vocabulary)
        return Prepared(data, None, words, dict(data.report))
    held = None if validation is None else read_data(estimator, validation, reset=False)
    weight = check_sample_weight(sample_weight, data.n_rows)
    checks.check_shape(data)
    report: dict[str, Any] = dict(data.report)
    if spec.context.rest_of_row:
        data, weight, held = checks.drop_empty_rows(data, weight, held, report)
        checks.check_row_contexts(data, report)
    if spec.family.missing:
        checks.check_variation(data, report, complete=reset)
        # Rows have no means of members to measure from: `center` is for fixed contexts.
        fixed = not spec.context.rest_of_row
        real = spec.family.support.low < 0 and not spec.family.mixes  # a count may well be 0
        if real and not (estimator._centers() and fixed):
            checks.warn_uncentered(data, may_center=fixed and hasattr(estimator, "center"))
    return Prepared(data, weight, held, report)


def check_size(X: Any, n_components: int = 0) -> None:
    """Refuse more columns than memory holds, before anything is allocated for each of them."""
    shape = getattr(X, "shape", ())
    if isinstance(shape, tuple) and len(shape) > 1 and isinstance(shape[1], int):
        check_columns(shape[1], n_components)


def read_data(estimator: Any, X: Any, *, reset: bool, positions: Any = None) -> Any:
    """X as a Dataset that the family of the estimator can have produced, or as a Corpus."""
    spec = estimator._spec()
    if spec.context.reads_text:
        return read_words(estimator, X, reset=reset)
    data = read(estimator, X, reset=reset, positions=positions)
    if estimator._binarizes():
        check_not_negative(data)
        data = binarized(data)
    allow_real = flag("allow_real", getattr(estimator, "allow_real", estimator._allow_real))
    family = spec.family
    if family.mixes and not reset:  # a fit knows which entity is of which family
        family = estimator.fitted().spec.family
    check_support(data, family, allow_real=allow_real, way_out=estimator._way_out)
    return data


def read(estimator: Any, X: Any, *, reset: bool, positions: Any) -> Dataset:
    """Return X as a Dataset; with `reset`, store the number and names of its features."""
    X = in_memory(X)
    opened = None if isinstance(X, Dataset) else open_container(X)
    if opened is not None:
        X = Dataset(opened)
    elif not reset:
        X = _use_labels(estimator, X)
    if isinstance(X, Dataset):
        data = _store_features(estimator, X, reset)
    else:
        _refuse_text(estimator, X)
        if not is_sparse(X):
            check_array_like(X, "X")
        _refuse_tables_without_data(X)
        values = _as_array(estimator, X, reset)
        labels = getattr(estimator, "feature_names_in_", None) if hasattr(X, "columns") else None
        if labels is None:  # numbers, which scikit-learn ignores
            labels = column_labels(X)
        if reset:
            entity_columns(X)
        data = Dataset(values, entities=labels, positions=positions)
    if reset:
        estimator.vocabulary_ = data.entities
    return data if positions is None else data._replace(data.values, positions=positions)


def _use_labels(estimator: Any, X: Any) -> Any:
    """X, as a Dataset if it has labels that scikit-learn does not compare.

    scikit-learn only compares strings with the column names of a frame it was fitted to.
    """
    vocabulary = getattr(estimator, "vocabulary_", None)
    labels = None if vocabulary is None else column_labels(X, vocabulary)
    if labels is None:
        return X
    text = all(isinstance(label, str) for label in labels)
    return X if text and hasattr(estimator, "feature_names_in_") else Dataset(X, entities=labels)


def _refuse_text(estimator: Any, X: Any) -> None:
    """Reject text, which needs a model with a Window context."""
    first = X[0] if isinstance(X, (list, tuple)) and X else None
    words = isinstance(first, (list, tuple)) and first and isinstance(first[0], str)
    if words or isinstance(X, (str, os.PathLike, Corpus)) or isinstance(first, str):
        raise InputTypeError(
            f"{type(estimator).__name__} needs rows x entities of numbers, got text; text models "
            "are BernoulliTextEmbedding, CBOW, SkipGram, PoissonTextEmbedding, or any with "
            "context=Window(5); files of baskets are read by efemb.read_baskets"
        )


def _refuse_tables_without_data(X: Any) -> None:
    if isinstance(getattr(X, "columns", None), Sized) and not len(X.columns):
        raise DataError("the table has no columns, so there are no entities (0 feature(s))")


def _as_array(estimator: Any, X: Any, reset: bool) -> Any:
    is_fitted = hasattr(estimator, "n_features_in_")
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": False,
        "allow_nd": getattr(X, "ndim", 2) == 3,
    }
    X = unmask(X) if is_masked(X) else X
    if is_sparse(X):
        check_indices(X)  # before the conversion to rows
    _refuse_dates(X)
    try:
        if not reset and not is_fitted:  # objective() before a fit
            return check_array(X, **options)
        return validate_data(estimator, X, reset=reset, **options)
    except ValueError as error:
        _explain_text(X, error)
        raise DataError(_shorten_message(error)) from error
    except (TypeError, RuntimeError) as error:  # RuntimeError: a tensor with a gradient
        raise InputTypeError(_shorten_message(error)) from error
    except MemoryError as error:
        raise too_large("X", error) from error


def _refuse_dates(X: Any) -> None:
    """Reject dates and durations, which NumPy would convert to numbers of any unit."""
    kinds = [X.dtype] if hasattr(X, "dtype") else list(getattr(X, "dtypes", ()))
    for kind in kinds:
        temporal = getattr(kind, "is_temporal", lambda: False)()
        if temporal or getattr(kind, "kind", "") in ("m", "M"):
            raise InputTypeError(f"X must be numbers, not {kind}")


def _shorten_message(error: Exception) -> str:
    """A message of scikit-learn or NumPy, cut off, since some of them print the whole array."""
    text = str(error)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _explain_text(X: Any, error: ValueError) -> None:
    """A frame with text is probably a table of transactions: explain how to read it."""
    for name in getattr(X, "columns", ()):
        cells = np.asarray(X[name])
        if cells.dtype.kind not in "OSU":
            continue
        places, example = text_in_numbers(cells.tolist())
        if len(places):
            raise DataError(
                f"column {name!r} holds text, not numbers: {example} in row {list_first(places)}; "
                "X must be rows x entities. Read a table with one line per item of a basket by "
                "efemb.read_baskets(table, basket=, item=, count=)"
            ) from error


def _store_features(estimator: Any, data: Dataset, reset: bool) -> Dataset:
    fitted_size = getattr(estimator, "n_features_in_", None)
    if reset:
        estimator.n_features_in_ = data.n_entities
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    else:
        vocabulary = getattr(estimator, "vocabulary_", None)
        size = data.n_entities if fitted_size is None else fitted_size
        check_entities(data, vocabulary, size)
    return data


def read_words(estimator: Any, X: Any, *, reset: bool) -> Corpus:
    """Return X as a Corpus; without `reset`, words that the model does not know are dropped."""
    _refuse_numbers(X)
    vocabulary = getattr(estimator, "vocabulary_", None)
    if vocabulary is not None and (not reset or estimator.warm_start):
        return recode(X, vocabulary)
    if isinstance(X, Corpus):
        corpus = X
    else:
        min_count = getattr(estimator, "min_count", 5)
        options: dict[str, Any] = {"max_vocab": getattr(estimator, "max_vocab", None)}
        progress = bool(estimator.verbose)
        corpus = read_text(X, min_count=min_count, **options, progress=progress)
    corpus = _with_counts(corpus)
    if corpus.n_entities < 2:
        raise DataError("the text has only one distinct word: there is nothing to predict")
    if reset:
        estimator.n_features_in_ = corpus.n_entities
    return corpus


def _refuse_numbers(X: Any) -> None:
    """Reject arrays of measurements, which are not text, and collections on other machines."""
    refuse_remote(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if isinstance(X, Dataset) or hasattr(X, "toarray") or kind in "fcb":
        raise InputTypeError(
            "a Window context needs text (a path, documents, a Corpus), got a "
            f"{type(X).__name__} of numbers; for rows x entities use a Basket or Neighbors context"
        )


def _with_counts(corpus: Corpus) -> Corpus:
    """The corpus with word counts in its vocabulary, which noise and trees need."""
    if corpus.vocabulary.counts is not None:
        return corpus
    words = Vocabulary(corpus.vocabulary.labels, counts=corpus.counts())
    return corpus.with_vocabulary(words)
