"""Maps: coordinates of all items in the plane, for each kind of vectors and each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError, ParameterError, suggest
from efemb.fitted.nearest import unit_rows
from efemb.fitted.vectors import entity_vectors
from efemb.plots.embedding_map import project_vectors

if TYPE_CHECKING:
    from efemb.explore.payload import Payload
    from efemb.fitted.embedding import FittedEmbedding

PROJECTIONS = ("pca", "tsne", "umap")
POSITIONS = "positions"  # the method of items that have a place of their own
LEAST = 4  # items for t-SNE and UMAP
ON_DEMAND = 20_000  # items; t-SNE of more takes minutes
EYE = (0.85, 0.85, 0.6)  # times the diagonal of a box
TITLES = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP", POSITIONS: "positions"}


def available_vectors(model: FittedEmbedding) -> dict[str, Floats]:
    """rho and alpha with one row per item; those that a model lacks are left out."""
    vectors = {}
    for space in ("rho", "alpha"):
        try:
            vectors[space] = entity_vectors(model, space)
        except ParameterError:
            continue
    if not vectors:
        raise ParameterError(
            "this model has several vectors per item, so it has no map: explore a model of scalar "
            "observations"
        )
    return vectors


@dataclass
class MapMaker:
    """Makes and keeps the maps of one model.

    methods : names of projections that a page gets
    """

    model: FittedEmbedding
    methods: tuple[str, ...] = ("pca",)
    seed: int = 0
    _made: dict[tuple[str, str], NDArray[np.float32]] = field(default_factory=dict)

    def spaces(self) -> dict[str, Floats]:
        """The vectors that can be projected; tied ones are the same."""
        vectors = available_vectors(self.model)
        tied = self.model.spec.structure.tied and "rho" in vectors
        return {"rho": vectors["rho"]} if tied else vectors

    def points(self, space: str, method: str, progress: bool = False) -> NDArray[np.float32]:
        """Coordinates, (N, 2); positions may have three."""
        if (space, method) not in self._made:
            self._made[space, method] = self._project(space, method, progress)
        return self._made[space, method]

    def _project(self, space: str, method: str, progress: bool) -> NDArray[np.float32]:
        if method == POSITIONS:
            if self.model.positions is None:
                raise DataError("the items of this model have no positions")
            return np.asarray(self.model.positions[:, :3], dtype=np.float32)
        spaces = self.spaces()
        if space not in spaces:
            raise ParameterError(f"there is no map of {space!r}; {suggest(space, spaces)}")
        if method not in PROJECTIONS:
            raise ParameterError(f"method={method!r} is unknown; {suggest(method, PROJECTIONS)}")
        unit = unit_rows(spaces[space]).astype(np.float64)
        return np.asarray(project_vectors(unit, method, self.seed, progress)[0], dtype=np.float32)

    def add_to(self, payload: Payload, progress: bool, *, more: bool = False) -> None:
        """Put all maps into a payload, the first one being that which is shown first.

        more : also list the projections that a server makes when somebody asks for them
        """
        listed: list[dict[str, Any]] = []
        positions = self.model.positions
        if positions is not None and positions.shape[1] >= 2:
            listed.append({"space": "", "method": POSITIONS})
        n = self.model.n_entities
        for method in self.methods if n >= LEAST else ("pca",):
            listed += [{"space": space, "method": method} for space in self.spaces()]
        for entry in listed:
            name = f"map.{entry['space']}.{entry['method']}"
            payload.arrays[name] = self.points(entry["space"], entry["method"], progress)
            entry["array"], entry["title"] = name, _title(**entry)
            entry["space"] = entry["space"] or next(iter(self.spaces()))  # positions are no vectors
            entry["key"] = name
        sides = np.ptp(payload.arrays[listed[0]["array"]], axis=0)
        if len(sides) == 3:
            title = f"{listed[0]['title']} in 3-D"
            scene = describe_scene(sides)
            listed.insert(1, {**listed[0], "key": "solid", "title": title, "scene": scene})
        if more and LEAST <= n <= ON_DEMAND:
            listed += self._on_demand()
        payload.header["maps"] = listed

    def _on_demand(self) -> list[dict[str, Any]]:
        """Entries of the maps that are not made yet."""
        left = [method for method in PROJECTIONS if method not in self.methods]
        if find_spec("umap") is None:
            left = [method for method in left if method != "umap"]
        return [
            {
                "space": space,
                "method": method,
                "key": f"map.{space}.{method}",
                "array": f"map.{space}.{method}",
                "title": _title(space, method),
            }
            for method in left
            for space in self.spaces()
        ]


def describe_scene(sides: Floats) -> dict[str, Any]:
    """A box with these sides, and where the eye is for it to fill the window, as plotly takes them.

    plotly's own boxes leave the window if an axis is short.
    """
    box = np.maximum(sides / (sides.max() or 1.0), 0.05)
    eye = np.array(EYE) * np.linalg.norm(box)
    ratio, place = (dict(zip("xyz", one.tolist(), strict=True)) for one in (box, eye))
    return {"aspectratio": ratio, "camera": {"eye": place}}


def _title(space: str, method: str) -> str:
    return " · ".join(filter(None, (space, TITLES[method])))


def checked_methods(methods: Any) -> tuple[str, ...]:
    """Names of projections, the first of which is shown first."""
    names = (methods,) if isinstance(methods, str) else methods
    if not isinstance(names, Sequence) or not names:
        raise InputTypeError(f"methods must be names such as ('pca', 'tsne'), got {methods!r}")
    for name in names:
        if name not in PROJECTIONS:
            raise ParameterError(f"methods: {name!r} is unknown; {suggest(str(name), PROJECTIONS)}")
    return tuple(dict.fromkeys(names))
