"""Saving under fire: killed at any moment, or on a full disk, a model is the old or the new one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import efemb
from storage import killing

KILLS = 200


needs_kills = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def killed(kind: str, path: Path, kills: int) -> list[int]:
    """The numbers that kills of a writing process left."""
    command = [sys.executable, killing.__file__, kind, str(path), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    numbers = [int(line) for line in done.stdout.split()]
    assert len(numbers) == kills
    return numbers


@pytest.mark.slow
@needs_kills
def test_200_kills_never_leave_a_broken_or_mixed_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    numbers = killed("model", path, KILLS)
    assert numbers == sorted(numbers)  # never older than what was whole before
    assert len(set(numbers)) > KILLS / 20  # the kills came in the middle of many saves
    assert killing.whole(efemb.load(path)) == numbers[-1]
    killing.model(7).save(path)
    assert killing.whole(efemb.load(path)) == 7


@pytest.mark.slow
@needs_kills
@pytest.mark.parametrize("kind", ["checkpoint", "export", "result", "cache"])
def test_kills_never_leave_a_mixture(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "state" if kind == "checkpoint" else tmp_path
    numbers = killed(kind, path, KILLS // 2)
    if kind in ("checkpoint", "export"):
        assert numbers == sorted(numbers)
        assert len(set(numbers)) > KILLS / 20
    else:  # may have to be made again, and then counts from 0
        assert len(set(numbers)) > 1
    killing.KINDS[kind][0](str(path), 7)
    assert killing.KINDS[kind][1](str(path)) == 7
    # What the killed processes left is gone; numba's temporary names are not ours.
    assert kind == "cache" or not [one for one in tmp_path.rglob(".*") if "partial" in one.name]


FULL_DISK = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from storage import killing

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
killing.model(1).save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of files")
@pytest.mark.parametrize("limit", [0, 1000, 50_000, 161_000])
def test_no_space_leaves_the_old_model(limit: int, tmp_path: Path) -> None:
    """The tensors need 162 kB: no file may grow beyond the limit, as on a disk that is full."""
    path = tmp_path / "model"
    killing.model(0).save(path)
    tests = Path(killing.__file__).parents[1]
    command = [sys.executable, "-c", FULL_DISK, str(path), str(tests), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert killing.whole(efemb.load(path)) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
