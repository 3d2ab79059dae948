"""`efemb reproduce`: the paper's empirical section on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    studies: Annotated[
        list[str], typer.Argument(help="movies, baskets, neurons, text, or all of them: all.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for tables, pictures and the report.")] = Path(
        "reproduction"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="About a minute each: fewer models, rows and passes.")
    ] = False,
    seed: Annotated[
        list[int] | None, typer.Option(help="Split and first vectors; repeat for several.", min=0)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses every core.")] = -1,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of data sets; else EFEMB_DATA, else fetched.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Reproduce the paper's tables and figures.

    An interrupted run goes on where it was.

    \b
      efemb reproduce movies --quick
      efemb reproduce all --out reproduction
    """
    from efemb.cli._output import remark, show_json
    from efemb.reproduce import STUDIES, Options, reproduce
    from efemb.reproduce.study import find_study

    names = list(STUDIES) if "all" in studies else list(dict.fromkeys(studies))
    minutes = sum(find_study(name).minutes for name in names)
    seeds = tuple(seed) if seed else Options().seeds
    options = Options(quick, seeds, jobs, data_home)
    if not as_json:
        time = f"about {len(names)} min" if quick else f"about {minutes:.0f} min on two cores"
        remark(f"{', '.join(names)}: {time}; results go to {out}")
    report = reproduce(names, out, options, progress=not as_json)
    if as_json:
        show_json({"studies": names, "report": str(report)})
    else:
        typer.echo(f"report: {report}")
