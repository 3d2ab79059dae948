"""Models for the explorer: small ones of every kind, with labels that break careless pages."""

from __future__ import annotations

import gzip
import json
import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.data.columns import CellTable

HOSTILE = [
    "<script>window.broken = true</script>",
    "<img src=x onerror='window.broken = true'>",
    "</script><script>window.broken = true</script>",
    "\"quotes\" 'of' `every` kind",
    "two\nlines\tand\r\ntabs",
    "مرحبا بالعالم",
    "\u202ereversed\u202c",
    "a" * 10_000,
    "=1+1,cell",
    "{{payload}} &amp; ${1} \\u003c",
    "emoji 🥐 and e\u0301",
    "<b>bold</b><a href='javascript:alert(1)'>link</a>",
]


def stop_early(model: Any, data: Any, **options: Any) -> Any:
    """Fit a few passes, without the warning that there could be more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data, **options)


@cache
def trips(n_items: int = 30, n_rows: int = 600, seed: int = 0) -> efemb.Dataset:
    """Baskets in which items of the same third go together."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n_rows)
    chance = np.where(np.arange(n_items)[None] % 3 == kind[:, None], 0.35, 0.05)
    counts = rng.poisson(chance)
    counts[counts.sum(axis=1) == 0, 0] = 1
    labels = HOSTILE + [f"item {number}" for number in range(n_items - len(HOSTILE))]
    return efemb.Dataset(
        counts.astype(float),
        entities=labels,
        rows={"household": rng.integers(0, 9, n_rows), "price": rng.normal(2.0, 0.5, n_rows)},
    )


def fit(kind: str = "poisson", **options: Any) -> Any:
    """A model with hostile labels."""
    makers = {
        "poisson": efemb.PoissonEmbedding,
        "bernoulli": efemb.BernoulliEmbedding,
        "categorical": efemb.CategoricalEmbedding,
        "additive": efemb.AdditivePoissonEmbedding,
    }
    data = trips()
    if kind == "bernoulli":
        binary = (np.asarray(data.values) > 0).astype(float)
        data = efemb.Dataset(binary, entities=list(data.entities))
    settings: dict[str, Any] = {"max_iter": 8, "random_state": 0, "n_iter_no_change": 100}
    return stop_early(makers[kind](3, **{**settings, **options}), data)


@cache
def plain() -> Any:
    """A Poisson model."""
    return fit()


@cache
def with_terms() -> Any:
    """One with a household and a price."""
    from efemb.model.terms.covariate import Covariate

    terms = [efemb.RowVectors("household", 2), Covariate("price")]
    return fit(terms=terms, max_iter=30)


@cache
def priced() -> Any:
    """Items respond to their prices by week, and households have vectors of their own."""
    rng = np.random.default_rng(0)
    counts, weeks = np.asarray(trips().values), np.arange(trips().n_rows) % 10
    prices = rng.uniform(1.0, 2.0, (10, trips().n_entities))
    data = efemb.Dataset(
        counts,
        entities=list(trips().entities),
        rows={"week": weeks, "kids": np.where(weeks % 2, "yes", "no")},
        cells={"price": CellTable(prices, by="week", groups=list(range(10)))},
    )
    model = efemb.PoissonEmbedding(
        3,
        terms=[efemb.CellCovariate("price", log=True)],
        structure=efemb.Grouped("kids"),
        max_iter=5,
        random_state=0,
    )
    return stop_early(model, data)


@cache
def weekly() -> tuple[Any, Any]:
    """A model whose embeddings move from week to week, and the rows it was fitted to."""
    data = efemb.Dataset(
        np.asarray(trips().values),
        entities=list(trips().entities),
        rows={"week": np.arange(trips().n_rows) // 150},
    )
    structure = efemb.Dynamic("week", precision=10)
    model = efemb.PoissonEmbedding(3, structure=structure, max_iter=8, random_state=0)
    return stop_early(model, data), data


@cache
def by_kids() -> tuple[Any, Any]:
    """A model with embeddings for each of two groups of rows, and its rows."""
    data = efemb.Dataset(
        np.asarray(trips().values),
        entities=list(trips().entities),
        rows={"kids": np.where(np.arange(trips().n_rows) % 2, "yes", "no")},
    )
    model = efemb.PoissonEmbedding(3, structure=efemb.Grouped("kids"), max_iter=8, random_state=0)
    return stop_early(model, data), data


@cache
def dated_words() -> tuple[Any, Any]:
    """A model of words that move from year to year, and its documents."""
    rng = np.random.default_rng(0)
    vocabulary = [f"word{number}" for number in range(25)]
    starts = np.arange(0, 12 * 80 + 1, 12)
    years = {"year": np.arange(80) // 40}
    corpus = efemb.Corpus(rng.integers(0, 25, 12 * 80), starts, vocabulary, rows=years)
    model = efemb.BernoulliTextEmbedding(
        3, structure=efemb.Dynamic("year"), max_iter=2, random_state=0, min_count=1
    )
    return stop_early(model, corpus), corpus


@cache
def mixture() -> Any:
    """A model whose vectors are only a part of it: pairs and histories of customers are others."""
    customers = np.arange(trips().n_rows) % 9
    data = efemb.Dataset(
        np.asarray(trips().values), entities=list(trips().entities), users=customers
    )
    return efemb.BasketEmbedding(3, max_iter=3, random_state=0).fit(data)


@cache
def recording() -> tuple[Any, Any]:
    """A model of neurons at places, and the frames it was fitted to."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 10, size=(40, 3))
    near = np.exp(-np.square(places[:, None] - places[None]).sum(axis=2) / 4)
    frames = rng.normal(size=(300, 40)) @ near
    model = efemb.GaussianEmbedding(3, context=efemb.Neighbors(5), max_iter=20, random_state=0)
    return stop_early(model, frames, positions=places), frames


@cache
def words() -> Any:
    """A model of words."""
    rng = np.random.default_rng(0)
    vocabulary = [f"word{number}" for number in range(25)]
    lines = [" ".join(rng.choice(vocabulary, 12)) for _ in range(80)]
    model = efemb.BernoulliTextEmbedding(
        3, max_iter=2, random_state=0, deterministic=True, min_count=1
    )
    return stop_early(model, lines)


def decode(encoded: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays, by the description of the format."""
    raw = gzip.decompress(encoded)
    assert raw[:4] == b"EFX1"
    size = int.from_bytes(raw[4:8], "little")
    header = json.loads(raw[8 : 8 + size])
    assert (8 + size) % 8 == 0
    arrays = {}
    for name, entry in header["arrays"].items():
        count = int(np.prod(entry["shape"]))
        start = 8 + size + entry["offset"]
        kind = "<" + entry["type"]
        arrays[name] = np.frombuffer(raw, kind, count, start).reshape(entry["shape"])
    for name, entry in header["arrays"].items():
        if "bits" in entry:
            numbers = np.zeros(int(np.prod(entry["rows"])), dtype=np.int64)
            for plane, values in enumerate(arrays[name]):
                numbers += values.astype(np.int64) << (8 * plane)
            numbers -= (numbers >= 1 << (entry["bits"] - 1)) * (1 << entry["bits"])
            arrays[name] = numbers.reshape(entry["rows"]) * arrays[f"{name}.scale"][:, None]
    return header, arrays
