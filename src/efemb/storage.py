"""Models on disk: a folder of safetensors and JSON, written at once, checked when read."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from efemb.contexts.entity_lists import Lists
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, EfembError, InputTypeError
from efemb.fitted import FittedEmbedding
from efemb.manifest import decode, encode, register
from efemb.parameters import Parameters
from efemb.spec import Spec

__all__ = ["read", "register", "save"]

FORMAT = "efemb model"
VERSION = 1
MANIFEST, TENSORS, LABELS = "manifest.json", "parameters.safetensors", "vocabulary.json"
_LISTS = ("ptr", "members", "offset", "slot")


def save(fitted: FittedEmbedding, path: str | os.PathLike[str]) -> None:
    """Write a model to the folder `path`; an older model there is replaced as a whole.

    All files are complete on disk under a temporary name before the folder gets its name.
    """
    target = Path(os.path.realpath(_path(path)))
    _restore_previous(target)
    _check_replaceable(target)
    body, arrays, labels = _contents(fitted)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial-{secrets.token_hex(6)}")
    partial.mkdir()
    try:
        _write_files(partial, body, arrays, labels)
        _put_in_place(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read(path: str | os.PathLike[str]) -> FittedEmbedding:
    """Read the folder that `save` wrote; anything that changed since then is an error."""
    folder = _path(path)
    if not folder.exists() and _previous(folder).exists():
        folder = _previous(folder)  # a replacement was cut short between its two renamings
    if not folder.is_dir():
        what = "is a file, not a model folder" if folder.exists() else "does not exist"
        raise DataError(f"{folder} {what}; `save` writes a folder")
    manifest = _manifest(folder)
    for name in (TENSORS, LABELS):
        if name == TENSORS or name in manifest["sha256"]:
            _check_file(folder / name, manifest["sha256"].get(name))
    try:
        return _fitted(manifest, folder)
    except EfembError as error:
        raise type(error)(f"{folder}: {error}") from error
    except Exception as error:
        # The checksums hold, so the file was written like this: by other software.
        raise DataError(f"{folder} does not hold a model that can be read: {error}") from error


# -- what is written ----------------------------------------------------------------------------


def _contents(fitted: FittedEmbedding) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """The manifest (still without checksums), the arrays, and the labels or None."""
    _check_parameters(fitted.parameters)
    arrays: dict[str, Any] = {}
    parts = {one.name: getattr(fitted.spec, one.name) for one in fields(Spec)}
    body = {
        "format": FORMAT,
        "version": VERSION,
        "model": fitted.model,
        "ingredients": {name: encode(one, arrays, name) for name, one in parts.items()},
        "lists": [_encode_lists(part, arrays, i) for i, part in enumerate(fitted.lists or ())],
        "fixed": fitted.lists is not None,
        "history": encode(list(fitted.history), arrays, "history"),
    }
    p, words = fitted.parameters, fitted.vocabulary
    named = {"rho": p.rho, "alpha": p.alpha, "intercept": p.intercept, "position": p.position}
    named |= {"positions": fitted.positions, "counts": None if words is None else words.counts}
    for name, value in named.items():
        if value is not None:
            encode(np.asarray(value), arrays, name)
    return body, arrays, None if words is None else encode(list(words.labels), {}, "labels")


def _encode_lists(part: Lists, arrays: dict[str, Any], number: int) -> dict[str, Any]:
    for name in _LISTS:
        encode(np.asarray(getattr(part, name)), arrays, f"lists.{number}.{name}")
    return {"scale": part.scale, "binary": part.binary}


def _check_parameters(parameters: Parameters) -> None:
    for name, value in zip(("rho", "alpha", "intercept"), parameters.arrays(), strict=False):
        if not np.isfinite(value).all():
            raise DataError(f"{name} holds NaN or infinite numbers: this is not a usable model")


def _render(value: Any) -> bytes:
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(_render(body)).hexdigest()


# -- how it is written --------------------------------------------------------------------------


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputTypeError(f"a model is saved in a folder: pass its path, not {path!r}")
    return Path(path).expanduser()


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}.previous")


def _restore_previous(target: Path) -> None:
    if not target.exists() and _previous(target).exists():
        _previous(target).rename(target)


def _check_replaceable(target: Path) -> None:
    """Never delete what `save` did not write."""
    if not target.exists():
        return
    if not target.is_dir():
        raise DataError(f"{target} is a file; a model is a folder: choose another name")
    strange = {entry.name for entry in target.iterdir()} - {MANIFEST, TENSORS, LABELS}
    if strange:
        raise DataError(
            f"{target} holds {min(strange)!r}, which is not part of a model, and would be deleted: "
            "choose another folder"
        )


def _write_files(folder: Path, body: dict[str, Any], arrays: dict[str, Any], labels: Any) -> None:
    """All files, complete on disk; the manifest, which holds the checksums of the others, last."""
    from safetensors.numpy import save_file

    save_file(arrays, folder / TENSORS)
    if labels is not None:
        (folder / LABELS).write_bytes(_render(labels))
    body["sha256"] = {path.name: _sha256(path) for path in sorted(folder.iterdir())}
    (folder / MANIFEST).write_bytes(_render({**body, "checksum": _checksum(body)}))
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(path: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put_in_place(partial: Path, target: Path) -> None:
    """Rename; where a model is already there, it steps aside and goes when the new one is in."""
    if not target.exists():
        partial.rename(target)
    else:
        previous = _previous(target)
        shutil.rmtree(previous, ignore_errors=True)
        target.rename(previous)
        try:
            partial.rename(target)
        except BaseException:
            previous.rename(target)
            raise
        shutil.rmtree(previous, ignore_errors=True)
    _sync_folder(target.parent)


# -- how it is read -----------------------------------------------------------------------------


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        content = (folder / MANIFEST).read_bytes()
        found = json.loads(content)
    except FileNotFoundError as error:
        raise DataError(f"{folder} is not a model: it has no {MANIFEST}") from error
    except ValueError as error:
        raise _damaged(folder / MANIFEST) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise DataError(f"{folder} is not a model: its {MANIFEST} is of another program")
    version = found.get("version")
    if isinstance(version, int) and version > VERSION:
        raise DataError(
            f"{folder} was written by a newer efemb (format {version}; this one reads up to "
            f"{VERSION}): upgrade efemb"
        )
    claimed = found.pop("checksum", None)
    if claimed != _checksum(found) or content != _render({**found, "checksum": claimed}):
        raise _damaged(folder / MANIFEST)
    return found


def _check_file(path: Path, wanted: str | None) -> None:
    try:
        found = _sha256(path)
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing: the model is incomplete") from error
    if found != wanted:
        raise _damaged(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: Path) -> DataError:
    return DataError(f"{path} is damaged: its checksum does not match; restore it from a copy")


def _fitted(manifest: dict[str, Any], folder: Path) -> FittedEmbedding:
    from safetensors.numpy import load_file

    arrays = load_file(folder / TENSORS)
    spec = Spec(**{key: decode(one, arrays) for key, one in manifest["ingredients"].items()})
    spec.check()
    parameters = Parameters(
        arrays["rho"], arrays["alpha"], arrays.get("intercept"), arrays.get("position")
    )
    _check_parameters(parameters)
    vocabulary = None
    if LABELS in manifest["sha256"]:
        labels = decode(json.loads((folder / LABELS).read_bytes()), {})
        vocabulary = Vocabulary(labels, counts=arrays.get("counts"))
    lists = None
    if manifest["fixed"]:
        lists = tuple(_decode_lists(one, arrays, i) for i, one in enumerate(manifest["lists"]))
    found = FittedEmbedding(
        parameters=parameters,
        spec=spec,
        vocabulary=vocabulary,
        positions=arrays.get("positions"),
        lists=lists,
        history=decode(manifest["history"], arrays),
        model=manifest["model"],
    )
    _check_shapes(found)
    return found


def _decode_lists(options: dict[str, Any], arrays: dict[str, Any], number: int) -> Lists:
    ptr, members, offset, slot = (arrays[f"lists.{number}.{name}"] for name in _LISTS)
    return Lists(ptr, members, offset, slot, **options)


def _check_shapes(found: FittedEmbedding) -> None:
    rho, alpha = found.parameters.rho, found.parameters.alpha
    size = found.n_entities
    checks: dict[str, Callable[[], bool]] = {
        "rho and alpha": lambda: rho.ndim in (2, 3) and rho.shape[1:] == alpha.shape[1:],
        "positions": lambda: found.positions is None or len(found.positions) == size,
        "labels": lambda: found.vocabulary is None or len(found.vocabulary) == size,
        "lists": lambda: all(_fits(part, size) for part in found.lists or ()),
    }
    for name, holds in checks.items():
        if not holds():
            raise DataError(f"{name} do not fit a model of {size} entities")


def _fits(part: Lists, size: int) -> bool:
    inside = len(part.members) == 0 or (part.members.min() >= 0 and part.members.max() < size)
    return len(part.ptr) == size + 1 and bool(part.ptr[-1] == len(part.members)) and bool(inside)
