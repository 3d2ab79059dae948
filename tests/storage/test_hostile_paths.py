"""Paths that are not folders of regular files; full disks; leftovers of killed processes."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from efemb import _files
from efemb.engine.callbacks import Checkpoint
from efemb.storage import folder as sealed
from storage import killing

posix = pytest.mark.skipif(os.name != "posix", reason="needs named pipes and devices")
FILES = ["manifest.json", "parameters.safetensors", "vocabulary.json"]


def within(seconds: float, ask: Callable[[], Any]) -> BaseException | None:
    """The error of a question, which must not hang."""
    errors: list[BaseException] = []

    def answer() -> None:
        try:
            ask()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it hangs"
    return errors[0] if errors else None


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)  # a sparse file, which takes no room


@posix
@pytest.mark.parametrize("make", [make_pipe, make_endless, make_huge, Path.mkdir])
@pytest.mark.parametrize("name", FILES)
def test_strange_files_in_a_model(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    (path / name).unlink()
    try:
        make(path / name)
    except OSError:
        pytest.skip("no sparse files of this size")
    assert isinstance(within(10, lambda: efemb.load(path)), efemb.DataError)


@posix
@pytest.mark.parametrize("make", [make_pipe, make_endless])
def test_a_model_does_not_wait_for_what_it_would_replace(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.mkdir()
    make(path / "manifest.json")
    assert isinstance(within(10, lambda: killing.model(0).save(path)), efemb.DataError)


@posix
def test_strange_places_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    make_pipe(tmp_path / "pipe")
    places: list[Any] = [tmp_path / "loop", tmp_path / "pipe", "/dev/zero", tmp_path / ("x" * 5000)]
    for place in [*places, "a\0b", b"model", "", 3]:
        for ask in (efemb.load, killing.model(0).save, lambda path: Checkpoint(path).load()):
            error = within(10, lambda ask=ask, place=place: ask(place))
            assert isinstance(error, efemb.DataError | efemb.InputTypeError), (place, error)


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_all_files_follow_the_umask(mask: int, tmp_path: Path) -> None:
    old = os.umask(mask)
    try:
        killing.model(0).save(tmp_path / "model")
    finally:
        os.umask(old)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert modes == dict.fromkeys(FILES, 0o666 & ~mask)


# -- full disks -----------------------------------------------------------------------------------


def full(*args: Any, **options: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("moment", ["_write_tensors", "render", "sync_files", "put_in_place"])
def test_a_full_disk_is_a_typed_error_and_leaves_the_old_model(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killing.model(0).save(tmp_path / "model")
    monkeypatch.setattr(sealed, moment, full)
    with pytest.raises(efemb.StorageError, match="No space left on device; nothing was replaced"):
        killing.model(1).save(tmp_path / "model")
    monkeypatch.undo()
    assert killing.whole(efemb.load(tmp_path / "model")) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_full_disk_ends_a_fit_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "_write_tensors", full)
    model = efemb.PoissonEmbedding(2, callbacks=[Checkpoint(tmp_path / "state")])
    with pytest.raises(efemb.StorageError, match="state"):
        model.fit(np.random.default_rng(0).poisson(1.0, (20, 5)))


@pytest.mark.parametrize("name", ["v.csv", "v.csv.gz", "v.npz", "v.parquet"])
def test_a_full_disk_ends_an_export(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(efemb.StorageError, match="No space left"):
        efemb.export.write_vectors(killing.model(0).vectors(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# -- what killed processes leave ------------------------------------------------------------------


@posix
def test_what_dead_processes_left_is_removed_and_what_others_write_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "v.csv"
    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "getpid", lambda: 2**22 + 5)  # beyond all process numbers
        left, folder = (_files.temporary_name(target, "partial") for _ in range(2))
    ours, foreign = _files.temporary_name(target, "partial"), tmp_path / ".v.csv.partial-0ff1ce"
    for path in (left, ours, foreign):
        path.touch()
    folder.mkdir()
    _files.remove_abandoned(target)
    assert sorted(tmp_path.iterdir()) == sorted([ours, foreign])
    os.utime(foreign, (0, 0))
    _files.remove_abandoned(target)
    assert list(tmp_path.iterdir()) == [ours]


# -- damaged checkpoints --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["manifest.json", "state.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 50])
def test_a_fit_starts_anew_over_a_damaged_checkpoint(
    name: str, content: bytes, tmp_path: Path
) -> None:
    X = np.random.default_rng(0).poisson(1.0, (30, 5))

    def fit(**options: Any) -> Any:
        state = Checkpoint(tmp_path / "state", **options)
        return efemb.PoissonEmbedding(2, random_state=0, callbacks=[state]).fit(X)

    expected = fit()
    (tmp_path / "state" / name).write_bytes(content)
    with pytest.raises(efemb.DataError):
        fit()
    anew = fit(resume=False)
    np.testing.assert_array_equal(anew.rho_, expected.rho_)
    np.testing.assert_array_equal(fit().rho_, expected.rho_)  # the checkpoint is whole again


def test_starting_anew_deletes_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "manifest.json").write_text("a list of passengers")
    model = efemb.PoissonEmbedding(2, callbacks=[Checkpoint(tmp_path / "state", resume=False)])
    with pytest.raises(efemb.DataError, match="would be deleted"):
        model.fit(np.ones((6, 4)))
