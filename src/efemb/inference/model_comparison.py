"""compare_models: differences between two models, such as two stores or two seasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.labeled import LabeledVectors
from efemb.fitted.vectors import entity_vectors, predicting_vectors
from efemb.inference.seed_stability import find_neighbors, find_strongest, measure_overlap
from efemb.table import Table

SHOWN = 3  # gained and lost items


def compare_models(a: Any, b: Any, n: int = 10) -> ModelComparison:
    """Compare two models on the items that both have.

    For every common item, the `n` nearest neighbors (cosine of rho) and the `n` strongest
    complements (largest rho_n . alpha_m) among the common items are compared. Neither depends on
    rotations. Two fits of the same data differ as well, by their seeds: pass several fits of each
    model, and a difference counts as a change only if it is larger than those.

    Parameters
    ----------
    a, b : fitted model, or list of fitted models that differ only in their seed
        Estimators or results of `efemb.load`. The first of a list is the model itself.
    n : int, default=10
        Number of neighbors and complements per item.

    Returns
    -------
    ModelComparison
        Prints as a summary; `neighbors` and `complements` are tables, the largest change first.

    Examples
    --------
    >>> import efemb
    >>> def season(seed):
    ...     trips = efemb.simulation.simulate(
    ...         "p-emb", n_rows=500, n_entities=12, n_components=2, seed=seed
    ...     )
    ...     data = efemb.Dataset(trips.data.values, entities=list("abcdefghijkl"))
    ...     return [efemb.PoissonEmbedding(2, random_state=fit).fit(data) for fit in (0, 1)]
    >>> both = efemb.compare_models(season(0), season(1), n=3)
    >>> len(both.common), both.neighbors.columns[:4]
    (12, ['label', 'shared', 'seeds', 'change'])
    """
    check_integer("n", n)
    fits = [_read_fits(models, name) for models, name in ((a, "a"), (b, "b"))]
    labels = [_labels_of(group) for group in fits]
    common = [label for label in labels[0] if label in labels[1]]
    if len(common) < 3:
        raise DataError(f"the models have {len(common)} items in common: at least 3 are needed")
    if n > len(common) - 1:
        raise ParameterError(
            f"n must be at most {len(common) - 1}, the other common items; got {n}"
        )
    rotated = [[_take(fit, common) for fit in group] for group in fits]
    near = [[find_neighbors(rho, n) for rho, _ in group] for group in rotated]
    related = None
    if all(fit.lists is None and fit.spec.combine.inner_product for group in fits for fit in group):
        related = [[_strongest(fit, common, n) for fit in group] for group in fits]
    vocabulary = Vocabulary(common)
    only = [[label for label in labels[i] if label not in labels[1 - i]] for i in (0, 1)]
    return ModelComparison(
        n,
        vocabulary,
        only[0],
        only[1],
        _tabulate(vocabulary, near, "neighbors"),
        None if related is None else _tabulate(vocabulary, related, "complements"),
        *_align(vocabulary, rotated[0][0], rotated[1][0]),
    )


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """Similarities and differences of two models; prints as a summary.

    Attributes
    ----------
    n : int
        Number of neighbors and complements that were compared.
    common : Vocabulary
        Items of both models.
    only_a, only_b : list of labels
        Items of one model only.
    neighbors, complements : Table
        Per common item: shared (mean fraction that a fit of one model shares with a fit of the
        other), seeds (the same between fits of one model; NaN if there is a single fit of each),
        change (seeds - shared), verdict, and up to three items that were gained and lost (in all
        fits of one model and in none of the other). The verdict is "changed" if every fit of one
        model is farther from every fit of the other than any two fits of the same model. With m
        fits of each, seeds alone do so in at most one of (2m)! / (2 m! m!) cases: 1 of 3 for two,
        1 of 10 for three. `complements` is None for contexts that are lists.
    vectors_a, vectors_b : LabeledVectors
        Embeddings of the common items; those of b after the orthogonal map onto a that fits best
        (Procrustes, by rho and alpha together).
    """

    n: int
    common: Vocabulary
    only_a: list[Any]
    only_b: list[Any]
    neighbors: Table
    complements: Table | None
    vectors_a: LabeledVectors
    vectors_b: LabeledVectors

    def __repr__(self) -> str:
        """A few sentences."""
        lines = [
            f"{len(self.common):,} items in both models, {len(self.only_a):,} only in the first, "
            f"{len(self.only_b):,} only in the second"
        ]
        for name, table in (("neighbors", self.neighbors), ("complements", self.complements)):
            if table is None:
                continue
            shared, seeds = float(table["shared"].mean()), float(table["seeds"].mean())
            line = f"{name}: {shared:.0%} of the {self.n} are the same"
            if seeds == seeds:
                changed = int((table["verdict"] == "changed").sum())
                line += f" ({seeds:.0%} between seeds); changed: {changed:,} items"
            lines.append(line)
        if np.isnan(self.neighbors["seeds"]).all():
            lines.append("pass several fits of each model to distinguish changes from seeds")
        return "\n".join(lines)


def _read_fits(models: Any, name: str) -> list[FittedEmbedding]:
    group = list(models) if isinstance(models, Sequence) else [models]
    if not group or not all(hasattr(model, "fitted") for model in group):
        raise InputTypeError(
            f"{name} must be a fitted embedding or a list of them, got {models!r:.80}"
        )
    return [model.fitted() for model in group]


def _labels_of(fits: list[FittedEmbedding]) -> Vocabulary:
    """Labels of all fits of one model; items without labels are compared by their numbers."""
    first = fits[0].entities
    if any(len(fit.entities) != len(first) or set(fit.entities) != set(first) for fit in fits[1:]):
        raise DataError("fits of one model that differ only in their seed have the same items")
    return first


def _take(fit: FittedEmbedding, common: list[Any]) -> tuple[Floats, Floats]:
    """rho and alpha of the common items, (items, K) each."""
    codes = [fit.entities.index_of(label) for label in common]
    rho = entity_vectors(fit, "rho")[codes].astype(np.float64)
    if len(fit.parameters.alpha) != len(fit.parameters.rho):  # lags have several per item
        return rho, rho
    return rho, entity_vectors(fit, "alpha")[codes].astype(np.float64)


def _strongest(fit: FittedEmbedding, common: list[Any], n: int) -> Ints:
    """The n items that every common item makes most probable."""
    codes = [fit.entities.index_of(label) for label in common]
    target, bag = (array[codes].astype(np.float64) for array in predicting_vectors(fit))
    return find_strongest(target, bag, n)


def _tabulate(labels: Vocabulary, lists: list[list[Ints]], what: str) -> Table:
    """Overlaps of the lists of items between and within models, the largest change first."""
    between = np.stack([measure_overlap(x, y) for x, y in product(*lists)])
    pairs = [pair for group in lists for pair in combinations(group, 2)]
    within = np.stack([measure_overlap(x, y) for x, y in pairs]) if pairs else None
    shared = between.mean(axis=0)
    seeds = np.full(len(shared), np.nan) if within is None else within.mean(axis=0)
    verdict = np.full(len(shared), "unknown" if within is None else "within noise", dtype=object)
    if within is not None:
        verdict[between.max(axis=0) < within.min(axis=0)] = "changed"
    gained, lost = (_new_in_lists(labels, *pair) for pair in ((lists[0], lists[1]), lists[::-1]))
    change = seeds - shared
    first = np.where(np.isnan(change), -shared, change)
    order = np.lexsort((-first, verdict != "changed"))
    note = (
        f"shared: of the {lists[0][0].shape[1]} {what}, between the models; seeds: between fits of "
        "one model"
    )
    columns = {"label": labels.labels, "shared": shared, "seeds": seeds, "change": change}
    columns |= {"verdict": verdict, "gained": gained, "lost": lost}
    return Table({name: values[order] for name, values in columns.items()}, note)


def _new_in_lists(labels: Vocabulary, before: list[Ints], after: list[Ints]) -> Any:
    """Per item, the first items in every list of `after` that are in no list of `before`."""
    texts = np.empty(len(labels), dtype=object)
    for item in range(len(labels)):
        earlier = set().union(*(each[item].tolist() for each in before))
        always = set.intersection(*(set(each[item].tolist()) for each in after))
        new = [code for code in after[0][item].tolist() if code in always and code not in earlier]
        texts[item] = ", ".join(str(labels[code]) for code in new[:SHOWN])
    return texts


def _align(
    labels: Vocabulary, a: tuple[Floats, Floats], b: tuple[Floats, Floats]
) -> tuple[LabeledVectors, LabeledVectors]:
    """Embeddings of both, b rotated onto a; the shorter vectors are padded with zeros."""
    k = max(a[0].shape[1], b[0].shape[1])
    padded = [
        [np.pad(side, ((0, 0), (0, k - side.shape[1]))) for side in model] for model in (a, b)
    ]
    first, second = (np.concatenate(model) for model in padded)
    u, _, v = np.linalg.svd(second.T @ first)
    return LabeledVectors(labels, padded[0][0]), LabeledVectors(labels, padded[1][0] @ (u @ v))
