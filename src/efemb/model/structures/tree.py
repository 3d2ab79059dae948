"""Tree: entities of one category, type, ... have similar vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_missing_label
from efemb.errors import ParameterError, suggest
from efemb.model.structures.described import Described


class Tree(Described):
    """rho_n = own_n / s + the sum of the vectors of all nodes above n / r; the same for alpha.

    A rare entity is close to others of its type, and an entity that was never observed has the
    vector of its type (`model.add_items`).

    Parameters
    ----------
    features : list of str
        Entity features from the top of the tree down: ["department", "category", "type"]. A node is
        a path: types of the same name in two categories are two nodes. The path of an entity ends
        where a feature is missing.
    precision : float, default=10
        Precision of own vectors in units of that of what all nodes add. Choose it on validation
        data among 1, 10 and 100.
        In the formula, s is its square root and r that of the number of features, since one prior
        is that of all rows.
    frozen : mapping, optional
        The nodes of the training data, as a fit stores them in its model.

    Examples
    --------
    >>> import efemb
    >>> shop = {"department": ["dairy", "dairy", "bakery"], "type": ["milk", "milk", "bread"]}
    >>> trips = efemb.Dataset([[1, 2, 0], [1, 0, 1], [0, 1, 1]] * 20, features=shop)
    >>> model = efemb.PoissonEmbedding(
    ...     2, structure=Tree(["department", "type"]), random_state=0
    ... ).fit(trips)
    >>> list(model.categories("department"))
    ['dairy', 'bakery']
    """

    def learn(self, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Nodes in the order of their first entities."""
        paths = _paths([columns[name] for name in self.features])
        nodes: dict[tuple[Any, ...], int] = {}
        for path in paths:
            for depth in range(1, len(path) + 1):
                nodes.setdefault(path[:depth], len(nodes))
        labels = [list(path) for path in nodes]
        return {"labels": labels, **_encode(paths, nodes, len(self.features))}

    def read(self, columns: Mapping[str, list[Any]]) -> tuple[Ints, Floats]:
        """Known nodes above each entity."""
        assert self.frozen is not None
        nodes = {tuple(path): code for code, path in enumerate(self.frozen["labels"])}
        coded = _encode(
            _paths([columns[name] for name in self.features]), nodes, len(self.features)
        )
        return coded["codes"], coded["numbers"]

    def values_of(self, feature: str) -> tuple[list[Any], Ints, Floats]:
        """The nodes of a level; if several have the same name, their labels are paths."""
        assert self.frozen is not None
        if feature not in self.features:
            raise ParameterError(
                f"{self!r} has no feature {feature!r}; {suggest(feature, self.features)}"
            )
        depth = list(self.features).index(feature) + 1
        paths = [tuple(path) for path in self.frozen["labels"] if len(path) == depth]
        names = [path[-1] for path in paths]
        labels = [
            name if names.count(name) == 1 else " > ".join(map(str, path))
            for name, path in zip(names, paths, strict=True)
        ]
        columns = {
            name: [path[i] if i < depth else None for path in paths]
            for i, name in enumerate(self.features)
        }
        return labels, *self.read(columns)


def _paths(columns: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Labels of each entity from the top down, up to the first that is missing."""
    paths = []
    for labels in zip(*columns, strict=True):
        missing = [i for i, label in enumerate(labels) if is_missing_label(label)]
        paths.append(labels[: missing[0]] if missing else labels)
    return paths


def _encode(
    paths: Sequence[tuple[Any, ...]], nodes: Mapping[tuple[Any, ...], int], depth: int
) -> dict[str, Any]:
    codes = np.full((len(paths), depth), -1, dtype=np.int64)
    for n, path in enumerate(paths):
        for i in range(len(path)):
            codes[n, i] = nodes.get(path[: i + 1], -1)
    return {"codes": codes, "numbers": np.zeros((len(paths), 0))}
