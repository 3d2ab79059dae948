"""Predictions of a model with given parameters on given data; NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.contexts.base import BoundContext, dense_rows, or_one
from efemb.model.families import Categorical
from efemb.model.huffman import Huffman
from efemb.model.objective import expected_value, log_density, log_sums
from efemb.model.predictor import Cells, Predictor, by_group, row_groups, row_side
from efemb.model.score import (
    log_expected_value,
    normalized_log_likelihood,
    tree_log_likelihood,
)
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.dataset import Dataset
    from efemb.model.factors import Factors

BLOCK_NUMBERS = 1 << 22
ROWS_AT_ONCE = 1 << 16


def check_predictable(spec: Spec, bound: BoundContext) -> None:
    """Reject reverse models in which an entity has more than one context vector."""
    if spec.combine.reverse and (bound.n_slots > 1 or bound.n_dims > 1):
        raise ParameterError(
            "a reverse model predicts the context from the entity; with several context vectors "
            "per entity (Lagged, vector data) it has no conditional mean of the entity itself"
        )


def row_blocks(bound: BoundContext) -> list[Ints]:
    """All rows, in blocks that are small enough to compute all of their cells at once."""
    cost = max(bound.cost_of_row(), bound.n_entities * bound.n_dims, 1)
    size = max(1, BLOCK_NUMBERS // cost)
    rows = np.arange(bound.n_rows)
    return [rows[start : start + size] for start in range(0, bound.n_rows, size)]


def conditional_means(spec: Spec, bound: BoundContext, vectors: Factors) -> Floats:
    """E[x_tn | context] of every cell, (T, N) or (T, N, D).

    A categorical family gives probabilities, which sum to 1 over the entities of a row: the softmax
    of the u_tn, each with the entity's own units removed from its context. So do words that were
    trained with noise, for which u gives the odds.
    """
    means = np.empty((bound.n_rows, bound.n_entities * bound.n_dims))
    for rows, block in mean_blocks(spec, bound, vectors):
        means[rows] = block
    if bound.n_dims == 1:
        return means
    return means.reshape(bound.n_rows, bound.n_entities, bound.n_dims)


def mean_blocks(spec: Spec, bound: BoundContext, vectors: Factors) -> Iterator[tuple[Ints, Floats]]:
    """Some rows, and E[x_tn | context] of all their cells, (rows, N D); see `conditional_means`."""
    check_predictable(spec, bound)
    normalizer = normalizer_of(spec, bound)
    for rows in row_blocks(bound):
        means = means_of(spec, Predictor(vectors).cells(spec, bound, rows), normalizer)
        if normalizer is None and bound.exposure is not None:
            means = means * bound.exposure[rows, None]
        yield rows, means


def means_of(spec: Spec, u: Floats, normalizer: Huffman | Floats | None) -> Floats:
    """E[x | u] of some rows, (rows, N); shares of a row if u determines nothing else."""
    if spec.family.softmax or normalizer is not None:
        return shares_of(spec, u, normalizer)
    return np.asarray(expected_value(spec.family, spec.link, u))


def shares_of(spec: Spec, u: Floats, normalizer: Huffman | Floats | None) -> Floats:
    """m_n / sum_j m_j of the conditional means of some rows, (rows, N)."""
    if isinstance(normalizer, Huffman):
        return normalizer.probabilities(u)
    logarithm = (
        log_expected_value(spec.family, spec.link, u) if normalizer is None else u + normalizer
    )
    return np.asarray(np.exp(logarithm - log_sums(logarithm)[:, None]))


def _log_density_parts(
    spec: Spec, bound: BoundContext, vectors: Factors, weight: Floats | None
) -> tuple[float, float]:
    """Sum of the conditional log-densities of observed numbers, and their weight."""
    check_predictable(spec, bound)
    total = count = 0.0
    for rows in row_blocks(bound):
        x = bound.observed(rows)
        u = Predictor(vectors).cells(spec, bound, rows)
        observed = ~np.isnan(x)
        row_weight = np.ones(len(rows)) if weight is None else weight[rows]
        each = np.broadcast_to(row_weight[:, None], x.shape)[observed]
        family = spec.family.at(np.nonzero(observed)[1]) if spec.family.varies else spec.family
        total += float(each @ log_density(family, spec.link, x[observed], u[observed]))
        count += float(each.sum()) / spec.family.states
    return total, count


def mean_log_density(
    spec: Spec, bound: BoundContext, vectors: Factors, weight: Floats | None
) -> float:
    """Mean conditional log-density per observed number, or per observation of several states."""
    total, count = _log_density_parts(spec, bound, vectors, weight)
    if not count > 0:
        raise DataError("no value is observed (with any weight): there is nothing to score")
    return total / count


def score(spec: Spec, bound: BoundContext, vectors: Factors, weight: Floats | None = None) -> float:
    """Normalized log-likelihood per unit (counts, binary data on rows), or mean log-density."""
    if not _is_scored_by_shares(spec, bound):
        return mean_log_density(spec, bound, vectors, weight)
    total, count = score_parts(spec, bound, vectors, weight)
    if count == 0:
        raise DataError(
            "no row has two or more non-zero entities, so there is no context to predict from"
        )
    return total / count


def _is_scored_by_shares(spec: Spec, bound: BoundContext) -> bool:
    shares = spec.family.normalized_score and not spec.family.judged_by_density
    return shares and bound.n_dims == 1 and bound.shares_rows


def score_parts(
    spec: Spec, bound: BoundContext, vectors: Factors, weight: Floats | None = None
) -> tuple[float, float]:
    """The sum of scores and the weight, whose ratio is `score`; both add up over parts of data."""
    if not _is_scored_by_shares(spec, bound):
        return _log_density_parts(spec, bound, vectors, weight)
    total = count = 0.0
    normalizer = normalizer_of(spec, bound)
    side, groups = row_side(spec, bound), row_groups(spec, bound)
    for start in range(0, bound.n_rows, ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, bound.n_rows))
        block = bound.scored_block(rows, reverse=spec.combine.reverse)
        cells = Cells.leave_one_out(block, bound.n_context_vectors)
        scored = cells.known().with_terms(side, rows[block.row], groups)
        if len(scored.x):
            each = cell_scores(spec, scored, vectors, normalizer)
            units = scored.x if weight is None else scored.x * weight[rows][block.row[scored.row]]
            total, count = total + float(units @ each), count + float(units.sum())
    return total, count


def cell_scores(
    spec: Spec, known: Cells, vectors: Factors, normalizer: Huffman | Floats | None
) -> Floats:
    """Normalized log-likelihood of each cell; `normalizer` is that of the model."""
    if isinstance(normalizer, Huffman):
        return tree_log_likelihood(normalizer, known, vectors)
    if normalizer is None:
        return normalized_log_likelihood(spec.family, spec.link, known, vectors)
    shifted = vectors.plus(normalizer)
    return normalized_log_likelihood(Categorical(), spec.link, known, shifted)


def check_entries(entries: Any, n_rows: int, n_entities: int) -> tuple[Ints, Ints]:
    """A pair of integer arrays (rows, entities) inside the data."""
    try:
        rows, entities = (np.atleast_1d(np.asarray(part)) for part in entries)
    except (TypeError, ValueError) as error:
        raise InputTypeError("entries must be a pair of integer arrays (rows, entities)") from error
    if rows.shape != entities.shape or rows.ndim != 1:
        raise ParameterError("entries must be two integer arrays of the same length")
    for name, index, size in (("rows", rows, n_rows), ("entities", entities, n_entities)):
        if not np.issubdtype(index.dtype, np.integer):
            raise InputTypeError(f"{name} of the entries must be integers, got {index.dtype}")
        if len(index) and (index.min() < 0 or index.max() >= size):
            raise ParameterError(f"{name} of the entries must lie in 0 ... {size - 1}")
    return rows, entities


def log_mean_blocks(
    spec: Spec, bound: BoundContext, vectors: Factors, rows: Any, entities: Any
) -> Iterator[tuple[slice, Floats]]:
    """Logarithms of the conditional means of all entities, given rows that lack one entity each.

    Yields (slice of the queried cells, array (cells, N)); a cell's entity is removed from its row
    if it is there. Categorical families and words trained with noise determine them only up to
    a constant.
    """
    shares = spec.family.normalized_score and bound.n_dims == 1
    if not (shares and bound.shares_rows):
        raise ParameterError("log_means is for counts and binary data whose contexts are rows")
    if isinstance(normalizer_of(spec, bound), Huffman):
        raise ParameterError("the words of a tree have no means: use conditional or predict")
    rows, entities = check_entries((rows, entities), bound.n_rows, bound.n_entities)
    return _log_mean_blocks(spec, bound, vectors, rows, entities)


def _log_mean_blocks(
    spec: Spec, bound: BoundContext, vectors: Factors, rows: Ints, entities: Ints
) -> Iterator[tuple[slice, Floats]]:
    distinct, inverse = np.unique(rows, return_inverse=True)
    cells = Cells.of_rows(bound.block(distinct), bound.n_context_vectors, inverse, entities)
    cells = cells.with_terms(row_side(spec, bound), distinct, row_groups(spec, bound))
    noise: Any = normalizer_of(spec, bound)  # a tree has no means
    predictor = Predictor(vectors)
    for part, Z in cells.contexts(vectors, bound.n_entities):
        u = cells.apply(predictor, part, Z)
        yield part, log_expected_value(spec.family, spec.link, u) if noise is None else u + noise


def normalizer_of(spec: Spec, bound: BoundContext) -> Huffman | Floats | None:
    """The normalizer of a model on bound data; see `normalizer_of_words`."""
    return normalizer_of_words(spec, bound.word_counts) if bound.is_text else None


def normalizer_of_words(spec: Spec, counts: Floats) -> Huffman | Floats | None:
    """The array or tree that turns inner products into shares in text models, or None.

    A tree for the hierarchical softmax. Words distinguished from n draws of noise q have odds
    p / (n q) = exp(u), so p is proportional to q exp(u): the logarithm of q. None otherwise.
    """
    if spec.zeros.tree:
        return Huffman.of(counts)
    if spec.zeros.odds and spec.family.logistic:
        share = spec.zeros.entity_weights(np.maximum(counts, 0.5))
        return np.log(np.maximum(share, 1e-30))  # a user's distribution may contain zeros
    return None


def document_embedding(corpus: Corpus, alpha: Floats, scale: str) -> Floats:
    """Sum (or mean) of the context vectors of each document's words, (documents, K)."""
    embedding = np.zeros((corpus.n_documents, alpha.shape[1]), dtype=alpha.dtype)
    for i, (start, end) in enumerate(pairwise(corpus.starts.tolist())):
        if end > start:
            words = alpha[corpus.tokens[start:end]]
            embedding[i] = words.sum(axis=0) if scale == "none" else words.mean(axis=0)
    return embedding


