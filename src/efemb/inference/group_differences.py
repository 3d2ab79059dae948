"""Which entities differ between groups of rows, by the distance of their embeddings and its error.

Given alpha, the embedding of an entity is a regression on the rows of each group. At the embedding
that all groups share and the intercepts of each group, the rows of group g have the score s_g and
the information F_g. One step of Newton's method takes the shared embedding to its optimum, which
leaves s_g - F_g (sum of F)^-1 (sum of s), and another one takes that of the group to
delta = (F_g + p)^-1 s_g, p the prior precision. Nothing of this depends on how far the fit got. If
there is no difference, delta' (F_g + p) delta is a weighted sum of squares of normal numbers, whose
weights follow from the variance of the scores of the rows. Distances without errors would rank rare
entities first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.errors import ParameterError
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.group_models import of_group
from efemb.fitted.nearest import checked_number
from efemb.inference.uncertainty import AT_ONCE, Laplace, laplace
from efemb.table import Table

LEAST = 1e-9  # of eigenvalues: below it, the rows say nothing


def differs(
    model: Any,
    data: Any,
    n: int = 20,
    *,
    group: Any = None,
    min_count: float = 1,
    progress: bool = False,
) -> Table:
    """Entities whose embedding in a group differs most from the shared one.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        With `structure=Grouped(column)`, on rows; neither text nor categorical.
    data : Dataset
        The rows of the fit, with their row column.
    n : int, default=20
        Number of pairs of an item and a group.
    group : label, optional
        Only this group.
    min_count : float, default=1
        Only items that occur in at least this many rows of the group.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Table
        label, group, count (rows of the group that contain the item), distance, ratio (distance in
        units of its standard error if there were no difference), p_value and q_value (the share of
        false discoveries among all pairs up to this one, after Benjamini and Hochberg); the
        smallest p-value first.
    """
    fitted: FittedEmbedding = model.fitted()
    structure = fitted.spec.structure
    precision = structure.offset_precision(fitted.spec.prior_rho)
    if precision is None:
        raise ParameterError(
            f"in {structure!r} the entities of a group have no offsets of their own, so that they "
            "have no errors either: fit with structure=Grouped(column)"
        )
    bound = model._bind(data)[1]
    codes = structure.codes(bound.whole_data)
    present = [code for code in range(len(structure.labels)) if (codes == code).any()]
    if len(present) < 2:
        raise ParameterError("the data have rows of fewer than two groups of the model")
    parts = [bound.whole_data.take_rows(np.flatnonzero(codes == code)) for code in present]
    labels = [structure.labels[code] for code in present]
    if group is not None and labels.count(group) == 0:
        structure.code_of(group)  # which lists the groups
        raise ParameterError(f"the data have no rows of the group {group!r}")
    errors = [_at_shared(fitted, label, part) for label, part in zip(labels, parts, strict=True)]
    results = compare_groups(errors, fitted, precision, progress)
    chosen = [i for i, label in enumerate(labels) if group is None or label == group]
    names, some = ([given[i] for i in chosen] for given in (labels, parts))
    return rank_differences(fitted, names, some, results[:, chosen], n, min_count)


def compare_groups(
    errors: list[Laplace], fitted: FittedEmbedding, precision: float, progress: bool
) -> Floats:
    """Distance, ratio and p-value of every entity in every group, (3, groups, entities)."""
    results = np.empty((3, len(errors), fitted.n_entities))
    with progress_bar("differences", fitted.n_entities, progress) as advance:
        for start in range(0, fitted.n_entities, AT_ONCE):
            block = np.arange(start, min(start + AT_ONCE, fitted.n_entities))
            results[:, :, block] = _differences(errors, block, fitted.n_components, precision)
            advance(len(block))
    return results


def _at_shared(fitted: FittedEmbedding, label: Any, data: Any) -> Laplace:
    """The regressions of one group at the shared embeddings and the intercepts of the group."""
    single = of_group(fitted, label)
    parameters = replace(single.parameters, rho=fitted.parameters.rho)
    return laplace(replace(single, parameters=parameters), data, sandwich=True)


def _differences(errors: list[Laplace], block: Ints, k: int, precision: float) -> Floats:
    """Distance, ratio and p-value of some entities in every group, (3, groups, entities)."""
    parts = [_without_intercept(*one.scores(block), k) for one in errors]
    score, information, moments = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    identity = np.eye(k)
    # The shared embedding has no news where no group has; a little of the prior keeps it regular.
    shared = np.linalg.inv(information.sum(axis=0) + precision * LEAST * identity)
    share = information @ shared
    left = score - (share @ score.sum(axis=0)[..., None])[..., 0]
    rest = identity - share
    variance = rest @ moments @ rest.swapaxes(-1, -2)
    variance += share @ (moments.sum(axis=0) - moments) @ share.swapaxes(-1, -2)
    root = np.linalg.cholesky(information + precision * identity)
    whitened = np.linalg.solve(root, left[..., None])[..., 0]
    delta = np.linalg.solve(root.swapaxes(-1, -2), whitened[..., None])[..., 0]
    half = np.linalg.solve(root, variance)
    weights = np.linalg.solve(root, half.swapaxes(-1, -2))
    return np.stack([np.sqrt((delta**2).sum(axis=-1)), *_tail(whitened, weights)])


def _tail(whitened: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Ratio and p-value of sums of squares with a matrix of weights, by two moments."""
    from scipy.stats import chi2

    statistic = (whitened**2).sum(axis=-1)
    first = np.trace(weights, axis1=-2, axis2=-1)
    second = (weights * weights.swapaxes(-1, -2)).sum(axis=(-2, -1))
    informed = first > LEAST
    first, second = (np.where(informed, values, 1.0) for values in (first, second))
    p_value = chi2.sf(statistic * first / second, first**2 / second)
    return (
        np.where(informed, np.sqrt(statistic / first), 0.0),
        np.where(informed, p_value, 1.0),
    )


