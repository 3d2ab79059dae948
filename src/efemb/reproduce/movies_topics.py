"""Topics of movies: leading movies of each dimension, tested against the genres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import false_discovery_control, hypergeom

from efemb._typing import Floats, Ints
from efemb.data.dataset import Dataset
from efemb.evaluation.comparison import stack_tables
from efemb.fitted.nearest import largest
from efemb.fitted.rotation import varimax
from efemb.plots import topics
from efemb.reproduce.claims import Claim, judge_count, show_claims
from efemb.reproduce.counts_fits import describe_settings, summarize_training
from efemb.reproduce.counts_models import P_EMB
from efemb.reproduce.jobs import Found, Job, Later, Outcome, pack_table, unpack_table
from efemb.reproduce.study import Results
from efemb.table import Table

LISTED = 10  # movies per topic, as in the paper's tables
LEVEL = 0.05  # false discovery rate
RANDOM_TURNS = 20
WAYS = {
    "by value": {"by": "value"},
    "by magnitude": {"by": "magnitude"},
    "varimax, by value": {"by": "value", "rotate": "varimax"},
}


def make_topic_job(study: str, data: Later, name: dict[str, Any], k: int, seed: int) -> Job:
    """Fit p-emb to all users and list the movies of each dimension of its context vectors."""

    def work() -> Found:
        model = P_EMB.make(k, seed, None).fit(data.value)
        tables = {
            key: value
            for way, options in WAYS.items()
            for key, value in pack_table(way, model.topics(LISTED, **options)).items()
        }
        figures = {**summarize_training(model), "settings": describe_settings(model)}
        return figures, {"alpha": model.alpha_, **tables}

    settings = {
        "model": describe_settings(P_EMB.make(k, seed, None)),
        "data": name,
        "k": k,
        "seed": seed,
    }
    return Job(study, f"topics, K = {k}, seed {seed}", settings, work)


@dataclass(frozen=True)
class Genres:
    """The genres of each movie.

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
        """Probability of at least as many movies of the genre by chance: topics x genres."""
        n_movies, total = len(self.member), self.member.sum(axis=0)
        counts = np.stack([self.member[codes].sum(axis=0) for codes in listed])
        drawn = np.array([len(codes) for codes in listed])[:, None]
        return np.asarray(hypergeom.sf(counts - 1, n_movies, total[None], drawn))

    def discovery_rates(self, listed: Sequence[Ints]) -> Floats:
        """Smallest false discovery rate at which a genre of a topic counts as enriched."""
        p = self.p_values(listed)
        return np.asarray(false_discovery_control(p, axis=None)).reshape(p.shape)


def list_top_movies(vectors: Floats) -> list[Ints]:
    """Codes of the movies with the largest values in each column."""
    return [largest(column, LISTED) for column in vectors.T]


def find_codes(table: Table, labels: Iterable[Any]) -> list[Ints]:
    """Codes of the movies of each topic of a table."""
    code_of_label = {label: code for code, label in enumerate(labels)}
    codes = np.array([code_of_label[label] for label in table["label"]])
    return [codes[table["topic"] == number] for number in np.unique(table["topic"])]


def tabulate_enrichment(listed: Sequence[Ints], genres: Genres) -> Table:
    """The most significantly enriched genre of each topic."""
    p = genres.p_values(listed)
    rate = genres.discovery_rates(listed)
    first = p.argmin(axis=1)
    topics = np.arange(len(listed))
    share = genres.member.mean(axis=0)
    return Table(
        {
            "topic": topics,
            "genre": [genres.names[genre] for genre in first],
            "movies": [
                int(genres.member[codes, g].sum()) for codes, g in zip(listed, first, strict=True)
            ],
            "of": [len(codes) for codes in listed],
            "expected": [len(codes) * share[g] for codes, g in zip(listed, first, strict=True)],
            "p": p[topics, first],
            "false_discovery_rate": rate[topics, first],
        }
    )


def count_enriched(listed: Sequence[Ints], genres: Genres) -> int:
    """Number of topics with an enriched genre at the false discovery rate."""
    return int((genres.discovery_rates(listed).min(axis=1) <= LEVEL).sum())


def rotate_at_random(vectors: Floats, rng: np.random.Generator) -> Floats:
    """The vectors after a uniformly random rotation."""
    q, r = np.linalg.qr(rng.standard_normal((vectors.shape[1],) * 2))
    return np.asarray(vectors @ (q * np.sign(np.diag(r))))


