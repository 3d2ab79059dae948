"""`efemb export`: vectors for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from efemb._files import check_writable, expand_home, file_target
from efemb.cli import _arguments as of
from efemb.cli._labels import open_model
from efemb.cli._output import echo, show_json
from efemb.errors import ParameterError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable

FORMATS = ("word2vec", "table", "projector")
WORD2VEC = (".txt", ".vec", ".bin", ".w2v")


def command(
    model: of.Model,
    out: Annotated[
        Path,
        typer.Argument(
            help="File to write; a folder for projector.", metavar="OUT", show_default=False
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="word2vec, table or projector; by default from the file name.",
            metavar="NAME",
        ),
    ] = None,
    which: of.Which = "auto",
    space: Annotated[
        str,
        typer.Option(help="Replacement for spaces in labels of word2vec files.", metavar="TEXT"),
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
    kind = _choose_format(form, out)
    check_writable(expand_home(out) if kind == "projector" else file_target(out).parent)
    vectors = open_model(model).vectors(which)  # type: ignore[arg-type]  # checked there
    _choose_writer(kind, space, not quiet)(vectors, out)
    n_items, n_components = vectors.vectors.shape
    if as_json:
        sizes = {"vectors": n_items, "components": n_components}
        show_json({"written": out, "format": kind, **sizes})
    else:
        echo(f"{n_items:,} vectors with {n_components} components written to {out}")


def _choose_format(form: str | None, out: Path) -> str:
    from efemb.export.vector_tables import ENDINGS

    if form is not None:
        if form not in FORMATS:
            raise ParameterError(f"--format {form}: {suggest(form, FORMATS)}")
        return form
    endings = {suffix.lower() for suffix in out.suffixes[-2:]}
    for kind, known in (("table", ENDINGS), ("word2vec", WORD2VEC)):
        if endings & set(known):
            return kind
    raise ParameterError(
        f"{out}: the name of a table ends in {', '.join(ENDINGS)}, that of a word2vec file in "
        f"{', '.join(WORD2VEC)}; or choose with --format {', '.join(FORMATS)}"
    )


def _choose_writer(kind: str, space: str, progress: bool) -> Callable[[Any, Path], None]:
    from efemb.export import write_projector, write_vectors, write_word2vec

    if kind == "projector":
        return write_projector
    if kind == "table":
        return write_vectors
    return lambda vectors, out: write_word2vec(vectors, out, replace=space, progress=progress)
