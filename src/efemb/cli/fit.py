"""`efemb fit`: from a file to a saved model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import efemb
from efemb._files import check_writable
from efemb.cli import _arguments as of
from efemb.cli._inputs import CUSTOMER, Reading, describe_size, drop_unobserved
from efemb.cli._models import (
    BASKET,
    check_context,
    choose_components,
    choose_model,
    count_observations,
    describe_useless,
    further_options,
    make_model,
    score_held_out,
    warnings_as_remarks,
)
from efemb.cli._output import Say, echo, make_reporter, show_json
from efemb.cli._shards import Cluster, ShardRun, choose_store, fit_from_shards
from efemb.errors import DataError


def command(
    data: of.DataFiles,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the model.", metavar="FOLDER")
    ] = Path("model"),
    model: Annotated[
        str | None,
        typer.Option(help="One of the models above; inferred by default.", metavar="NAME"),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(
            *("--components", "-k"),
            help="Length of the vectors; by default 50 (basket: 100), or less for small data.",
            min=1,
            metavar="K",
        ),
    ] = None,
    *,
    layout: of.Layout,
    net_returns: of.NetReturns = False,
    row: of.Rows = None,
    week: of.Week = None,
    price: of.Price = None,
    features: of.Features = None,
    positions: of.Positions = None,
    transpose: of.Transpose = False,
    lower: of.Lower = False,
    neighbors: Annotated[
        int | None,
        typer.Option(
            help="Number of nearest neurons in a context; by default 10.", min=1, metavar="N"
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            help="Number of context words on each side; by default 5.", min=1, metavar="N"
        ),
    ] = None,
    min_count: of.Rarest = 5,
    test: Annotated[
        float,
        typer.Option(help="Share of rows to hold out and score.", min=0, max=0.9, metavar="X"),
    ] = 0.05,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Fit out of core: store the transactions as shards in this folder.",
            metavar="FOLDER",
        ),
    ] = None,
    cluster: Cluster = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            help="With --cluster: number of model replicas to average; by default 8.",
            min=1,
            metavar="N",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="With shards: folder of checkpoints; the same command resumes from it.",
            metavar="FOLDER",
        ),
    ] = None,
    max_iter: of.MaxIter = None,
    seed: of.Seed = 0,
    jobs: of.Jobs = -1,
    strict: of.Strict = False,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Fit a model to a file and save it.

    Anything you do not specify is inferred from the data and reported. Transactions have one line
    per item of a basket (or, with --layout lines, one line per basket), arrays one row per frame or
    user, and text one document per line.

    \b
      efemb fit trips.csv --out model
      efemb fit trips.csv --basket order --item sku --count quantity -k 100
      efemb fit ratings.csv --basket user --item title --model ap-emb
      efemb fit u.data --header user,movie,rating,time
      efemb fit retail.dat --layout lines
      efemb fit trips.csv --row household
      efemb fit trips.csv --row household --week week --price paid
      efemb fit trips.csv --features products.csv
      efemb fit "trips/*.parquet" --basket customer --basket date
      efemb fit activity.npy --positions xyz.npy --neighbors 50 --model g-emb
      efemb fit traces.npy --transpose --positions xyz.npy
      efemb fit corpus.txt.gz --model cbow --window 5
      efemb fit "lines/*.parquet" --store shards --cluster local:4

    Transactions that would not fit into memory are stored as shards on disk and fitted from there.

    \b
    Models:
      transactions  basket
      real numbers  g-emb, ng-emb
      counts        p-emb, p-emb-dw, ap-emb, categorical
      0 and 1       b-emb
      text          b-emb, cbow, skip-gram, poisson-text

    \b
    Then:
      efemb similar model milk
      efemb complements model milk --data trips.csv
      efemb plot model map --out map.png
    """
    from efemb.estimators.names import canonical_name
    from efemb.fitted.disk import MODEL

    say = make_reporter(quiet)
    model_name = None if model is None else canonical_name(model, (BASKET,))
    check_context(model_name, neighbors, window, positions)
    check_writable(MODEL.replaceable(out).parent)
    reading = Reading(
        layout,
        positions=positions,
        min_count=min_count,
        strict=strict,
        progress=not quiet,
        say=say,
        transpose=transpose,
        lower=lower,
        net_returns=net_returns,
        rows=row or (),
        week=week,
        price=price,
        features=features,
    )
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": int(not quiet)}
    if max_iter is not None:
        options["max_iter"] = max_iter
    shards = choose_store(data, store, out, say, forced=bool(cluster or checkpoint))
    if shards is None:
        asked = Asked(out, model_name, components, neighbors, window, test, seed, strict)
        summary = _fit_in_memory(reading, data, asked, options)
    else:
        run = ShardRun(shards, cluster, replicas, checkpoint, test, seed)
        estimator, summary = fit_from_shards(reading, data, run, model_name, components, options)
        estimator.save(out)
    _show_summary({**summary, "saved": str(out)}, as_json)


