"""Comparison of groups of rows: entities that differ between groups, drift, or change in time.

Given alpha, the embedding of an entity is a regression on the rows of each group. Newton's method
moves the embedding that all groups share, and the intercept of each group, to their optimum, so
that nothing depends on where the fit stopped. There, the rows of group g have the score s_g and
the information F_g; s_g - F_g (sum of F)^-1 (sum of s) is what remains of the score if the shared
embedding may move. One further step moves the embedding of the group by delta = (F_g + p)^-1 s_g,
where p is the prior precision. If there is no difference, delta' (F_g + p) delta is a weighted sum
of squares of normal numbers, whose weights follow from the variance of the scores of the rows.
Distances without errors would rank rare entities first.

Drift and changes compare scores of the rows at the mean embedding of all slices in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import chi2, false_discovery_control

from efemb._terminal import progress_bar
from efemb._typing import Bools, Floats, Ints
from efemb.data.array_checks import generator
from efemb.errors import DataError, ParameterError, check_integer
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.group_models import (
    check_slices,
    drift_of_words,
    group_offsets,
    of_group,
    shared_model,
)
from efemb.fitted.queries.group_queries import GroupQueries
from efemb.inference.uncertainty import AT_ONCE, Laplace, laplace
from efemb.table import Table

LEAST = 1e-9  # eigenvalues below this carry no information
LEAST_RIDGE = 1e-3  # of the shared embedding, in units of the precision of differences
NEWTON_STEPS, LONGEST, CLOSE = 20, 1.0, 1e-6
LEAST_SHARE = 0.02  # of the rows on either side of a change


@as_function_of(GroupQueries.differs)
def differs(
    model: Any,
    data: Any,
    n: int = 20,
    *,
    group: Any = None,
    min_count: float = 1,
    progress: bool = False,
) -> Table:
    """A model with `structure=Grouped(column)`, on rows; neither text nor categorical."""
    fitted: FittedEmbedding = model.fitted()
    structure = fitted.spec.structure
    _check_rows(fitted, "differs", "of_group(label).similar(word) or similar_groups()")
    precision = structure.offset_precision(fitted.spec.prior_rho)
    if precision is None:
        raise ParameterError(
            f"in {structure!r} the entities of a group have no offsets of their own, and therefore "
            "no errors: fit with structure=Grouped(column)"
        )
    bound = model._bind(data)[1]
    codes = structure.codes(bound.whole_data)
    present = [code for code in range(len(structure.labels)) if (codes == code).any()]
    if len(present) < 2:
        raise ParameterError("the data have rows of fewer than two groups of the model")
    parts = [bound.whole_data.take_rows(np.flatnonzero(codes == code)) for code in present]
    labels = [structure.labels[code] for code in present]
    if group is not None and labels.count(group) == 0:
        structure.code_of(group)  # raises an error that lists the groups
        raise ParameterError(f"the data have no rows of the group {group!r}")
    errors = [
        _errors_at_shared(fitted, label, part) for label, part in zip(labels, parts, strict=True)
    ]
    results = compare_groups(errors, fitted, precision, progress)
    chosen = [i for i, label in enumerate(labels) if group is None or label == group]
    names, chosen_parts = ([values[i] for i in chosen] for values in (labels, parts))
    return rank_differences(fitted, names, chosen_parts, results[:, chosen], n, min_count)


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


def _errors_at_shared(fitted: FittedEmbedding, label: Any, data: Any) -> Laplace:
    """The regressions of one group at the shared embeddings and the intercepts of the group."""
    single = of_group(fitted, label)
    shared = fitted.parameters  # context vectors, too, if groups have their own
    parameters = replace(single.parameters, rho=shared.rho, alpha=shared.alpha)
    return laplace(replace(single, parameters=parameters), data, sandwich=True)


def _differences(errors: list[Laplace], block: Ints, k: int, precision: float) -> Floats:
    """Distance, ratio and p-value of some entities in every group, (3, groups, entities)."""
    vectors = _shared_optimum(errors, block, k, precision * LEAST_RIDGE)
    parts = [
        _eliminate_others(*one.scores(block, at), k)
        for one, at in zip(errors, vectors, strict=True)
    ]
    score, information, moments = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    identity = np.eye(k)
    # Without information in any group, a small multiple of the prior keeps the matrix regular.
    shared = np.linalg.inv(information.sum(axis=0) + precision * LEAST * identity)
    share = information @ shared
    remainder = score - (share @ score.sum(axis=0)[..., None])[..., 0]
    rest = identity - share
    variance = rest @ moments @ rest.swapaxes(-1, -2)
    variance += share @ (moments.sum(axis=0) - moments) @ share.swapaxes(-1, -2)
    root = np.linalg.cholesky(information + precision * identity)
    whitened = np.linalg.solve(root, remainder[..., None])[..., 0]
    delta = np.linalg.solve(root.swapaxes(-1, -2), whitened[..., None])[..., 0]
    half = np.linalg.solve(root, variance)
    weights = np.linalg.solve(root, half.swapaxes(-1, -2))
    return np.stack([np.sqrt((delta**2).sum(axis=-1)), *_tail_probability(whitened, weights)])


def _shared_optimum(errors: list[Laplace], block: Ints, k: int, ridge: float) -> list[Floats]:
    """Vectors of some entities by group: the best shared embedding, and the other columns by group.

    The scores of rows at another point would be larger than expected by chance, all in the same
    direction, and a group with more of such rows would seem to differ.
    """
    vectors: list[Floats] = [one.vectors_of(block).astype(np.float64) for one in errors]
    shared = np.mean([at[:, :k] for at in vectors], axis=0)
    for _ in range(NEWTON_STEPS):
        for at in vectors:
            at[:, :k] = shared
        scores = [one.scores(block, at) for one, at in zip(errors, vectors, strict=True)]
        parts = [_eliminate_others(*each, k) for each in scores]
        score = np.sum([part[0] for part in parts], axis=0) - ridge * shared
        information = np.sum([part[1] for part in parts], axis=0) + ridge * np.eye(k)
        step = _limit_steps(np.linalg.solve(information, score[..., None])[..., 0])
        shared = shared + step
        for at, (gradient, curvature, _) in zip(vectors, scores, strict=True):
            rest = gradient[:, k:] - (curvature[:, k:, :k] @ step[..., None])[..., 0]
            if rest.shape[1]:
                regular = _regularize(curvature[:, k:, k:])
                at[:, k:] += _limit_steps(np.linalg.solve(regular, rest[..., None])[..., 0])
        if np.abs(step).max(initial=0.0) < CLOSE:
            break
    for at in vectors:
        at[:, :k] = shared
    return vectors


def _limit_steps(step: Floats) -> Floats:
    """Steps of Newton's method, entity by entity, with lengths limited to `LONGEST`."""
    size = np.linalg.norm(step, axis=1, keepdims=True)
    return np.asarray(step * np.minimum(1.0, LONGEST / np.maximum(size, LEAST)))


