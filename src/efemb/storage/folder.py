"""Sealed folders: tensors and JSON, written atomically and verified when read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from efemb._files import (
    check_path,
    explain_full_disk,
    find_stepped_aside,
    open_regular,
    partial_folder,
    put_in_place,
    sync_files,
)
from efemb.errors import DataError, EfembError

T = TypeVar("T")
MANIFEST = "manifest.json"
LEFT_BY_SYSTEMS = {".DS_Store", "desktop.ini", "Thumbs.db"}  # left by file browsers
LARGEST_MANIFEST = 1 << 28  # bytes; a million passes leave half of it
_HEAD = 64  # bytes by which a pickle is recognized
ATTEMPTS = 5  # to read a folder that keeps being replaced


@dataclass(frozen=True)
class Contents:
    """Contents of a sealed folder: the manifest without its checksums, arrays and JSON files."""

    folder: Path
    body: dict[str, Any]
    arrays: dict[str, Any]
    texts: dict[str, Any]


@dataclass(frozen=True)
class SealedKind:
    """A kind of folder: a manifest, one file of tensors, and optional JSON files.

    format : its name in the manifest;  noun : its name in messages;  version : of the format
    tensors, texts : names of its files
    replaces : formats of other kinds of folders that one of this kind may replace
    """

    format: str
    noun: str
    version: int
    tensors: str
    texts: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()

    def write(
        self,
        path: str | os.PathLike[str],
        body: Mapping[str, Any],
        arrays: dict[str, Any],
        texts: Mapping[str, Any] | None = None,
        *,
        damaged: bool = False,
        lasting: bool = True,
    ) -> None:
        """Write the folder `path`; an existing one of this kind is replaced atomically.

        All files are written under a temporary name before the folder is renamed. `damaged` : see
        `replaceable`. `lasting` : wait until the data are on disk; otherwise a crash of the machine
        (not of the process) may leave a damaged folder.
        """
        target = self.replaceable(path, damaged=damaged)
        with explain_full_disk(target):
            partial = partial_folder(target)
            try:
                head = {"format": self.format, "version": self.version, **body}
                self._write_files(partial, head, arrays, texts or {})
                if lasting:
                    sync_files(partial)
                put_in_place(partial, target, lasting=lasting)
            finally:
                shutil.rmtree(partial, ignore_errors=True)

    def replaceable(self, path: str | os.PathLike[str], *, damaged: bool = False) -> Path:
        """The real path of a folder that may be written; an error if it holds anything else.

        `damaged` : a folder whose files have our names may be replaced whatever their contents.
        """
        target = Path(os.path.realpath(self.check_path(path)))
        try:
            names = set(os.listdir(target)) - LEFT_BY_SYSTEMS
        except FileNotFoundError:
            return target
        except NotADirectoryError as error:
            if not target.exists():  # one of its parents is a file
                return target
            raise DataError(
                f"{target} is a file; a {self.noun} is a folder: choose another name"
            ) from error
        theirs = self._files_of_other_kinds(target)
        strange = names - {MANIFEST, self.tensors, *self.texts} - theirs
        if strange:
            raise DataError(
                f"{target} holds {min(strange)!r}, which is not part of a {self.noun}, and would "
                "be deleted: choose another folder"
            )
        # Only one kind of folder holds tensors of this name.
        ours = bool(theirs) or (damaged and self.tensors in names) or self._is_own(target)
        if names and not ours:
            raise DataError(
                f"{target} holds {min(names)!r}, which is not from a {self.noun} that efemb wrote, "
                "and would be deleted: choose another folder, or delete it yourself"
            )
        return target

    def _files_of_other_kinds(self, folder: Path) -> set[str]:
        """Files listed in the manifest of a folder of a kind that may be replaced."""
        try:
            manifest = _parse_manifest(folder)
        except (OSError, ValueError, RecursionError):
            return set()
        if not isinstance(manifest, dict) or manifest.get("format") not in self.replaces:
            return set()
        listed = manifest.get("sha256")
        return set(listed) if isinstance(listed, dict) else set()

    def _is_own(self, folder: Path) -> bool:
        """Whether a folder is of this kind, or has just been removed."""
        for _ in range(ATTEMPTS):
            try:
                manifest = _parse_manifest(folder)
            except FileNotFoundError:
                if not folder.exists():
                    return True
                continue  # it may have been replaced meanwhile
            except (OSError, ValueError, RecursionError):
                return False
            return isinstance(manifest, dict) and manifest.get("format") == self.format
        return False

    def check_path(self, path: Any) -> Path:
        """A path, or a typed error."""
        return check_path(path, f"a {self.noun} is a folder: pass its path")

    def _write_files(
        self, folder: Path, body: dict[str, Any], arrays: dict[str, Any], texts: Mapping[str, Any]
    ) -> None:
        """Write all files; the manifest with the checksums of the others comes last."""
        (folder / self.tensors).touch()
        mode = (folder / self.tensors).stat().st_mode  # which follows the umask
        _write_tensors(arrays, folder / self.tensors)
        (folder / self.tensors).chmod(mode)  # safetensors lets no other user read the file
        for name, value in texts.items():
            (folder / name).write_bytes(render(value))
        files = sorted(folder.iterdir())
        body["sha256"] = {path.name: sha256(path) for path in files}
        body["bytes"] = {path.name: path.stat().st_size for path in files}
        (folder / MANIFEST).write_bytes(render({**body, "checksum": checksum(body)}))

    def exists(self, path: str | os.PathLike[str]) -> bool:
        """Whether there is anything to read at `path`."""
        return self.check_path(path).exists() or self._set_aside(path) is not None

    def _set_aside(self, path: str | os.PathLike[str]) -> Path | None:
        """The folder to read if a replacement was interrupted between its two renamings."""
        return find_stepped_aside(Path(os.path.realpath(self.check_path(path))), MANIFEST)

    def read(self, path: str | os.PathLike[str]) -> Contents:
        """Read the folder; any change since it was written is an error."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._read(path)
            except DataError:
                continue  # it may have been replaced meanwhile
        before = self._stamp(path)
        try:
            return self._read(path)
        except DataError as error:
            if self._stamp(path) != before:
                raise DataError(f"{path} keeps being replaced: {error}") from error
            raise

    def load(self, path: str | os.PathLike[str], build: Callable[[Contents], T]) -> T:
        """Read the folder and build an object from it; errors name the folder."""
        contents = self.read(path)
        try:
            return build(contents)
        except EfembError as error:
            raise type(error)(f"{contents.folder}: {error}") from error
        except Exception as error:
            # The checksums match, so other software wrote the file like this.
            raise DataError(
                f"{contents.folder} does not hold a {self.noun} that can be read: {error}"
            ) from error

    def _stamp(self, path: str | os.PathLike[str]) -> tuple[int, int] | None:
        """An identifier that changes when the folder is replaced."""
        try:
            status = (self.check_path(path) / MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def _read(self, path: str | os.PathLike[str]) -> Contents:
        from safetensors.numpy import load

        folder = self.check_path(path)
        if not folder.exists():
            folder = self._set_aside(path) or folder
        if not folder.is_dir():
            problem = (
                f"is a file, not a {self.noun} folder" if folder.exists() else "does not exist"
            )
            raise DataError(f"{folder} {problem}; a {self.noun} is written as a folder")
        with ExitStack() as stack:
            # Open all files before reading any, so that a replaced folder is still read completely.
            files: dict[str, IO[bytes]] = {}
            for name in (MANIFEST, self.tensors, *self.texts):
                with suppress(FileNotFoundError, NotADirectoryError):
                    files[name] = stack.enter_context(open_regular(folder / name))
            body = self._manifest(folder, files)
            names = (self.tensors, *(name for name in self.texts if name in body["sha256"]))
            contents = {name: self._read_checked(folder / name, files, body) for name in names}
        try:
            arrays = load(contents.pop(self.tensors))
            return Contents(
                folder, body, arrays, {name: json.loads(contents[name]) for name in contents}
            )
        except Exception as error:
            # The checksums match, so other software wrote the file like this.
            raise DataError(
                f"{folder} does not hold a {self.noun} that can be read: {error}"
            ) from error

    def _manifest(self, folder: Path, files: Mapping[str, IO[bytes]]) -> dict[str, Any]:
        path = folder / MANIFEST
        if MANIFEST not in files:
            raise DataError(f"{folder} is not a {self.noun}: it has no {MANIFEST}")
        content = _read_bounded(files[MANIFEST], path)
        _refuse_pickle(path, content)
        try:
            manifest = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _damage_error(path) from error
        if not isinstance(manifest, dict) or manifest.get("format") != self.format:
            raise DataError(
                f"{folder} is not a {self.noun}: its {MANIFEST} was written by another program"
            )
        version = manifest.get("version")
        if type(version) is int and version > self.version:
            raise DataError(
                f"{folder} was written by a newer efemb (format {version}; this one reads up to "
                f"{self.version}): upgrade efemb"
            )
        claimed = manifest.pop("checksum", None)
        if not _is_sealed(manifest, claimed, content):
            raise _damage_error(path)
        if type(version) is not int or version < 1 or not _lists_files(manifest):
            raise DataError(
                f"{path} does not state its format and files: it was not written by efemb"
            )
        return manifest

    def _read_checked(
        self, path: Path, files: Mapping[str, IO[bytes]], body: dict[str, Any]
    ) -> bytes:
        if path.name not in files:
            raise DataError(f"{path} is missing: the {self.noun} is incomplete")
        file, expected = files[path.name], body.get("bytes", {}).get(path.name)
        size = os.fstat(file.fileno()).st_size
        _refuse_pickle(path, file.read(_HEAD))
        file.seek(0)
        if expected is not None and size < expected:
            raise DataError(
                f"{path} is truncated: it has {size:,} of {expected:,} bytes; restore a copy of it"
            )
        if expected is not None and size > expected:  # refused without reading it
            raise _damage_error(path)
        content = file.read()
        if hashlib.sha256(content).hexdigest() != body["sha256"].get(path.name):
            raise _damage_error(path)
        return content


def format_of(path: Any) -> str | None:
    """The format of the folder at `path`; None if reading it will explain what is wrong."""
    folder = check_path(path, "a model is a folder: pass its path")
    if not folder.exists():
        folder = find_stepped_aside(Path(os.path.realpath(folder)), MANIFEST) or folder
    try:
        body = _parse_manifest(folder)
    except (OSError, ValueError, RecursionError):
        return None
    name = body.get("format") if isinstance(body, dict) else None
    return name if isinstance(name, str) else None


def _parse_manifest(folder: Path) -> Any:
    """The manifest of a folder as JSON, unchecked."""
    with open_regular(folder / MANIFEST) as file:
        return json.loads(_read_bounded(file, folder / MANIFEST))


def _read_bounded(file: IO[bytes], path: Path) -> bytes:
    """Read a manifest of limited size: a sparse file of any size would fill the memory."""
    size = os.fstat(file.fileno()).st_size
    if size > LARGEST_MANIFEST:
        raise DataError(f"{path} has {size:,} bytes, which is too large for a manifest")
    return file.read()


def _write_tensors(arrays: dict[str, Any], path: Path) -> None:
    """Write arrays with safetensors, whose errors do not distinguish a full disk from others."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(arrays, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def _is_sealed(body: dict[str, Any], claimed: Any, content: bytes) -> bool:
    """Whether a manifest has the right checksum and is formatted as we write it."""
    try:
        return bool(claimed == checksum(body) and content == render({**body, "checksum": claimed}))
    except (ValueError, RecursionError):  # NaN, which is not JSON; or too deeply nested
        return False


def _lists_files(body: dict[str, Any]) -> bool:
    sums, sizes = body.get("sha256"), body.get("bytes", {})
    return (
        isinstance(sums, dict)
        and isinstance(sizes, dict)
        and all(type(size) is int for size in sizes.values())
    )


def render(value: Any) -> bytes:
    """JSON in the format of our files."""
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def checksum(body: dict[str, Any]) -> str:
    """Checksum of a manifest, which contains those of the files."""
    return hashlib.sha256(render(body)).hexdigest()


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damage_error(path: Path) -> DataError:
    return DataError(f"{path} is damaged: its checksum does not match; restore it from a copy")


def _refuse_pickle(path: Path, content: bytes) -> None:
    """Reject pickles (protocol 2 and later, or in a zip file as PyTorch writes them)."""
    if content[8:9] == b"{":  # tensors: the bytes before are an arbitrary length
        return
    head = content[:4]
    if (head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05") or head == b"PK\x03\x04":
        raise DataError(
            f"{path} is a disguised pickle, which could execute any code when read: rejected"
        )
