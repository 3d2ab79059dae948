"""Atomic replacement of folders, safe against concurrent writers."""

from __future__ import annotations

import errno
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from efemb._files import remove_abandoned, temporary_beside, temporary_name
from efemb.errors import DataError

ATTEMPTS = 100  # to rename a folder while others keep taking its name
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}


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
        with suppress(OSError):  # it has just gone
            dated.append(((folder / file).stat().st_mtime_ns, folder))
    return max(dated)[1] if dated else None


def put_in_place(partial: Path, target: Path) -> None:
    """Rename `partial` to `target`; an existing folder is set aside, then deleted.

    There is no lock that a killed process could leave behind. A writer that finds another folder
    in its way sets it aside as well, so the last writer wins. Whatever was set aside before the
    renaming is older than the new folder; names are never reused, so nothing else can be deleted.
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
    _sync(target.parent)
    for folder in (*older, *moved):
        # Renamed first, so that nobody reads it while its files are being deleted.
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
