"""Recordings of neural activity: plain arrays of traces with positions, and folders of suite2p."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._files import check_path
from efemb._terminal import progress_bar
from efemb.data.array_checks import as_array, float_array, generator
from efemb.data.dataset import Dataset
from efemb.data.readers.array_file import load_array, load_objects, open_array
from efemb.data.readers.input_file import existing_file
from efemb.data.readers.numeric import read_by_entity
from efemb.data.readers.positions import read_positions
from efemb.errors import DataError, InputTypeError, check_integer, check_number

_PLANE = re.compile(r"plane(\d+)")


def read_traces(
    traces: Any,
    positions: Any,
    *,
    neurons: int | None = None,
    seed: int = 0,
    neurons_first: bool = True,
) -> Dataset:
    """Read the activity of neurons and their positions (centroids of the cells).

    Parameters
    ----------
    traces : path or array of shape (neurons, frames)
        .npy, .npz (one array), Parquet, or CSV or TSV with or without a header. A .npy file may be
        larger than memory if `neurons` selects few of them. NaN is a missing value.
    positions : path or array of shape (neurons, p)
        Coordinates in the same unit, all distinct; files as above.
    neurons : int, optional
        Number of neurons to draw at random (the paper uses 10,000 of 200,000); default all.
    seed : int, default=0
        Random seed of the draw.
    neurons_first : bool, default=True
        Whether a row of `traces` is a neuron (suite2p, CaImAn) rather than a frame (NWB).

    Returns
    -------
    Dataset
        Frames x neurons. Entities are the numbers of the neurons in `traces`, from 0.

    Examples
    --------
    >>> traces = np.arange(12.0).reshape(4, 3)
    >>> data = read_traces(traces, np.eye(4), neurons=2)
    >>> data.shape, list(data.entities), data.values[0].tolist()
    ((3, 2), [2, 3], [6.0, 9.0])
    """
    array, places = _array(traces, "traces"), _array(positions, "positions")
    if array.ndim != 2:
        raise DataError(f"traces must be neurons x frames, not {array.ndim}-dimensional")
    if places.ndim == 0:
        raise InputTypeError(f"positions must be an array of neurons x coordinates, not {places}")
    by_neuron = array if neurons_first else array.T
    if len(places) != len(by_neuron):
        fits = len(places) == by_neuron.shape[1]
        hint = f"; pass neurons_first={not neurons_first}" if fits else ""
        raise DataError(f"there are {len(by_neuron)} traces, but {len(places)} positions{hint}")
    chosen = draw_neurons(len(by_neuron), neurons, seed)
    return Dataset(
        frames_of(by_neuron, chosen),
        entities=chosen.tolist(),
        positions=places[chosen],
        report={"neurons": len(by_neuron), "neurons_dropped": len(by_neuron) - len(chosen)},
    )


def draw_neurons(total: int, size: int | None, seed: int) -> NDArray[np.int64]:
    """Sorted numbers of `size` of `total` neurons; all if `size` is None."""
    if size is None:
        return np.arange(total)
    n_drawn = check_integer("neurons", size, 1, total)
    return np.sort(generator(seed).choice(total, n_drawn, replace=False))


def frames_of(by_neuron: NDArray[Any], chosen: NDArray[np.int64]) -> NDArray[Any]:
    """Frames x neurons in memory, from chosen rows of neurons x frames, which may be on disk."""
    return np.ascontiguousarray(float_array(by_neuron[chosen], "traces").T)


def _array(source: Any, name: str) -> NDArray[Any]:
    if not isinstance(source, str | os.PathLike):
        return as_array(source, name)
    path = existing_file(source)
    kind = path.suffix.lower()
    if kind == ".npy":
        return open_array(path)
    if kind == ".npz":
        return np.asarray(load_array(path))
    if name == "positions":
        return read_positions(path, None, None, "utf-8").values
    return read_by_entity(path, None, "utf-8").values


def read_suite2p(
    folder: str | os.PathLike[str],
    *,
    cells_only: bool = True,
    neurons: int | None = None,
    seed: int = 0,
    neuropil: float = 0.0,
    plane_distance: float = 1.0,
    progress: bool = False,
) -> Dataset:
    """Read the fluorescence and the positions of the cells that suite2p found.

    A position is the center of the cell's pixels, with suite2p's weights. stat.npy is a pickle; it
    is read by a restricted reader that accepts numbers, text, lists, dicts and arrays and rejects
    anything else, so that a folder from an untrusted source cannot run code.

    Parameters
    ----------
    folder : path
        Folder of one plane (with F.npy), or the folder `suite2p` of a recording with all planes.
    cells_only : bool, default=True
        Drop regions that suite2p (or the user, in its interface) did not classify as a cell; needs
        iscell.npy.
    neurons : int, optional
        Number of cells to draw at random, as in the paper; default all.
    seed : int, default=0
        Random seed of the draw.
    neuropil : float, default=0.0
        Fraction of the surrounding fluorescence (Fneu.npy) to subtract; suite2p uses 0.7.
    plane_distance : float, default=1.0
        Distance between planes, in pixels; used only if there are several.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Dataset
        Frames x neurons. Positions are (y, x) in pixels, with several planes (y, x, z). Entities
        are the numbers of the cells in stat.npy, with several planes "plane0:17". If cells have
        exactly the same position, only the first is kept; if planes differ in length, only the
        frames that all of them have. `report` counts what was dropped.

    Raises
    ------
    DataError
        If a file is missing, damaged or inconsistent with the others; the message names it.
    """
    path = check_path(folder, "folder must be a path")
    check_number("neuropil", neuropil, low=0)
    check_number("plane_distance", plane_distance, above=0)
    folders = _folders(path)
    planes = []
    with progress_bar(f"reading {folder}", len(folders), progress) as advance:
        for plane in folders:
            planes.append(_Plane.open(plane, cells_only, neuropil))
            advance(1)
    if not any(len(plane.kept) for plane in planes):
        raise DataError(f"{folder}: iscell.npy marks no cells; pass cells_only=False")
    return _join_planes(planes, str(folder), plane_distance, neurons, seed)


def _join_planes(
    planes: list[_Plane], source: str, distance: float, neurons: int | None, seed: int
) -> Dataset:
    """The cells of all planes without duplicate positions, or a random subset of them."""
    several = len(planes) > 1
    positions = np.concatenate([plane.positions(distance if several else None) for plane in planes])
    owner = np.repeat(np.arange(len(planes)), [len(plane.kept) for plane in planes])
    rows = np.concatenate([plane.kept for plane in planes])
    apart = np.sort(np.unique(positions, axis=0, return_index=True)[1])
    chosen = apart[draw_neurons(len(apart), neurons, seed)]
    n_frames = min(plane.n_frames for plane in planes)
    by_plane = [plane.traces(rows[chosen[owner[chosen] == i]]) for i, plane in enumerate(planes)]
    names = [f"{planes[i].name}:{n}" for i, n in zip(owner[chosen], rows[chosen], strict=True)]
    n_rois = sum(len(plane.stat) for plane in planes)
    return Dataset(
        np.concatenate([plane_traces[:n_frames] for plane_traces in by_plane], axis=1),
        entities=names if several else rows[chosen].tolist(),
        positions=positions[chosen],
        report={
            "source": source,
            "rois": n_rois,
            "no_cells_dropped": n_rois - len(rows),
            "same_position_dropped": len(rows) - len(apart),
            "neurons_not_drawn": len(apart) - len(chosen),
            "frames_dropped": max(plane.n_frames for plane in planes) - n_frames,
        },
    )


@dataclass(frozen=True)
class _Plane:
    """The files of one plane; fluorescence stays on disk."""

    name: str
    number: int
    fluorescence: NDArray[Any]
    surrounding: NDArray[Any] | None
    neuropil: float
    stat: list[Any]
    kept: NDArray[np.int64]

    @classmethod
    def open(cls, folder: Path, cells_only: bool, neuropil: float) -> _Plane:
        """Open the files and check that they fit."""
        fluorescence = _matrix(folder / "F.npy")
        stat = load_objects(_existing(folder / "stat.npy"))
        surrounding = _matrix(folder / "Fneu.npy") if neuropil else None
        is_cell = np.ones(len(stat), dtype=bool)
        if cells_only:
            is_cell = _matrix(folder / "iscell.npy")[:, 0] > 0
        sizes = {"F.npy": len(fluorescence), "stat.npy": len(stat), "iscell.npy": len(is_cell)}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise DataError(
                f"{folder}: the files are not from the same run; numbers of cells: {shown}"
            )
        if surrounding is not None and surrounding.shape != fluorescence.shape:
            raise DataError(f"{folder}: Fneu.npy and F.npy differ in shape")
        number = _PLANE.fullmatch(folder.name)
        return cls(
            folder.name,
            int(number[1]) if number else 0,
            fluorescence,
            surrounding,
            neuropil,
            stat,
            np.flatnonzero(is_cell),
        )

    @property
    def n_frames(self) -> int:
        """Length of the recording."""
        return int(self.fluorescence.shape[1])

    def positions(self, distance: float | None) -> NDArray[np.float64]:
        """Centers of the kept cells, with the depth of the plane if there is a distance."""
        cells = [_center(self.stat[i], i, self.name) for i in self.kept]
        centers = np.array(cells, dtype=np.float64).reshape(-1, 2)
        if distance is None:
            return centers
        depth = np.full((len(centers), 1), self.number * distance)
        return np.concatenate([centers, depth], axis=1)

    def traces(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Frames x the given cells."""
        values = frames_of(self.fluorescence, rows)
        if self.surrounding is None:
            return values
        share = values.dtype.type(self.neuropil)
        return np.asarray(values - share * frames_of(self.surrounding, rows))


