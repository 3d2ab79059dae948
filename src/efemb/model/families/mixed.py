"""Mixed: tables of counts, real numbers and binary answers side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.families.base import Density, Family, Interval

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

LEAST_MEAN = 1e-3  # minimum mean of counts for the starting value of an intercept


class Mixed(Density):
    """Each entity has one of several families; values may be missing (NaN).

    Context sums add values of all kinds, so rescale real numbers to about unit size first. Models
    are scored by their mean log-density per observed number.

    Parameters
    ----------
    families : mapping of label to Family or str
        The family of each entity by its label or, with `by`, of each group of entities. Families
        of single numbers: neither categorical ones nor another `Mixed`.
    by : str, optional
        Feature of the entities (``Dataset(features={...})``) that holds their groups.
    codes : array of shape (N,), optional
        Which family each entity has, in the order of `families`; found by the fit.
    fitted : tuple of Family, optional
        The families with the variances that the fit learned.

    Examples
    --------
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> ill = rng.integers(0, 2, 200)
    >>> visits, pulse = rng.poisson(1 + 2 * ill), rng.normal(0.8 * ill - 0.4)
    >>> patients = efemb.Dataset(np.c_[ill, visits, pulse], entities=["ill", "visits", "pulse"])
    >>> family = Mixed({"ill": "bernoulli", "visits": "poisson", "pulse": "gaussian"})
    >>> others = efemb.Graph(1 - np.eye(3))
    >>> model = efemb.Embedding(1, family=family, context=others, random_state=0).fit(patients)
    >>> mean = model.conditional([[1, 4, 1.0], [0, 0, -1.0]])
    >>> bool((mean[0] > mean[1]).all())
    True
    """

    support: ClassVar[Interval] = Interval()
    links = ("identity",)
    missing = True
    judged_by_density = True
    mixes = True
    _places: Ints | None = None  # indices of the entities among all, if these are only some
    from_fit = ("codes", "fitted")

    def __init__(
        self,
        families: Mapping[Any, Any],
        by: str | None = None,
        codes: Ints | None = None,
        fitted: tuple[Family, ...] | None = None,
    ) -> None:
        self.families = families
        self.by = by
        self.codes = codes
        self.fitted = fitted

    # -- which entity has which family -------------------------------------------------------------

    def freeze(self, data: Dataset) -> Mixed:
        """Find the family of each entity by its label, or by its group."""
        if self.codes is not None and len(self.codes) == data.n_entities:
            return self
        names = self._names(data)
        code_of = {str(label): code for code, label in enumerate(self.families)}
        unknown = [name for name in names if str(name) not in code_of]
        if unknown:
            raise DataError(
                f"Mixed has no family for {unknown[0]!r} ({len(unknown):,} of {len(names):,} "
                f"entities have none); it knows {', '.join(map(repr, self.families))}"
            )
        frozen = copy(self)
        frozen.codes = np.array([code_of[str(name)] for name in names], dtype=np.int64)
        absent = set(range(len(code_of))) - set(frozen.codes.tolist())
        if absent:
            raise DataError(
                f"Mixed has a family for {list(self.families)[min(absent)]!r}, but the data have "
                "no such entity"
            )
        return frozen

    def _names(self, data: Dataset) -> list[Any]:
        if self.by is not None:
            if self.by not in data.features:
                raise DataError(
                    f"Mixed(by={self.by!r}) needs a feature of the entities of that name: "
                    f"Dataset(values, features={{{self.by!r}: [...]}})"
                )
            return list(data.features[self.by])
        if data.entities is None:
            raise DataError(
                "Mixed finds families by the labels of entities, which the data do not have: pass "
                "Dataset(values, entities=[...]) or a data frame"
            )
        return list(data.entities)

    def parts(self, data: Dataset) -> Iterator[tuple[Ints, Family]]:
        """The entities of each family."""
        codes = self.freeze(data)._known_codes()
        for code, family in enumerate(self._declared):
            yield np.flatnonzero(codes == code), family

    def _known_codes(self) -> Ints:
        if self.codes is None:
            raise ParameterError("Mixed does not know the entities yet: fit it, or pass codes=")
        return self.codes

    @property
    def _declared(self) -> list[Family]:
        return [Family.resolve(family) for family in self.families.values()]

    @property
    def _members(self) -> list[Family]:
        return self._declared if self.fitted is None else list(self.fitted)

    @property
    def varies(self) -> bool:
        """True: entities differ."""
        return True

    @property
    def n_entities(self) -> int | None:
        """Number of entities, if they are known."""
        return None if self.codes is None else len(self.codes)

    def at(self, entities: Ints) -> Family:
        """Return the families of these entities."""
        mixed = copy(self)
        mixed.codes = self._known_codes()[entities]
        mixed._places = entities if self._places is None else self._places[entities]
        return mixed

    def _groups(self, shape: tuple[int, ...]) -> Iterator[tuple[Bools, Family]]:
        """Mask of the cells of each family in arrays of a shape, and the family for them."""
        for _, group in self._numbered_groups(shape):
            yield group

    def _numbered_groups(
        self, shape: tuple[int, ...]
    ) -> Iterator[tuple[int, tuple[Bools, Family]]]:
        """`_groups` with the index of each family."""
        codes = np.broadcast_to(self._known_codes(), shape)
        entities = np.arange(shape[-1] if shape else 1) if self._places is None else self._places
        for code, family in enumerate(self._members):
            mask: Bools = codes == code
            if mask.any():
                yield code, (mask, family.at(np.broadcast_to(entities, shape)[mask]))

    # -- density -----------------------------------------------------------------------------------

    def value_and_slope(self, x: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return both, by the family of each entity."""
        value, slope = np.zeros_like(v), np.zeros_like(v)
        for mask, family in self._groups(v.shape):
            value[mask], slope[mask] = family.value_and_slope(x[mask], v[mask])
        return value, slope

    def _by_family(self, numbers: Floats, compute: Callable[[Family, Floats], Floats]) -> Floats:
        """Apply a function to each number, with the family of its entity."""
        result = np.zeros_like(numbers)
        for mask, family in self._groups(numbers.shape):
            result[mask] = compute(family, numbers[mask])
        return result

    def log_base_measure(self, x: Floats) -> Floats:
        """Return the base measure of each entity's family."""
        return self._by_family(x, lambda family, values: family.log_base_measure(values))

    def expected_value(self, eta: Floats) -> Floats:
        """Return the mean of each entity's family."""
        return self._by_family(
            eta, lambda family, values: family.expected_value(family.natural(values))
        )

    def variance_of_mean(self, mean: Floats) -> Floats:
        """Return that of each entity's family."""
        return self._by_family(mean, lambda family, values: family.variance_of_mean(values))

    def predictor(self, mean: Floats) -> Floats:
        """Return that of each entity's family."""

        def invert(family: Family, means: Floats) -> Floats:
            counts = family.support.low == 0
            return family.predictor(np.maximum(means, LEAST_MEAN) if counts else means)

        return self._by_family(mean, invert)

    def sample(self, eta: Floats, rng: np.random.Generator) -> Floats:
        """Draw from the family of each entity."""
        return self._by_family(
            eta, lambda family, values: family.sample(family.natural(values), rng)
        )

    # -- dispersions -------------------------------------------------------------------------------

    @property
    def learns(self) -> bool:
        """Whether any of the families still has anything to learn."""
        return self.fitted is None and any(family.learns for family in self._declared)

    def scaled_to(self, scale: float) -> Family:
        """Return the families for data of this variance."""
        mixed = copy(self)
        members = (family.scaled_to(scale) for family in self._declared)
        mixed.families = dict(zip(self.families, members, strict=True))
        return mixed

    def evidence(self, x: Floats, v: Floats) -> Floats:
        """Return the evidence of the families that learn, 0 for others."""
        learning = [family.learns for family in self._declared]
        numbers = np.zeros_like(v)
        for code, (mask, family) in self._numbered_groups(v.shape):
            if learning[code]:
                numbers[mask] = family.evidence(x[mask], v[mask])
        return numbers

    def adapt_entities(self, total: Floats, weight: Floats) -> Family:
        """Return the families refitted, each to its own entities.

        A variance that is "learned" is shared by all entities of its family.
        """
        codes, members = self._known_codes(), list(self._members)
        for code, declared in enumerate(self._declared):
            members_mask, family = codes == code, members[code]
            if declared.learns and declared.varies:
                sums = (np.where(members_mask, array, 0.0) for array in (total, weight))
                members[code] = family.adapt_entities(*sums)
            elif declared.learns:
                sums = (np.array([array[members_mask].sum()]) for array in (total, weight))
                members[code] = family.adapt_entities(*sums).at(np.array(0))
        mixed = copy(self)
        mixed.fitted = tuple(members)
        return mixed

    def check(self) -> None:
        """Check each family."""
        if not isinstance(self.families, Mapping) or not self.families:
            raise InputTypeError(
                f"Mixed.families must be a mapping of labels to families, got {self.families!r}"
            )
        if self.by is not None and not isinstance(self.by, str):
            raise InputTypeError(f"Mixed.by must be the name of a feature, got {self.by!r}")
        for label, family in zip(self.families, self._declared, strict=True):
            family.check()
            if family.softmax or family.states > 1 or family.mixes:
                raise ParameterError(
                    f"Mixed takes families of single numbers, but that of {label!r} is {family!r}"
                )
