"""Compiled kernels on disk: kept as long as no file of kernels changes.

numba keeps a kernel until its own file changes, but a kernel holds code of the functions it calls,
which may be written in another file. Here kept code belongs to the text of all files in the folder.
Nor does numba keep apart what two processes compile at once for different types: either may write
code into the file that the other's index names. Here the name of a file says what is in it, and
code is written before the index that names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import IndexDataCacheFile

_compile: Any = njit  # which only newer versions annotate


def keeping(**options: Any) -> Callable[[Any], Any]:
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
        return dispatcher

    return compiled


@cache
def folder_digest(folder: Path) -> str:
    """Digest of all Python files of a folder; their times say nothing where installers set them."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


class KernelFiles(IndexDataCacheFile):
    """The index and the code of one kernel."""

    def save(self, key: Any, data: Any) -> None:
        """Write code, then the index; of two writers at once the last index stays."""
        content = hashlib.sha256(f"{self._source_stamp} {key!r}".encode()).hexdigest()[:16]
        name = self._data_name_pattern.replace("{number:d}", content)
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})
