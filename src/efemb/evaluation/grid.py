"""score_grid: one fit per setting, scored on held-out data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from time import perf_counter
from typing import Any

from efemb._terminal import progress_bar
from efemb.engine.interrupt import interrupt_at_once
from efemb.errors import DivergenceError, InputTypeError, ParameterError
from efemb.evaluation.comparison import Protocol, name_models, resolve_protocol, tabulate_scores
from efemb.evaluation.predictions import Predictions
from efemb.evaluation.scores import By
from efemb.table import Table

DIVERGED = "diverged"
BOOTSTRAP = 1000


def score_grid(
    models: Any,
    settings: Mapping[str, Iterable[Any]],
    train: Any,
    X: Any,
    *,
    validation: Any = None,
    protocol: str | Protocol = "leave-one-out",
    metric: str | None = None,
    by: By | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Table:
    """Fit each model with every combination of settings and score the fits on the same entries.

    Parameters
    ----------
    models : mapping of names to models, or list of models
        Unfitted models; clones of them are fitted.
    settings : mapping of parameter names to values
        As in `set_params`: ``{"n_components": [10, 20, 50], "prior__precision": [0.1, 1.0]}``.
    train : rows x entities
        Training data.
    X : rows x entities
        Validation data to score the fits on; keep the test data for the final model.
    validation : like X, optional
        Passed to `fit`, for early stopping.
    protocol : {"leave-one-out", "leave-fold-out"} or function of (model, X)
        Which entries are predicted; a function returns `Predictions`.
    metric : str, optional
        As in `Predictions.score`. Default: normalized log-likelihood for counts and binary data,
        mean squared error for real data.
    by : {"unit", "entry", "row"}, optional
        What the mean is taken over. Default: "unit" for the normalized log-likelihood, otherwise
        "entry".
    seed : int, default=0
        Random seed of the folds and of the bootstrap.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Table
        One row per fit, in the order of models and settings: model, one column per setting, then
        score ... verdict as in `compare`, with differences from the best fit, and seconds (of the
        fit). A fit that diverged has a score of NaN and the verdict "diverged".
    """
    judge = resolve_protocol(protocol, seed)
    named = name_models(models)
    combinations = _combinations(settings)
    predictions: dict[str, Predictions] = {}
    rows: list[tuple[str, dict[str, Any], float]] = []
    with progress_bar("fitting settings", len(named) * len(combinations), progress) as advance:
        for (name, model), chosen in product(named.items(), combinations):
            started = perf_counter()
            fitted = _fit(model, chosen, train, validation)
            rows.append((name, chosen, perf_counter() - started))
            if fitted is not None:
                key = str(len(rows) - 1)
                predictions[key] = judge(fitted, X)
            advance(1)
    if not predictions:
        raise DivergenceError("every fit diverged: try smaller steps or a stronger prior")
    judged = tabulate_scores(predictions, metric, by, None, BOOTSTRAP, seed, sort=False)
    return _table(rows, judged, list(settings))


def _combinations(settings: Any) -> list[dict[str, Any]]:
    if not isinstance(settings, Mapping):
        raise InputTypeError(
            f"settings must map parameter names to lists of values, not {type(settings).__name__}"
        )
    for name, values in settings.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputTypeError(f"settings[{name!r}] must be a list of values, not {values!r}")
    lists = [list(values) for values in settings.values()]
    combinations = [dict(zip(settings, chosen, strict=True)) for chosen in product(*lists)]
    if not combinations or not settings:
        raise ParameterError(f"settings contains no values to try: {dict(settings)!r}")
    return combinations


def _fit(model: Any, chosen: Mapping[str, Any], train: Any, validation: Any) -> Any:
    """A fitted copy, or None if it diverged."""
    from sklearn.base import clone

    copy = clone(model).set_params(**{name: clone(v, safe=False) for name, v in chosen.items()})
    extra = {} if validation is None else {"validation": validation}
    try:
        with interrupt_at_once():
            return copy.fit(train, **extra)
    except DivergenceError:
        return None


def _table(
    rows: list[tuple[str, dict[str, Any], float]], judged: Table, settings: list[str]
) -> Table:
    by_place = {row.pop("model"): row for row in judged}
    lost: dict[str, Any] = dict.fromkeys(next(iter(by_place.values())), float("nan"))
    lost |= {"verdict": DIVERGED, "n": 0.0, "skipped": 0}
    each = [by_place.get(str(index), lost) for index in range(len(rows))]
    columns: dict[str, list[Any]] = {"model": [name for name, _, _ in rows]}
    columns |= {setting: [chosen[setting] for _, chosen, _ in rows] for setting in settings}
    columns |= {setting: [row[setting] for row in each] for setting in lost}
    return Table({**columns, "seconds": [seconds for _, _, seconds in rows]})