def row_embedding(spec: Spec, data: Dataset, alpha: Floats, center: Floats | None = None) -> Floats:
    """The whole row's context sum X alpha / d, (T, K): missing values skipped, empty rows 0.

    Values are measured from the center of their column, if there is one.
    """
    if center is not None:
        dense = data.values.toarray() if data.is_sparse else data.values
        data = data._replace((dense - center).astype(dense.dtype))
    scale, binary = spec.context.scale, bool(getattr(spec.context, "binary", False))
    flat = alpha[: data.n_entities * data.n_dims]
    embedding = np.zeros((data.n_rows, flat.shape[1]), dtype=flat.dtype)
    for start in range(0, data.n_rows, 4096):
        rows = np.arange(start, min(start + 4096, data.n_rows))
        values, total = _scaled_rows(data, rows, scale, binary)
        divisor = or_one(total + spec.context.pseudo_count)
        sums = values.astype(flat.dtype) @ flat
        embedding[rows] = np.asarray(sums) / divisor.astype(flat.dtype)[:, None]
    return embedding


def embed_groups(
    spec: Spec, data: Any, vectors: Factors, embed: Callable[[Any, Floats], Floats]
) -> Floats:
    """Whole rows, or documents, each with the context vectors of its group, (T, K).

    embed : embeds some of them, given context vectors
    """
    take = data.take if spec.context.reads_text else data.take_rows
    parts = by_group(spec.structure.codes(data))
    sums = [embed(take(places), vectors.of_group(group).bag) for group, places in parts]
    order = np.argsort(np.concatenate([places for _, places in parts]))
    return np.concatenate(sums)[order]


