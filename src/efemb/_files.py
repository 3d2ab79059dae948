"""Files that are written completely or not at all."""

from __future__ import annotations

import csv
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from efemb.errors import DataError, InputTypeError, ParameterError


def expand_home(path: str | os.PathLike[str]) -> Path:
    """A path with ~ expanded; unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # Path.expanduser would raise an error


def file_target(path: Any) -> Path:
    """The file that a path names, with links resolved; a folder is an error."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputTypeError(f"pass the path of a file, not {path!r}")
    target = Path(os.path.realpath(expand_home(path)))
    if target.is_dir():
        raise DataError(f"{target} is a directory; pass the name of a file in it")
    return target


def check_writable(folder: Path) -> None:
    """Create a folder and check that it is writable, before hours of work depend on it."""
    probe = folder / f".writable-{secrets.token_hex(6)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ParameterError(f"cannot write to {folder}: {error.strerror}") from error


@contextmanager
def complete_or_absent(target: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file, which is renamed if complete and removed otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial-{secrets.token_hex(6)}")
    try:
        with partial.open("xb") as file:
            with _pack(file, target.suffix.lower()) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def table_writer(stream: IO[bytes], separator: str) -> Iterator[Any]:
    r"""A csv.writer of UTF-8 lines that end in \n; cells that contain \n or \r are quoted."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    # Before Python 3.13, a writer only quotes its own line terminator.
    yield csv.writer(_PlainLines(text), delimiter=separator, lineterminator="\r\n")
    text.detach()


class _PlainLines:
    r"""Replaces \r\n at the end of each line by \n."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text

    def write(self, line: str) -> None:
        """Write one line."""
        self._text.write(line[:-2] + "\n")


def _pack(file: IO[bytes], suffix: str) -> AbstractContextManager[Any]:
    """`file`, or a stream that compresses into it; leaving it does not close `file`."""
    if suffix == ".gz":
        from gzip import GzipFile

        # Without name and time, so that the same contents give the same file.
        return GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    if suffix == ".bz2":
        from bz2 import BZ2File

        return BZ2File(file, "wb")
    if suffix == ".xz":
        from lzma import LZMAFile

        return LZMAFile(file, "wb")
    return nullcontext(file)
