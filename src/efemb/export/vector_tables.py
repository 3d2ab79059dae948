"""Vectors as tables for other programs: CSV, TSV, Parquet, NumPy, TensorBoard's projector."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from efemb._files import (
    as_cells,
    check_writable,
    complete_or_absent,
    expand_home,
    file_target,
    table_writer,
)
from efemb.errors import DataError, MissingExtraError, ParameterError, suggest
from efemb.fitted import LabeledVectors, check_labeled

ENDINGS = (".csv", ".tsv", ".parquet", ".npz")
PACKED = ENDINGS[:2]  # may be compressed
_ROWS = 1 << 12


def write_vectors(
    vectors: LabeledVectors, path: str | os.PathLike[str], *, formulas: str = "quote"
) -> None:
    """Write labels and vectors to a .csv, .tsv (also .gz, .bz2, .xz), .parquet or .npz file.

    Columns are `label`, then `0`, `1`, ...; an .npz file holds arrays `labels` and `vectors`. The
    file is replaced atomically.

    Parameters
    ----------
    vectors : LabeledVectors
        For instance ``model.vectors("alpha")``.
    path : path
    formulas : {"quote", "keep", "error"}, default="quote"
        How to handle labels in CSV and TSV files that a spreadsheet would interpret as a formula
        (they begin with = + - @): prefix them with an apostrophe, keep them, or raise an error.
        `read_matrix` and `read_baskets` remove the apostrophe.
    """
    check_labeled(vectors)
    target = file_target(path)
    kind = _ending(target)
    labels = [str(label) for label in vectors.vocabulary.labels]
    with complete_or_absent(target) as stream:
        if kind == ".npz":
            np.savez(stream, labels=np.array(labels), vectors=vectors.vectors)
        elif kind == ".parquet":
            _parquet(labels, vectors.vectors, stream)
        else:
            separator = "\t" if kind == ".tsv" else ","
            _check_characters(labels)
            _text(as_cells(labels, formulas), vectors.vectors, stream, separator)


def write_projector(vectors: LabeledVectors, folder: str | os.PathLike[str]) -> None:
    """Write `vectors.tsv` and `metadata.tsv` for TensorBoard's embedding projector.

    Parameters
    ----------
    vectors : LabeledVectors
        For instance `model.vectors()`.
    folder : path
        Where to write the two files; created if it does not exist.
    """
    check_labeled(vectors)
    target = expand_home(folder)
    check_writable(target)
    # Metadata with a single column have no header, and a label must be on one line.
    lines = [" ".join(str(label).split()) for label in vectors.vocabulary.labels]
    _check_characters(lines)
    with complete_or_absent(target / "metadata.tsv") as stream:
        stream.write("".join(f"{line}\n" for line in lines).encode())
    with complete_or_absent(target / "vectors.tsv") as stream:
        for start in range(0, len(lines), _ROWS):
            rows = vectors.vectors[start : start + _ROWS].tolist()
            stream.write("".join("\t".join(map(repr, row)) + "\n" for row in rows).encode())


def _ending(path: Path) -> str:
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() in ENDINGS]
    if not endings:
        raise ParameterError(f"{path.name}: {suggest(path.suffix, ENDINGS)}")
    if endings[-1] not in PACKED and path.suffix.lower() != endings[-1]:
        raise ParameterError(
            f"{path.name}: {endings[-1]} files are already compressed; omit the last extension"
        )
    return endings[-1]


def _check_characters(labels: Sequence[str]) -> None:
    bad = next((label for label in labels if "\x00" in label), None)
    if bad is not None:
        raise DataError(
            f"the label {bad!r} contains a NUL character, which text files cannot hold: rename it, "
            "or write .parquet or .npz"
        )
    _check_encodable(labels)


def _check_encodable(labels: Sequence[str]) -> None:
    """Reject labels that UTF-8 cannot encode, such as half a surrogate pair."""
    for label in labels:
        try:
            label.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"the label {label!r} cannot be written as UTF-8: rename it, or write .npz"
            ) from None


def _text(labels: Sequence[str], vectors: Any, stream: Any, separator: str) -> None:
    with table_writer(stream, separator) as writer:
        writer.writerow(["label", *range(vectors.shape[1])])
        for start in range(0, len(labels), _ROWS):
            rows = vectors[start : start + _ROWS].tolist()
            names = labels[start : start + _ROWS]
            writer.writerows([name, *row] for name, row in zip(names, rows, strict=True))


def _parquet(labels: Sequence[str], vectors: Any, stream: Any) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError('Parquet files need pyarrow: pip install "efemb[io]"') from error
    _check_encodable(labels)
    columns = {"label": labels, **{str(k): vectors[:, k] for k in range(vectors.shape[1])}}
    parquet.write_table(pyarrow.table(columns), stream)
