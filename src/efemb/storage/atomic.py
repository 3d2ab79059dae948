"""Folders put in place whole, whoever else puts one there: the old one steps aside, then goes."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from efemb.errors import DataError

ATTEMPTS = 100  # to get a name that others take again and again
STALE_SECONDS = 3600.0  # a save that is still going on is younger than this
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}


def partial_folder(target: Path) -> Path:
    """A new folder beside `target` to write files in; what kills have left there is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in _beside(target, "partial"):
        with suppress(OSError):  # its owner has just renamed it
            if time.time() - left.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    partial = _new_name(target, "partial")
    partial.mkdir()
    return partial


def find_stepped_aside(target: Path, file: str) -> Path | None:
    """The folder that stepped aside for one that never came, the one with the newest `file`."""
    dated = []
    for folder in _beside(target, "previous"):
        with suppress(OSError):  # it has just gone
            dated.append(((folder / file).stat().st_mtime_ns, folder))
    return max(dated)[1] if dated else None


def put_in_place(partial: Path, target: Path) -> None:
    """Rename; a folder that is already there steps aside and goes when the new one is in.

    There is no lock that a killed process could leave. Whoever finds another one's folder in its
    way moves it too, so the last one stays. All that has stepped aside before the renaming is
    older than what is put in place; names are new each time, so nothing else can be removed.
    """
    older, moved = _beside(target, "previous"), list[Path]()
    try:
        for _ in range(ATTEMPTS):
            if _try_rename(partial, target):
                break
            name = _new_name(target, "previous")
            with suppress(FileNotFoundError):  # another one has moved it
                if _try_rename(target, name):
                    moved.append(name)
        else:
            raise DataError(
                f"{target} is written by others again and again: save one at a time, or choose "
                "another folder"
            )
    except BaseException:
        if moved:
            with suppress(OSError):  # another one is in place by now
                moved[-1].rename(target)
        raise
    _sync(target.parent)
    for folder in (*older, *moved):
        # Under this name nobody reads it while it goes file by file.
        rubbish = _new_name(target, "partial")
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
    """Whether the folder got its new name; not if that is taken."""
    try:
        old.rename(new)
    except PermissionError:
        if os.name != "nt":
            raise
        time.sleep(0.02)  # there, a folder stays while one of its files is read
        return False
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    return True


def _new_name(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{kind}-{secrets.token_hex(6)}")


def _beside(target: Path, kind: str) -> list[Path]:
    """What lies beside a folder under the names that we give."""
    wanted = re.compile(rf"\.{re.escape(target.name)}\.{kind}(-[0-9a-f]+)?")
    with suppress(FileNotFoundError, NotADirectoryError):
        return [
            target.with_name(name) for name in os.listdir(target.parent) if wanted.fullmatch(name)
        ]
    return []


def _sync(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
