"""add_items: vectors of items that were never sold, from their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.data.readers.frames import eager_frame
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, ParameterError, suggest
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.queries.shop_queries import ShopQueries
from efemb.model.parameters import Parameters

RIDGE = 1.0  # prior precision of the effect of a feature on an intercept, in nats


@as_function_of(ShopQueries.add_items)
def add_items(model: Any, table: Any, *, item: str = "item") -> FittedEmbedding:
    """A model with ``structure=Tree([...])`` or ``Featured([...])``."""
    fitted: FittedEmbedding = model.fitted()
    columns = _read_columns(table)
    if item not in columns:
        raise DataError(f"the table has no column {item!r}; {suggest(item, columns)}")
    structure = fitted.spec.structure
    labels = columns.pop(item)
    if not labels:
        raise DataError("the table has no items")
    for label in labels:
        if fitted.vocabulary is not None and label in fitted.vocabulary:
            raise DataError(f"{shorten(label)} is an item of the model already")
    for name in getattr(structure, "features", ()):
        if name not in columns:
            raise DataError(f"the table lacks the feature {name!r}; {suggest(name, columns)}")
    wider = structure.add_entities(columns)
    if fitted.vocabulary is None:
        raise ParameterError("the items of the model have no labels, so new ones cannot have any")
    counts = fitted.vocabulary.counts
    counts = None if counts is None else np.concatenate([counts, np.zeros(len(labels))])
    return replace(
        fitted,
        parameters=_extend(fitted, wider, len(labels)),
        spec=replace(fitted.spec, structure=wider),
        vocabulary=Vocabulary([*fitted.vocabulary.labels, *labels], counts=counts),
    )


def _read_columns(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, Mapping):
        columns = {str(name): list(values) for name, values in table.items()}
    else:
        frame = eager_frame(table)
        columns = {name: frame[name].to_list() for name in frame.columns}
    sizes = {len(values) for values in columns.values()}
    if len(sizes) > 1:
        raise DataError(f"the columns of the table have different lengths: {sorted(sizes)}")
    return columns


def _extend(fitted: FittedEmbedding, wider: Any, n_new: int) -> Parameters:
    """All arrays, with rows for the new items."""
    from scipy.sparse import csr_array

    known, structure = fitted.parameters, fitted.spec.structure
    rho, alpha = (structure.make_room(array, n_new) for array in (known.rho, known.alpha))
    design = csr_array(wider.design())
    intercept = known.intercept
    if intercept is not None:
        means = _predict_means(design, np.exp(intercept.astype(np.float64)))
        intercept = np.append(intercept, np.log(means)).astype(intercept.dtype)
    terms, n = dict(known.terms), fitted.n_entities
    for term in fitted.spec.terms:
        for array in term.arrays(n + n_new):
            name = f"{term.label}.{array.name}"
            if array.shape == terms[name].shape:
                continue
            rows: Floats = np.zeros((n_new, *array.shape[1:]))
            if array.name == term.entity_array:
                rows = _predict_columns(design, terms[name].astype(np.float64))
            terms[name] = np.concatenate([terms[name], rows.astype(terms[name].dtype)])
    return replace(known, rho=rho, alpha=alpha, intercept=intercept, terms=terms)


def _predict_means(design: Any, means: Floats) -> Floats:
    """Means of the new items, by a Poisson regression of known means on features."""
    from sklearn.linear_model import PoissonRegressor

    n, level = len(means), float(means.mean())
    regression = PoissonRegressor(alpha=RIDGE / n, max_iter=1000, tol=1e-6)
    regression.fit(design[:n], means / level)
    return np.asarray(np.maximum(level * regression.predict(design[n:]), np.finfo(float).tiny))


def _predict_columns(design: Any, values: Floats) -> Floats:
    """Columns of the new items by ridge regression."""
    from sklearn.linear_model import Ridge

    n = len(values)
    regression = Ridge(alpha=RIDGE, solver="lsqr").fit(design[:n], values)
    return np.asarray(regression.predict(design[n:])).reshape(design.shape[0] - n, -1)