def _scaled_rows(data: Dataset, rows: Ints, scale: str, binary: bool) -> tuple[Floats, Floats]:
    """Values of the members, and the divisor of their sum."""
    if data.is_sparse:
        sparse = data.values[rows]
        if binary:
            sparse = (sparse != 0).astype(np.float64)
        count = np.diff(sparse.indptr) if scale == "items" else np.asarray(sparse.sum(axis=1))
        return sparse, np.ones(len(rows)) if scale not in ("items", "total") else count
    dense = dense_rows(data, rows)
    values = np.nan_to_num(dense)
    if binary:
        values = (values != 0).astype(np.float64)
    total = np.ones(len(rows))
    if scale == "items":
        total = (values != 0).any(axis=2).sum(axis=1).astype(np.float64)
    elif scale == "total":
        total = values.sum(axis=(1, 2))
    return values.reshape(len(rows), -1), total


def context_sums(
    spec: Spec, bound: BoundContext, vectors: Factors, rows: Ints, entities: Ints
) -> Floats:
    """s_tn / d_tn of the queried cells, (n, K); NaN if the observation is missing."""
    codes = row_groups(spec, bound) if vectors.own_contexts else None
    sums = np.empty((len(rows), vectors.n_bag))
    for group, places in by_group(None if codes is None else codes[rows]):
        group_vectors = vectors.of_group(group)
        sums[places] = _context_sums(bound, group_vectors, rows[places], entities[places])
    return sums


def _context_sums(bound: BoundContext, vectors: Factors, rows: Ints, entities: Ints) -> Floats:
    distinct, inverse = np.unique(rows, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    sums_of_cells = np.full((len(rows), vectors.bag.shape[1]), np.nan)
    # The terms of a row include all its entities, with K numbers each.
    step = max(
        1, BLOCK_NUMBERS // (max(bound.cost_of_row(), bound.n_entities) * sums_of_cells.shape[1])
    )
    edges = np.searchsorted(inverse[order], np.arange(0, len(distinct) + step, step))
    for first, (begin, end) in zip(range(0, len(distinct), step), pairwise(edges), strict=True):
        cells = order[begin:end]
        terms = bound.terms(distinct[first : first + step])
        sums = terms.contexts(vectors.bag)
        table = np.full((step, bound.n_entities), -1, dtype=np.int64)
        table[terms.row, terms.entity // bound.n_dims] = np.arange(len(terms.row))
        where = table[inverse[cells] - first, entities[cells]]
        sums_of_cells[cells[where >= 0]] = sums[where[where >= 0]]
    return sums_of_cells
