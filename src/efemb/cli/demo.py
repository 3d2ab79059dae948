"""`efemb demo`: the main task on real data, from shopping trips to a report with pictures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import efemb
from efemb._files import check_writable, file_target
from efemb.cli import _arguments as of
from efemb.cli._models import warnings_as_remarks
from efemb.cli._output import echo, ignore, make_reporter, show_json

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.table import Table

# The held-out score hardly improves after this many passes, which two cores finish in time.
PASSES = 12
LEAST_BASKETS = 300  # the vectors of rarely bought items are imprecise
LEAST_TOGETHER = 5
SHOWN_ITEMS, SHOWN = 4, 3
# Contexts are thinned in the fit, so that a basket of one item is completed sensibly.
PSEUDO_COUNT, THINNING = 5.0, 0.3
SCORES = ("model", "score", "difference", "difference_error", "verdict", "recall@10", "mrr@100")
DETAILS = ("kind", "mutual_z", "lift_low", "lift_high")  # of answers, not in the report
MAPPED = 2500  # items on the map
SIMILAR = "Similar items: cosine of rho"
MAP = (
    "Every dot is an item; items are close if they are bought in the same situations, whether or "
    "not they are bought together. The map does not use departments: clusters of one color were "
    "learned from the trips alone."
)
RELATIONS = (
    "Bars to the right are complements: the item in a basket makes them more likely, and they are "
    "bought together significantly more often than by chance. Bars to the left make each other "
    "less likely; substitutes among them fit the same baskets but are seldom bought together."
)
SUBSTITUTES = "Substitutes: similar, but bought together significantly less often than by chance"
COMPLEMENTS = "Complements: largest rho . alpha, bought together at least 5 times"
TOPICS = "Topics: leading items of five dimensions after varimax rotation"
# Descriptions of the tables.
WORDS = {
    SIMILAR: "Items whose embeddings point in the same direction: they are bought in the same "
    "situations, whether or not they are bought together. Three for each of the most frequent "
    "items; count is the number of trips that contain them.",
    COMPLEMENTS: "Items that are more likely to be bought if the item is in the basket. together "
    "is the number of trips with both, expected that number if they had nothing to do with each "
    "other, lift the ratio of the two, and share the part of the trips with the item that also "
    "contain the other.",
    SUBSTITUTES: "Items that fit the same baskets but are bought together significantly less "
    "often than by chance (a lift below 1): one of them takes the place of the other. For items "
    "that are not listed, the trips do not confirm any.",
    TOPICS: "The dimensions of the vectors, rotated (varimax) so that each has few large entries, "
    "which makes them readable: items at the top of a dimension tend to be bought on the same "
    "kind of trip.",
}


def command(
    components: Annotated[
        int, typer.Option("--components", "-k", help="Length of the vectors.", min=1, metavar="K")
    ] = 100,
    passes: Annotated[
        int, typer.Option(help="Maximum number of passes.", min=1, metavar="N")
    ] = PASSES,
    seconds: Annotated[
        float, typer.Option(help="Stop training after X seconds.", min=1, metavar="X")
    ] = 130.0,
    jobs: of.Jobs = -1,
    seed: of.Seed = 0,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Report to write: a single HTML file.", metavar="FILE"),
    ] = Path("efemb-demo.html"),
    data_home: Annotated[
        Path | None,
        typer.Option(help="Folder of data sets; by default $EFEMB_DATA.", metavar="FOLDER"),
    ] = None,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Fit real shopping trips and write a report.

    Scores held-out trips against popularity, then lists similar items, complements, substitutes and
    topics. Writes a report with figures, and an explorer page of all items. Takes about three
    minutes on two cores.

    \b
      efemb demo
      efemb demo -k 20 --passes 5 --out report.html
    """
    say = make_reporter(quiet)
    check_writable(file_target(out).parent)
    say("Complete Journey: shopping trips of 2,469 households in one year")
    data = efemb.datasets.fetch_complete_journey(data_home)
    train, test = data.split(test=0.05, seed=seed)
    say(
        f"{data.n_rows:,} trips x {data.n_entities:,} items, {data.values.nnz:,} lines; "
        f"{test.n_rows:,} trips held out"
    )
    stops = {"max_iter": passes, "n_jobs": jobs, "random_state": seed, "verbose": int(not quiet)}
    model, elapsed = _fit(train, components, seconds, stops)
    say(
        f"PoissonEmbedding({components}): {model.n_iter_} passes in {elapsed:.0f} s, "
        f"solver {model.solver_}, {model.gradient_} gradients\n"
        "scoring the held-out trips, then querying and drawing (less than a minute)\n"
    )
    tables = answer_questions(model, train, test, progress=not quiet)
    _write_report(model, tables, train, out)
    say("placing all items on a map (about half a minute)")
    page = _write_page(model, train, test, out, progress=not quiet)
    if as_json:
        answers = {title: list(table) for title, table in tables.items()}
        show_json({**answers, "report": out, "explorer": page})
        return
    for title, table in tables.items():
        echo(f"{title}\n{table}\n")
    echo(f"report with pictures: {out}")
    echo(f"page to explore in a browser: {page}")


