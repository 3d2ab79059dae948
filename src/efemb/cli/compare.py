"""`efemb compare`: models and sizes on the same held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of
from efemb.errors import ParameterError

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.table import Table

SIZES = (5, 20, 50)
# What the score is: of real numbers the least is the best.
MEASURES = {
    "normalized_log_likelihood": "log-probability of a unit; higher is better",
    "mean_squared_error": "squared error of an entry; lower is better",
}
COLUMNS = (
    *("model", "components", "score", "standard_error", "row_error"),
    *("difference", "verdict", "seconds"),
)


def command(
    data: of.Data,
    model: Annotated[
        list[str] | None,
        typer.Option(help="The paper's name; repeat for several.", metavar="NAME"),
    ] = None,
    components: Annotated[
        list[int] | None,
        typer.Option("--components", "-k", help="Repeat for several.", min=1, metavar="K"),
    ] = None,
    test: Annotated[
        float, typer.Option(help="Part of the rows to judge by.", min=0, max=0.9, metavar="X")
    ] = 0.1,
    basket: of.Basket = None,
    item: of.Item = None,
    count: of.Count = None,
    positions: of.Positions = None,
    min_count: of.Rarest = 5,
    curve: Annotated[
        Path | None, typer.Option(help="Draw score against K: PNG, SVG, PDF.", metavar="FILE")
    ] = None,
    max_iter: of.MaxIter = None,
    seed: of.Seed = 0,
    jobs: of.Jobs = -1,
    encoding: of.Encoding = "utf-8",
    strict: of.Strict = False,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Fit models of several sizes and compare them.

    All are judged on the same held-out entries; differences are to the best. Counts are scored by
    the log-probability of a unit (higher is better), real numbers by squared error (lower).

    \b
      efemb compare trips.csv --model p-emb --model ap-emb -k 10 -k 50
      efemb compare trips.csv -k 5 -k 10 -k 20 -k 50 --curve curve.png
    """
    from efemb.cli._inputs import Reading, sizes
    from efemb.cli._models import check_context, chosen_model
    from efemb.cli._output import nothing, remark, show_json
    from efemb.cli.plot import check_picture, write_picture
    from efemb.data.dataset import Dataset
    from efemb.estimators.names import canonical_name

    say = nothing if quiet else remark
    wanted = [canonical_name(name) for name in model or []]
    if curve is not None:
        check_picture(curve)
    for name in wanted:
        check_context(name, None, None, positions)
    reading = Reading(basket, item, count, encoding, positions, min_count, strict, not quiet, say)
    found = reading.read(data, *wanted[:1])
    if not isinstance(found, Dataset):
        raise ParameterError("compare is for rows of numbers; score text with efemb evaluate")
    say(sizes(found))
    names = list(dict.fromkeys(wanted)) or [chosen_model(None, found, say)]
    _check_values(names, found)
    lengths = components or [k for k in SIZES if 2 * k <= found.n_entities] or [1]
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs}
    if max_iter is not None:
        options["max_iter"] = max_iter
    table, popularity = _scored(names, lengths, _split(found, test, seed), options, say, not quiet)
    metric = _metric(names[0])
    if as_json:
        show_json({"metric": metric, "models": list(table), "popularity": popularity})
    else:
        typer.echo(_readable(table).to_text())
        typer.echo(f"score: {MEASURES[metric]}")
        typer.echo(f"popularity, which knows no context: {popularity:.4f}")
    if curve is not None:
        from efemb.plots import score_curve

        label = MEASURES[metric].partition(";")[0]
        write_picture(score_curve(table, y_label=label), curve)
        say(f"curve: {curve}")


def _metric(name: str) -> str:
    """By what `score_grid` judges a model."""
    from efemb.estimators.names import model_named

    normalized = model_named(name, 1)._spec().family.normalized_score
    return "normalized_log_likelihood" if normalized else "mean_squared_error"


def _check_values(names: list[str], data: Dataset) -> None:
    """Before the fits: scores of what was bought are not those of how much was bought."""
    measured = {_metric(name): name for name in names}
    if len(measured) > 1:
        raise ParameterError(
            f"{' and '.join(measured.values())} have scores of different kinds "
            f"({' and '.join(measured)}): compare them apart"
        )
    stored = data.values.data if data.is_sparse else data.values
    if "b-emb" in names and len(names) > 1 and bool((stored > 1).any()):
        others = ", ".join(name for name in names if name != "b-emb")
        raise ParameterError(
            f"b-emb takes every count for 1, so its score is not comparable with that of {others}: "
            "compare it alone, or give a file of zeros and ones"
        )


def _split(data: Dataset, test: float, seed: int) -> tuple[Dataset, Dataset]:
    if not int(test * data.n_rows):
        raise ParameterError(f"--test {test} of {data.n_rows:,} rows leaves none to judge by")
    train, held = data.split(test=test, seed=seed)
    return train, held


def _scored(
    names: list[str],
    lengths: list[int],
    parts: tuple[Dataset, Dataset],
    options: dict[str, Any],
    say: Any,
    progress: bool,
) -> tuple[Table, float]:
    from efemb.cli._models import made, without_warnings
    from efemb.evaluation import compare, score_grid
    from efemb.evaluation.comparison import POPULARITY, fit_popularity

    train, held = parts
    models = {name: made(name, lengths[0], train, **options) for name in names}
    with without_warnings(say):
        table = score_grid(
            models,
            {"n_components": lengths},
            train,
            held,
            seed=options["random_state"],
            progress=progress,
        )
        # On the same entries, by the same measure as the models.
        rival, seen = fit_popularity(models[names[0]], train, held)
        judged = compare({POPULARITY: rival}, seen, bootstrap=1)
    return table, float(judged["score"][0])


def _readable(table: Table) -> Table:
    """The columns that people look at, under short names."""
    from efemb.table import Table

    names = {"n_components": "components"}
    columns = {names.get(name, name): table[name] for name in table.columns}
    return Table({name: columns[name] for name in COLUMNS})
