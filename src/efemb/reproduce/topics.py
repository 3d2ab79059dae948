"""Topics of the movies: what stands out in each dimension, tested against the genres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.nearest import largest
from efemb.query.rotation import varimax
from efemb.reproduce.fitting import Later, as_arrays, described, progress_of
from efemb.reproduce.runner import Found, Job
from efemb.reproduce.settings import P_EMB
from efemb.table import Table
from efemb.types import Floats, Ints

LISTED = 10  # movies a topic, as in the paper's tables
LEVEL = 0.05  # share of false discoveries
RANDOM_TURNS = 20
WAYS = {
    "by value": {"by": "value"},
    "by magnitude": {"by": "magnitude"},
    "varimax, by value": {"by": "value", "rotate": "varimax"},
}


def topic_job(study: str, data: Later, name: dict[str, Any], k: int, seed: int) -> Job:
    """Fit p-emb to all users and list the movies of each dimension of its context vectors."""

    def work() -> Found:
        model = P_EMB.make(k, seed, None).fit(data.value)
        tables = {
            key: value
            for way, options in WAYS.items()
            for key, value in as_arrays(way, model.topics(LISTED, **options)).items()
        }
        figures = {**progress_of(model), "settings": described(model)}
        return figures, {"alpha": model.context_, **tables}

    settings = {"model": described(P_EMB.make(k, seed, None)), "data": name, "k": k, "seed": seed}
    return Job(study, f"topics, K = {k}, seed {seed}", settings, work)


# -- genres ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Genres:
    """Which movie belongs to which genre.

    names : G genres;  member : (N, G) of 0 and 1
    """

    names: list[str]
    member: Any

    @classmethod
    def of(cls, data: Dataset) -> Genres:
        """The genres of a data set, in the order of its entities."""
        assert data.entities is not None
        genres: Mapping[str, Sequence[str]] = data.report["genres"]
        names = sorted({name for each in genres.values() for name in each})
        member = np.zeros((data.n_entities, len(names)), dtype=np.int64)
        for code, label in enumerate(data.entities):
            member[code, [names.index(name) for name in genres[str(label)]]] = 1
        return cls(names, member)

    def p_values(self, listed: Sequence[Ints]) -> Floats:
        """P(as many of the genre or more among so many drawn at random): topics x genres."""
        from scipy.stats import hypergeom

        n_movies, total = len(self.member), self.member.sum(axis=0)
        seen = np.stack([self.member[codes].sum(axis=0) for codes in listed])
        drawn = np.array([len(codes) for codes in listed])[:, None]
        return np.asarray(hypergeom.sf(seen - 1, n_movies, total[None], drawn))


def adjusted(p: Floats) -> Floats:
    """Benjamini and Hochberg (1995): the smallest rate of false discoveries that keeps each test.

    >>> adjusted(np.array([[0.01, 0.04], [0.03, 0.5]])).round(3)
    array([[0.04 , 0.053],
           [0.053, 0.5  ]])
    """
    flat = p.ravel()
    order = np.argsort(flat)
    rates = flat[order] * len(flat) / np.arange(1, len(flat) + 1)
    found = np.empty(len(flat))
    found[order] = np.minimum(1.0, np.minimum.accumulate(rates[::-1])[::-1])
    return found.reshape(p.shape)


def listed_in(vectors: Floats) -> list[Ints]:
    """Codes of the movies with the largest numbers in each column."""
    return [largest(column, LISTED) for column in vectors.T]


def codes_of(table: Table, labels: Iterable[Any]) -> list[Ints]:
    """Codes of the movies of each topic of a table."""
    place = {label: code for code, label in enumerate(labels)}
    codes = np.array([place[label] for label in table["label"]])
    return [codes[table["topic"] == number] for number in np.unique(table["topic"])]


def enrichment_table(way: str, listed: Sequence[Ints], genres: Genres) -> Table:
    """The genre that each topic holds most surprisingly many of."""
    p = genres.p_values(listed)
    rate = adjusted(p)
    first = p.argmin(axis=1)
    topics = np.arange(len(listed))
    share = genres.member.mean(axis=0)
    return Table(
        {
            "list": [way] * len(listed),
            "topic": topics,
            "genre": [genres.names[one] for one in first],
            "movies": [
                int(genres.member[codes, g].sum()) for codes, g in zip(listed, first, strict=True)
            ],
            "of": [len(codes) for codes in listed],
            "expected": [len(codes) * share[g] for codes, g in zip(listed, first, strict=True)],
            "p": p[topics, first],
            "false_discovery_rate": rate[topics, first],
        }
    )


def n_enriched(listed: Sequence[Ints], genres: Genres) -> int:
    """Topics with a genre at the level of false discoveries."""
    return int((adjusted(genres.p_values(listed)).min(axis=1) <= LEVEL).sum())


def turned_at_random(vectors: Floats, rng: np.random.Generator) -> Floats:
    """The vectors after a rotation drawn uniformly."""
    q, r = np.linalg.qr(rng.standard_normal((vectors.shape[1],) * 2))
    return np.asarray(vectors @ (q * np.sign(np.diag(r))))


def by_chance(alpha: Floats, genres: Genres, seed: int = 0) -> tuple[float, float]:
    """Enriched topics after random rotations, and of lists drawn without looking: means."""
    rng = np.random.default_rng(seed)
    n, k = alpha.shape
    turned, drawn = [], []
    for _ in range(RANDOM_TURNS):
        turned.append(n_enriched(listed_in(turned_at_random(alpha, rng)), genres))
        drawn.append(n_enriched([rng.permutation(n)[:LISTED] for _ in range(k)], genres))
    return float(np.mean(turned)), float(np.mean(drawn))


# -- do other first vectors give the same topics? -------------------------------------------------


def partners(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """|cosine| of each column of `first` with its partner, and `second` in that order and sign."""
    from scipy.optimize import linear_sum_assignment

    a, b = (one / np.maximum(np.linalg.norm(one, axis=0), 1e-12) for one in (first, second))
    cosine = a.T @ b
    _, columns = linear_sum_assignment(-np.abs(cosine))
    found = np.take_along_axis(cosine, columns[:, None], axis=1)[:, 0]
    return np.abs(found), second[:, columns] * np.where(found < 0, -1.0, 1.0)


def agreement(first: Floats, second: Floats) -> tuple[float, float]:
    """Mean |cosine| of paired columns, and movies that their lists share; large columns weigh more.

    Weights are sums of squares: a column of noise near 0 is no topic.
    """
    cosine, second = partners(first, second)
    lists = zip(listed_in(first), listed_in(second), strict=True)
    shared = np.array([len(np.intersect1d(one, two)) for one, two in lists])
    weight = np.square(first).sum(axis=0)
    return float(weight @ cosine / weight.sum()), float(weight @ shared / weight.sum())


def stability_table(alphas: Sequence[Floats], seed: int = 0) -> Table:
    """How alike the topics of fits from different first vectors are: as they come, and turned."""
    rng = np.random.default_rng(seed)
    exact = [alpha.astype(np.float64) for alpha in alphas]
    ways = {
        "as they come": exact,
        "varimax": [varimax(alpha) for alpha in exact],
        "turned at random": [turned_at_random(alpha, rng) for alpha in exact],
    }
    pairs = [(i, j) for i in range(len(exact)) for j in range(i)]
    found = {way: [agreement(v[i], v[j]) for i, j in pairs] for way, v in ways.items()}
    means = np.array([np.mean(each, axis=0) for each in found.values()])
    return Table({"axes": list(found), "cosine": means[:, 0], "shared movies": means[:, 1]})
