"""Groups of rows with embeddings of their own: a model per group, and which groups are alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError, check_integer
from efemb.fitted.selection import Choice
from efemb.model.parameters import Parameters
from efemb.model.predictor import row_groups
from efemb.model.space import ParameterSpace
from efemb.model.structures import PerEntity, Structure
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

WAY_OUT = "of_group(label) gives the model of one group, which has one embedding per entity"


def of_group(model: FittedEmbedding, label: Any) -> FittedEmbedding:
    """The model of the rows of one group, kept for later questions."""
    cache, code = model._group_models, model.spec.structure.code_of(label)
    if code not in cache:
        space, p = _space(model), model.parameters
        target, intercept, bag = space.vectors(p).groups.of(code)  # type: ignore[union-attr]
        terms = {name: a for name, a in p.terms.items() if not name.startswith(space.prefix)}
        shifted = p.intercept is not None or model.spec.structure.intercepts
        parameters = Parameters(
            target.astype(p.rho.dtype),
            bag.astype(p.alpha.dtype) if model.spec.structure.contexts else p.alpha,
            intercept.astype(p.rho.dtype) if shifted else None,
            terms=terms,
        )
        spec = replace(model.spec, structure=PerEntity(), intercept=shifted)
        cache[code] = replace(model, parameters=parameters, spec=spec)
    return cache[code]


def shared_model(model: FittedEmbedding) -> FittedEmbedding:
    """The model of rows that belong to no group: what all groups share."""
    prefix = _space(model).prefix
    terms = {name: a for name, a in model.parameters.terms.items() if not name.startswith(prefix)}
    parameters = replace(model.parameters, terms=terms)
    return replace(model, parameters=parameters, spec=replace(model.spec, structure=PerEntity()))


def group_offsets(model: FittedEmbedding) -> Floats:
    """delta_gn = rho_gn - rho_n of every group, (G, N, K)."""
    structure = model.spec.structure
    if not structure.grouped:
        raise ParameterError(
            f"structure={structure!r} has no groups of rows: fit with structure=Grouped(column)"
        )
    space, p = _space(model), model.parameters
    target = space.vectors(p).target[:, : space.k]
    own, codes = space.of_structure(p.terms), np.arange(len(structure.labels))
    zero = np.zeros(len(target), dtype=target.dtype)
    return structure.spread_groups(own, target, zero, codes)[0] - target


def similar_groups(model: FittedEmbedding, n: int = 10) -> Table:
    """Pairs of groups by the cosine of their offsets delta, the most similar first."""
    labels, offsets = model.spec.structure.labels, group_offsets(model)
    flat = offsets.reshape(len(labels), -1).astype(np.float64)
    size = np.sqrt(np.einsum("gi,gi->g", flat, flat))
    products = flat @ flat.T
    cosine = products / np.maximum(np.outer(size, size), np.finfo(float).tiny)
    distance = np.sqrt(np.maximum(size[:, None] ** 2 + size**2 - 2 * products, 0.0))
    first, second = np.triu_indices(len(labels), 1)
    order = np.argsort(-cosine[first, second], kind="stable")[: check_integer("n", n)]
    first, second = first[order], second[order]
    names = np.empty(len(labels), dtype=object)
    names[:] = labels
    return Table(
        {
            "group": names[first],
            "other": names[second],
            "similarity": cosine[first, second],
            "distance": distance[first, second],
        }
    )


def trajectory(model: Any, items: Any, data: Any = None) -> Table:
    """Where items are in each slice of time; the method of that name documents it."""
    fitted: FittedEmbedding = model.fitted()
    structure = fitted.spec.structure
    check_slices(structure)
    codes = Choice(fitted.entities).codes(items)
    slices = [of_group(fitted, label) for label in structure.labels]
    labels = fitted.entities.labels[codes]
    nearest = [one.vectors().similar(labels, 1)["label"] for one in slices]
    columns: dict[str, list[Any]] = {name: [] for name in ("label", "at", *_MOVES)}
    for place, code in enumerate(codes.tolist()):
        path = np.stack([one.parameters.rho[code] for one in slices]).astype(np.float64)
        size = np.linalg.norm(path, axis=1) * np.linalg.norm(path[0])
        columns["label"] += [labels[place]] * len(slices)
        columns["at"] += structure.labels
        columns["distance"] += np.linalg.norm(path - path[0], axis=1).tolist()
        columns["similarity"] += (path @ path[0] / np.maximum(size, 1e-300)).tolist()
        columns["nearest"] += [near[place] for near in nearest]
        for one in slices:
            b = one.parameters.intercept
            columns["intercept"].append(np.nan if b is None else float(b[code]))
    if data is not None:
        columns["count"] = counts_by_group(model, data)[:, codes].T.ravel().tolist()
    return Table({name: np.array(values, dtype=_kind(name)) for name, values in columns.items()})


_MOVES = ("distance", "similarity", "intercept", "nearest")


def _kind(column: str) -> Any:
    return object if column in ("label", "at", "nearest") else np.float64


def counts_by_group(model: Any, data: Any) -> Ints:
    """Rows (tokens of a text) of every group that hold each entity, (G, N)."""
    spec, bound, _ = model._bind(data)
    rows, group = bound.whole_data, row_groups(spec, bound)
    assert group is not None
    if bound.is_text:
        row, code = np.arange(len(rows.tokens)), np.asarray(rows.tokens)
    else:
        values = rows.values if rows.is_sparse else np.nan_to_num(np.asarray(rows.values))
        row, code = values.nonzero()
    counted = (group[row] >= 0) & (code >= 0)
    shape = (len(spec.structure.labels), model.fitted().n_entities)
    cells = group[row[counted]] * shape[1] + code[counted]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def check_slices(structure: Structure) -> None:
    """Raise if groups are not slices of time."""
    if not structure.in_order:
        raise ParameterError(
            f"structure={structure!r} has no slices of time: fit with structure=Dynamic(column)"
        )


def drift_of_words(model: Any, data: Any, n: int, min_count: float) -> Table:
    """Words whose embedding moved most from the first slice to the last."""
    fitted: FittedEmbedding = model.fitted()
    check_slices(fitted.spec.structure)
    spec, bound, _ = model._bind(data)
    group, last = row_groups(spec, bound), len(spec.structure.labels) - 1
    tokens, size = np.asarray(bound.whole_data.tokens), fitted.n_entities
    counts = [np.bincount(tokens[group == code], minlength=size) for code in (0, last)]
    ends = (of_group(fitted, spec.structure.labels[code]) for code in (0, last))
    first, end = (model.parameters.rho.astype(np.float64) for model in ends)
    distance = np.linalg.norm(end - first, axis=1)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(end, axis=1)
    cosine = np.einsum("nk,nk->n", first, end) / np.maximum(norms, np.finfo(float).tiny)
    frequent = np.flatnonzero(np.minimum(*counts) >= min_count)
    best = frequent[np.argsort(-distance[frequent], kind="stable")][: check_integer("n", n)]
    columns = {"count_first": counts[0], "count_last": counts[1]}
    columns |= {"distance": distance, "similarity": cosine}
    shown = {name: values[best] for name, values in columns.items()}
    return Table({"label": np.asarray(fitted.entities.labels)[best], **shown})


def _space(model: FittedEmbedding) -> ParameterSpace:
    dims = (model.n_entities, model.n_slots, 1, model.n_components)
    return ParameterSpace(model.spec, *dims)
