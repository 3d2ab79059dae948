"""Arrays in .npy and .npz files, read without running code and with headers checked first.

NumPy stores an array of Python objects as a pickle, and a pickle may name any function to call.
Here only five names of NumPy are accepted. Each is mapped to a class below that checks its
arguments and stores them as data. NumPy's own unpickling is not used either, because it trusts the
layout that the file describes.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from efemb.errors import DataError, EfembError, ParameterError, suggest

ARRAY_FILES = {".npy", ".npz"}
_SPARSE_PARTS = {"data", "format", "shape"}
_PLAIN_DTYPE = re.compile(r"[<>|=]?(?:[biuf]\d+|\?|[OUS]\d*)")
_PLAIN = (str, bytes, bool, int, float, complex, type(None))


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
                with archive.open(member) as file:
                    _check_header(file, member.file_size, path)
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


# -- arrays of objects ----------------------------------------------------------------------------


class _RefusedError(Exception):
    """The pickle contains more than data."""


class _Dtype:
    """numpy.dtype: only numbers, truth values, text and objects; never fields or subarrays."""

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str) or not _PLAIN_DTYPE.fullmatch(code):
            raise _RefusedError(f"the element type {code!r:.60}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: object) -> None:
        """(version, byte order, subarray, names, fields, size, alignment, flags, ...)"""
        if not (isinstance(state, tuple) and len(state) >= 5 and state[2:5] == (None, None, None)):
            raise _RefusedError("a structured element type")
        if self.dtype.kind in "US":
            # Text keeps its length here and not in its code.
            self.dtype = np.dtype(f"{self.dtype.kind}{_text_length(self.dtype.kind, state)}")
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


def _text_length(kind: str, state: tuple[Any, ...]) -> int:
    size = state[5] if len(state) > 5 else None
    if type(size) is not int or size < 0:
        raise _RefusedError("a text type without a length")
    return size // 4 if kind == "U" else size


def _numbers(dtype: object, data: object) -> Any:
    """Bytes as a flat array of plain elements."""
    if not isinstance(dtype, _Dtype) or not isinstance(data, bytes | bytearray):
        raise _RefusedError("an array without bytes")
    if dtype.dtype.hasobject or dtype.dtype.itemsize == 0:
        raise _RefusedError("an array of references")
    flat = np.frombuffer(bytes(data), dtype=dtype.dtype)
    return flat.astype(flat.dtype.newbyteorder("="))


class _Array:
    """The object from which NumPy rebuilds an array; its state sets `array`."""

    def __init__(self, *_: object) -> None:
        self.array: Any = None

    def __setstate__(self, state: object) -> None:
        """(version, shape, element type, whether in Fortran order, bytes or list of objects)"""
        if not (isinstance(state, tuple) and len(state) == 5):
            raise _RefusedError("an array of unknown form")
        _, shape, dtype, fortran, data = state
        size = _size(shape)
        if isinstance(dtype, _Dtype) and dtype.dtype.kind == "O" and isinstance(data, list):
            flat = np.empty(len(data), dtype=object)
            flat[:] = data
        else:
            flat = _numbers(dtype, data)
        if len(flat) != size:
            raise _RefusedError(f"{len(flat)} elements for the shape {shape}")
        self.array = flat.reshape(shape, order="F" if fortran is True else "C")


def _size(shape: object) -> int:
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape):
        raise _RefusedError(f"the shape {shape!r:.60}")
    return math.prod(shape)


class _Scalar:
    """numpy's numbers: an element type and its bytes."""

    def __init__(self, dtype: object, data: object = None) -> None:
        flat = _numbers(dtype, data)
        if len(flat) != 1:
            raise _RefusedError("a number of the wrong size")
        self.array = flat[0]

    def __setstate__(self, state: object) -> None:
        raise _RefusedError("a number with a state")


class _Kind:
    """numpy.ndarray, which is only named, never called."""

    def __init__(self, *_: object) -> None:
        raise _RefusedError("a call of numpy.ndarray")

    def __setstate__(self, state: object) -> None:
        raise _RefusedError("a state of numpy.ndarray")


_KNOWN = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Kind,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "scalar"): _Scalar,
    ("numpy._core.multiarray", "scalar"): _Scalar,
}


class _Reader(pickle.Unpickler):
    """An unpickler that accepts only the names above."""

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name."""
        if (module, name) not in _KNOWN:
            raise _RefusedError(f"{module}.{name}")
        return _KNOWN[module, name]


def load_objects(path: Path) -> list[Any]:
    """The objects of a one-dimensional .npy file: dicts, lists, text, numbers and arrays.

    Raises
    ------
    DataError
        If the file is damaged or its pickle asks for anything else; nothing is executed.
    """
    try:
        with path.open("rb") as stream:
            shape, dtype = _header(stream)
            if dtype.kind != "O":
                raise DataError(f"{path} holds {dtype}, not Python objects")
            loaded = _Data().of(_Reader(io.BytesIO(stream.read())).load())
    except _RefusedError as refused:
        raise DataError(
            f"{path} is rejected: its pickle asks for {refused}, not only for data; recreate it "
            "from a source that you trust"
        ) from None
    except DataError:
        raise
    except Exception as error:  # a damaged pickle raises a dozen types
        raise DataError(f"{path} cannot be read as .npy: {error}") from error
    if not isinstance(loaded, np.ndarray) or loaded.shape != shape or loaded.ndim != 1:
        raise DataError(f"{path} does not hold a list of objects")
    return list(loaded)


def _header(stream: Any) -> tuple[tuple[int, ...], Any]:
    version = np.lib.format.read_magic(stream)
    readers: dict[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} of the format is unknown")
    shape, _, dtype = readers[version](stream)
    return shape, dtype


class _Data:
    """Replaces the stand-ins by arrays; shared objects stay shared."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """`value` as plain data."""
        if type(value) in _PLAIN:
            return value
        if id(value) not in self._made:
            self._made[id(value)] = self._new(value)
        return self._made[id(value)]

    def _new(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.of(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(self.of(item) for item in value)
        if not isinstance(value, _Array | _Scalar) or value.array is None:
            raise _RefusedError(f"an object of {type(value).__name__.lstrip('_')}")
        array = value.array
        if isinstance(array, np.ndarray) and array.dtype.kind == "O":
            flat = np.empty(array.size, dtype=object)
            flat[:] = [self.of(item) for item in array.ravel()]
            return flat.reshape(array.shape)
        return array
