"""`efemb reproduce`: the paper's empirical section on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from efemb.cli import _arguments as of
from efemb.cli._output import echo, remark, show_json


def command(
    studies: Annotated[
        list[str],
        typer.Argument(help="movies, baskets, neurons, text, or all.", metavar="STUDY"),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for tables, figures and the report.", metavar="FOLDER")
    ] = Path("reproduction"),
    quick: Annotated[
        bool,
        typer.Option("--quick", help="One minute per study, with fewer models, rows and passes."),
    ] = False,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Random seed; repeat for several splits.", min=0, metavar="N"),
    ] = None,
    literal: Annotated[
        bool,
        typer.Option("--literal", help="Movies: sample and split exactly as the paper states."),
    ] = False,
    jobs: of.Jobs = -1,
    data_home: Annotated[
        Path | None,
        typer.Option(help="Folder of data sets; by default $EFEMB_DATA.", metavar="FOLDER"),
    ] = None,
    as_json: of.Json = False,
) -> None:
    """Reproduce the paper's tables and figures.

    An interrupted run resumes where it stopped.

    \b
      efemb reproduce movies --quick
      efemb reproduce movies --literal
      efemb reproduce all --out reproduction
    """
    from efemb.reproduce.study import STUDIES, Options, find_study, reproduce

    names = list(STUDIES) if "all" in studies else list(dict.fromkeys(studies))
    minutes = sum(find_study(name).minutes for name in names)
    seeds = tuple(seed) if seed else Options().seeds
    options = Options(quick, seeds, jobs, data_home, literal)
    if not as_json:
        time = f"about {len(names)} min" if quick else f"about {minutes:.0f} min on two cores"
        remark(f"{', '.join(names)}: {time}; writing to {out}")
    report = reproduce(names, out, options, progress=not as_json)
    if as_json:
        show_json({"studies": names, "report": str(report)})
    else:
        echo(f"report: {report}")
