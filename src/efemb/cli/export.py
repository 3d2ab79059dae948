"""`efemb export`: vectors for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb.cli import _arguments as of
from efemb.errors import ParameterError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("word2vec", "table", "projector")
WORD2VEC = (".txt", ".vec", ".bin", ".w2v")


def command(
    model: of.Model,
    out: Annotated[Path, typer.Argument(help="File; a folder for projector.", show_default=False)],
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="word2vec, table or projector; else by ending.", metavar="NAME"
        ),
    ] = None,
    which: of.Which = "auto",
    space: Annotated[
        str, typer.Option(help="What word2vec files get for a space in a label.", metavar="TEXT")
    ] = "_",
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Write the vectors of a model for other programs.

    \b
      efemb export model vectors.csv          a table: also .tsv .parquet .npz
      efemb export model vectors.txt          word2vec: also .vec .bin, and .gz
      efemb export model folder --format projector        for TensorBoard

    \b
    gensim reads the second:
      KeyedVectors.load_word2vec_format("vectors.txt")
    """
    from efemb._files import check_writable, expanded, file_target
    from efemb.cli._labels import opened
    from efemb.cli._output import show_json

    kind = _format(form, out)
    check_writable(expanded(out) if kind == "projector" else file_target(out).parent)
    vectors = opened(model).vectors(which)  # type: ignore[arg-type]  # checked there
    _writer(kind, space, not quiet)(vectors, out)
    n, k = vectors.vectors.shape
    if as_json:
        show_json({"written": out, "format": kind, "vectors": n, "components": k})
    else:
        typer.echo(f"{n:,} vectors of {k} numbers written to {out}")


def _format(form: str | None, out: Path) -> str:
    from efemb.export.vector_tables import ENDINGS

    if form is not None:
        if form not in FORMATS:
            raise ParameterError(f"--format {form}: {suggest(form, FORMATS)}")
        return form
    endings = {one.lower() for one in out.suffixes[-2:]}
    for kind, known in (("table", ENDINGS), ("word2vec", WORD2VEC)):
        if endings & set(known):
            return kind
    raise ParameterError(
        f"{out}: a table ends in {', '.join(ENDINGS)}, a word2vec file in {', '.join(WORD2VEC)}; "
        f"or name it: --format {', '.join(FORMATS)}"
    )


def _writer(kind: str, space: str, progress: bool) -> Callable[[Any, Path], None]:
    from efemb.export import write_projector, write_vectors, write_word2vec

    if kind == "projector":
        return write_projector
    if kind == "table":
        return write_vectors
    return lambda vectors, out: write_word2vec(vectors, out, replace=space, progress=progress)