def _fit(
    train: Dataset, components: int, seconds: float, stops: dict[str, Any]
) -> tuple[Any, float]:
    def is_late(progress: Any) -> bool:
        return bool(progress.seconds > seconds)

    context = efemb.Basket(pseudo_count=PSEUDO_COUNT, thinning=THINNING)
    model = efemb.PoissonEmbedding(
        components, context=context, n_iter_no_change=2, callbacks=[is_late], **stops
    )
    start = time.perf_counter()
    # A demonstration stops early on purpose, so suppress the warning about it.
    with warnings_as_remarks(ignore):
        model.fit(train)
    return model, time.perf_counter() - start


def answer_questions(
    model: Any, train: Dataset, test: Dataset, *, progress: bool = False
) -> dict[str, Table]:
    """The tables of the demonstration by their titles."""
    items = choose_items(train)
    often = {"min_count": LEAST_BASKETS}
    bought = {**often, "data": train}
    return {
        "Held-out trips: mean log-probability per unit": efemb.compare(
            {f"p-emb, K = {model.n_components}": model}, test, train=train, progress=progress
        ),
        SIMILAR: model.similar(items, SHOWN, **often),
        COMPLEMENTS: model.complements(items, SHOWN, min_support=LEAST_TOGETHER, **bought),
        SUBSTITUTES: model.substitutes(items, SHOWN, apart=False, **bought),
        TOPICS: model.topics(
            SHOWN, topic=list(range(min(5, model.n_components))), rotate="varimax", **often
        ),
    }


def choose_items(train: Dataset) -> list[Any]:
    """The most frequent items, one per first word."""
    assert train.entities is not None
    counts = train.entities.counts
    assert counts is not None
    chosen: dict[str, Any] = {}
    for code in (-counts).argsort(kind="stable"):
        label = train.entities.labels[code]
        chosen.setdefault(str(label).split()[0], label)
        if len(chosen) == SHOWN_ITEMS:
            break
    return list(chosen.values())


def _write_report(model: Any, tables: dict[str, Table], train: Dataset, out: Path) -> None:
    plots = efemb.plots
    page = plots.Page(
        "What goes with what",
        lead="A Poisson embedding of the shopping trips of 2,469 households in one year "
        "(Complete Journey, 84.51°). Every item has an embedding vector rho, which determines when "
        "it is bought, and a context vector alpha, which determines its effect on the other items "
        "of a trip.",
    )
    page.section("The shop as a map").paragraph(MAP)
    vectors = model.vectors().most_frequent(MAPPED)
    groups = _departments(vectors, train)
    picture = plots.embedding_map(vectors, groups=groups, labels=25)
    page.figure(picture, f"The {len(vectors):,} items that are bought most often")
    judged, *answers = tables.items()
    scores = efemb.Table({name: judged[1][name] for name in SCORES})
    page.section("Does it predict?").paragraph(_judge(judged[1])).table(scores, judged[0])
    item = [*tables[SUBSTITUTES]["query"], *tables[SIMILAR]["query"]][0]
    page.section(f"What goes with {item}").paragraph(RELATIONS)
    picture = plots.relations(model, item, min_count=LEAST_BASKETS, data=train)
    page.figure(picture, f"Relations of {item}")
    for title, table in answers:
        page.section(title.partition(": ")[0]).paragraph(WORDS[title])
        for query, rows in _by_query(table):
            page.subsection(query).table(rows)
    page.section("Training").figure(plots.history(model), "Validation score during training")
    page.write(out)


def _departments(vectors: Any, train: Dataset) -> list[Any] | None:
    """The department of each item, if the data contain it."""
    departments = train.report.get("departments")
    return None if departments is None else [departments.get(label) for label in vectors]


def _judge(table: Table) -> str:
    """The comparison with popularity in words."""
    rows = {row["model"]: row for row in table}
    rival = rows.pop("popularity")
    ((name, ours),) = rows.items()
    verdict = "better" if ours["score"] > rival["score"] else "no better"
    return (
        f"Each item of {ours['n']:,.0f} units in held-out trips is predicted from the rest of its "
        f"trip. {name} is {verdict} than popularity: {ours['score']:.3f} against "
        f"{rival['score']:.3f} nats per unit, and the item is among the first ten of all "
        f"{ours['recall@10']:.0%} of the time instead of {rival['recall@10']:.0%}. Popularity is a "
        "weak rival: a regression of items on items (EASE) ranks better than these vectors, and "
        "BasketEmbedding, which `efemb fit` makes of transactions, combines both."
    )


def _by_query(table: Table) -> list[tuple[str, Table]]:
    """The answers to each question separately, without repeating it in every row."""
    group = "query" if "query" in table.columns else "topic"
    others = [name for name in table.columns if name not in (group, *DETAILS)]
    word = "Topic " if group == "topic" else ""
    return [
        (
            f"{word}{value}",
            efemb.Table({name: table[name][table[group] == value] for name in others}, ""),
        )
        for value in dict.fromkeys(table[group].tolist())
    ]


def _write_page(
    model: Any, train: Dataset, test: Dataset, report: Path, *, progress: bool = False
) -> Path:
    """The self-contained explorer, beside the report."""
    departments = train.report.get("departments")
    return model.to_html(  # type: ignore[no-any-return]
        report.with_name(f"{report.stem}-explorer.html"),
        data=train,
        test=test,
        groups=departments,
        group_column=None if departments is None else "department",
        names="Complete Journey",
        progress=progress,
    )
