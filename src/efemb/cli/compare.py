"""`efemb compare`: models and sizes on the same held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._inputs import Reading, describe_size, drop_unobserved
from efemb.cli._models import (
    check_context,
    choose_model,
    describe_useless,
    make_model,
    warnings_as_remarks,
)
from efemb.cli._output import Say, check_picture, echo, make_reporter, show_json, write_picture
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.table import Table

RANKING = ("recall@10", "ndcg@10", "mrr@100")
SIZES = (5, 20, 50)
MEASURES = {
    "normalized_log_likelihood": "log-probability per unit; higher is better",
    "mean_squared_error": "squared error per entry; lower is better",
}
COLUMNS = (
    *("model", "components", "score", "standard_error", "row_error"),
    *("difference", "difference_error", "verdict", *RANKING, "seconds"),
)


def command(
    data: of.DataFiles,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a model; repeat for several; inferred by default.", metavar="NAME"
        ),
    ] = None,
    components: Annotated[
        list[int] | None,
        typer.Option(
            *("--components", "-k"),
            help="Length of the vectors; repeat for several; by default 5, 20 and 50.",
            min=1,
            metavar="K",
        ),
    ] = None,
    test: Annotated[
        float, typer.Option(help="Share of rows to hold out.", min=0, max=0.9, metavar="X")
    ] = 0.1,
    *,
    layout: of.Layout,
    net_returns: of.NetReturns = False,
    positions: of.Positions = None,
    transpose: of.Transpose = False,
    min_count: of.Rarest = 5,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric to compare by, such as recall@10, ndcg@10 or mrr@100.",
            metavar="NAME",
        ),
    ] = None,
    curve: Annotated[
        Path | None, typer.Option(help="Plot score against K: PNG, SVG, PDF.", metavar="FILE")
    ] = None,
    max_iter: of.MaxIter = None,
    seed: of.Seed = 0,
    jobs: of.Jobs = -1,
    strict: of.Strict = False,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Fit models of several sizes and compare them.

    All models are scored on the same held-out entries. Differences are relative to the best model,
    with standard errors clustered by row. Counts are scored by log-probability per unit (higher is
    better), real numbers by squared error (lower is better). For counts, recall@10, nDCG@10 and
    MRR@100 rank the held-out item among all items outside its basket; --metric compares by one of
    them.

    \b
      efemb compare trips.csv --model p-emb --model ap-emb -k 10 -k 50
      efemb compare trips.csv -k 5 -k 10 -k 20 -k 50 --curve curve.png
      efemb compare trips.csv --model p-emb --model ap-emb --metric recall@20
    """
    from efemb.estimators.names import canonical_name
    from efemb.evaluation.metrics import metric_of

    say = make_reporter(quiet)
    names_in_paper = [canonical_name(name) for name in model or []]
    if metric is not None:
        metric_of(metric)
    if curve is not None:
        check_picture(curve)
    for name in names_in_paper:
        check_context(name, None, None, positions)
    reading = Reading(
        layout,
        positions=positions,
        min_count=min_count,
        strict=strict,
        progress=not quiet,
        say=say,
        transpose=transpose,
        net_returns=net_returns,
    )
    observed = drop_unobserved(reading.read(data, *names_in_paper[:1]), strict, say)
    if not isinstance(observed, efemb.Dataset):
        raise ParameterError("compare needs rows of numbers; score text with efemb evaluate")
    say(describe_size(observed))
    names = list(dict.fromkeys(names_in_paper)) or [choose_model(None, observed, say)]
    _check_values(names, observed)
    lengths = components or [k for k in SIZES if 2 * k <= observed.n_entities] or [1]
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs}
    if max_iter is not None:
        options["max_iter"] = max_iter
    split = _split(observed, test, seed)
    metric = metric or _find_metric(names[0])
    table, popularity = _score(names, lengths, split, options, metric, say, not quiet)
    if as_json:
        show_json({"metric": metric, "models": list(table), "popularity": popularity})
    else:
        _show(table, popularity, metric)
    if curve is not None:
        label = _describe(metric).partition(";")[0]
        write_picture(efemb.plots.score_curve(table, y_label=label), curve)
        say(f"curve written to {curve}")


def _show(table: Table, popularity: float, metric: str) -> None:
    larger = efemb.evaluation.metrics.metric_of(metric).larger_is_better
    echo(_select_columns(table).to_text())
    echo(f"score: {_describe(metric)}")
    echo(f"popularity, a model without context: {popularity:.4f}")
    best = max(table["score"]) if larger else min(table["score"])
    if word := describe_useless(best, popularity, larger_is_better=larger):
        echo(word)


def _describe(metric: str) -> str:
    return MEASURES.get(metric, f"{metric}; higher is better")


def _find_metric(name: str) -> str:
    """The metric by which `score_grid` scores a model."""
    from efemb.estimators.names import model_named

    normalized = model_named(name, 1)._spec().family.normalized_score
    return "normalized_log_likelihood" if normalized else "mean_squared_error"


def _check_values(names: list[str], data: Dataset) -> None:
    """Reject models whose scores cannot be compared, before they are fitted."""
    measured = {_find_metric(name): name for name in names}
    if len(measured) > 1:
        raise ParameterError(
            f"{' and '.join(measured.values())} have different metrics "
            f"({' and '.join(measured)}): compare them separately"
        )
    stored = data.values.data if data.is_sparse else data.values
    if "b-emb" in names and len(names) > 1 and bool((stored > 1).any()):
        others = ", ".join(name for name in names if name != "b-emb")
        raise ParameterError(
            f"b-emb treats every count as 1, so its score cannot be compared with that of "
            f"{others}: compare it alone, or use a file of zeros and ones"
        )


def _split(data: Dataset, test: float, seed: int) -> tuple[Dataset, Dataset]:
    if not int(test * data.n_rows):
        raise ParameterError(f"--test {test} of {data.n_rows:,} rows leaves no row to score")
    train, held_out = data.split(test=test, seed=seed)
    return train, held_out


def _score(
    names: list[str],
    lengths: list[int],
    split: tuple[Dataset, Dataset],
    options: dict[str, Any],
    metric: str,
    say: Say,
    progress: bool,
) -> tuple[Table, float]:
    from efemb.evaluation.comparison import POPULARITY, fit_popularity

    train, held_out = split
    models = {name: make_model(name, lengths[0], train, **options) for name in names}
    with warnings_as_remarks(say):
        table = efemb.evaluation.score_grid(
            models,
            {"n_components": lengths},
            train,
            held_out,
            metric=metric,
            seed=options["random_state"],
            progress=progress,
        )
        # On the same entries, by the same metric as the models.
        rival, seen = fit_popularity(models[names[0]], train, held_out)
        judged = efemb.compare({POPULARITY: rival}, seen, metric=metric, bootstrap=1)
    return table, float(judged["score"][0])


def _select_columns(table: Table) -> Table:
    """The most relevant columns, under short names."""
    names = {"n_components": "components"}
    columns = {names.get(name, name): table[name] for name in table.columns}
    return efemb.Table({name: columns[name] for name in COLUMNS if name in columns})
