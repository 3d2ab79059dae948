"""stability: how much of a model depends on the data, and how much on the random seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.nearest import largest_products, unit_rows
from efemb.table import Table, whole_numbers


def stability(
    models: Sequence[Any] | Callable[[int], Any],
    n: int = 10,
    *,
    seeds: int | Sequence[int] = 5,
    progress: bool = False,
) -> Stability:
    """Compare fits of the same model that differ only in their seed.

    Overlap is the fraction of an entity's `n` nearest neighbors (cosine of rho) that two fits
    share; it does not depend on rotations. Agreement is the cosine of an entity's two embeddings
    after the best orthogonal map of one fit onto the other (Procrustes): a model with Normal priors
    is invariant under rotations of all its vectors.

    Parameters
    ----------
    models : list of fitted models, or function from a seed to a fitted model
    n : int, default=10
        Number of neighbors that are compared.
    seeds : int or list of int, default=5
        Number of fits, or their seeds, if `models` is a function.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import efemb
    >>> from efemb.inference import stability
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=2000, n_entities=20, n_components=2, seed=0
    ... ).data
    >>> def fit(seed):
    ...     return efemb.PoissonEmbedding(2, random_state=seed).fit(trips)
    >>> agreement = stability(fit, n=3, seeds=3)
    >>> 0.0 <= agreement.overlap <= 1.0, len(agreement.entities)
    (True, 20)
    """
    check_integer("n", n)
    fitted = [model.fitted() for model in _fit_models(models, seeds, progress)]
    if len(fitted) < 2:
        raise ParameterError(f"stability compares at least 2 models, got {len(fitted)}")
    vectors = _align(fitted)
    if n > len(vectors[0]) - 1:
        raise ParameterError(
            f"n must be at most {len(vectors[0]) - 1}, the other entities; got {n}"
        )
    near = [find_neighbors(rho, n) for rho in vectors]
    pairs = list(combinations(range(len(vectors)), 2))
    overlap = np.stack([measure_overlap(near[i], near[j]) for i, j in pairs])
    agreement = np.stack([_measure_agreement(vectors[i], vectors[j]) for i, j in pairs])
    # A vector of zeros (of a neuron that never varied) has no direction and no neighbors.
    undirected = ~np.all([rho.any(axis=1) for rho in vectors], axis=0)
    if undirected.all():
        raise DataError("no entity has a vector other than 0 in every fit")
    overlap[:, undirected] = agreement[:, undirected] = np.nan
    return Stability(n, len(vectors), fitted[0].vocabulary, pairs, overlap, agreement)


@dataclass(frozen=True, repr=False)
class Stability:
    """Overlap and agreement of several fits; prints as a summary.

    n : neighbors;  n_models : fits;  vocabulary : labels or None
    pair : (model, model) of each comparison
    overlap_of, agreement_of : (pairs, N) by pair and entity; NaN if a vector is 0
    """

    n: int
    n_models: int
    vocabulary: Vocabulary | None
    pair: list[tuple[int, int]]
    overlap_of: Floats
    agreement_of: Floats

    @property
    def overlap(self) -> float:
        """Mean fraction of the neighbors that two fits share."""
        return float(np.nanmean(self.overlap_of))

    @property
    def agreement(self) -> float:
        """Mean cosine of the two embeddings of an entity after rotation."""
        return float(np.nanmean(self.agreement_of))

    @property
    def chance(self) -> float:
        """Expected overlap of unrelated vectors."""
        return float(self.n / (self.overlap_of.shape[1] - 1))

    @property
    def entities(self) -> Table:
        """Overlap and agreement of every entity that has a vector, the least stable first."""
        overlap, agreement = self.overlap_of.mean(axis=0), self.agreement_of.mean(axis=0)
        order = np.lexsort((agreement, overlap))[: np.count_nonzero(~np.isnan(overlap))]
        vocabulary = self.vocabulary
        labels = order if vocabulary is None else vocabulary.labels[order]
        columns: dict[str, Any] = {"entity": labels}
        if vocabulary is not None and vocabulary.counts is not None:
            columns["count"] = whole_numbers(vocabulary.counts[order])
        return Table({**columns, "overlap": overlap[order], "agreement": agreement[order]})

    @property
    def pairs(self) -> Table:
        """Overlap and agreement of each pair of fits."""
        first, second = zip(*self.pair, strict=True)
        return Table(
            {
                "model": list(first),
                "other": list(second),
                "overlap": np.nanmean(self.overlap_of, axis=1),
                "agreement": np.nanmean(self.agreement_of, axis=1),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """The summary as numbers and text."""
        return {
            "n_models": self.n_models,
            "n": self.n,
            "overlap": self.overlap,
            "chance": self.chance,
            "agreement": self.agreement,
            "stable_entities": float((self.entities["overlap"] >= 0.5).mean()),
        }

    def __repr__(self) -> str:
        """A few sentences."""
        stable = self.to_dict()["stable_entities"]
        return (
            f"{self.n_models} fits share {self.overlap:.0%} of the {self.n} nearest neighbors of "
            f"an entity ({self.chance:.1%} by chance).\n"
            f"After rotation an entity's embeddings have a cosine of {self.agreement:.2f}.\n"
            f"{stable:.0%} of the entities retain at least half of their neighbors; .entities "
            "lists the others first."
        )


def _fit_models(models: Any, seeds: Any, progress: bool) -> list[Any]:
    if not callable(models):
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise InputTypeError("stability takes a list of fitted models, or a function of a seed")
        return list(models)
    if isinstance(seeds, (int, np.integer)):
        check_integer("seeds", seeds)
        seeds = range(int(seeds))
    fits = []
    with progress_bar("fits", len(seeds), progress) as advance:
        for seed in seeds:
            fits.append(models(int(seed)))
            advance(1)
    return fits


def _align(fitted: list[FittedEmbedding]) -> list[Floats]:
    """Embeddings of all fits, entities in the order of the first."""
    first = fitted[0].vocabulary
    aligned: list[Floats] = []
    for model in fitted:
        rho, own = model.parameters.rho, model.vocabulary
        if rho.ndim > 2 or len(rho) != model.n_entities:
            raise ParameterError("stability needs one embedding per entity")
        if model.n_entities != fitted[0].n_entities or (own is None) != (first is None):
            raise DataError("the models do not have the same entities")
        if first is not None and own is not None and own != first:
            rho = rho[[own.index_of(label) for label in first]]
        aligned.append(rho.astype(np.float64))
    return aligned


def find_neighbors(vectors: Floats, n: int) -> Ints:
    """The n nearest others of every entity by cosine."""
    unit = unit_rows(vectors)
    return find_strongest(unit, unit, n)


def find_strongest(target: Floats, bag: Floats, n: int) -> Ints:
    """The n others with the largest inner product with every entity of `bag`."""
    best, _ = largest_products(target, bag, n + 1)
    itself = best == np.arange(len(bag))[:, None]
    itself[~itself.any(axis=1), -1] = True  # not among its own best: drop the last of them
    return np.asarray(best[~itself]).reshape(len(bag), n)


def measure_overlap(left: Ints, right: Ints) -> Floats:
    """Fraction of common neighbors per entity."""
    return np.asarray((left[:, :, None] == right[:, None, :]).any(axis=2).mean(axis=1))


def _measure_agreement(left: Floats, right: Floats) -> Floats:
    """Cosines after the best orthogonal map of `right` onto `left`; K may differ."""
    k = max(left.shape[1], right.shape[1])
    left, right = (np.pad(rho, ((0, 0), (0, k - rho.shape[1]))) for rho in (left, right))
    u, _, v = np.linalg.svd(right.T @ left)
    return np.asarray(np.einsum("nk,nk->n", unit_rows(left), unit_rows(right @ (u @ v))))
