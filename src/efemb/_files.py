"""Files and folders that are written completely or not at all."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from efemb.errors import DataError, InputTypeError, ParameterError, StorageError, suggest

STALE_SECONDS = 3600.0  # older partial files and folders belong to processes that were killed
_DISK_FAILS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
ATTEMPTS = 100  # to rename a folder while others keep taking its name
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}


# -- paths ----------------------------------------------------------------------------------------


def expand_home(path: str | os.PathLike[str]) -> Path:
    """A path with ~ expanded; unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # Path.expanduser would raise an error


def check_path(path: Any, expected: str) -> Path:
    """A path that the system accepts, with ~ expanded; `expected` says what to pass instead."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise InputTypeError(f"{expected}, not {path!r}")
    if "\x00" in text:
        raise DataError(f"the path {text[:80]!r} contains a NUL character: correct it")
    expanded = expand_home(text)
    try:
        expanded.stat()
    except OSError as error:
        # Anything else may still be created, or is explained where it is opened.
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise DataError(f"{text[:80]!r} is not a usable path: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise DataError(f"the path {text[:80]!r} cannot be encoded for this system") from error
    return expanded


def file_target(path: Any) -> Path:
    """The file that a path names, with links resolved; a folder is an error."""
    target = Path(os.path.realpath(check_path(path, "pass the path of a file")))
    if target.is_dir():
        raise DataError(f"{target} is a directory; pass the name of a file in it")
    return target


def check_writable(folder: Path) -> None:
    """Create a folder and check that it is writable, before hours of work depend on it."""
    probe = folder / f".writable-{os.urandom(6).hex()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ParameterError(f"cannot write to {folder}: {error.strerror}") from error


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading; anything else could block, or never end."""
    # Without O_NONBLOCK, opening a named pipe waits for its writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError(f"{path} is not a regular file (it is a folder, a pipe or a device)")
    return os.fdopen(handle, "rb")


# -- writing --------------------------------------------------------------------------------------


@contextmanager
def explain_full_disk(target: Path) -> Iterator[None]:
    """Turn errors of a full or failing disk into a StorageError."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError) or error.errno not in _DISK_FAILS:
            raise
        raise StorageError(
            f"cannot write {target}: {error.strerror}; nothing was replaced: free some space, or "
            "choose a place on another disk"
        ) from error


@contextmanager
def complete_or_absent(target: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary file, which is renamed if complete and removed otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target)
    partial = temporary_name(target, "partial")
    try:
        with explain_full_disk(target):
            with partial.open("xb") as file:
                with _pack(file, target.suffix.lower()) as stream:
                    yield stream
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def temporary_name(target: Path, kind: str) -> Path:
    """A new hidden name next to `target` that identifies the process that uses it."""
    owner = f"{_system()}-{os.getpid():x}"
    return target.with_name(f".{target.name}.{kind}-{owner}-{os.urandom(6).hex()}")


def temporary_beside(target: Path, kind: str) -> list[Path]:
    """Files and folders next to `target` that have temporary names."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{kind}(-[0-9a-f]+)*")
    with suppress(FileNotFoundError, NotADirectoryError):
        names = os.listdir(target.parent)
        return [target.with_name(name) for name in names if pattern.fullmatch(name)]
    return []


