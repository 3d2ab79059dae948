"""`efemb evaluate`: how well a saved model predicts data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.table import Table

LEAVE_ONE = "leave-one-out"


def command(
    model: of.Model,
    data: of.Data,
    train: Annotated[
        Path | None,
        typer.Option(help="Training data: adds a model that knows no context.", metavar="FILE"),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="leave-one-out, or leave-fold-out (arrays).", metavar="NAME")
    ] = LEAVE_ONE,
    basket: of.Basket = None,
    item: of.Item = None,
    count: of.Count = None,
    positions: of.Positions = None,
    encoding: of.Encoding = "utf-8",
    strict: of.Strict = False,
    seed: of.Seed = 0,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Score how well a model predicts data.

    Each entry is predicted from its context. Counts: log-probability of a unit, recall, rank; real
    numbers: squared error; text: log-probability of a word. What the model does not know is left
    out. The rows that it was fitted to would flatter it: give others. leave-fold-out takes a part
    of the columns away, as if they were 0: centre raw recordings before the fit.

    \b
      efemb evaluate model test.csv
      efemb evaluate model test.csv --train train.csv
      efemb evaluate model activity.npy --protocol leave-fold-out
    """
    from efemb.cli._inputs import Reading, sizes
    from efemb.cli._labels import opened
    from efemb.cli._models import without_warnings
    from efemb.cli._output import nothing, remark, show
    from efemb.data.corpus import Corpus
    from efemb.model.contexts.window import Window

    say = nothing if quiet else remark
    found = opened(model)
    if isinstance(found.spec.context, Window):
        _check_text(train, protocol)
    reading = Reading(basket, item, count, encoding, positions, 1, strict, not quiet, say)
    test = reading.read_for(data, found)
    say(sizes(test))
    with without_warnings(say):
        if isinstance(test, Corpus):
            table = _words(found, test, not quiet)
        else:
            past = None if train is None else reading.read_for(train, found)
            table = _entries(found, test, past, protocol, seed, not quiet)
    show(table if as_json else _each_by_itself(table), as_json)


def _check_text(train: Path | None, protocol: str) -> None:
    for option, told in {"--train": train is not None, "--protocol": protocol != LEAVE_ONE}.items():
        if told:
            raise ParameterError(f"{option} goes with rows of numbers; words have one score only")


def _words(model: Any, test: Any, progress: bool) -> Table:
    from efemb.evaluation import held_out_words
    from efemb.table import Table

    words = held_out_words(model, test, progress=progress)
    numbers = {"score": words.log_likelihood, "standard_error": words.standard_error}
    columns = {**numbers, "perplexity": words.perplexity, "n": words.n_words}
    return Table({name: [value] for name, value in columns.items()})


def _entries(model: Any, test: Any, train: Any, protocol: str, seed: int, progress: bool) -> Table:
    from efemb.evaluation.comparison import fit_popularity, resolve_protocol
    from efemb.table import Table

    chosen: Any = resolve_protocol(protocol, seed)
    judge = partial(chosen, progress=progress)
    table: Table = judge(model, test).summary()
    if train is None:
        return table
    rival = judge(*fit_popularity(model, train, test)).summary()
    scores = {(line["metric"], line["by"]): line["score"] for line in rival}
    beside = [scores.get((line["metric"], line["by"]), float("nan")) for line in table]
    return Table({**{name: table[name] for name in table.columns}, "popularity": beside})


def _each_by_itself(table: Table) -> Table:
    """Numbers with four digits each: metrics are of different sizes."""
    from efemb.table import Table

    columns = {name: table[name] for name in table.columns}
    for name in ("score", "standard_error", "row_error", "popularity"):
        if name in columns:
            texts = [f"{value:.4g}" for value in columns[name].tolist()]
            columns[name] = ["" if text == "nan" else text for text in texts]
    return Table(columns)
