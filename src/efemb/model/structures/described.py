"""Described: the vector of an entity is its own plus the vectors of its features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.array_checks import is_missing_label
from efemb.data.columns import label_codes
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.ingredient import positive_number
from efemb.model.structures.base import Structure

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Described(Structure):
    """rho_n = own_n / s + H f_n / r, and the same for alpha, where f are features of the entities.

    The rows of rho (and of alpha) are those of the entities, then those of H. s is the square root
    of `precision` and r that of the number of features. With one prior for all rows, the part of
    the features then has the variance of that prior and own vectors 1 / `precision` of it; an
    optimizer also moves own vectors more slowly.
    """

    signed = True
    from_fit = ("frozen",)

    def __init__(
        self,
        features: Sequence[str],
        precision: float = 10.0,
        frozen: Mapping[str, Any] | None = None,
    ) -> None:
        self.features = features
        self.precision = precision
        self.frozen = frozen

    @property
    def own_rows(self) -> tuple[bool, bool]:
        """False: a row of rho or alpha is not the vector of an entity."""
        return False, False

    @property
    def n_entities(self) -> int | None:
        """Number of entities of a frozen structure."""
        return None if self.frozen is None else len(self.frozen["codes"])

    def check(self) -> None:
        """Features must be names, and the precision positive."""
        names = self.features
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise InputTypeError(
                f"{type(self).__name__}.features must be a list of names of entity features, "
                f"got {names!r}"
            )
        for name in names:
            if not isinstance(name, str) or not name:
                raise InputTypeError(f"{type(self).__name__}.features must be names, got {name!r}")
            if list(names).count(name) > 1:
                raise ParameterError(
                    f"{type(self).__name__}.features contains {name!r} twice: no feature is above "
                    "or beside itself"
                )
        positive_number(self, "precision")

    def freeze(self, data: Dataset) -> Self:
        """Store the features of the entities of the training data."""
        if self.frozen is not None:
            return self
        columns = {name: self._column(data, name) for name in self.features}
        frozen = self.learn(columns)
        return type(self)(**{**self.get_params(deep=False), "frozen": frozen})

    def _column(self, data: Dataset, name: str) -> list[Any]:
        if name not in data.features:
            present = ", ".join(map(repr, data.features)) or "none"
            raise DataError(
                f"{self!r} needs the entity feature {name!r}, which the data lack (features: "
                f"{present}): pass Dataset(values, features={{{name!r}: ...}}) or "
                "read_baskets(..., features=...)"
            )
        column: list[Any] = data.features[name].tolist()
        if len({value for value in column if not is_missing_label(value)}) < 2:
            raise DataError(
                f"the entity feature {name!r} has the same value for all entities (or none), so "
                "nothing can be learned from it: leave it out"
            )
        return column

    @abstractmethod
    def learn(self, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Codes (N, L), numbers (N, M), labels of the rows of H, and how new entities are read."""

    @abstractmethod
    def read(self, columns: Mapping[str, list[Any]]) -> tuple[Ints, Floats]:
        """Codes and numbers of other entities; a label that the fit did not see has code -1."""

    @property
    def n_shared(self) -> int:
        """Rows of H."""
        return 0 if self.frozen is None else len(self.frozen["labels"])

    def sizes(self, n_entities: int) -> tuple[int, int]:
        """Numbers of entities and of features."""
        if self.frozen is None:
            raise ParameterError(f"{self!r} is not fitted: it has no features yet")
        if len(self.frozen["codes"]) != n_entities:
            raise DataError(
                f"{self!r} knows features of {len(self.frozen['codes']):,} entities, but there "
                f"are {n_entities:,}"
            )
        return n_entities + self.n_shared, n_entities + self.n_shared

    @property
    def _share(self) -> float:
        """1 / r."""
        assert self.frozen is not None
        n_features = self.frozen["codes"].shape[1] + self.frozen["numbers"].shape[1]
        return float(1.0 / np.sqrt(n_features))

    def _shrink(self, own: Floats) -> Floats:
        """Own vectors divided by s."""
        return np.asarray(own * own.dtype.type(1.0 / np.sqrt(self.precision)))

    def spread(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """Own vectors plus those of the features."""
        return self._spread(rho, n_entities), self._spread(alpha, n_entities)

    def _spread(self, array: Floats, n_entities: int) -> Floats:
        slots = array.reshape(-1, self.sizes(n_entities)[0], *array.shape[1:])
        vectors = [
            self._shrink(slot[:n_entities]) + self.shared(slot[n_entities:]) for slot in slots
        ]
        return vectors[0] if len(vectors) == 1 else np.concatenate(vectors)

    def shared(self, h: Floats) -> Floats:
        """The part of the features in the vectors of the entities, H f_n / r."""
        assert self.frozen is not None
        codes, numbers = self.frozen["codes"], self.frozen["numbers"]
        total = np.zeros((len(codes), *h.shape[1:]), dtype=h.dtype)
        for column in codes.T:
            described = np.flatnonzero(column >= 0)
            total[described] += h[column[described]]
        if numbers.shape[1]:
            rows = h[len(h) - numbers.shape[1] :]
            total += np.tensordot(numbers.astype(h.dtype), rows, axes=1)
        return np.asarray(total * h.dtype.type(self._share))

    def collect(self, rho: Floats, alpha: Floats, n_entities: int) -> tuple[Floats, Floats]:
        """Gradients of own vectors, then sums over the entities of each feature."""
        return self._collect(rho, n_entities), self._collect(alpha, n_entities)

    def _collect(self, array: Floats, n_entities: int) -> Floats:
        slots = array.reshape(-1, n_entities, *array.shape[1:])
        collected = []
        for slot in slots:
            flat = slot.reshape(n_entities, -1)
            h = self._transposed.astype(slot.dtype, copy=False) @ flat
            h = np.asarray(h).reshape(-1, *slot.shape[1:])
            collected += [self._shrink(slot), h * slot.dtype.type(self._share)]
        return np.concatenate(collected)

    @cached_property
    def _transposed(self) -> Any:
        """f of all entities as a sparse matrix (rows of H, N), with which products are fast."""
        from scipy.sparse import csr_array

        assert self.frozen is not None
        codes, numbers = self.frozen["codes"], self.frozen["numbers"]
        n, column = np.nonzero(codes >= 0)
        first = self.n_shared - numbers.shape[1]
        of_numbers = np.tile(np.arange(first, self.n_shared), len(codes))
        rows = np.concatenate([codes[n, column], of_numbers])
        entities = np.concatenate([n, np.repeat(np.arange(len(codes)), numbers.shape[1])])
        values = np.concatenate([np.ones(len(n)), numbers.ravel()])
        return csr_array((values, (rows, entities)), shape=(self.n_shared, len(codes)))

    def add_entities(self, columns: Mapping[str, list[Any]]) -> Self:
        """The frozen structure with further entities, by their features."""
        assert self.frozen is not None
        codes, numbers = self.read(columns)
        frozen = {
            **self.frozen,
            "codes": np.concatenate([self.frozen["codes"], codes]),
            "numbers": np.concatenate([self.frozen["numbers"], numbers]),
        }
        return type(self)(**{**self.get_params(deep=False), "frozen": frozen})

    def make_room(self, array: Floats, n_new: int) -> Floats:
        """Own vectors of 0, the prior mean, for entities that follow the known ones."""
        n = self.n_entities
        assert n is not None
        slots = array.reshape(-1, n + self.n_shared, *array.shape[1:])
        zeros = np.zeros((n_new, *array.shape[1:]), dtype=array.dtype)
        wider = [np.concatenate([slot[:n], zeros, slot[n:]]) for slot in slots]
        return np.concatenate(wider)

    def design(self) -> Floats:
        """f of every entity, (N, rows of H)."""
        return self.shared(np.eye(self.n_shared))

    def categories(self, feature: str) -> tuple[list[Any], Self]:
        """Labels of the values of a feature, and a structure whose entities are these values."""
        assert self.frozen is not None
        labels, codes, numbers = self.values_of(feature)
        frozen = {**self.frozen, "codes": codes, "numbers": numbers}
        return labels, type(self)(**{**self.get_params(deep=False), "frozen": frozen})

    @abstractmethod
    def values_of(self, feature: str) -> tuple[list[Any], Ints, Floats]:
        """Labels of the values of a feature, with codes and numbers of an entity for each."""


def code_labels(column: Sequence[Any], known: Mapping[Any, int]) -> Ints:
    """Code of each label, -1 if it is missing or unknown."""
    codes = np.append(np.array(list(known.values()), dtype=np.int64), -1)  # -1 is the last one
    return codes[label_codes(column, known)]
