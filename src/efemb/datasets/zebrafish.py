"""Zebrafish brains: three public recordings of calcium activity with positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.data.readers.array_file import load_array
from efemb.data.readers.input_file import open_bytes
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance
from efemb.datasets.sources import Copy, DataSet, Found, github
from efemb.errors import check_known

_SERIES = "key02_00000-key01_00000-key00_00000.bin"
THUNDER = DataSet(
    name="zebrafish_thunder",
    folder="zebrafish-thunder",
    title="Zebrafish series of the Thunder library",
    shape="240 frames x 8,462 voxels with xyz",
    terms="Apache-2.0 (thunder-project/thunder); a small example, not meant for findings",
    size=3_253_104,
    copies=(
        Copy(
            {_SERIES: "9da41f5aaf9254fc354ae1816d290f9a667fbc828a1495441207933de63346e7"},
            urls=github(
                "thunder-project/thunder",
                "b29e9a373e78de6a203cb83cce144e9f0bfe8af3",
                "thunder/utils/data/fish/series",
                {_SERIES: _SERIES},
            ),
        ),
        Copy({f"{_SERIES}.gz": "efaafdb981505d7ac766ffc698c1a5a9c679909ac772330e7c85ae966c46dc98"}),
    ),
)
_FISH = {
    "zf_20151104-f1.mat": "014a4ed61f8a9514b2873886ff99346b3af5bb390ff01918926b7152d519d360",
    "zf_20170215-f3.mat": "6c527eefac782eb75514289543422122587f3b2040888e3ef9e25facb4611c4c",
}
TECTUM = DataSet(
    name="zebrafish_tectum",
    folder="zebrafish-tectum-triplett2018",
    title="Zebrafish tectum, spontaneous activity (Triplett, Avitan and Goodhill 2018)",
    shape="4,245 frames x 114 neurons with xy",
    terms=(
        "as stated at doi 10.6084/m9.figshare.6943265.v1; cite doi 10.1371/journal.pcbi.1006421"
    ),
    size=6_966_925,
    copies=(
        Copy(
            _FISH,
            urls=github(
                "OpenSourceBrain/NWBShowcase",
                "be2920012f0e007b597b1149bb2e87b24a507b96",
                "TriplettEtAl2018/data",
                {name: f"{name.removesuffix('.mat')}/{name}" for name in _FISH},
            ),
        ),
    ),
)
_REGION_FILES = {
    "timeseries_regions_fish6.npy": (
        "8619c0d085016754fceb84d757eb662e2120276c3685c327f81c2234ce3387ab"
    ),
    "region_centroids.npy": "0278b67143bdced94f0441b32d8dd7030e482848a9552547a11bbd67c207b03c",
    "region_acronyms.npy": "7f97c69a791d6c77ba7eb8b1f5dbc90c1628837551d4c8c3fbbbddb40b649dfb",
    "region_names.npy": "140077a764fce3be0890a97a43fbb6d449f7c583ec29baddb9ae8a19ea08dc40",
    "SC.npy": "f88e6b194b608dbcd0cbe1df0b2ae2c3b40fc7e896165a35ce578be276d24a60",
}
REGIONS = DataSet(
    name="zebrafish_regions",
    folder="zebrafish-regions-legare2025",
    title="Zebrafish brain regions (Légaré and others 2025)",
    shape="892 frames x 70 regions with xyz",
    terms="CC BY 4.0; cite doi 10.5683/SP3/IIVGOB",
    size=563_992,
    copies=(
        Copy(
            _REGION_FILES,
            urls=github(
                "pdesrosiers/brain-connectivity-and-dynamics",
                "6597270c57c1592b78052cffb11c1124ea19cbcf",
                "data/zebrafish",
                {name: name for name in _REGION_FILES},
            ),
        ),
    ),
)
_THUNDER_FRAMES = 240


def fetch_zebrafish(
    which: str = "thunder",
    data_home: Home = None,
    *,
    download: bool = True,
    progress: bool = True,
) -> Dataset:
    """Frames x neurons (voxels, regions) of a zebrafish brain, with positions.

    Values are as published; the method `difference` of the result gives the change from frame to
    frame that the paper models. The paper's own recording is not public; `simulate_zebrafish`
    simulates one of its size.

    Parameters
    ----------
    which : {"thunder", "tectum", "tectum-enucleated", "regions"}, default="thunder"
        "thunder": 240 frames x 8,462 voxels with xyz (4,762 further ones that never vary are
        dropped); "tectum": 4,245 frames x 114 neurons with xy; "tectum-enucleated": another fish,
        5,660 frames x 75 neurons; "regions": 892 frames x 70 regions with the xyz of their left
        halves.
    data_home : path, optional
        Folder that holds `zebrafish-thunder`, `zebrafish-tectum-triplett2018` or
        `zebrafish-regions-legare2025`; by default the folder in the environment variable
        EFEMB_DATA. Otherwise the files come from the cache or from GitHub.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Dataset
        Dense, with positions. The report of a tectum holds ``assemblies`` (arrays of the neurons
        of each assembly that the authors found), that of regions ``connectome`` (70 x 70) and
        ``names``.

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    """
    check_known("which", which, _READERS)
    data, read = _READERS[which]
    files = find_files(data, data_home, download=download, progress=progress)
    values, described = read(files)
    report = provenance(data, files) | described.pop("report")
    return Dataset(values, report=report, **described)


def _thunder(files: Found) -> tuple[Any, dict[str, Any]]:
    """Records of three 16-bit coordinates and one byte for each frame."""
    (path,) = files.paths.values()
    record = np.dtype([("xyz", "<i2", 3), ("frames", "u1", _THUNDER_FRAMES)])
    with open_bytes(path) as stream:
        records = np.frombuffer(stream.read(), dtype=record)
    varying = records["frames"].min(axis=1) < records["frames"].max(axis=1)
    varying_voxels = records[varying]
    values = np.ascontiguousarray(varying_voxels["frames"].T, dtype=np.float32)
    report = {"voxels": len(records), "constant_dropped": int((~varying).sum())}
    return values, {"positions": varying_voxels["xyz"].astype(np.float64), "report": report}


def _tectum(name: str) -> Callable[[Found], tuple[Any, dict[str, Any]]]:
    """Make the reader of one of the two fish."""

    def read(files: Found) -> tuple[Any, dict[str, Any]]:
        from scipy.io import loadmat

        file = loadmat(files[name])
        # MATLAB numbers neurons from 1.
        assemblies = [
            np.ravel(assembly).astype(np.int64) - 1
            for assembly in file["detected_assemblies"][:, 0]
        ]
        values = np.ascontiguousarray(file["activity_matrix"].T, dtype=np.float64)
        return values, {
            "positions": file["cell_coordinates"].astype(np.float64),
            "report": {"assemblies": assemblies},
        }

    return read


def _regions(files: Found) -> tuple[Any, dict[str, Any]]:
    arrays = {name: load_array(files[name]) for name in _REGION_FILES}
    acronyms = arrays["region_acronyms.npy"].tolist()
    names = [name.replace("_", " ") for name in arrays["region_names.npy"].tolist()]
    # Left halves come first, then right halves; activity is the mean of both.
    positions = arrays["region_centroids.npy"][: len(acronyms)]
    values = np.ascontiguousarray(arrays["timeseries_regions_fish6.npy"].T)
    return values, {
        "entities": acronyms,
        "positions": positions,
        "report": {
            "names": dict(zip(acronyms, names, strict=True)),
            "connectome": arrays["SC.npy"],
        },
    }


_READERS: dict[str, tuple[DataSet, Callable[[Found], tuple[Any, dict[str, Any]]]]] = {
    "thunder": (THUNDER, _thunder),
    "tectum": (TECTUM, _tectum("zf_20151104-f1.mat")),
    "tectum-enucleated": (TECTUM, _tectum("zf_20170215-f3.mat")),
    "regions": (REGIONS, _regions),
}
ENTRIES = tuple(
    (_READERS[which][0], partial(fetch_zebrafish, which))
    for which in ("thunder", "tectum", "regions")
)
