"""What was found about the topics of movies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.reproduce.claims import Claim, show, verdict_of_count
from efemb.reproduce.fitting import as_table
from efemb.reproduce.runner import Outcome
from efemb.reproduce.study import Results
from efemb.reproduce.topics import (
    LEVEL,
    LISTED,
    WAYS,
    Genres,
    adjusted,
    by_chance,
    codes_of,
    enrichment_table,
    n_enriched,
    stability_table,
)
from efemb.table import Table
from efemb.types import Ints

SHOWN = 6
TURNED = "varimax, by value"
# The two lists that the paper prints.
PRINTED = {"kids movies": ("Children's",), "science-fiction/action movies": ("Sci-Fi", "Action")}


def report_topics(outcomes: Sequence[Outcome], data: Dataset, out: Results) -> None:
    """Lists of movies, their genres, and whether other first vectors give the same."""
    assert data.entities is not None
    genres, labels = Genres.of(data), data.entities.labels
    first = outcomes[0]
    k = first.arrays["alpha"].shape[1]
    out.page.section("Topics of the movies")
    out.page.paragraph(
        f"p-emb with the paper's settings and K = {k}, fitted to all users. For each dimension the "
        f"context vectors are ranked, and the first {LISTED} movies are a topic. The text of the "
        "paper ranks by magnitude, its supplement by value; both are here. Since rotating all "
        "vectors changes no prediction, the axes need not mean anything: they are also shown after "
        "a varimax rotation, beside axes turned at random."
    )
    tables = {way: as_table(way, first.arrays) for way in WAYS}
    listed = {way: codes_of(table, labels) for way, table in tables.items()}
    tests = {way: enrichment_table(way, codes, genres) for way, codes in listed.items()}
    out.write("genres", stacked(list(tests.values())))
    for way, table in tables.items():
        out.write(_file(way), with_years(table))
        _show_topics(way, table, tests[way], out)
    for name, wanted in PRINTED.items():
        _show_printed(name, wanted, tables[TURNED], listed[TURNED], genres, out)
    counts = enriched_table(outcomes, genres, labels)
    caption = (
        "Topics that hold more movies of some genre than chance allows: hypergeometric tests of "
        f"every topic and genre, rate of false discoveries {LEVEL:g} (Benjamini and Hochberg). "
        "Turned and drawn at random: means over draws."
    )
    out.table("enriched", counts, caption)
    alphas = [one.arrays["alpha"] for one in outcomes]
    caption = (
        f"Are topics the same from other first vectors ({len(alphas)} fits)? Dimensions of two "
        "fits are paired off to be most alike: mean |cosine| of the paired columns of context "
        f"vectors, and movies of {LISTED} that their lists share, large columns weighing more."
    )
    out.table("stability", stability_table(alphas), caption)
    show("topics-claims", topic_claims(counts, listed, genres), out)


def with_years(table: Table) -> Table:
    """Title and year apart, as the paper prints them."""
    titles = [str(label).rpartition(" (") for label in table["label"]]
    years = [year.rstrip(")") if title else "" for title, _, year in titles]
    names = [title or year for title, _, year in titles]
    return Table({"topic": table["topic"], "title": names, "year": years, "value": table["value"]})


def stacked(tables: Sequence[Table]) -> Table:
    """Tables of the same columns, one below the other."""
    return Table(
        {name: np.concatenate([one[name] for one in tables]) for name in tables[0].columns}
    )


def _file(way: str) -> str:
    return f"topics-{way}".replace(", ", "-").replace(" ", "-")


def _show_topics(way: str, table: Table, test: Table, out: Results) -> None:
    """The topics whose genres are clearest, as bars."""
    from efemb.plots import topics

    order = np.argsort(test["p"], kind="stable")[:SHOWN]
    rows = np.concatenate([np.flatnonzero(table["topic"] == one) for one in order])
    chosen = Table({name: table[name][rows] for name in table.columns})
    told = "; ".join(
        f"{one}: {test['genre'][one]}, {test['movies'][one]} of {test['of'][one]}, "
        f"p = {test['p'][one]:.1g}"
        for one in order
    )
    caption = (
        f"Topics, {way}: the {len(order)} of {len(test)} with the clearest genre. Topic: genre, "
        f"movies of it, p of as many or more by chance, before correction. {told}."
    )
    out.figure(_file(way), topics(chosen), caption)


def _best(wanted: Sequence[str], listed: Sequence[Ints], genres: Genres) -> tuple[int, float]:
    """The topic with most movies of some genres, and the rate of false discoveries of that."""
    columns = [genres.names.index(name) for name in wanted if name in genres.names]
    rates = adjusted(genres.p_values(listed))[:, columns]
    if rates.size == 0:
        return 0, 1.0
    return int(rates.min(axis=1).argmin()), float(rates.min())


def _show_printed(
    name: str,
    wanted: Sequence[str],
    table: Table,
    listed: Sequence[Ints],
    genres: Genres,
    out: Results,
) -> None:
    """The list that corresponds to one of the paper's."""
    topic, rate = _best(wanted, listed, genres)
    mine = with_years(table)
    rows = np.flatnonzero(mine["topic"] == topic)
    caption = (
        f"Beside the paper's cluster for “{name}”: topic {topic} of the turned axes, the one with "
        f"the clearest share of {' or '.join(wanted)} (rate of false discoveries {rate:.1g})."
    )
    out.page.table(Table({key: mine[key][rows] for key in ("title", "year", "value")}), caption)


def enriched_table(outcomes: Sequence[Outcome], genres: Genres, labels: Any) -> Table:
    """How many topics have a genre, by fit and by how the movies were listed."""
    columns: dict[str, list[Any]] = {"lists": [*WAYS, "turned at random", "drawn at random"]}
    for outcome in outcomes:
        tables = [as_table(way, outcome.arrays) for way in WAYS]
        counts = [float(n_enriched(codes_of(table, labels), genres)) for table in tables]
        chance = by_chance(outcome.arrays["alpha"], genres)
        columns[f"seed {outcome.job.settings['seed']}"] = [*counts, *chance]
    columns["of"] = [outcomes[0].arrays["alpha"].shape[1]] * len(columns["lists"])
    return Table(columns)


def topic_claims(counts: Table, listed: dict[str, list[Ints]], genres: Genres) -> list[Claim]:
    """The paper's sentences about topics."""
    seeds = [name for name in counts.columns if name.startswith("seed ")]
    means = {row["lists"]: np.mean([row[name] for name in seeds]) for row in counts}
    text = "; ".join(f"{name}: {mean:.1f}" for name, mean in means.items())
    of = counts["of"][0]
    way = "by value"
    sentence = "The embeddings from MovieLens data identify thematically similar movies."
    # Axes that mean something have more genres than lists without a model, and than other axes.
    beats = [
        means[way] > max(1.0, 2 * means["drawn at random"]),
        means[way] > means["turned at random"],
    ]
    verdict = verdict_of_count(sum(beats), len(beats))
    found = [Claim(sentence, verdict, f"Topics of {of} with a genre, {text}.")]
    rates = {
        (name, how): _best(wanted, listed[how], genres)[1]
        for name, wanted in PRINTED.items()
        for how in (way, TURNED)
    }
    holding = sum(rates[name, way] <= LEVEL for name in PRINTED)
    text = "; ".join(f"{name}, {how}: {rate:.1g}" for (name, how), rate in rates.items())
    sentence = (
        "The first one contains children's movies; the second contains science-fiction/action "
        "movies."
    )
    text = f"Least rate of false discoveries of a topic, {text}."
    found.append(Claim(sentence, verdict_of_count(holding, len(PRINTED)), text))
    return found