def remove_abandoned(target: Path) -> None:
    """Remove what processes left behind that were killed while writing `target`."""
    for path in temporary_beside(target, "partial"):
        with suppress(OSError):  # its owner has just renamed it
            if _owner_is_gone(path.name) or time.time() - path.stat().st_mtime > STALE_SECONDS:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def _owner_is_gone(name: str) -> bool:
    """Whether a temporary name belongs to a process of this system that no longer runs."""
    fields = name.rpartition(".")[2].split("-")
    if os.name != "posix" or len(fields) != 4 or fields[1] != _system():
        return False
    try:
        os.kill(int(fields[2], 16), 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is another user's, or not a process number
        return False
    return False


@cache
def _system() -> str:
    """A digest of what makes process numbers unique: host, boot and container."""
    import platform

    identifiers = [platform.node()]
    with suppress(OSError):  # not on Linux
        identifiers.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii"))
        identifiers.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256(" ".join(identifiers).encode()).hexdigest()[:8]


# -- cells of text tables --------------------------------------------------------------------------

# A cell that begins with a sign is a formula to a spreadsheet, unless an apostrophe precedes it.
_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_MARK = "'"
_FORMULAS = ("quote", "keep", "error")


def protect(cell: str) -> str:
    """A cell that no spreadsheet runs; `bare` gives the label back.

    >>> protect("=SUM(A1)"), protect("'=SUM(A1)"), protect("milk"), protect("'n Sync")
    ("'=SUM(A1)", "''=SUM(A1)", 'milk', "'n Sync")
    """
    return _MARK + cell if cell.lstrip(_MARK).startswith(_SIGNS) else cell


def bare(cell: str) -> str:
    """The label of a cell, without the apostrophe of `protect`.

    >>> bare("'=SUM(A1)"), bare("milk"), bare("'n Sync")
    ('=SUM(A1)', 'milk', "'n Sync")
    """
    if cell.startswith(_MARK) and cell.lstrip(_MARK).startswith(_SIGNS):
        return cell[1:]
    return cell


def as_cells(labels: Sequence[Any], formulas: str) -> list[Any]:
    """Labels as the cells of a text table; what is not text, such as a number, stays as it is.

    formulas : "quote", "keep" or "error"
    """
    if formulas not in _FORMULAS:
        raise ParameterError(f"formulas={formulas!r}; {suggest(formulas, _FORMULAS)}")
    if formulas == "keep":
        return list(labels)
    cells = [protect(label) if isinstance(label, str) else label for label in labels]
    if formulas == "error":
        texts = [pair for pair in zip(labels, cells, strict=True) if isinstance(pair[0], str)]
        risky = [label for label, cell in texts if label != cell]
        if risky:
            raise DataError(
                f"{len(risky):,} labels look like formulas to a spreadsheet, the first is "
                f'{risky[0]!r}: formulas="quote" prefixes them with an apostrophe'
            )
    return cells


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


# -- folders -------------------------------------------------------------------------------------


def partial_folder(target: Path) -> Path:
    """A new folder next to `target` for writing; remains of killed processes are removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target)
    partial = temporary_name(target, "partial")
    partial.mkdir()
    return partial


def find_stepped_aside(target: Path, file: str) -> Path | None:
    """The set-aside folder with the newest `file`, if its replacement was never completed."""
    dated = []
    for folder in temporary_beside(target, "previous"):
        with suppress(OSError):  # it was deleted just now
            dated.append(((folder / file).stat().st_mtime_ns, folder))
    return max(dated)[1] if dated else None


def put_in_place(partial: Path, target: Path, *, lasting: bool = True) -> None:
    """Rename `partial` to `target`; an existing folder is set aside, then deleted.

    There is no lock that a killed process could leave behind. A writer that finds another folder
    in its way sets it aside as well, so the last writer wins. Whatever was set aside before the
    renaming is older than the new folder; names are never reused, so nothing else can be deleted.
    `lasting` : whether to wait until the new name is on disk.
    """
    older, moved = temporary_beside(target, "previous"), list[Path]()
    try:
        for _ in range(ATTEMPTS):
            if _try_rename(partial, target):
                break
            name = temporary_name(target, "previous")
            with suppress(FileNotFoundError):  # another writer has moved it
                if _try_rename(target, name):
                    moved.append(name)
        else:
            raise DataError(
                f"{target} is constantly being written by others: save one at a time, or choose "
                "another folder"
            )
    except BaseException:
        if moved:
            with suppress(OSError):  # another folder is in place by now
                moved[-1].rename(target)
        raise
    if lasting:
        _sync(target.parent)
    for folder in (*older, *moved):
        # Renamed first, so that no other process reads it while its files are being deleted.
        rubbish = temporary_name(target, "partial")
        with suppress(OSError):
            folder.rename(rubbish)
            shutil.rmtree(rubbish, ignore_errors=True)


def sync_files(folder: Path) -> None:
    """Wait until all files of a folder are on disk."""
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    _sync(folder)


def _try_rename(old: Path, new: Path) -> bool:
    """Rename a folder; False if the name is taken."""
    try:
        old.rename(new)
    except PermissionError:
        if os.name != "nt":
            raise
        time.sleep(0.02)  # Windows does not rename a folder while one of its files is open
        return False
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    return True


def _sync(folder: Path) -> None:
    if os.name == "posix":  # other systems cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
