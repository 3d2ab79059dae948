"""Neural activity from plain arrays: traces and where the neurons are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.dataset import Dataset
from efemb.data.readers.matrix import load_array
from efemb.data.readers.numeric import read_positions
from efemb.data.readers.source import existing_file
from efemb.data.validation import float_array, generator, unmasked
from efemb.errors import DataError, InputTypeError, ParameterError


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
        .npy, .npz of one array, Parquet, or CSV or TSV with or without header. A .npy file may be
        larger than memory if `neurons` keeps few of them. NaN is a missing value.
    positions : path or array of shape (neurons, p)
        Coordinates in one unit, all different; files as above.
    neurons : int, optional
        Keep so many neurons, drawn at random (the paper keeps 10,000 of 200,000).
    seed : int
        Of the draw.
    neurons_first : bool
        Whether a row of `traces` is a neuron (suite2p, CaImAn), not a frame (NWB).

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
    kept = drawn(len(by_neuron), neurons, seed)
    return Dataset(
        frames_of(by_neuron, kept),
        entities=kept.tolist(),
        positions=places[kept],
        report={"neurons": len(by_neuron), "neurons_dropped": len(by_neuron) - len(kept)},
    )


def drawn(total: int, size: int | None, seed: int) -> NDArray[np.int64]:
    """Sorted numbers of `size` of `total` neurons; all if `size` is None."""
    if size is None:
        return np.arange(total)
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise InputTypeError(f"neurons must be a whole number, got {size!r}")
    if not 1 <= size <= total:
        raise ParameterError(f"neurons={size} must lie between 1 and the {total:,} there are")
    return np.sort(generator(seed).choice(total, int(size), replace=False))


def frames_of(by_neuron: NDArray[Any], kept: NDArray[np.int64]) -> NDArray[Any]:
    """Frames x neurons in memory, of the kept rows of neurons x frames, which may be on disk."""
    return np.ascontiguousarray(float_array(by_neuron[kept], "traces").T)


def open_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file, on disk until it is needed; never unpickles."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"PK"
        if not packed:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} cannot be read as .npy: {error}") from error
    raise DataError(f"{path} is an archive of arrays (.npz), not one array (.npy)")


def _array(source: Any, name: str) -> NDArray[Any]:
    if not isinstance(source, str | os.PathLike):
        try:
            return unmasked(source)
        except ValueError as error:  # rows of different lengths
            raise DataError(f"{name} must be an array of numbers: {error}") from error
    path = existing_file(source)
    kind = path.suffix.lower()
    if kind == ".npy":
        return open_array(path)
    return np.asarray(
        load_array(path) if kind == ".npz" else read_positions(path, None, "utf-8").values
    )
