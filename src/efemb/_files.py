"""Files written whole or not at all: complete under a temporary name, then renamed."""

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
    """A path with ~ as a home folder; as it is where nobody has such a name."""
    return Path(os.path.expanduser(path))  # where Path.expanduser would raise


def file_target(path: Any) -> Path:
    """The file that a path names, links followed; a folder is refused."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputTypeError(f"pass the path of a file, not {path!r}")
    target = Path(os.path.realpath(expand_home(path)))
    if target.is_dir():
        raise DataError(f"{target} is a directory; give the name of a file in it")
    return target


def check_writable(folder: Path) -> None:
    """Make a folder and see that files can be: hours of work should not end at one that cannot."""
    probe = folder / f".writable-{secrets.token_hex(6)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ParameterError(f"cannot write to {folder}: {error.strerror}") from error


@contextmanager
def complete_or_absent(target: Path) -> Iterator[IO[bytes]]:
    """A stream; the file gets its name when everything is on disk, and is removed otherwise."""
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
    r"""A csv.writer of UTF-8 whose lines end in \n; a cell that holds \n or \r is quoted."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    # Before Python 3.13 a writer only quotes what ends its own lines.
    yield csv.writer(_PlainLines(text), delimiter=separator, lineterminator="\r\n")
    text.detach()


class _PlainLines:
    r"""A text whose lines come with \r\n at their ends and are written with \n."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text

    def write(self, line: str) -> None:
        """Write one line."""
        self._text.write(line[:-2] + "\n")


def _pack(file: IO[bytes], suffix: str) -> AbstractContextManager[Any]:
    """`file`, or a stream that packs into it; leaving it does not close `file`."""
    if suffix == ".gz":
        from gzip import GzipFile

        # Neither name nor time inside: the same vectors give the same file.
        return GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    if suffix == ".bz2":
        from bz2 import BZ2File

        return BZ2File(file, "wb")
    if suffix == ".xz":
        from lzma import LZMAFile

        return LZMAFile(file, "wb")
    return nullcontext(file)
