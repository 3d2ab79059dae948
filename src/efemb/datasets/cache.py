"""The local cache: where it is, checksums, and moves into it that leave no partial file."""

from __future__ import annotations

import hashlib
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

_PARTIAL = ".partial-"
_STALE_SECONDS = 3600.0


def cache_folder() -> Path:
    """The folder in EFEMB_CACHE, else `efemb` in the place of the platform for such files."""
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


def sha256_of(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_problem(path: Path, sha256: str) -> str | None:
    """What is wrong with a file; None if it is the published one."""
    digest = sha256_of(path)
    if digest == sha256:
        return None
    return f"{path} is not the published file (sha256 {digest[:12]}..., not {sha256[:12]}...)"


@contextmanager
def staging() -> Iterator[Path]:
    """A new folder in the cache that is gone afterwards, whatever happens.

    It is on the same disk as the cache, so that a finished file is moved by one rename.
    """
    home = cache_folder()
    try:
        home.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=home))
    except OSError as error:
        raise DataError(
            f"the cache {home} cannot be written ({error}); name another folder in EFEMB_CACHE"
        ) from error
    try:
        _remove_stale(home)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(home: Path) -> None:
    """Drop what a process that was killed could not remove itself."""
    for folder in home.glob(f"{_PARTIAL}*"):
        try:
            touched = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        except OSError:  # another process was faster
            continue
        if time.time() - touched > _STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def keep(staged: Path, target: Path) -> None:
    """Move a finished file to its place in the cache, in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged.replace(target)


def unpack(
    archive: Path, members: Mapping[str, str], sha256: Mapping[str, str], folder: Path
) -> None:
    """Write members of a zip (name -> path in the zip) into `folder`, each of them verified."""
    try:
        with ZipFile(archive) as zipped:
            for name, member in members.items():
                with zipped.open(member) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except KeyError as error:
        raise DataError(f"{archive.name} lacks a file: {error.args[0]}") from error
    except (BadZipFile, OSError, EOFError) as error:
        raise DataError(f"{archive.name} cannot be unpacked: {error}") from error
    for name in members:
        problem = checksum_problem(folder / name, sha256[name])
        if problem:
            raise DataError(problem)
