"""Arrays in .npy and .npz files: headers are checked before memory is allocated; no pickle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from efemb.errors import DataError, EfembError, ParameterError, suggest

ARRAY_FILES = {".npy", ".npz"}
_SPARSE_PARTS = {"data", "format", "shape"}


def load_array(path: Path, key: str | None = None) -> Any:
    """The array or sparse matrix in a .npy or .npz file; never unpickles."""
    try:
        # Opened here because numpy leaves a damaged archive open.
        with path.open("rb") as stream:
            if stream.read(2) == b"PK":
                stream.seek(0)
                return _load_archive(path, stream, key)
            if key is not None:
                raise ParameterError(
                    f"key= selects an array of an .npz file; {path} holds a single array"
                )
            stream.seek(0)
            _check_header(stream, path.stat().st_size, path)
            stream.seek(0)
            return np.load(stream, allow_pickle=False)
    except EfembError:
        raise
    except Exception as error:  # numpy and zipfile raise a dozen types
        raise _damage_error(path, error) from error


def open_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file, on disk until it is needed; never unpickles."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"PK"
            stream.seek(0)
            if not packed:
                _check_header(stream, path.stat().st_size, path)
        if not packed:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
    except EfembError:
        raise
    except Exception as error:  # a damaged header raises anything
        raise _damage_error(path, error) from error
    raise DataError(f"{path} is an archive of arrays (.npz), not one array (.npy)")


def _load_archive(path: Path, stream: IO[bytes], key: str | None) -> Any:
    with ZipFile(stream) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                with archive.open(member) as part:
                    _check_header(part, member.file_size, path)
    stream.seek(0)
    loaded = np.load(stream, allow_pickle=False)
    names = list(loaded.files)
    if key is None and set(names) >= _SPARSE_PARTS:
        from scipy.sparse import load_npz

        return load_npz(path)
    return loaded[_choose(path, key, names)]


def _check_header(stream: IO[bytes], size: int, path: Path) -> None:
    """Reject a header that promises more numbers than there are bytes."""
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:  # 3.0 is only for names of fields
        raise DataError(f"{path} cannot be read: version {version} of .npy is not supported")
    shape, _, dtype = readers[version](stream)
    if any(length < 0 for length in shape):
        raise DataError(f"{path} cannot be read: its header gives the shape {shape}")
    promised = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and promised > size:
        raise DataError(
            f"{path} cannot be read: its header promises {promised:,} bytes of numbers (shape "
            f"{shape}), but it holds {size:,}; it is damaged or incomplete, so save it again"
        )


def _choose(path: Path, key: str | None, names: list[str]) -> str:
    if key is not None and key in names:
        return key
    if key is not None:
        raise DataError(f"{path} has no array {key!r}; {suggest(key, names)}")
    if len(names) != 1:
        raise DataError(
            f"{path} holds {len(names)} arrays; select one with key=, or save it alone as .npy: "
            f"{', '.join(names)}"
        )
    return names[0]


def _damage_error(path: Path, error: Exception) -> DataError:
    text = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{path} cannot be read as {path.suffix}: {text:.200}")
