"""`efemb update`: more data for a saved model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import efemb
from efemb._files import check_writable
from efemb.cli import _arguments as of
from efemb.cli._inputs import Reading, describe_size, needed_columns
from efemb.cli._labels import embedding_of
from efemb.cli._models import warnings_as_remarks
from efemb.cli._output import echo, make_reporter, show_json
from efemb.errors import ParameterError


def command(
    model: of.Model,
    data: of.DataFiles,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for the result; by default, MODEL is replaced.",
            metavar="FOLDER",
        ),
    ] = None,
    passes: Annotated[
        int, typer.Option(help="Number of passes over the new data.", min=1, metavar="N")
    ] = 1,
    skip_unknown: of.SkipUnknown = False,
    *,
    layout: of.Layout,
    lower: of.Lower = False,
    min_count: of.Rarest = 1,
    seed: of.Seed = 0,
    jobs: of.Jobs = -1,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Train a saved model on further data.

    Each pass continues from the vectors of the model, and item counts add up. New items are added
    to the model; words that a text model does not know are ignored.

    \b
      efemb update model january.csv
      efemb update model january.csv --passes 3 --out model-january
      efemb update model january.csv --skip-unknown
    """
    from efemb.fitted.disk import MODEL

    say = make_reporter(quiet)
    loaded = efemb.load(model)
    if hasattr(loaded, "parts_"):
        raise ParameterError(
            f"{model} is a basket model, whose item pairs cannot be updated: fit it again to "
            "all data, or fit --model p-emb or b-emb, which can be updated"
        )
    fitted = embedding_of(loaded, model)
    target = model if out is None else out
    check_writable(MODEL.replaceable(target).parent)
    reading = Reading(layout, min_count=min_count, progress=not quiet, say=say, lower=lower)
    if skip_unknown or fitted.spec.context.reads_text:
        if len(data) > 1:
            raise ParameterError("pass a single file with --skip-unknown and for text")
        observed = reading.read_for(data[0], fitted)
    else:
        observed = replace(reading, rows=needed_columns(fitted)).read(data)
    say(describe_size(observed))
    estimator = _continue(fitted, random_state=seed, n_jobs=jobs)
    before = fitted.n_entities
    with warnings_as_remarks(say):
        for _ in range(passes):
            estimator.partial_fit(observed)
    estimator.save(target)
    summary = {"items": estimator.fitted().n_entities, "new_items": 0, "saved": str(target)}
    summary["new_items"] = summary["items"] - before
    if as_json:
        show_json(summary)
    else:
        echo(
            f"{passes} pass{'' if passes == 1 else 'es'} over the new data, "
            f"{summary['new_items']:,} new item{'' if summary['new_items'] == 1 else 's'}; "
            f"saved in {target}"
        )


def _continue(fitted: Any, **options: Any) -> Any:
    """An estimator of the model's class that continues from it."""
    kind = getattr(efemb, fitted.model, None)
    if kind is None or not hasattr(kind, "from_fitted"):
        raise ParameterError(
            f"{fitted.model} is not a model of efemb: continue it in Python with partial_fit"
        )
    return kind.from_fitted(fitted, **options)
