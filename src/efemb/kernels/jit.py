"""How kernels are compiled, and kept on disk.

The same numbers give the same bits, wherever the arrays lie. Where arrays that a loop reads and
writes might overlap, LLVM compiles it twice, in vectors and number by number, and addresses decide
at run time which of them runs. Both must round alike, so no kernel may divide or take roots by
estimates of reciprocals (`arcp`, `afn`: vectors would, single numbers would not), and only loops
that write nothing may add up in another order (`reassoc`).

numba keeps a kernel until its own file changes, but a kernel holds code of the functions it calls,
which may be written in another file. Here kept code belongs to the text of all files in the folder.
Nor does numba keep apart what two processes compile at once for different types: either may write
code into the file that the other's index names. Here the name of a file says what is in it, and
code is written before the index that names it. Nor does numba notice a damaged file, which would
stop every fit, or run as machine code. Here files begin with a checksum, and damaged ones are
ignored.
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
    """`njit` with these options; machine code is kept on disk where there is a place for it."""

    def compiled(function: Any) -> Any:
        try:
            dispatcher = _compile(cache=True, **options)(function)
        except RuntimeError:  # no folder that can be written to, neither here nor of the user
            return _compile(**options)(function)
        kept = getattr(dispatcher, "_cache", None)
        if kept is not None:  # without the compiler (NUMBA_DISABLE_JIT) it is the function itself
            stamp = folder_digest(Path(function.__code__.co_filename).parent)
            kept._cache_file = KernelFiles(kept.cache_path, kept._impl.filename_base, stamp)
            kept.save_overload = _ignoring_file_errors(kept.save_overload)
        return dispatcher

    return compiled


def _ignoring_file_errors(save: Callable[..., None]) -> Callable[..., None]:
    """`save`, except that a full disk or a missing folder only means that nothing is kept."""

    def tolerant(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    return tolerant


@cache
def folder_digest(folder: Path) -> str:
    """Digest of all Python files of a folder; their times say nothing where installers set them."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


class KernelFiles(IndexDataCacheFile):
    """The index and the code of one kernel; damaged files count as missing."""

    def save(self, key: Any, data: Any) -> None:
        """Write code, then the index; of two writers at once the last index stays."""
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
        """The content of a file of ours, None for any other."""
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


# Products are fused with sums, and nothing looks for NaN, infinity or the sign of a zero.
FUSED = {"contract", "nnan", "ninf", "nsz"}

_options: Any = {"nogil": True, "error_model": "numpy"}

# Arithmetic as it is written.
kernel: _Compiler = cached_njit(**_options)
# Numbers are worked on one by one: a[i] += b * c[i].
elementwise: _Compiler = cached_njit(**_options, fastmath=FUSED)
# Loops that write nothing may add up in any order: total += a[i] * b[i]. Those that write must not
# add up as well.
summing: _Compiler = cached_njit(**_options, fastmath=FUSED | {"reassoc"})
# Part of the kernels that call it.
inlined: _Compiler = _compile(inline="always")


@intrinsic
def use_wide_vectors(typing_context: Any) -> Any:
    """Ask LLVM for vectors of 512 bits where there are any; by default it stops at 256.

    Pays where arithmetic, not memory, is the limit: exponentials gain a fifth. Called anywhere in
    a kernel it costs nothing at run time.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite checks names of attributes against a list that lacks those of a target.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), build
