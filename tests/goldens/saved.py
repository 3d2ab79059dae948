"""Tiny models of every preset and kind of ingredient, and the questions that are put to them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import default_rng

import efemb
from goldens.fits import ROW_PRESETS, TEXT_PRESETS, Fit, grouped_counts

Array = Any
ITEMS = ["milk", "bread", "beer", "eggs", "salt", "rice", "tea", "jam", "oil", "ham"]
ODD_LABELS = ["milk", "17", 18, 2.5, "größer", "\udcff", "a b", "'", 0, "ham"]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "off"]
COUNTS = grouped_counts(40, 10)
REALS = np.round(default_rng(0).normal(size=(40, 8)) + default_rng(1).normal(size=(40, 1)), 3)
PLACES = np.round(default_rng(2).normal(size=(8, 2)), 3)
DOCUMENTS = [[WORDS[i] for i in default_rng(d).zipf(1.3, 20) % 10] for d in range(10)]
RING = np.roll(np.eye(8), 1, axis=0) + np.roll(np.eye(8), -1, axis=0)
PAIRS = np.arange(10) // 2

TRIPS = efemb.Dataset(COUNTS, entities=efemb.Vocabulary(ITEMS, counts=(COUNTS > 0).sum(axis=0)))
FRAMES = efemb.Dataset(REALS, positions=PLACES)


def tiny(model: Callable[..., Any], data: Any = TRIPS, **options: Any) -> Fit:
    return Fit(model, data, {"n_components": 2, "max_iter": 2, **options})


def words(model: Callable[..., Any], **options: Any) -> Fit:
    return tiny(model, DOCUMENTS, min_count=1, **options)


def tiny_data(model: Any) -> Any:
    """Data that suit a preset on rows."""
    if issubclass(model, efemb.GaussianEmbedding):
        return FRAMES
    binary = issubclass(model, efemb.BernoulliEmbedding)
    return efemb.Dataset(np.minimum(COUNTS, 1), entities=ITEMS) if binary else TRIPS


P, E, G, W = efemb.PoissonEmbedding, efemb.Embedding, efemb.GaussianEmbedding, efemb.Window
B, C = efemb.BernoulliTextEmbedding, efemb.CBOW
VARIANTS: dict[str, Fit] = {
    "numbered-items": tiny(P, COUNTS),
    "odd-labels": tiny(P, efemb.Dataset(COUNTS, entities=ODD_LABELS)),
    "float64": tiny(P, dtype="float64"),
    "no-intercept": tiny(P, intercept=False),
    "intercept-prior": tiny(P, intercept_prior=efemb.Normal(0.1), prior=(None, efemb.Normal(2.0))),
    "weighted-zeros": tiny(P, zero_weight=0.1),
    "sampled-zeros": tiny(P, zeros=efemb.Sampled(3, distribution=np.arange(1.0, 11.0))),
    "negative-sampling": tiny(P, zeros=efemb.NegativeSampling(3)),
    "summed-basket": tiny(P, context=efemb.Basket("none")),
    "binary-basket": tiny(P, context=efemb.Basket("items", binary=True)),
    "binarize": tiny(efemb.BernoulliEmbedding, binarize=True),
    "tied": tiny(P, structure="tied"),
    "shared": tiny(P, structure=efemb.Shared(PAIRS, PAIRS[::-1].copy())),
    "reverse": tiny(P, combine="reverse"),
    "negative-binomial": tiny(E, family=efemb.NegativeBinomial(2.0)),
    "softplus": tiny(E, link="softplus"),
    "log-softplus": tiny(E, link="log-softplus", prior="half-normal"),
    "log-normal": tiny(E, link="log", prior=efemb.LogNormal(0.1, -1.0)),
    "correlated-neighbors": tiny(G, REALS, context=efemb.Neighbors(3)),
    "scaled-neighbors": tiny(G, FRAMES, context=efemb.Neighbors(3, scale="items")),
    "learned-variance": tiny(G, FRAMES, family=efemb.Gaussian("learned")),
    "graph": tiny(G, REALS, context=efemb.Graph(RING)),
    "lagged": tiny(G, FRAMES, context=efemb.Lagged((-1, 1), of=efemb.Neighbors(2))),
    "shared-lags": tiny(G, REALS, context=efemb.Lagged((-1, 1), shared=True)),
    "sum-of-contexts": tiny(G, FRAMES, context=efemb.Neighbors(2) + efemb.Lagged((-1,))),
    "neighbor-counts": tiny(
        E, efemb.Dataset(COUNTS[:, :8], positions=PLACES), context=efemb.Neighbors(3)
    ),
    "vector-data": tiny(G, efemb.Dataset(np.stack([REALS, REALS[::-1]], axis=2), positions=PLACES)),
    "positional": words(B, context=W(2, positional=True)),
    "positional-softmax": words(C, context=W(2, positional=True)),
    "positional-skip-gram": words(efemb.SkipGram, context=W(2, positional=True)),
    "subsampled-words": words(B, context=W(2, subsample=0.05)),
    "tied-words": words(B, structure="tied"),
    "shared-words": words(B, structure=efemb.Shared(None, PAIRS)),
    "all-words": words(B, zeros="all"),
    "sampled-words": words(B, zeros=efemb.Sampled(4)),
    "noise-contrastive": words(C, zeros=efemb.NoiseContrastive(3)),
    "sampled-softmax": words(C, zeros=efemb.SampledSoftmax(3)),
    "huffman": words(C, zeros="hierarchical"),
    "huffman-skip-gram": words(efemb.SkipGram, zeros="hierarchical"),
    "noise-skip-gram": words(efemb.SkipGram, zeros=efemb.NoiseContrastive(3)),
    "length-offset": words(efemb.PoissonTextEmbedding, context=W(3, length_offset=True)),
    "poisson-identity": words(efemb.PoissonTextEmbedding, link="identity"),
}
PAPER = {
    f"{name}.paper": tiny(model.paper, tiny_data(model))
    for name, (model, _) in ROW_PRESETS.items()
    if not issubclass(model, efemb.GaussianEmbedding)
}
SAVED: dict[str, Fit] = {
    **{name: tiny(model, tiny_data(model)) for name, (model, _) in ROW_PRESETS.items()},
    **PAPER,
    **{
        f"{name}.paper": tiny(model.paper, FRAMES, context=efemb.Neighbors(5))
        for name, (model, _) in ROW_PRESETS.items()
        if issubclass(model, efemb.GaussianEmbedding)
    },
    **{name: words(model) for name, model in TEXT_PRESETS.items()},
    **{
        f"{name}.paper": words(model.paper)
        for name, model in TEXT_PRESETS.items()
        if hasattr(model, "paper")
    },
    **VARIANTS,
}

# Each takes a loaded model, rows or documents, and four of its labels.
QUESTIONS: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "labels": lambda model, data, items: list(model.entities),
    "score": lambda model, data, items: model.score(data),
    "conditional": lambda model, data, items: model.conditional(data),
    "transform": lambda model, data, items: model.transform(data),
    "similar": lambda model, data, items: model.similar(items[0], 3),
    "analogy": lambda model, data, items: model.analogy(items[:2], items[2:3], 3),
    "complements": lambda model, data, items: model.complements(items[0], 3),
    "substitutes": lambda model, data, items: model.substitutes(items[0], 3, apart=True),
    "pairs": lambda model, data, items: model.pairs(2),
    "topics": lambda model, data, items: model.topics(3),
    "weights": lambda model, data, items: model.weights(items[0]),
    "predict": lambda model, data, items: model.predict(items, 3),
    "complete": lambda model, data, items: model.complete(items, 3),
    "explain": lambda model, data, items: model.explain(items, items[0]),
    "what_if": lambda model, data, items: model.what_if(items[:2], items[2:3], (), 3),
}


def ask(model: Any, question: str, asked: dict[str, Any]) -> Any:
    """An answer as JSON has it: a list of rows, without the names of columns."""
    documents = isinstance(asked["data"][0][0], str)
    data = asked["data"] if documents else np.array(asked["data"], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _shorten(QUESTIONS[question](model, data, asked["items"]))


def _shorten(answer: Any) -> Any:
    """Plain lists of numbers of six digits, so that the files stay small."""
    if isinstance(answer, efemb.Table):
        answer = [list(row.values()) for row in answer]
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if isinstance(answer, list):
        return [_shorten(value) for value in answer]
    return float(f"{answer:.6g}") if isinstance(answer, float) else answer


def ask_everything(model: Any, fit: Fit) -> dict[str, Any]:
    """Every question that the model takes, with its answer."""
    data = fit.data.values if isinstance(fit.data, efemb.Dataset) else fit.data
    sample = [data[0][:8]] if isinstance(data, list) else data[:3].tolist()
    asked = {"data": sample, "items": list(model.entities)[:4]}
    answers = {}
    for question in QUESTIONS:
        try:
            answers[question] = ask(model, question, asked)
        except (efemb.ParameterError, efemb.DataError) as error:
            print(f"  {question}: {str(error)[:100]}")
    return {**asked, "answers": answers}