def count_by_chance(alpha: Floats, genres: Genres) -> tuple[float, float]:
    """Mean number of enriched topics after random rotations, and for random lists."""
    rng = np.random.default_rng(0)
    n, k = alpha.shape
    turned, drawn = [], []
    for _ in range(RANDOM_TURNS):
        turned.append(count_enriched(list_top_movies(rotate_at_random(alpha, rng)), genres))
        drawn.append(count_enriched([rng.permutation(n)[:LISTED] for _ in range(k)], genres))
    return float(np.mean(turned)), float(np.mean(drawn))


def match_columns(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """|cosine| of each column of `first` with its partner, and `second` in that order and sign."""
    a, b = (
        vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-12) for vectors in (first, second)
    )
    cosine = a.T @ b
    _, columns = linear_sum_assignment(-np.abs(cosine))
    matched = np.take_along_axis(cosine, columns[:, None], axis=1)[:, 0]
    return np.abs(matched), second[:, columns] * np.where(matched < 0, -1.0, 1.0)


def measure_agreement(first: Floats, second: Floats) -> tuple[float, float]:
    """Mean |cosine| of paired columns, and movies that their lists share; large columns weigh more.

    Weights are sums of squares: a column of noise near 0 is not a topic.
    """
    cosine, second = match_columns(first, second)
    lists = zip(list_top_movies(first), list_top_movies(second), strict=True)
    shared = np.array([len(np.intersect1d(movies, other_movies)) for movies, other_movies in lists])
    weight = np.square(first).sum(axis=0)
    return float(weight @ cosine / weight.sum()), float(weight @ shared / weight.sum())


def tabulate_stability(alphas: Sequence[Floats]) -> Table:
    """Similarity of topics between fits from different initial vectors, as fitted and rotated."""
    rng = np.random.default_rng(0)
    exact = [alpha.astype(np.float64) for alpha in alphas]
    ways: dict[str, Sequence[Floats]] = {
        "as they come": exact,
        "varimax": [varimax(alpha) for alpha in exact],
        "turned at random": [rotate_at_random(alpha, rng) for alpha in exact],
    }
    pairs = [(i, j) for i in range(len(exact)) for j in range(i)]
    agreements = {way: [measure_agreement(v[i], v[j]) for i, j in pairs] for way, v in ways.items()}
    means = np.array([np.mean(each, axis=0) for each in agreements.values()])
    return Table({"axes": list(agreements), "cosine": means[:, 0], "shared movies": means[:, 1]})


# -- report ---------------------------------------------------------------------------------------


SHOWN = 6
TURNED = "varimax, by value"
# The two lists that the paper prints.
PRINTED = {"kids movies": ("Children's",), "science-fiction/action movies": ("Sci-Fi", "Action")}


def report_topics(outcomes: Sequence[Outcome], data: Dataset, out: Results) -> None:
    """Lists of movies, their genres, and whether other initial vectors give the same."""
    assert data.entities is not None
    genres, labels = Genres.of(data), data.entities.labels
    first = outcomes[0]
    k = first.arrays["alpha"].shape[1]
    out.page.section("Topics of the movies")
    out.page.paragraph(
        f"p-emb with the paper's settings and K = {k}, fitted to all users. For each dimension the "
        f"context vectors are ranked, and the first {LISTED} movies are a topic. The text of the "
        "paper ranks by magnitude, its supplement by value; both are shown. Since rotating all "
        "vectors changes no prediction, the axes need not be meaningful: they are also shown after "
        "a varimax rotation, next to randomly rotated axes."
    )
    tables = {way: unpack_table(way, first.arrays) for way in WAYS}
    listed = {way: find_codes(table, labels) for way, table in tables.items()}
    tests = {way: tabulate_enrichment(codes, genres) for way, codes in listed.items()}
    out.write("genres", stack_tables("list", tests))
    for way, table in tables.items():
        out.write(_file(way), split_years(table))
        _show_topics(way, table, tests[way], out)
    for name, genre_names in PRINTED.items():
        _show_printed(name, genre_names, tables[TURNED], listed[TURNED], genres, out)
    counts = tabulate_enriched(outcomes, genres, labels)
    caption = (
        "Topics with significantly many movies of some genre: hypergeometric tests of every topic "
        f"and genre at a false discovery rate of {LEVEL:g} (Benjamini and Hochberg). Rotated and "
        "drawn at random: means over draws."
    )
    out.table("enriched", counts, caption)
    alphas = [outcome.arrays["alpha"] for outcome in outcomes]
    caption = (
        f"Do other initial vectors give the same topics ({len(alphas)} fits)? Dimensions of two "
        "fits are matched to be most similar: mean |cosine| of the matched columns of context "
        f"vectors, and shared movies among {LISTED}, weighted by the size of the columns."
    )
    out.table("stability", tabulate_stability(alphas), caption)
    show_claims("topics-claims", judge_topics(counts, listed, genres), out)


