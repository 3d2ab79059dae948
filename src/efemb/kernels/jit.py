"""Compilation of kernels, and their cache on disk.

Results have the same bits wherever the arrays are in memory. If the arrays that a loop reads and
writes might overlap, LLVM compiles the loop twice, with vectors and with single numbers, and the
addresses determine which version runs. Both must round in the same way. So no kernel may use
estimates of reciprocals (`arcp`, `afn`: only vectors would use them), and only loops that write
nothing may add up in another order (`reassoc`).

The cache of numba has three defects. It notices changes of a kernel's own file only, although a
kernel contains code of functions from other files; here, cached code is valid for one text of all
files in the folder. Two processes that compile for different types at the same time may overwrite
each other's code; here, the name of a file is a digest of its contents, and code is written before
the index that refers to it. A damaged file stops every fit, or runs as machine code; here, files
begin with a checksum, and damaged ones are ignored.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from numba import njit, types
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic

_SEAL = hashlib.sha256().digest_size
_compile: Any = njit  # which only newer versions annotate
Function = TypeVar("Function", bound=Callable[..., Any])


def cached_njit(**options: Any) -> Callable[[Any], Any]:
    """`njit` with these options; machine code is cached on disk if a folder is writable."""

    def compiled(function: Any) -> Any:
        try:
            dispatcher = _compile(cache=True, **options)(function)
        except RuntimeError:  # neither this folder nor that of the user is writable
            return _compile(**options)(function)
        kept = getattr(dispatcher, "_cache", None)
        if kept is not None:  # with NUMBA_DISABLE_JIT it is the plain function
            stamp = folder_digest(Path(function.__code__.co_filename).parent)
            kept._cache_file = KernelFiles(kept.cache_path, kept._impl.filename_base, stamp)
            kept.save_overload = _ignoring_file_errors(kept.save_overload)
        return dispatcher

    return compiled


def _ignoring_file_errors(save: Callable[..., None]) -> Callable[..., None]:
    """`save` without errors: if the disk is full or the folder missing, nothing is cached."""

    def tolerant(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    return tolerant


@cache
def folder_digest(folder: Path) -> str:
    """Digest of all Python files of a folder; installers may set times, which are not used."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


class KernelFiles(IndexDataCacheFile):
    """The index and the code of a kernel; damaged files are treated as missing."""

    def save(self, key: Any, data: Any) -> None:
        """Write the code, then the index; with two writers, the last index remains."""
        content = hashlib.sha256(f"{self._source_stamp} {key!r}".encode()).hexdigest()[:16]
        name = self._data_name_pattern.replace("{number:d}", content)
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _load_index(self) -> dict[Any, str]:
        content = self._read_sealed(self._index_path)
        index: dict[Any, str] = {} if content is None else pickle.loads(content)
        return index

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write_sealed(self._index_path, self._dump(overloads))

    def _load_data(self, name: str) -> Any:
        content = self._read_sealed(self._data_path(name))
        return None if content is None else pickle.loads(content)

    def _save_data(self, name: str, data: Any) -> None:
        self._write_sealed(self._data_path(name), self._dump(data))

    def _read_sealed(self, path: str) -> bytes | None:
        """The content of a sealed file, None if it is missing, damaged or of another version."""
        try:
            whole = Path(path).read_bytes()
        except OSError:
            return None
        seal, content = whole[:_SEAL], whole[_SEAL:]
        return content if seal == self._seal(content) else None

    def _write_sealed(self, path: str, content: bytes) -> None:
        with self._open_for_write(path) as file:
            file.write(self._seal(content) + content)

    def _seal(self, content: bytes) -> bytes:
        """Checksum of the content, of numba's version and of the files of kernels."""
        head = f"{self._version} {self._source_stamp} ".encode()
        return hashlib.sha256(head + content).digest()


class _Compiler(Protocol):
    def __call__(self, function: Function, /) -> Function: ...


# Products may be fused with sums; NaN, infinity and the sign of zero are not respected.
FUSED = {"contract", "nnan", "ninf", "nsz"}

_options: Any = {"nogil": True, "error_model": "numpy"}

# No change of the arithmetic.
kernel: _Compiler = cached_njit(**_options)
# For loops over independent elements: a[i] += b * c[i].
elementwise: _Compiler = cached_njit(**_options, fastmath=FUSED)
# For loops that add up, in any order: total += a[i] * b[i]. Such loops must not write to arrays.
summing: _Compiler = cached_njit(**_options, fastmath=FUSED | {"reassoc"})
# For functions that are inlined into kernels.
inlined: _Compiler = _compile(inline="always")


@intrinsic
def use_wide_vectors(typing_context: Any) -> Any:
    """Let LLVM use vectors of 512 bits if the processor has them; by default it stops at 256.

    This helps kernels that are limited by arithmetic, not by memory: a fifth for exponentials. The
    call may be anywhere in a kernel and costs nothing at run time.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite rejects attributes of a target, which its list of names does not contain.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), build
