"""`efemb explore`: a page in the browser that shows a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import efemb
from efemb._files import check_writable, file_target
from efemb.cli import _arguments as of
from efemb.cli._labels import read_evidence
from efemb.cli._output import make_reporter, show_json
from efemb.errors import ParameterError


def command(
    model: of.Model,
    against: Annotated[
        Path | None,
        typer.Option(help="Folder of a second model, shown beside the first.", metavar="MODEL"),
    ] = None,
    data: of.MaybeData = None,
    *,
    layout: of.Layout,
    test: Annotated[
        Path | None,
        typer.Option(help="Held-out data to score the model on.", metavar="FILE"),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(help="Table of items and their groups; adds colors.", metavar="FILE"),
    ] = None,
    group_column: Annotated[
        str | None, typer.Option(help="Column of the groups in that table.", metavar="COLUMN")
    ] = None,
    uncertainty: Annotated[
        bool,
        typer.Option(
            "--uncertainty",
            help="With --data: standard errors of the vectors, as colors and intervals.",
        ),
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Projection of the map: pca, tsne or umap; repeat for several.", metavar="NAME"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write a self-contained HTML file instead of serving.",
            metavar="FILE",
        ),
    ] = None,
    bits: Annotated[
        int,
        typer.Option(help="With --out: bits per number of the vectors: 8, 16 or 24.", metavar="N"),
    ] = 24,
    host: Annotated[str, typer.Option(help="Address to serve at.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            help="Port to serve at; if in use, the next free one.", min=0, max=65535, metavar="N"
        ),
    ] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            help="Secret part of the address; required if HOST is not local.", metavar="TEXT"
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Show a model in the browser: map, relations, baskets, topics.

    Serves the page until interrupted. With --out, writes a file that works offline, for up to
    20,000 items.

    \b
      efemb explore model
      efemb explore model --data trips.csv --groups products.csv
      efemb explore model --against older-model
      efemb explore model --out map.html
    """
    from efemb.explore.contents import check_model
    from efemb.explore.explorer import prepare
    from efemb.explore.serving import check_exposure

    say = make_reporter(quiet)
    if as_json and out is None:
        raise ParameterError("--json describes a file: use it with --out FILE")
    if out is None:
        check_exposure(host, token, lambda _: None)
    else:
        check_writable(file_target(out).parent)
    shown = efemb.load(model)
    fitted = check_model(shown)
    if uncertainty and data is None:
        raise ParameterError("--uncertainty is computed from the rows of the fit: pass --data FILE")
    names = [path.resolve().name for path in (model, against) if path is not None]
    rows = read_evidence(data, fitted, layout)
    page = prepare(
        shown,
        against=None if against is None else efemb.load(against),
        data=rows,
        errors=fitted.laplace(rows) if uncertainty else None,
        test=read_evidence(test, fitted, layout),
        groups=groups,
        group_column=group_column,
        methods=method or None,
        names=names,
        progress=not quiet,
    )
    for contents in page.contents[:1]:
        if contents.groups is not None:
            say(contents.groups.remark())
    if out is None:
        page.serve(host, port, token=token, open_browser=browser, say=typer.echo)
        return
    target = page.to_html(out, bits)
    size = target.stat().st_size
    if as_json:
        show_json({"page": target, "bytes": size})
    else:
        typer.echo(f"{target} ({size / 1e6:.1f} MB)")
