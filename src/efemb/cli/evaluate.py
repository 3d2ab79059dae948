"""`efemb evaluate`: how well a saved model predicts data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import efemb
from efemb.cli import _arguments as of
from efemb.cli._inputs import Reading, describe_size
from efemb.cli._labels import embedding_of
from efemb.cli._models import describe_useless, warnings_as_remarks
from efemb.cli._output import echo, make_reporter, show
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.table import Table

LEAVE_ONE = "leave-one-out"
_ERRORS = "row_error: standard error that takes only rows as independent"
_REAL = (
    "log_likelihood: higher is better; mean_squared_error: lower is better; r2: share of the "
    f"variance that is explained (R^2); {_ERRORS}"
)
NOTES = {  # by the first metric
    "normalized_log_likelihood": "normalized_log_likelihood: log of the item's share among all "
    "items, absent: among those outside the basket; log_likelihood: of the count itself; higher is "
    f"better for all; {_ERRORS}",
    "log_likelihood": _REAL,
    "mean_squared_error": _REAL,
    "words": "score: log-probability per word; higher is better",
}


def command(
    model: of.Model,
    data: of.Data,
    train: Annotated[
        Path | None,
        typer.Option(help="Training data; adds a comparison with popularity.", metavar="FILE"),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="leave-one-out, or leave-fold-out (arrays).", metavar="NAME")
    ] = LEAVE_ONE,
    *,
    layout: of.Layout,
    positions: of.Positions = None,
    transpose: of.Transpose = False,
    lower: of.Lower = False,
    strict: of.Strict = False,
    seed: of.Seed = 0,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Score how well a model predicts data.

    Use data that the model was not fitted to. Each entry is predicted from its context. Counts are
    scored by log-probability per unit and by the rank of the item among all items outside the
    basket (recall@10, nDCG@10, MRR), real numbers by squared error, text by log-probability per
    word. Items that the model does not know are dropped.

    --train adds the score of popularity and the paired difference from it, with a standard error
    clustered by row. --protocol leave-fold-out hides several columns at a time; hidden columns
    enter contexts with their means, or with 0 if the model was not centered.

    \b
      efemb evaluate model test.csv
      efemb evaluate model test.csv --train train.csv
      efemb evaluate model activity.npy --protocol leave-fold-out
    """
    say = make_reporter(quiet)
    fitted: Any = efemb.load(model)
    fitted = fitted if hasattr(fitted, "log_means") else embedding_of(fitted, model)
    if hasattr(fitted, "spec") and fitted.spec.context.reads_text:
        _check_text(train, protocol)
    reading = Reading(
        layout,
        positions=positions,
        min_count=1,
        strict=strict,
        progress=not quiet,
        say=say,
        transpose=transpose,
        lower=lower,
    )
    test = reading.read_for(data, fitted)
    say(describe_size(test))
    with warnings_as_remarks(say):
        if isinstance(test, efemb.Corpus):
            table = _score_words(fitted, test, not quiet)
        else:
            past = None if train is None else reading.read_for(train, fitted)
            table = _score_entries(fitted, test, past, protocol, seed, not quiet)
    show(table if as_json else _format_numbers(table), as_json)
    say(NOTES["words" if "metric" not in table.columns else str(table["metric"][0])])
    if "popularity" in table.columns and not as_json:
        _warn_useless(table)


def _warn_useless(table: Table) -> None:
    """Report if the model is no better than popularity by the first metric."""
    score, rival = (table[name][0] for name in ("score", "popularity"))
    is_error = "metric" in table.columns and table["metric"][0] == "mean_squared_error"
    if word := describe_useless(score, rival, larger_is_better=not is_error):
        echo(word)


def _check_text(train: Path | None, protocol: str) -> None:
    options = {"--train": train is not None, "--protocol": protocol != LEAVE_ONE}
    for option, is_set in options.items():
        if is_set:
            raise ParameterError(f"{option} applies to rows of numbers; text has a single score")


def _score_words(model: Any, test: Any, progress: bool) -> Table:
    words = efemb.evaluation.held_out_words(model, test, progress=progress)
    numbers = {"score": words.log_likelihood, "standard_error": words.standard_error}
    rival = {
        "popularity": words.unigram,
        "difference": words.log_likelihood - words.unigram,
        "difference_error": words.gain_error,
    }
    columns = {**numbers, "perplexity": words.perplexity, "n": words.n_words, **rival}
    return efemb.Table({name: [value] for name, value in columns.items()})


def _score_entries(
    model: Any, test: Any, train: Any, protocol: str, seed: int, progress: bool
) -> Table:
    from efemb.evaluation.comparison import fit_popularity, resolve_protocol

    chosen: Any = resolve_protocol(protocol, seed)
    judge = partial(chosen, progress=progress)
    ours = judge(model, test)
    table: Table = ours.summary()
    if train is None:
        return table
    rival = judge(*fit_popularity(model, train, test))
    lines = [_score_rival(ours, rival, line["metric"], line["by"]) for line in table]
    columns = {name: table[name] for name in table.columns}
    names = ("popularity", "difference", "difference_error")
    return efemb.Table({**columns, **dict(zip(names, zip(*lines, strict=True), strict=True))})


def _score_rival(ours: Any, rival: Any, metric: str, by: Any) -> tuple[float, float, float]:
    """Score of the rival, and the paired difference from it with its error over rows."""
    from efemb.evaluation.comparison import differences
    from efemb.evaluation.metrics import METRICS, metric_of

    unknown = (float("nan"),) * 3
    if metric not in METRICS and "@" not in metric:  # the number of skipped entries
        return unknown
    try:
        score = rival.score(metric, by).value
    except ParameterError:  # a metric of other kinds of data
        return unknown
    pair = {"ours": ours, "rival": rival}
    gap = differences(pair, metric_of(metric), by, "rival", bootstrap=1, seed=0)["ours"]
    return score, gap.value, gap.standard_error


def _format_numbers(table: Table) -> Table:
    """Four digits per number, not per column: the metrics are of different sizes."""
    columns = {name: table[name] for name in table.columns}
    numbers = ("score", "standard_error", "row_error", "popularity")
    for name in (*numbers, "difference", "difference_error"):
        if name in columns:
            texts = [f"{value:.4g}" for value in columns[name].tolist()]
            columns[name] = ["" if text == "nan" else text for text in texts]
    return efemb.Table(columns)
