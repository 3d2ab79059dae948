"""Zeros: how the terms with x = 0 enter the objective and its gradient."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

import numpy as np

from efemb._typing import Floats
from efemb.errors import DataError, ParameterError, check_integer, suggest
from efemb.model.ingredient import Ingredient, flag, positive_number

DISTRIBUTIONS = ("popularity", "uniform", "sqrt", "smoothed")
DRAWN_PER = ("batch", "row")


class Zeros(Ingredient, ABC):
    """How observations of 0 are treated; `gradient` is the resulting kind of gradient."""

    gradient: ClassVar[str]
    weight: float
    n: int = 0  # number of draws, if zeros are drawn
    distribution: object = "popularity"  # of the draws
    among_draws: ClassVar[bool] = False  # a softmax among the word and its draws
    draws_by_row: bool = False  # each row has draws of its own
    shared: bool = True  # the words around a word share their draws
    of_softmax: ClassVar[bool] = False  # replaces the sum over all entities in a softmax
    tree: ClassVar[bool] = False  # target vectors belong to the nodes of a tree, not to entities
    by_noise: ClassVar[bool] = False  # positives are distinguished from draws of noise
    odds: ClassVar[bool] = False  # the model fits odds against the noise, not means

    def weigh_rows(self, weight: Floats, n_positives: Floats) -> Floats:
        """Weight of a zero in each row, from the weights and the positives of the rows."""
        return np.asarray(weight * weight.dtype.type(self.weight))

    def entity_weights(self, popularity: Floats) -> Floats:
        """Expected weight of a zero of each entity (float64)."""
        return np.ones(len(popularity))

    def check(self) -> None:
        """Raise if an option is out of range."""
        positive_number(self, "weight", zero=True)


class All(Zeros):
    """Every zero, exactly, each with the same weight.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of a zero in the objective; 0.1 is the paper's "dw".

    Examples
    --------
    >>> import efemb
    >>> trips = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> model = efemb.PoissonEmbedding(2, zeros=All(0.1), random_state=0).fit(trips)
    >>> model.gradient_
    'exact'
    """

    gradient = "exact"

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight


class Sampled(Zeros):
    """`n` drawn zeros, rescaled by their inclusion probabilities: unbiased.

    Parameters
    ----------
    n : int, default=1024
        Entities drawn for a minibatch, or for each row.
    distribution : str or array of N numbers, default="popularity"
        Distribution of the draws: "popularity" (in proportion to the counts), "smoothed" or "sqrt"
        (to the counts to the power of 3/4 or 1/2), "uniform", or numbers, which need not add up
        to 1. It is mixed with the uniform distribution in equal parts, so that no entity stays
        unvisited for long.
    weight : float, default=1.0
        Weight of a zero in the objective.
    per : {"batch", "row"}, default="batch"
        "batch" draws `n` entities for a minibatch, which all its rows share: matrix products.
        "row" draws `n` entities for each row, anew in every iteration, as the paper does with
        n = 10; a drawn entity that is not zero in the row counts only as the positive it is.

    Examples
    --------
    >>> import efemb
    >>> trips = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> model = efemb.PoissonEmbedding(2, zeros=Sampled(2, per="row"), random_state=0).fit(trips)
    >>> model.gradient_
    'unbiased'
    """

    gradient = "unbiased"

    def __init__(
        self,
        n: int = 1024,
        distribution: object = "popularity",
        weight: float = 1.0,
        per: str = "batch",
    ) -> None:
        self.n = n
        self.distribution = distribution
        self.weight = weight
        self.per = per

    @property
    def draws_by_row(self) -> bool:  # type: ignore[override]
        """Whether each row has its own zeros."""
        return self.per == "row"

    def check(self) -> None:
        """`n` must be a positive integer, `weight` >= 0, and `per` "batch" or "row"."""
        super().check()
        check_integer(f"{type(self).__name__}.n", self.n)
        if not isinstance(self.per, str) or self.per not in DRAWN_PER:
            raise ParameterError(
                f"unknown per={self.per!r} of Sampled; {suggest(self.per, DRAWN_PER)}"
            )


class NegativeSampling(Zeros):
    """`n` zeros for each positive, not rescaled: biased toward the positives, as in word2vec.

    On rows, log(n q) of the noise q is subtracted from inner products if there is an intercept to
    compensate for it: means are then proportional to those without noise.

    Parameters
    ----------
    n : int, default=10
        Draws for each positive.
    distribution : str or array of N numbers, default="popularity"
        Distribution of the draws: "popularity" (in proportion to the counts), "smoothed" or "sqrt"
        (to the counts to the power of 3/4 or 1/2), "uniform", or numbers, which need not add up
        to 1.
    shared : bool, default=True
        For skip-gram on text: True draws `n` words for each word, which all words around it
        share; False draws them anew for each of those, as word2vec does.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> zeros = NegativeSampling(5, "smoothed")
    >>> model = efemb.SkipGram(4, zeros=zeros, min_count=1, random_state=0).fit(text)
    >>> model.gradient_
    'biased'
    """

    gradient = "biased"
    weight = 1.0
    by_noise = True
    odds = True

    def __init__(
        self, n: int = 10, distribution: object = "popularity", shared: bool = True
    ) -> None:
        self.n = n
        self.distribution = distribution
        self.shared = shared

    def weigh_rows(self, weight: Floats, n_positives: Floats) -> Floats:
        """n times the number of positives of each row."""
        return (weight * n_positives * self.n).astype(weight.dtype)

    def entity_weights(self, popularity: Floats) -> Floats:
        """The noise: the share of the draws that each entity gets."""
        return probabilities(self.distribution, popularity)

    def check(self) -> None:
        """`n` must be a positive integer, and `shared` True or False."""
        check_integer(f"{type(self).__name__}.n", self.n)
        flag(f"{type(self).__name__}.shared", self.shared)


class NoiseContrastive(NegativeSampling):
    """Distinguish each word from `n` draws of known noise (Mnih and Kavukcuoglu 2013).

    Categorical family: u - log(n q) is compared with 0, so that u itself tends to the logarithm of
    a probability. With more draws the gradient approaches that of the exact softmax. On rows, the
    units of a minibatch share the draws, at most 1,024 entities.

    Parameters
    ----------
    n : int, default=10
        Draws for each word, or for each unit of a row.
    distribution : str or array of N numbers, default="popularity"
        Distribution of the draws: "popularity" (in proportion to the counts), "smoothed" or "sqrt"
        (to the counts to the power of 3/4 or 1/2), "uniform", or numbers, which need not add up
        to 1.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> zeros = NoiseContrastive(5)
    >>> efemb.CBOW(4, zeros=zeros, min_count=1, random_state=0).fit(text).solver_
    'windows'
    """

    of_softmax = True
    odds = False

    def __init__(self, n: int = 10, distribution: object = "popularity") -> None:
        super().__init__(n, distribution)


class SampledSoftmax(NegativeSampling):
    """A softmax among each word and `n` draws of noise, corrected by log(n q) (Bengio 2008).

    Categorical family. With more draws the gradient approaches that of the exact softmax. On rows,
    `n` different entities are drawn for a minibatch, which all its units share; each is weighted by
    the inverse of its inclusion probability, so that n = N is the exact softmax. Use hundreds.

    Parameters
    ----------
    n : int, default=10
        Draws for each word, or for each minibatch of rows.
    distribution : str or array of N numbers, default="popularity"
        Distribution of the draws: "popularity" (in proportion to the counts), "smoothed" or "sqrt"
        (to the counts to the power of 3/4 or 1/2), "uniform", or numbers, which need not add up
        to 1.

    Examples
    --------
    >>> import efemb
    >>> trips = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> zeros = SampledSoftmax(3)
    >>> efemb.CategoricalEmbedding(2, zeros=zeros, random_state=0).fit(trips).solver_
    'rows'
    """

    of_softmax = True
    among_draws = True
    odds = False

    def __init__(self, n: int = 10, distribution: object = "popularity") -> None:
        super().__init__(n, distribution)


class Hierarchical(Zeros):
    """A path of turns in a Huffman tree instead of a softmax (Morin and Bengio 2005).

    Categorical words in a `Window`; exact for its own model. Row i of the predicting vectors
    belongs to inner node i of the tree, not to a word; the last row is unused.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> model = efemb.CBOW(4, zeros=Hierarchical(), min_count=1, random_state=0).fit(text)
    >>> model.gradient_
    'exact'
    """

    gradient = "exact"
    weight = 1.0
    of_softmax = True
    tree = True


def word_noise(distribution: object, counts: Floats) -> Floats:
    """Probabilities with which words are drawn, from their counts.

    A count of 0 is replaced by one half: a model cannot learn that a word is rare if it is never
    drawn.
    """
    return probabilities(distribution, np.maximum(counts, 0.5))


def log_noise(zeros: Zeros, counts: Floats) -> Floats:
    """log(n q) of every entity: the expected number of its draws per positive."""
    return np.asarray(np.log(zeros.n * word_noise(zeros.distribution, counts)))


def probabilities(distribution: object, popularity: Floats) -> Floats:
    """Normalized drawing probabilities over entities (float64).

    >>> probabilities("uniform", np.array([3.0, 1.0]))
    array([0.5, 0.5])
    """
    if isinstance(distribution, str):
        if distribution not in DISTRIBUTIONS:
            raise ParameterError(
                f"unknown distribution {distribution!r}; {suggest(distribution, DISTRIBUTIONS)}"
            )
        powers = {"popularity": 1.0, "sqrt": 0.5, "uniform": 0.0, "smoothed": 0.75}
        power = powers[distribution]
        mass = np.power(np.maximum(popularity.astype(np.float64), 0.0), power)
    else:
        mass = np.asarray(distribution, dtype=np.float64)
        if mass.shape != popularity.shape:
            raise DataError(
                f"distribution must hold one number for each of the {len(popularity)} entities, "
                f"got shape {mass.shape}"
            )
    if not np.all(np.isfinite(mass)) or mass.min() < 0 or mass.sum() == 0:
        raise DataError("distribution must hold finite numbers >= 0 that are not all zero")
    return np.asarray(mass / mass.sum())


def inclusion_probabilities(share: Floats, n: int) -> Floats:
    """Inclusion probabilities proportional to `share`, at most 1, summing to min(n, N).

    >>> inclusion_probabilities(np.array([0.8, 0.1, 0.1]), 2)
    array([1. , 0.5, 0.5])
    """
    n_entities = len(share)
    if n >= n_entities:
        return np.ones(n_entities)
    chance = np.minimum(n * share, 1.0)
    while (short := n - chance.sum()) > 1e-9:
        free = chance < 1.0
        chance[free] = np.minimum(chance[free] * (1.0 + short / chance[free].sum()), 1.0)
    return np.asarray(chance)