def split_years(table: Table) -> Table:
    """Split title and year, as in the paper."""
    titles = [str(label).rpartition(" (") for label in table["label"]]
    years = [year.rstrip(")") if title else "" for title, _, year in titles]
    names = [title or year for title, _, year in titles]
    return Table({"topic": table["topic"], "title": names, "year": years, "value": table["value"]})


def _file(way: str) -> str:
    return f"topics-{way}".replace(", ", "-").replace(" ", "-")


def _show_topics(way: str, table: Table, test: Table, out: Results) -> None:
    """The topics with the most significant genres, as bars."""
    order = np.argsort(test["p"], kind="stable")[:SHOWN]
    rows = np.concatenate([np.flatnonzero(table["topic"] == topic) for topic in order])
    chosen = Table({name: table[name][rows] for name in table.columns})
    genre_texts = "; ".join(
        f"{topic}: {test['genre'][topic]}, {test['movies'][topic]} of {test['of'][topic]}, "
        f"p = {test['p'][topic]:.1g}"
        for topic in order
    )
    caption = (
        f"Topics, {way}: the {len(order)} of {len(test)} with the most significant genre. Topic: "
        f"genre, movies of it, p-value before correction. {genre_texts}."
    )
    out.figure(_file(way), topics(chosen), caption)


def _find_best_topic(
    genre_names: Sequence[str], listed: Sequence[Ints], genres: Genres
) -> tuple[int, float]:
    """The topic most enriched in some genres, and its false discovery rate."""
    columns = [genres.names.index(name) for name in genre_names if name in genres.names]
    rates = genres.discovery_rates(listed)[:, columns]
    if rates.size == 0:
        return 0, 1.0
    return int(rates.min(axis=1).argmin()), float(rates.min())


def _show_printed(
    name: str,
    genre_names: Sequence[str],
    table: Table,
    listed: Sequence[Ints],
    genres: Genres,
    out: Results,
) -> None:
    """Show the list that corresponds to one in the paper."""
    topic, rate = _find_best_topic(genre_names, listed, genres)
    dated = split_years(table)
    rows = np.flatnonzero(dated["topic"] == topic)
    caption = (
        f"Next to the paper's cluster for “{name}”: topic {topic} of the rotated axes, the one "
        f"most enriched in {' or '.join(genre_names)} (false discovery rate {rate:.1g})."
    )
    out.page.table(Table({key: dated[key][rows] for key in ("title", "year", "value")}), caption)


def tabulate_enriched(outcomes: Sequence[Outcome], genres: Genres, labels: Any) -> Table:
    """Number of topics with an enriched genre, by fit and by type of list."""
    columns: dict[str, list[Any]] = {"lists": [*WAYS, "turned at random", "drawn at random"]}
    for outcome in outcomes:
        tables = [unpack_table(way, outcome.arrays) for way in WAYS]
        counts = [float(count_enriched(find_codes(table, labels), genres)) for table in tables]
        chance = count_by_chance(outcome.arrays["alpha"], genres)
        columns[f"seed {outcome.job.settings['seed']}"] = [*counts, *chance]
    columns["of"] = [outcomes[0].arrays["alpha"].shape[1]] * len(columns["lists"])
    return Table(columns)


def judge_topics(counts: Table, listed: dict[str, list[Ints]], genres: Genres) -> list[Claim]:
    """The paper's claims about topics."""
    seeds = [name for name in counts.columns if name.startswith("seed ")]
    means = {row["lists"]: np.mean([row[name] for name in seeds]) for row in counts}
    text = "; ".join(f"{name}: {mean:.1f}" for name, mean in means.items())
    of = counts["of"][0]
    way = "by value"
    sentence = "The embeddings from MovieLens data identify thematically similar movies."
    # Meaningful axes have more enriched genres than random lists and than random axes.
    beats = [
        means[way] > max(1.0, 2 * means["drawn at random"]),
        means[way] > means["turned at random"],
    ]
    verdict = judge_count(sum(beats), len(beats))
    claims = [Claim(sentence, verdict, f"Topics with an enriched genre, of {of}: {text}.")]
    rates = {
        (name, how): _find_best_topic(genre_names, listed[how], genres)[1]
        for name, genre_names in PRINTED.items()
        for how in (way, TURNED)
    }
    holding = sum(rates[name, way] <= LEVEL for name in PRINTED)
    text = "; ".join(f"{name}, {how}: {rate:.1g}" for (name, how), rate in rates.items())
    sentence = (
        "The first one contains children's movies; the second contains science-fiction/action "
        "movies."
    )
    text = f"Smallest false discovery rate of a topic: {text}."
    claims.append(Claim(sentence, judge_count(holding, len(PRINTED)), text))
    return claims