def _regularize(information: Floats) -> Floats:
    """Information with a small addition to its diagonal, in case the rows contain none."""
    scale = np.trace(information, axis1=1, axis2=2)[:, None, None] + LEAST
    return np.asarray(information + LEAST * scale * np.eye(information.shape[1]))


def _tail_probability(whitened: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Ratio and p-value of sums of squares with a matrix of weights, by three moments.

    After Pearson (Imhof, 1961): two moments alone give tails that are too light, and therefore more
    false discoveries than the q-values indicate.
    """
    statistic = (whitened**2).sum(axis=-1)
    first = np.trace(weights, axis1=-2, axis2=-1)
    square = weights @ weights
    second = np.trace(square, axis1=-2, axis2=-1)
    third = (square * weights.swapaxes(-1, -2)).sum(axis=(-2, -1))
    informed = first > LEAST
    first, second, third = (np.where(informed, each, 1.0) for each in (first, second, third))
    freedom = second**3 / third**2
    quantile = (statistic - first) * np.sqrt(freedom / second) + freedom
    p_value = chi2.sf(np.maximum(quantile, 0.0), freedom)
    return (
        np.where(informed, np.sqrt(statistic / first), 0.0),
        np.where(informed, p_value, 1.0),
    )


def _eliminate_others(
    score: Floats, information: Floats, moments: Floats, k: int
) -> tuple[Floats, Floats, Floats]:
    """Score and information of the first k numbers after eliminating terms and intercept."""
    if score.shape[1] == k:
        return score, information, moments
    regular = _regularize(information[:, k:, k:])
    pull = np.linalg.solve(regular, information[:, k:, :k]).swapaxes(1, 2)
    project = np.concatenate([np.broadcast_to(np.eye(k), (len(score), k, k)), -pull], axis=2)
    transposed = project.swapaxes(1, 2)
    return (
        (project @ score[..., None])[..., 0],
        information[:, :k, :k] - pull @ information[:, k:, :k],
        project @ moments @ transposed,
    )


def _count_rows(data: Any) -> Floats:
    """Number of rows that contain each entity."""
    return np.asarray((data.values != 0).sum(axis=0), dtype=np.float64).ravel()


def rank_differences(
    fitted: FittedEmbedding,
    groups: list[Any],
    parts: list[Any],
    results: Floats,
    n: int,
    min_count: float,
) -> Table:
    """The pairs with the smallest p-values; q-values are among all requested pairs.

    parts : rows of each group;  results : those of `compare_groups`
    """
    names = np.empty(len(groups), dtype=object)
    names[:] = groups
    label = np.tile(fitted.entities.labels, len(groups))
    group = np.repeat(names, fitted.n_entities)
    flat = {"count": np.concatenate([_count_rows(rows) for rows in parts])}
    for name, values in zip(("distance", "ratio", "p_value"), results, strict=True):
        flat[name] = values.ravel()
    eligible = np.flatnonzero(flat["count"] >= float(min_count))
    order = eligible[np.lexsort((-flat["ratio"][eligible], flat["p_value"][eligible]))]
    best = order[: check_integer("n", n)]
    shown = {name: values[best] for name, values in flat.items()}
    shown["q_value"] = false_discovery_control(flat["p_value"][order])[: len(best)]
    return Table({"label": label[best], "group": group[best], **shown})


@as_function_of(GroupQueries.drift)
def drift(
    model: Any, data: Any, n: int = 20, *, min_count: float = 1, progress: bool = False
) -> Table:
    """A model with `structure=Dynamic(column)`; not categorical on rows."""
    if model.fitted().spec.context.reads_text:
        return drift_of_words(model, data, n, min_count)
    fitted, rows, codes = _rows_by_slice(model, data)
    middle = np.median(codes)
    late = codes >= max(middle, 1)
    if late.all() or not late.any():
        raise ParameterError("the data only have rows of one half of the time")
    halves = [rows.take_rows(np.flatnonzero(half)) for half in (~late, late)]
    mean = shared_model(fitted)
    errors = [laplace(mean, half_rows, sandwich=True) for half_rows in halves]
    precision = fitted.spec.structure.offset_precision(fitted.spec.prior_rho)
    results = compare_groups(errors, fitted, 1.0 if precision is None else precision, progress)
    offsets = group_offsets(fitted)
    results[0] = np.linalg.norm(offsets[-1] - offsets[0], axis=1)
    table = rank_differences(fitted, ["late"], halves[1:], results[:, 1:], n, min_count)
    return Table({name: table[name] for name in table.columns if name != "group"})


def _check_rows(fitted: FittedEmbedding, question: str, way_out: str) -> None:
    if fitted.spec.context.reads_text:
        raise ParameterError(
            f"{question} needs the errors of embeddings, for which a text has too many rows: use "
            f"{way_out}, or fit the counts of words by document (a Dataset with the same column)"
        )


@as_function_of(GroupQueries.change_points)
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
    """A model with `structure=Dynamic(column)`, on rows; neither text nor categorical."""
    fitted, rows, codes = _rows_by_slice(model, data)
    size, n_shuffles = check_integer("n", n), check_integer("n_permutations", n_permutations)
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
    rng, largest = generator(seed), np.empty(n_shuffles)
    with progress_bar("shuffles", n_shuffles, progress) as advance:
        for i in range(n_shuffles):
            shuffled = whitened[rng.permutation(len(whitened))]
            largest[i] = _statistics(shuffled, before, possible).max()
            advance(1)
    offsets = group_offsets(fitted)[:, entity]
    step = np.linalg.norm(np.diff(offsets, axis=0), axis=1)
    order = np.argsort(-observed, kind="stable")[:size]
    p_value = (1 + (largest[:, None] >= observed[order]).sum(axis=0)) / (n_shuffles + 1)
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
    check_slices(structure)
    _check_rows(fitted, "change_points", "drift(data) or trajectory(words, data)")
    rows = model._bind(data)[1].whole_data
    codes = structure.codes(rows)
    rows_with_time = np.flatnonzero(codes >= 0)
    return fitted, rows.take_rows(rows_with_time), codes[rows_with_time]


def _row_scores(errors: Laplace, entity: int, k: int) -> Floats:
    """Scores of one entity, row by row, (rows, K), without the intercept and the common part."""
    scores, information = errors.row_scores(entity)
    nuisance = information[k:, k:]
    if len(nuisance):
        pull = np.linalg.lstsq(nuisance, information[k:, :k], rcond=None)[0]
        scores = scores[:, :k] - scores[:, k:] @ pull
    return np.asarray(scores - scores.mean(axis=0))


def _whitener(scores: Floats) -> Floats:
    """A matrix that gives the scores unit covariance in the directions in which they vary."""
    values, vectors = np.linalg.eigh(scores.T @ scores / len(scores))
    varies = values > 1e-10 * max(values.max(), 1e-300)
    return np.asarray(vectors[:, varies] / np.sqrt(values[varies]))


def _statistics(whitened: Floats, before: Ints, possible: Bools) -> Floats:
    """Squared difference of the sums before and after each slice, over its variance by chance."""
    sums = np.cumsum(whitened, axis=0)[before[possible] - 1]
    left, n = before[possible].astype(np.float64), len(whitened)
    values = np.zeros(len(before))
    values[possible] = (sums**2).sum(axis=1) * n / (left * (n - left))
    return values