def _without_intercept(
    score: Floats, information: Floats, moments: Floats, k: int
) -> tuple[Floats, Floats, Floats]:
    """Those of the first k numbers, whatever the others (terms, the intercept) are."""
    if score.shape[1] == k:
        return score, information, moments
    nuisance = information[:, k:, k:]
    scale = np.trace(nuisance, axis1=1, axis2=2)[:, None, None] + LEAST
    regular = nuisance + LEAST * scale * np.eye(nuisance.shape[1])
    pull = np.linalg.solve(regular, information[:, k:, :k]).swapaxes(1, 2)
    project = np.concatenate([np.broadcast_to(np.eye(k), (len(score), k, k)), -pull], axis=2)
    transposed = project.swapaxes(1, 2)
    return (
        (project @ score[..., None])[..., 0],
        information[:, :k, :k] - pull @ information[:, k:, :k],
        project @ moments @ transposed,
    )


def _counts(data: Any) -> Floats:
    """Rows that contain each entity."""
    return np.asarray((data.values != 0).sum(axis=0), dtype=np.float64).ravel()


def rank_differences(
    fitted: FittedEmbedding,
    groups: list[Any],
    parts: list[Any],
    results: Floats,
    n: int,
    min_count: float,
) -> Table:
    """The pairs with the smallest p-values; q-values are among all pairs that were asked for.

    parts : rows of each group;  results : those of `compare_groups`
    """
    names = np.empty(len(groups), dtype=object)
    names[:] = groups
    label = np.tile(fitted.entities.labels, len(groups))
    group = np.repeat(names, fitted.n_entities)
    flat = {"count": np.concatenate([_counts(part) for part in parts])}
    for name, values in zip(("distance", "ratio", "p_value"), results, strict=True):
        flat[name] = values.ravel()
    asked = np.flatnonzero(flat["count"] >= float(min_count))
    order = asked[np.lexsort((-flat["ratio"][asked], flat["p_value"][asked]))]
    scaled = flat["p_value"][order] * len(order) / np.arange(1, len(order) + 1)
    q_value = np.minimum.accumulate(np.minimum(scaled, 1.0)[::-1])[::-1]
    best = order[: checked_number(n)]
    shown = {name: values[best] for name, values in flat.items()}
    shown["q_value"] = q_value[: len(best)]
    return Table({"label": label[best], "group": group[best], **shown})
