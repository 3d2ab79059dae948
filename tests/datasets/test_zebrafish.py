"""The three zebrafish recordings, in files of their formats."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat

import efemb
from efemb.datasets import fetch_zebrafish, zebrafish


def use(which: str, folder: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    data, reader = zebrafish._READERS[which]
    monkeypatch.setitem(zebrafish._READERS, which, (published(data, folder), reader))


@pytest.mark.parametrize("packed", [False, True])
def test_thunder(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    rng = np.random.default_rng(0)
    xyz = np.array([[0, 0, 0], [300, 1, 0], [2, -1, 1], [7, 7, 7]], dtype="<i2")
    frames = rng.integers(0, 256, (4, 240), dtype=np.uint8)
    frames[1] = 9
    content = b"".join(a.tobytes() + b.tobytes() for a, b in zip(xyz, frames, strict=True))
    folder = tmp_path / "zebrafish-thunder"
    folder.mkdir()
    name = "key02_00000-key01_00000-key00_00000.bin"
    (folder / f"{name}.gz" if packed else folder / name).write_bytes(
        gzip.compress(content) if packed else content
    )
    use("thunder", folder, monkeypatch, published)
    data = fetch_zebrafish("thunder", tmp_path, progress=False)
    assert data.shape == (240, 3)
    assert data.values.dtype == np.float32
    assert_array_equal(data.values, frames[[0, 2, 3]].T)
    assert_array_equal(data.positions, xyz[[0, 2, 3]])
    assert (data.report["voxels"], data.report["constant_dropped"]) == (4, 1)
    assert data.difference().shape == (239, 3)


def test_tectum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    rng = np.random.default_rng(1)
    folder = tmp_path / "zebrafish-tectum-triplett2018"
    folder.mkdir()
    activity = {"zf_20151104-f1": rng.random((5, 11)), "zf_20170215-f3": rng.random((3, 7))}
    for name, values in activity.items():
        assemblies = np.empty((2, 1), dtype=object)
        assemblies[0, 0], assemblies[1, 0] = np.array([[1, 3]]), np.array([[2]])
        contents = {
            "activity_matrix": values,
            "cell_coordinates": rng.random((len(values), 2)),
            "detected_assemblies": assemblies,
        }
        savemat(folder / f"{name}.mat", contents)
    for which, name in (("tectum", "zf_20151104-f1"), ("tectum-enucleated", "zf_20170215-f3")):
        use(which, folder, monkeypatch, published)
        data = fetch_zebrafish(which, tmp_path, progress=False)
        assert_array_equal(data.values, activity[name].T)
        assert data.positions is not None
        assert data.positions.shape == (len(activity[name]), 2)
        assert [list(one) for one in data.report["assemblies"]] == [[0, 2], [1]]


def test_regions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    rng = np.random.default_rng(2)
    folder = tmp_path / "zebrafish-regions-legare2025"
    folder.mkdir()
    arrays = {
        "timeseries_regions_fish6": rng.random((3, 9)),
        "region_centroids": rng.random((6, 3)),
        "region_acronyms": np.array(["OE", "OB", "VT"]),
        "region_names": np.array(["olfactory_epithelium", "olfactory_bulb", "ventral"]),
        "SC": rng.random((3, 3)),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    use("regions", folder, monkeypatch, published)
    data = fetch_zebrafish("regions", tmp_path, progress=False)
    assert_array_equal(data.values, arrays["timeseries_regions_fish6"].T)
    assert_array_equal(data.positions, arrays["region_centroids"][:3])
    assert data.entities is not None
    assert list(data.entities) == ["OE", "OB", "VT"]
    assert data.report["names"]["OE"] == "olfactory epithelium"
    assert_array_equal(data.report["connectome"], arrays["SC"])


def test_unknown_recording() -> None:
    with pytest.raises(efemb.ParameterError, match="did you mean 'tectum'"):
        fetch_zebrafish("tektum")
