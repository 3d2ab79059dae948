"""suite2p folders and plain traces: cells, positions, and errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb.data.readers.neural import read_suite2p, read_traces

N_ROIS, N_FRAMES = 6, 11


def stat(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    cells = np.empty(N_ROIS, dtype=object)
    for n in range(N_ROIS):
        ypix, xpix = rng.integers(0, 50, (2, 5 + n))
        lam = rng.random(5 + n, dtype=np.float32)
        med = [int(np.median(ypix)), int(np.median(xpix))]
        cells[n] = {"ypix": ypix, "xpix": xpix, "lam": lam, "med": med, "skew": np.float64(n)}
    return cells


def write_plane(folder: Path, seed: int = 0, n_frames: int = N_FRAMES) -> Any:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    arrays = {
        "F": rng.random((N_ROIS, n_frames), dtype=np.float32),
        "Fneu": rng.random((N_ROIS, n_frames), dtype=np.float32),
        "iscell": np.array([[1, 0.9], [0, 0.1], [1, 0.8], [1, 0.7], [0, 0.2], [1, 0.6]]),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "stat.npy", stat(seed), allow_pickle=True)
    return arrays


def center(cell: dict[str, Any]) -> list[float]:
    """By the definition, one pixel after the other."""
    total = y = x = 0.0
    for a, b, weight in zip(cell["ypix"], cell["xpix"], cell["lam"], strict=True):
        total, y, x = total + weight, y + a * weight, x + b * weight
    return [y / total, x / total]


def test_cells_of_a_plane(tmp_path: Path) -> None:
    arrays = write_plane(tmp_path / "plane0")
    data = read_suite2p(tmp_path / "plane0")
    assert data.shape == (N_FRAMES, 4)
    assert data.values.dtype == np.float32
    assert_array_equal(data.values, arrays["F"][[0, 2, 3, 5]].T)
    assert data.entities is not None
    assert list(data.entities) == [0, 2, 3, 5]
    assert_allclose(data.positions, [center(stat()[n]) for n in (0, 2, 3, 5)], rtol=1e-6)
    assert (data.report["rois"], data.report["no_cells_dropped"]) == (6, 2)
    everything = read_suite2p(str(tmp_path), cells_only=False)
    assert_array_equal(everything.values, arrays["F"].T)


def test_neuropil(tmp_path: Path) -> None:
    arrays = write_plane(tmp_path / "plane0")
    data = read_suite2p(tmp_path, neuropil=0.7, cells_only=False)
    assert_allclose(data.values, (arrays["F"] - 0.7 * arrays["Fneu"]).T, rtol=1e-5, atol=1e-6)
    assert data.values.dtype == np.float32


def test_random_subset(tmp_path: Path) -> None:
    arrays = write_plane(tmp_path / "plane0")
    draws = [read_suite2p(tmp_path, neurons=2, seed=seed) for seed in range(20)]
    assert_array_equal(draws[3].values, read_suite2p(tmp_path, neurons=2, seed=3).values)
    seen = set()
    for data in draws:
        assert data.entities is not None
        chosen = [int(n) for n in data.entities]
        assert len(set(chosen)) == 2
        assert chosen == sorted(chosen)
        assert_array_equal(data.values, arrays["F"][chosen].T)
        assert data.report["neurons_not_drawn"] == 2
        seen |= set(chosen)
    assert seen == {0, 2, 3, 5}
    with pytest.raises(efemb.ParameterError, match="between 1 and 4"):
        read_suite2p(tmp_path, neurons=5)
    with pytest.raises(efemb.InputTypeError):
        read_suite2p(tmp_path, neurons=2.0)  # type: ignore[arg-type]


def test_several_planes(tmp_path: Path) -> None:
    arrays = [write_plane(tmp_path / f"plane{i}", i, N_FRAMES - (i == 10)) for i in (0, 2, 10)]
    (tmp_path / "combined").mkdir()
    data = read_suite2p(tmp_path, cells_only=False, plane_distance=5.0)
    assert data.shape == (N_FRAMES - 1, 3 * N_ROIS)
    expected = np.concatenate([one["F"][:, : N_FRAMES - 1] for one in arrays]).T
    assert_array_equal(data.values, expected)
    assert data.positions is not None
    assert data.positions[:, 2].tolist() == [0.0] * 6 + [10.0] * 6 + [50.0] * 6
    assert data.entities is not None
    assert data.entities[7] == "plane2:1"
    assert data.report["frames_dropped"] == 1
    few = read_suite2p(tmp_path, neurons=1)
    assert few.shape == (N_FRAMES - 1, 1)


@pytest.mark.parametrize("option", ["neuropil", "plane_distance"])
@pytest.mark.parametrize("value", [-1.0, np.inf, np.nan])
def test_bad_options(tmp_path: Path, option: str, value: float) -> None:
    with pytest.raises(efemb.ParameterError, match=option):
        read_suite2p(tmp_path, **{option: value})


def test_a_plane_without_cells(tmp_path: Path) -> None:
    arrays = [write_plane(tmp_path / f"plane{i}", i) for i in (0, 1)]
    np.save(tmp_path / "plane0" / "iscell.npy", np.zeros((6, 2)))
    data = read_suite2p(tmp_path)
    assert_array_equal(data.values, arrays[1]["F"][[0, 2, 3, 5]].T)


def test_cells_in_one_place_and_cells_without_pixels(tmp_path: Path) -> None:
    write_plane(tmp_path / "plane0")
    cells = stat()
    cells[1] = {"med": (3, 4.5)}
    cells[2] = {"med": np.array([3, 4.5])}
    cells[3]["lam"] = np.zeros(8)
    np.save(tmp_path / "plane0" / "stat.npy", cells, allow_pickle=True)
    data = read_suite2p(tmp_path, cells_only=False)
    assert data.entities is not None
    assert list(data.entities) == [0, 1, 3, 4, 5]
    assert data.report["same_position_dropped"] == 1
    assert data.positions is not None
    assert data.positions[1].tolist() == [3.0, 4.5]
    assert_allclose(data.positions[2], [cells[3]["ypix"].mean(), cells[3]["xpix"].mean()])


def spoil(folder: Path, how: str) -> None:
    if how in ("F.npy", "stat.npy", "iscell.npy", "Fneu.npy"):
        (folder / how).unlink()
    elif how == "other run":
        np.save(folder / "F.npy", np.ones((5, 4)))
    elif how == "other neuropil":
        np.save(folder / "Fneu.npy", np.ones((6, 4)))
    elif how == "no cell":
        np.save(folder / "iscell.npy", np.zeros((6, 2)))
    elif how == "pickled F":
        np.save(folder / "F.npy", np.array([[1, None]]), allow_pickle=True)
    elif how == "flat F":
        np.save(folder / "F.npy", np.ones(6))
    elif how == "half a file":
        content = (folder / "stat.npy").read_bytes()
        (folder / "stat.npy").write_bytes(content[: len(content) // 2])
    elif how == "cell without a place":
        np.save(folder / "stat.npy", np.array([{"skew": 1.0}] * 6), allow_pickle=True)
    elif how == "cells that are numbers":
        np.save(folder / "stat.npy", np.array([None] * 6), allow_pickle=True)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("F.npy", "neither F.npy nor folders"),
        ("stat.npy", r"stat\.npy does not exist"),
        ("iscell.npy", r"iscell\.npy does not exist"),
        ("Fneu.npy", r"Fneu\.npy does not exist"),
        ("other run", "F.npy 5, stat.npy 6, iscell.npy 6"),
        ("other neuropil", "differ in shape"),
        ("no cell", "cells_only=False"),
        ("pickled F", r"F\.npy cannot be read"),
        ("flat F", "must be a matrix"),
        ("half a file", r"stat\.npy cannot be read"),
        ("cell without a place", "cell 0 has neither"),
        ("cells that are numbers", "cell 0 has neither"),
    ],
)
def test_bad_folders(tmp_path: Path, how: str, message: str) -> None:
    write_plane(tmp_path / "plane0")
    spoil(tmp_path / "plane0", how)
    with pytest.raises(efemb.DataError, match=message):
        read_suite2p(tmp_path / "plane0", neuropil=0.7)


def test_a_malicious_folder_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "it ran"

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch '{trace}'",)

    write_plane(tmp_path / "plane0")
    cells = stat()
    cells[4]["extra"] = Evil()
    np.save(tmp_path / "plane0" / "stat.npy", cells, allow_pickle=True)
    with pytest.raises(efemb.DataError, match=r"rejected.*system"):
        read_suite2p(tmp_path)
    assert not trace.exists()


# -- plain arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["arrays", "npy", "npz", "csv"])
def test_traces(tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(0)
    traces, places = rng.random((5, 7)), rng.random((5, 3))
    source: tuple[Any, Any] = (traces, places)
    if form != "arrays":
        source = (tmp_path / f"traces.{form}", tmp_path / f"places.{form}")
        write = {"npy": np.save, "npz": np.savez, "csv": lambda *a: np.savetxt(*a, delimiter=",")}
        for path, array in zip(source, (traces, places), strict=True):
            write[form](path, array)
    data = read_traces(*source)
    assert_allclose(data.values, traces.T)
    assert_allclose(data.positions, places)
    few = read_traces(*source, neurons=3, seed=1)
    assert few.entities is not None
    chosen = [int(n) for n in few.entities]
    assert_allclose(few.values, traces[chosen].T)
    assert_allclose(few.positions, places[chosen])
    assert few.report == {"neurons": 5, "neurons_dropped": 2}


def test_frames_first_and_wrong_sizes() -> None:
    rng = np.random.default_rng(0)
    frames, places = rng.random((7, 5)), rng.random((5, 2))
    data = read_traces(frames, places, neurons_first=False)
    assert_array_equal(data.values, frames)
    with pytest.raises(efemb.DataError, match="pass neurons_first=False"):
        read_traces(frames, places)
    with pytest.raises(efemb.DataError, match="7 traces, but 4 positions"):
        read_traces(frames, places[:4])
    with pytest.raises(efemb.DataError, match="3-dimensional"):
        read_traces(np.ones((5, 2, 2)), places)
    with pytest.raises(efemb.DataError, match="share a position"):
        read_traces(frames.T, np.zeros((5, 2)))


def test_archives_that_are_called_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", np.ones((5, 7)))
    content = (tmp_path / "x.npz").read_bytes()
    for name, wrong in {"whole.npy": content, "cut.npy": content[:100]}.items():
        (tmp_path / name).write_bytes(wrong)
        with pytest.raises(efemb.DataError, match=rf"{name} is an archive of arrays \(\.npz\)"):
            read_traces(tmp_path / name, np.eye(5))