def _folders(folder: Path) -> list[Path]:
    """The plane, or all planes of a recording in order."""
    if (folder / "F.npy").is_file():
        return [folder]
    planes = [path for path in folder.glob("plane*") if _PLANE.fullmatch(path.name)]
    if not planes:
        raise DataError(
            f"{folder} holds neither F.npy nor folders plane0, plane1, ...; pass the folder "
            "`suite2p`, or one of its planes"
        )
    return sorted(planes, key=lambda path: int(path.name.removeprefix("plane")))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} does not exist; suite2p writes it next to F.npy")
    return path


def _matrix(path: Path) -> NDArray[Any]:
    array = open_array(_existing(path))
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.size == 0:
        raise DataError(f"{path} must be a matrix of numbers, not {array.dtype} {array.shape}")
    return array


def _center(cell: Any, number: int, name: str) -> tuple[float, float]:
    """Weighted mean (y, x) of the pixels; suite2p's median if there are no pixels."""
    try:
        if "ypix" in cell and "xpix" in cell and len(cell["ypix"]):
            pixels = np.array([cell["ypix"], cell["xpix"]], dtype=np.float64)
            weight = np.asarray(cell.get("lam", 1.0), dtype=np.float64) * np.ones(pixels.shape[1])
            if not weight.sum() > 0:
                weight = np.ones(pixels.shape[1])
            y, x = pixels @ weight / weight.sum()
        else:
            y, x = (float(coordinate) for coordinate in cell["med"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"stat.npy of {name}: cell {number} has neither pixels (ypix, xpix) nor a center (med)"
        ) from error
    return float(y), float(x)
