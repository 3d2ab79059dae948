"""Files at a URI (s3://, gs://, file://, ...), through the file systems of pyarrow."""

from __future__ import annotations

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import Any

from efemb._files import check_path
from efemb.data.readers.arrow import require_pyarrow
from efemb.data.readers.several import find_files
from efemb.errors import DataError, InputTypeError

_TABLES = {".parquet", ".pq"}
_BLOCK = 1 << 22


def is_remote(name: Any) -> bool:
    """Whether a name is a URI."""
    return isinstance(name, str) and "://" in name


def list_files(source: Any) -> dict[str, int] | None:
    """The files that a source names, with their sizes in bytes; None for tables.

    A source is a path, a URI, a pattern or a folder of Parquet files, or a list of these.
    """
    if isinstance(source, list | tuple) and source and isinstance(source[0], str | os.PathLike):
        sizes: dict[str, int] = {}
        for name in source:
            sizes |= list_files(name) or {}
        return sizes
    if not isinstance(source, str | os.PathLike):
        return None
    if is_remote(source):
        return _remote_files(str(source))
    paths = find_files(source)
    if paths is None:
        paths = [check_path(source, "pass the path of a file")]
    return {str(path): _size(path) for path in paths}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _file_system(uri: str) -> tuple[Any, str]:
    require_pyarrow(f"reading {uri}")
    from pyarrow import ArrowException, fs

    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (ArrowException, OSError, ValueError) as error:
        raise InputTypeError(f"{uri} is not the address of files: {error}") from error
    return system, path


def _remote_files(uri: str) -> dict[str, int]:
    from pyarrow import fs

    scheme = uri.partition("://")[0]
    fixed = uri if not has_magic(uri) else uri[: _first_magic(uri)].rpartition("/")[0]
    system, path = _file_system(fixed)
    pattern = _file_system_path(uri, fixed, path)
    try:
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            entries = [info]
        else:
            selector = fs.FileSelector(path, recursive=True)
            entries = [e for e in system.get_file_info(selector) if e.type == fs.FileType.File]
    except OSError as error:
        raise DataError(f"{uri} cannot be listed: {error}") from error
    names = {entry.path: int(entry.size) for entry in entries}
    if has_magic(uri):
        names = {name: size for name, size in names.items() if fnmatch.fnmatch(name, pattern)}
    elif len(names) > 1 or path not in names:
        names = {n: size for n, size in names.items() if PurePosixPath(n).suffix in _TABLES}
    if not names:
        raise DataError(f"no file matches {uri}")
    return {f"{scheme}://{name}": size for name, size in sorted(names.items())}


def _first_magic(uri: str) -> int:
    return min(uri.find(sign) for sign in "*?[" if sign in uri)


def _file_system_path(uri: str, fixed: str, path: str) -> str:
    """A pattern in the file system's own paths."""
    return path.rstrip("/") + uri[len(fixed) :]


@contextmanager
def fetch(uri: str) -> Iterator[Path]:
    """A local copy of a remote file, deleted at the end of the context."""
    system, path = _file_system(uri)
    folder = Path(tempfile.mkdtemp(prefix="efemb-"))
    try:
        copy = folder / PurePosixPath(path).name
        try:
            # The bytes are unchanged: the name of a compressed file determines its decompression.
            packed = system.open_input_stream(path, compression=None)
            with packed as stream, copy.open("wb") as file:
                shutil.copyfileobj(stream, file, _BLOCK)
        except OSError as error:
            raise DataError(f"{uri} cannot be read: {error}") from error
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)
