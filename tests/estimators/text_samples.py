"""Texts with a known structure, and every text model, for the tests of the text models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import efemb
from efemb import Window

ANIMALS = ["cat", "dog", "cow", "pig", "hen"]
COLORS = ["red", "blue", "pink", "grey", "gold"]
WORDS = ANIMALS + COLORS


def topics(n_documents: int = 200, length: int = 12, seed: int = 0) -> list[list[str]]:
    """Documents about animals or about colors, never both."""
    rng = np.random.default_rng(seed)
    return [
        [(ANIMALS if i % 2 else COLORS)[k] for k in rng.integers(5, size=length)]
        for i in range(n_documents)
    ]


TEXT = topics()
GENDER = (["he", "his", "beard", "sir"], ["she", "her", "dress", "madam"])
RANK = (["street", "works", "shop", "farm"], ["throne", "rules", "crown", "palace"])
PERSON = (("man", "woman"), ("king", "queen"))


def royals(n_documents: int = 1000, seed: int = 0) -> list[str]:
    """A person among words that tell the gender and words that tell the rank."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_documents):
        gender, rank = rng.integers(2, size=2)
        around = [GENDER[gender][k] for k in rng.integers(4, size=3)]
        around += [RANK[rank][k] for k in rng.integers(4, size=3)]
        rng.shuffle(around)
        around.insert(3, PERSON[rank][gender])
        found.append(" ".join(around))
    return found


def turns(n_documents: int = 200, seed: int = 0) -> list[list[str]]:
    """one two three one two ...: only the order determines a word."""
    names = ["one", "two", "three"]
    starts = np.random.default_rng(seed).integers(3, size=n_documents)
    return [[names[(start + j) % 3] for j in range(10)] for start in starts]


def _model(kind: Any, **options: Any) -> Callable[..., Any]:
    return partial(kind, **{"n_components": 8, "random_state": 0, **options})


_B, _S, _C, _P = (
    efemb.BernoulliTextEmbedding,
    efemb.SkipGram,
    efemb.CBOW,
    efemb.PoissonTextEmbedding,
)
# Functions that make a fresh model; more options may be given.
MODELS: dict[str, Callable[..., Any]] = {
    "Bernoulli": _model(_B),
    "Bernoulli, mean": _model(_B, context=Window(5, scale="items")),
    "Bernoulli, exact": _model(_B, zeros="all"),
    "Bernoulli, sampled": _model(_B, zeros=efemb.Sampled(5)),
    "Bernoulli, positional": _model(_B, context=Window(2, positional=True)),
    "Bernoulli, tied": _model(_B, structure="tied"),
    "Bernoulli, subsampled": _model(_B, context=Window(5, subsample=0.05)),
    "Bernoulli, prior": _model(_B, prior=efemb.Normal(1.0)),
    "skip-gram": _model(_S),
    "skip-gram, tree": _model(_S, family="categorical", zeros="hierarchical"),
    "skip-gram, noise": _model(_S, family="categorical", zeros=efemb.NoiseContrastive(5)),
    "skip-gram, positional": _model(_S, context=Window(2, positional=True)),
    "CBOW": _model(_C),
    "CBOW, positional": _model(_C, context=Window(2, positional=True)),
    "CBOW, sampled softmax": _model(_C, zeros=efemb.SampledSoftmax(5)),
    "CBOW, noise": _model(_C, zeros=efemb.NoiseContrastive(5)),
    # In sums over wide windows the tree leaves much of the words' own vectors at random.
    "CBOW, tree": _model(_C, zeros="hierarchical", context=Window(1)),
    "Poisson": _model(_P),
    "Poisson, identity": _model(_P, link="identity"),
    "Poisson, negatives": _model(_P, link="identity", zeros=efemb.NegativeSampling(5)),
}
FAST = ("Bernoulli", "skip-gram", "skip-gram, tree", "CBOW", "CBOW, positional", "Poisson")


def quick(name: str, **options: Any) -> Any:
    """A model that makes two passes."""
    return MODELS[name](**{"max_iter": 2, "early_stopping": False, **options})


def is_finite(model: Any) -> bool:
    """Whether no parameter is NaN or infinite."""
    return all(np.isfinite(array).all() for array in model.parameters_.arrays())
