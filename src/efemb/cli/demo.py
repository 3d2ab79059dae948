"""`efemb demo`: the main job on real data, from shopping trips to a report with pictures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.table import Table

# The held-out score hardly rises after this many passes, and two cores manage them in time.
PASSES = 12
LEAST_BASKETS = 300  # vectors of rarely bought items say little
LEAST_TOGETHER = 5
SHOWN_ITEMS, SHOWN = 4, 3


def command(
    components: Annotated[
        int, typer.Option("--components", "-k", help="Length of the vectors.", min=1, metavar="K")
    ] = 100,
    passes: Annotated[
        int, typer.Option(help="Most passes over the data.", min=1, metavar="N")
    ] = PASSES,
    seconds: Annotated[
        float, typer.Option(help="Stop training after this time.", min=1, metavar="X")
    ] = 130.0,
    jobs: of.Jobs = -1,
    seed: of.Seed = 0,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Report, one HTML file.", metavar="FILE")
    ] = Path("efemb-demo.html"),
    data_home: Annotated[
        Path | None,
        typer.Option(help="Folder of data sets; else EFEMB_DATA.", metavar="FOLDER"),
    ] = None,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Fit real shopping trips and write a report.

    Held-out trips are scored beside popularity; then similar items, complements, substitutes and
    topics, and pictures in the report. About three minutes on two cores.

    \b
      efemb demo
      efemb demo -k 20 --passes 5 --out report.html
    """
    from efemb.cli._show import nothing, remark, show_json
    from efemb.datasets import fetch_complete_journey
    from efemb.files import check_writable, file_target

    say = nothing if quiet else remark
    check_writable(file_target(out).parent)
    say("Complete Journey: shopping trips of 2,469 households in one year")
    data = fetch_complete_journey(data_home)
    train, test = data.split(test=0.05, seed=seed)
    say(
        f"{data.n_rows:,} trips x {data.n_entities:,} items, {data.values.nnz:,} lines; "
        f"{test.n_rows:,} trips are held out"
    )
    stops = {"max_iter": passes, "n_jobs": jobs, "random_state": seed, "verbose": int(not quiet)}
    model, took = _fitted(train, components, seconds, stops)
    say(
        f"PoissonEmbedding({components}): {model.n_iter_} passes in {took:.0f} s, "
        f"solver {model.solver_}, {model.gradient_} gradients\n"
        "scoring the held-out trips, then asking and drawing (less than a minute)\n"
    )
    tables = answers(model, train, test, progress=not quiet)
    _write_report(model, tables, train, out)
    if as_json:
        show_json({**{title: list(table) for title, table in tables.items()}, "report": out})
        return
    for title, table in tables.items():
        typer.echo(f"{title}\n{table}\n")
    typer.echo(f"report with pictures: {out}")


def _fitted(
    train: Dataset, components: int, seconds: float, stops: dict[str, Any]
) -> tuple[Any, float]:
    from efemb import PoissonEmbedding
    from efemb.cli._models import without_warnings
    from efemb.cli._show import nothing

    def late(progress: Any) -> bool:
        return bool(progress.seconds > seconds)

    model = PoissonEmbedding(components, n_iter_no_change=2, callbacks=[late], **stops)
    start = time.perf_counter()
    # Cutting the passes short is the point of a demonstration.
    with without_warnings(nothing):
        model.fit(train)
    return model, time.perf_counter() - start


def answers(
    model: Any, train: Dataset, test: Dataset, *, progress: bool = False
) -> dict[str, Table]:
    """The tables of the demonstration by their titles."""
    from efemb.evaluation import compare

    items = popular_items(train)
    often = {"min_count": LEAST_BASKETS}
    bought = {**often, "data": train}
    return {
        "Held-out trips: mean log-probability of a unit": compare(
            {f"p-emb, K = {model.n_components}": model}, test, train=train, progress=progress
        ),
        "Similar items: cosine of rho": model.similar(items, SHOWN, **often),
        "Complements: largest rho . alpha, bought together at least 5 times": model.complements(
            items, SHOWN, min_support=LEAST_TOGETHER, **bought
        ),
        "Substitutes: alike, but surely together less often than by chance": model.substitutes(
            items, SHOWN, apart=False, **bought
        ),
        "Topics: the first items of some dimensions, after varimax": model.topics(
            SHOWN, topic=list(range(min(5, model.n_components))), rotate="varimax", **often
        ),
    }


def popular_items(train: Dataset) -> list[Any]:
    """The items in most trips, one of each first word."""
    assert train.entities is not None
    counts = train.entities.counts
    assert counts is not None
    chosen: dict[str, Any] = {}
    for place in (-counts).argsort(kind="stable"):
        label = train.entities.labels[place]
        chosen.setdefault(str(label).split()[0], label)
        if len(chosen) == SHOWN_ITEMS:
            break
    return list(chosen.values())


def _write_report(model: Any, tables: dict[str, Table], train: Dataset, out: Path) -> None:
    from efemb.plots import embedding_map, history, relations
    from efemb.plots.page import Page

    page = Page(
        "What goes with what",
        lead="A Poisson embedding of the shopping trips of 2,469 households in one year "
        "(Complete Journey, 84.51°): every item has a vector rho that says when it is bought, and "
        "a vector alpha that says what it does to the other items of a trip.",
    )
    for title, table in tables.items():
        page.section(title.partition(":")[0]).table(table, title)
    item = tables["Similar items: cosine of rho"]["query"][0]
    page.section("Pictures")
    page.figure(embedding_map(model), "The items, on the two first principal axes of rho")
    picture = relations(model, item, min_count=LEAST_BASKETS, data=train)
    page.figure(picture, f"Relations of {item}")
    page.figure(history(model), "Training")
    page.write(out)
