"""Featured: entities with similar features have similar vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_missing_label
from efemb.errors import ParameterError, suggest
from efemb.model.structures.described import Described, code_labels


class Featured(Described):
    """rho_n = own_n / s + H f_n / r, and the same for alpha; f_n are features of entity n.

    A rare entity is close to others with its features, and an entity that was never observed has
    the vector of its features (`model.add_items`).

    Parameters
    ----------
    features : list of str
        Entity features of the data, ``Dataset(features={...})``. Columns of numbers are
        standardized; any other column is a category with a vector for each of its values. A missing
        value adds nothing: the mean, or no category.
    precision : float, default=10
        Precision of own vectors in units of that of what all features add. Choose it on
        validation data among 1, 10 and 100.
        In the formula, s is its square root and r that of the number of features, because all
        rows have the same prior.
    frozen : mapping, optional
        The features of the training data, as a fit stores them in its model.

    Examples
    --------
    >>> import efemb
    >>> shop = {"brand": ["A", "B", "A"], "grams": [100.0, 500.0, 250.0]}
    >>> X = [[1, 2, 0], [1, 0, 1], [0, 1, 1]] * 20
    >>> trips = efemb.Dataset(X, entities=["tea", "milk", "beer"], features=shop)
    >>> model = efemb.PoissonEmbedding(
    ...     2, structure=Featured(["brand", "grams"]), random_state=0
    ... ).fit(trips)
    >>> model.add_items({"item": ["new"], "brand": ["B"], "grams": [400.0]}).n_entities
    4
    """

    def learn(self, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Find the values of categories, then centers and scales of numbers."""
        numeric = [name for name in self.features if _is_numeric(columns[name])]
        labels: list[list[Any]] = []
        for name in self.features:
            if name not in numeric:
                values = dict.fromkeys(v for v in columns[name] if not is_missing_label(v))
                labels += [[name, value] for value in values]
        numbers = {name: _numbers(columns[name]) for name in numeric}
        frozen = {
            "labels": labels + [[name, None] for name in numeric],
            "numeric": numeric,
            "center": [float(np.nanmean(numbers[name])) for name in numeric],
            "scale": [float(np.nanstd(numbers[name])) for name in numeric],
        }
        codes, standardized = self._encode(columns, frozen)
        return {**frozen, "codes": codes, "numbers": standardized}

    def read(self, columns: Mapping[str, list[Any]]) -> tuple[Ints, Floats]:
        """Values that the fit knows, and standardized numbers."""
        assert self.frozen is not None
        return self._encode(columns, self.frozen)

    def _encode(
        self, columns: Mapping[str, list[Any]], frozen: Mapping[str, Any]
    ) -> tuple[Ints, Floats]:
        size = len(columns[self.features[0]])
        codes, numbers = [], []
        for name in self.features:
            if name in frozen["numeric"]:
                i = list(frozen["numeric"]).index(name)
                z = (_numbers(columns[name]) - frozen["center"][i]) / frozen["scale"][i]
                numbers.append(np.nan_to_num(z))
            else:
                pairs = enumerate(frozen["labels"])
                known = {value: code for code, (of, value) in pairs if of == name}
                codes.append(code_labels(columns[name], known))
        none_coded, none_numbered = np.zeros((size, 0), dtype=np.int64), np.zeros((size, 0))
        return (
            np.stack(codes, axis=1) if codes else none_coded,
            np.stack(numbers, axis=1) if numbers else none_numbered,
        )

    def values_of(self, feature: str) -> tuple[list[Any], Ints, Floats]:
        """The values of a category."""
        assert self.frozen is not None
        labels = [value for name, value in self.frozen["labels"] if name == feature]
        if feature not in self.features or feature in self.frozen["numeric"]:
            categories = [name for name in self.features if name not in self.frozen["numeric"]]
            raise ParameterError(f"{feature!r} is not a category; {suggest(feature, categories)}")
        columns = {
            name: labels if name == feature else [None] * len(labels) for name in self.features
        }
        return labels, *self.read(columns)


def _is_numeric(column: Sequence[Any]) -> bool:
    """Whether all values are numbers (truth values are two categories instead)."""
    present = [value for value in column if not is_missing_label(value)]
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in present)


def _numbers(column: Sequence[Any]) -> Floats:
    return np.array([np.nan if is_missing_label(v) else v for v in column], dtype=np.float64)
