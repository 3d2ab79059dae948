"""Recognition of coordinates by the names of columns: x y z, latitude and longitude."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_EARTH_RADIUS_KM = 6371.0
_REGION_DEGREES = 20.0
_AXES = ("x", "y", "z")
_EARTH = (("latitude", "lat"), ("longitude", "lon", "lng", "long"))
_WORD = re.compile(r"[^\W_]+")
# Words that may accompany the name of an axis: x_um, pos_x, centroid-y, "X (mm)".
_BESIDE = frozenset(
    {"pos", "position", "coord", "coordinate", "center", "centre", "centroid", "location", "loc"}
    | {"um", "mm", "cm", "m", "km", "px", "pixel", "pixels", "micron", "microns", "deg", "decimal"}
)


def coordinate_columns(header: Sequence[object]) -> list[str]:
    """Columns that are coordinates by their names, in the order x, y, z; empty if there are none.

    >>> coordinate_columns(["index", "sensor_id", "latitude", "longitude"])
    ['latitude', 'longitude']
    >>> coordinate_columns(["cell", "area", "Y (um)", "X (um)"]), coordinate_columns(["a", "b"])
    (['X (um)', 'Y (um)'], [])
    """
    names = [name for name in header if isinstance(name, str)]
    axes = [_single_column(names, (axis,)) for axis in _AXES]
    if axes[0] and axes[1]:
        return [name for name in axes if name]
    earth = [_single_column(names, words) for words in _EARTH]
    if earth[0] and earth[1]:
        return [earth[0], earth[1]]
    return []


def is_on_earth(columns: Sequence[str]) -> bool:
    """Whether columns are latitude and longitude, whose degrees have different lengths."""
    return bool(columns) and _is_axis(columns[0], _EARTH[0])


def _single_column(names: Sequence[str], axis: Sequence[str]) -> str | None:
    """The one column of an axis; None if there is none, or if several could be meant."""
    fitting = [name for name in names if _is_axis(name, axis)]
    exact = [name for name in fitting if name.strip().lower() in axis]
    chosen = exact or fitting
    return chosen[0] if len(chosen) == 1 else None


def _is_axis(name: str, axis: Sequence[str]) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    return any(word in axis for word in words) and all(
        word in axis or word in _BESIDE for word in words
    )


def kilometers(degrees: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Latitude and longitude as coordinates with distances in kilometers, and their unit.

    Degrees of longitude are shorter than degrees of latitude, so that plain degrees lead to other
    neighbors. A small region becomes a plane (east, north); a larger one the surface of a sphere,
    where the chord between two points grows with their distance.

    >>> kilometers(np.array([[60.0, 10.0], [60.0, 11.0], [61.0, 10.0]]))[0].round().tolist()
    [[548.0, 6672.0], [602.0, 6672.0], [548.0, 6783.0]]
    """
    latitude, longitude = np.radians(degrees).T
    # NaN is reported where positions are checked.
    spans = np.ptp(degrees, axis=0)
    if not (spans > _REGION_DEGREES).any():
        middle = np.cos((latitude.min() + latitude.max()) / 2)
        return _EARTH_RADIUS_KM * np.stack([longitude * middle, latitude], axis=1), " (in km)"
    ring = np.cos(latitude)
    points = [ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)]
    return _EARTH_RADIUS_KM * np.stack(points, axis=1), " (in km, on a sphere)"
