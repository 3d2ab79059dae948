"""Compiled kernels on disk belong to the current source files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import caching

from efemb.kernels.jit import KernelFiles, cached_njit, folder_digest

INNER = "from numba import njit\n@njit(inline='always')\ndef inner(x):\n    return x + {}\n"
OUTER = """
from efemb.kernels.jit import cached_njit
from inner import inner

@cached_njit(nogil=True)
def outer(x):
    return inner(x)

print(outer(40), sum(outer.stats.cache_hits.values()))
"""


def run(folder: Path) -> list[int]:
    """The result of the kernel, and how often it was read from disk instead of compiled."""
    places = os.pathsep.join([str(folder), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", "import outer"],
        env={**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(number) for number in done.stdout.split()]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    else:  # one bit, which may be part of the machine code
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["truncated", "empty", "one bit", "a folder"])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_compiled_again(how: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(1))
    assert run(tmp_path) == [41, 0]
    (kept,) = tmp_path.rglob(f"*.{ending}")
    damage(kept, how)
    assert run(tmp_path) == [41, 0]
    assert run(tmp_path) == [41, how != "a folder"]


def test_a_full_disk_only_means_that_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: KernelFiles, path: str, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(KernelFiles, "_write_sealed", full)

    @cached_njit()
    def triple(x: Any) -> Any:
        return 3 * x

    assert triple(np.float32(4)) == 12


@pytest.mark.slow
def test_a_change_of_another_file_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    (tmp_path / "inner.py").write_text(INNER.format(1))
    assert run(tmp_path) == [41, 0]
    assert run(tmp_path) == [41, 1]
    (tmp_path / "inner.py").write_text(INNER.format(2))  # as long as before
    assert run(tmp_path) == [42, 0]
    assert run(tmp_path) == [42, 1]


def test_digests_of_folders(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    digests = {folder_digest(tmp_path)}
    for name, text in [("a.py", "2"), ("b.py", ""), ("b.py", "2"), ("a.py", "")]:
        (tmp_path / name).write_text(text)
        folder_digest.cache_clear()
        digests.add(folder_digest(tmp_path))
    (tmp_path / "notes.txt").write_text("x")
    folder_digest.cache_clear()
    digests.add(folder_digest(tmp_path))
    assert len(digests) == 5


@pytest.mark.parametrize("moment", ["_load_index", "_save_index", "_save_data"])
@pytest.mark.parametrize("same_key", [True, False])
def test_two_processes_at_once(
    moment: str, same_key: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However two processes interleave their writes, no key refers to other code."""
    one, two = (KernelFiles(str(tmp_path), "kernel-1.py311", "stamp") for _ in range(2))
    keys = ("float32", "float32" if same_key else "float64")
    original = getattr(one, moment)

    def interrupted(*args: Any) -> Any:
        monkeypatch.undo()
        two.save(keys[1], f"code of {keys[1]}")
        return original(*args)

    monkeypatch.setattr(one, moment, interrupted)
    one.save(keys[0], f"code of {keys[0]}")
    found = {key: KernelFiles(str(tmp_path), "kernel-1.py311", "stamp").load(key) for key in keys}
    assert found[keys[0]] == f"code of {keys[0]}"
    assert found[keys[1]] in (None, f"code of {keys[1]}")
    assert KernelFiles(str(tmp_path), "kernel-1.py311", "other stamp").load(keys[0]) is None


def test_without_a_place_to_keep_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @cached_njit()
    def double(x: Any) -> Any:
        return 2 * x

    assert double(np.float32(4)) == 8
    assert double.stats.cache_path is None