@dataclass(frozen=True)
class Asked:
    """What the user asked of a fit in memory; None is inferred from the data."""

    out: Path
    model: str | None
    components: int | None
    neighbors: int | None
    window: int | None
    test: float
    seed: int
    strict: bool


def _fit_in_memory(
    reading: Reading, files: list[Path], asked: Asked, options: dict[str, Any]
) -> dict[str, Any]:
    """Read all data, fit and save; returns a summary."""
    say = reading.say
    observed = drop_unobserved(reading.read(files, asked.model), asked.strict, say)
    say(describe_size(observed))
    name = choose_model(asked.model, observed, say, asked.neighbors, reading)
    size = count_observations(observed), int(observed.n_entities)
    k = choose_components(asked.components, *size, say, name)
    train, held_out = _split(observed, asked.test, asked.seed, say)
    options = options | further_options(name, reading, observed, say)
    start = time.perf_counter()
    with warnings_as_remarks(say):
        estimator = make_model(name, k, train, asked.neighbors, asked.window, **options).fit(train)
    seconds = time.perf_counter() - start
    _report_unseen(estimator, say)
    _report_priors(estimator, say)
    _report_baskets(estimator, observed.report.get(CUSTOMER), say)
    if estimator.report_["interrupted"]:
        say(f"interrupted in pass {estimator.n_iter_}: saving the best vectors so far")
    estimator.save(asked.out)
    scores = {} if held_out is None else score_held_out(estimator, train, held_out)
    summary = {"model": name, "components": k, "passes": estimator.n_iter_, "seconds": seconds}
    return {**summary, **scores}


def _split(data: Any, test: float, seed: int, say: Say) -> tuple[Any, Any]:
    """Training and test data; the latter are None if the share is less than a row.

    Text may be a single long document; then stretches of it are held out.
    """
    if test == 0:
        return data, None
    text = isinstance(data, efemb.Corpus)
    if not text and not int(test * len(data)):
        say(f"{len(data):,} rows are too few to hold out {test:g} of them: no score")
        return data, None
    try:
        train, held_out = data.split(test=test, seed=seed)
    except DataError:
        if not text:
            raise
        say(f"the text is too short to hold out {test:g} of it: no score")
        return data, None
    return train, held_out


def _report_unseen(estimator: Any, say: Say) -> None:
    """Report entities that do not vary, which have no meaningful vectors."""
    report = estimator.report_
    unseen = [*report.get("constant_entities", ()), *report.get("unused_entities", ())]
    if unseen:
        labels = estimator.vocabulary_
        first = [str(code if labels is None else labels[code]) for code in unseen[:5]]
        ellipsis = ", ..." if len(unseen) > len(first) else ""
        say(
            f"{len(unseen):,} of {len(estimator.embedding_):,} items never vary in the training "
            f"rows, so nothing can be learned about them: {', '.join(first)}{ellipsis}"
        )


def _report_priors(estimator: Any, say: Say) -> None:
    """Report the priors that were chosen from the data."""
    report = estimator.report_
    if "prior" not in report:
        return
    ridge = report.get("weight_ridge")
    of_weights = (
        "" if ridge is None else f", ridge on the weights of neighbors {ridge:.3g} (median)"
    )
    say(
        f"chosen by the data: prior {report['prior']}{of_weights}, "
        f"variance {estimator.family_.variance:.4g}"
    )


def _report_baskets(estimator: Any, column: str | None, say: Say) -> None:
    """Report what a basket model chose from the data; customers may be in a `column`."""
    report = estimator.report_
    if "family_chosen_by" in report:
        say(f"family: {report['family']} ({report['family_chosen_by']})")
        hint = "" if column is None else f"; to learn what each of them buys: --row {column}"
        say(f"customers: {report['history'] or f'not used{hint}'}")


def _show_summary(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(summary)
        return
    echo(
        f"{summary['model']} with {summary['components']} components: {summary['passes']} passes "
        f"in {summary['seconds']:.1f} s, saved in {summary['saved']}"
    )
    if "score" in summary:
        rival = summary.get("popularity")
        beside = "" if rival is None else f" (without context {rival:.4f})"
        real = "squared_error" in summary
        measure = "log-density" if real else "score"
        echo(f"held-out {measure} {summary['score']:.4f}{beside}")
        if real:
            plain = summary["squared_error_without_context"]
            echo(
                f"held-out squared error {summary['squared_error']:.4g} (without context "
                f"{plain:.4g}), R^2 {summary['r2']:.3f}"
            )
        if rival is not None:
            _warn_useless(summary)


def _warn_useless(summary: dict[str, Any]) -> None:
    """Report if the model is no better than one without context."""
    word = describe_useless(summary["score"], summary["popularity"])
    if "squared_error" in summary:
        errors = summary["squared_error"], summary["squared_error_without_context"]
        word = describe_useless(*errors, larger_is_better=False)
    if word:
        echo(word)
