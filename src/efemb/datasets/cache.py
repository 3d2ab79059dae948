"""The local cache: its location, checksums, and atomic moves into it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from efemb._files import expand_home
from efemb.errors import DataError
from efemb.storage.folder import sha256

_PARTIAL = ".partial-"
_STALE_SECONDS = 3600.0


def cache_folder() -> Path:
    """The folder in EFEMB_CACHE, by default `efemb` in the platform's cache folder."""
    named = os.environ.get("EFEMB_CACHE")
    if named:
        return expand_home(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "efemb"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "efemb" / "Cache"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "efemb"


def checksum_problem(path: Path, expected: str) -> str | None:
    """Describe a checksum mismatch; None if the file is the published one."""
    digest = sha256(path)
    if digest == expected:
        return None
    return f"{path} is not the published file (sha256 {digest[:12]}..., not {expected[:12]}...)"


@contextmanager
def staging() -> Iterator[Path]:
    """A temporary folder in the cache that is always removed afterwards.

    It is on the same disk as the cache, so that a complete file is moved by a single rename.
    """
    home = cache_folder()
    try:
        home.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=home))
    except OSError as error:
        raise DataError(
            f"the cache {home} is not writable ({error}); set EFEMB_CACHE to another folder"
        ) from error
    try:
        _remove_stale(home)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(home: Path) -> None:
    """Remove the temporary folders of killed processes."""
    for folder in home.glob(f"{_PARTIAL}*"):
        try:
            touched = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        except OSError:  # another process has removed it
            continue
        if time.time() - touched > _STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def keep(staged: Path, target: Path) -> None:
    """Move a complete file into the cache atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged.replace(target)


def unpack(
    archive: Path, members: Mapping[str, str], checksums: Mapping[str, str], folder: Path
) -> None:
    """Extract members of a zip (name -> path in the zip) into `folder` and verify them."""
    try:
        with ZipFile(archive) as zipped:
            for name, member in members.items():
                with zipped.open(member) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except KeyError as error:
        raise DataError(f"{archive.name} lacks a file: {error.args[0]}") from error
    except (BadZipFile, OSError, EOFError) as error:
        raise DataError(f"{archive.name} cannot be extracted: {error}") from error
    for name in members:
        problem = checksum_problem(folder / name, checksums[name])
        if problem:
            raise DataError(problem)
