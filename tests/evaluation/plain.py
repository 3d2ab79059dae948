"""Evaluation by its definition: one entry at a time, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import efemb
from efemb.model.parameters import Parameters

Array = Any


def embedding(
    model: Any, n_entities: int, n_components: int = 2, seed: int = 0, **fields: Any
) -> efemb.fitted.FittedEmbedding:
    """A model of the given ingredients with random vectors (positive where they must be)."""
    rng = np.random.default_rng(seed)
    spec = model._spec()
    arrays = [rng.normal(0, 0.5, (n_entities, n_components)) for _ in range(2)]
    intercept = rng.normal(-0.5, 0.5, n_entities)
    if spec.positive_rho:
        arrays, intercept = [np.exp(one) for one in arrays], np.exp(intercept)
    parameters = Parameters(*arrays, intercept if spec.intercept else None)
    return efemb.fitted.FittedEmbedding(parameters, spec, **fields)


class Table:
    """A model whose log means are a function of the row without the asked entity."""

    def __init__(self, log_means: Callable[[Array], Array], family: Any = None, block: int = 3):
        self.family_ = family or efemb.Poisson()
        self._log_means, self._block = log_means, block

    def log_means(self, X: Any, rows: Array, entities: Array) -> Iterator[tuple[slice, Array]]:
        dense = X.values.toarray() if X.is_sparse else X.values
        for start in range(0, len(rows), self._block):
            part = slice(start, min(start + self._block, len(rows)))
            left = dense[rows[part]].copy()
            left[np.arange(len(left)), entities[part]] = 0
            yield part, np.array([self._log_means(row) for row in left])


def means_given(model: efemb.fitted.FittedEmbedding, row: Array) -> Array:
    """Conditional mean of every entity given the items of a basket."""
    p, context = model.parameters, model.spec.context
    total, divisor = np.zeros(p.alpha.shape[1]), 0.0
    for m, value in enumerate(row):
        if value != 0:
            share = 1.0 if context.binary else value
            total = total + share * p.alpha[m]
            divisor += {"items": 1.0, "total": share, "none": 0.0}[context.scale]
    u = p.rho @ (total / (divisor or 1.0))
    u = u if p.intercept is None else u + p.intercept
    if model.spec.link.name() == "log":
        return np.maximum(u, 1e-6)
    if model.spec.family.name() == "bernoulli":
        return 1 / (1 + np.exp(-u))
    return np.exp(u)


def rank_of(means: Array, n: int, context: Array) -> float:
    """Place of n among the entities that are not in the context; a tie counts half."""
    rank = 1.0
    for j in range(len(means)):
        if j == n or context[j] != 0:
            continue
        rank += 1.0 if means[j] > means[n] else 0.5 if means[j] == means[n] else 0.0
    return rank


def judged_entries(
    means_of: Callable[[Array], Array], X: Array, entries: Array | None = None
) -> tuple[list[tuple[int, int, float, float, float]], int]:
    """(row, entity, x, log share, rank) of each entry, and how many had no context.

    Without `entries`, every non-zero entry of X given the rest of its row.
    """
    found, skipped = [], 0
    for t, n in np.argwhere((X if entries is None else entries) != 0).tolist():
        context = X[t].copy()
        context[n] = 0
        if not context.any():
            skipped += 1
            continue
        means = means_of(context)
        share = math.log(means[n] / sum(means))
        x = float(X[t, n] if entries is None else entries[t, n])
        found.append((t, n, x, share, rank_of(means, n, context)))
    return found, skipped


def unit_mean(values: list[float], units: list[float]) -> tuple[float, float, float]:
    """Mean, standard error and number over units, every unit written out (whole numbers)."""
    each = [value for value, x in zip(values, units, strict=True) for _ in range(int(x))]
    mean = sum(each) / len(each)
    spread = math.sqrt(sum((one - mean) ** 2 for one in each) / len(each))
    return mean, spread / math.sqrt(len(each)), float(len(each))


def neighbor_mean(
    model: efemb.fitted.FittedEmbedding, values: Array, t: int, n: int
) -> tuple[float, int]:
    """Conditional mean of a cell from its fixed lists, and how many members were observed."""
    p, inner, size = model.parameters, 0.0, 0
    assert model.lists is not None
    for part in model.lists:
        total, divisor = np.zeros(p.rho.shape[1]), 0.0
        for edge in range(part.ptr[n], part.ptr[n + 1]):
            m, s = int(part.members[edge]), t + int(part.offset[edge])
            if not 0 <= s < len(values) or np.isnan(values[s, m]):
                continue
            size += 1
            total = total + values[s, m] * p.alpha[part.slot[edge] * values.shape[1] + m]
            divisor += {"items": 1.0, "none": 0.0}[part.scale]
        inner += float(p.rho[n] @ total) / (divisor or 1.0)
    return inner + (0.0 if p.intercept is None else float(p.intercept[n])), size
