"""Several processes save to one folder: the last model remains, and no process fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import efemb
from efemb import _files
from storage import hammering, killing

SECONDS = 2.0


def hammer(role: str, path: Path) -> subprocess.Popen[str]:
    tests = Path(hammering.__file__).parents[1]
    places = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, hammering.__file__, role, str(path), str(SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )


@pytest.mark.slow
@pytest.mark.parametrize("linked", [False, True], ids=["folder", "link"])
def test_two_processes_save_while_a_third_loads(linked: bool, tmp_path: Path) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    if linked:
        (tmp_path / "links").mkdir()
        asked = tmp_path / "links" / "latest"
        asked.symlink_to(path)
    else:
        asked = path
    running = [hammer(role, asked) for role in ("save", "save", "load")]
    printed = [process.communicate(timeout=120) for process in running]
    for process, (number, errors) in zip(running, printed, strict=True):
        assert process.returncode == 0, errors
        assert int(number) > 0
    killing.whole(efemb.load(asked))
    assert {one.name for one in tmp_path.iterdir()} - {"links"} == {"model"}


def test_a_name_that_is_always_taken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    monkeypatch.setattr(_files, "_try_rename", lambda old, new: False)
    with pytest.raises(efemb.DataError, match="choose another folder"):
        killing.model(1).save(path)
    assert killing.whole(efemb.load(path)) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


def test_an_interrupt_between_the_renamings_brings_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    rename, names = _files._try_rename, []

    def interrupted(old: Path, new: Path) -> bool:
        names.append(new.name)
        if names.count("model") == 2:
            raise KeyboardInterrupt
        return rename(old, new)

    monkeypatch.setattr(_files, "_try_rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        killing.model(1).save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    assert killing.whole(efemb.load(path)) == 0
