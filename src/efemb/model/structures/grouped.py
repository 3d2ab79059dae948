"""Grouped: each group of rows has its own embeddings and intercepts, close to shared ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.columns import distinct_labels, label_codes
from efemb.errors import DataError, ParameterError, check_integer, suggest
from efemb.model.ingredient import flag, row_column
from efemb.model.priors import Normal, Prior
from efemb.model.structures.base import Arrays, GroupStructure, StructureArray

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

SPREAD = 0.1  # of the initial weights of the amortized map


class Grouped(GroupStructure):
    """Embeddings and intercepts of each group of rows: rho_gn = rho_n + delta_gn.

    Context vectors are shared by all groups, so that their embeddings can be compared, unless
    `contexts`. Rows whose group is missing, unknown or too small have delta = 0, the prior mean.

    Parameters
    ----------
    column : str
        Row column of the data that names the group of each row: "household_size", "month".
    precision : float, default=100
        Precision of delta in units of the precision of rho. Choose it on validation data among
        10, 100 and 1000.
    intercepts : bool, default=True
        Whether each group has intercepts of its own. Without them delta has to explain
        differences in popularity.
    min_rows : int, default=100
        A group with fewer rows has delta = 0.
    amortized : bool, default=False
        delta_g = tanh(rho W1_g) W2_g, one small network per group, instead of a vector per group
        and entity: for groups x entities x K numbers that would not fit into memory.
    hidden : int, default=5
        Hidden units of these networks.
    groups : sequence of labels, optional
        The groups that have embeddings of their own. By default those of the training rows that
        have `min_rows` rows.
    contexts : bool, default=False
        Whether each group has context vectors of its own, too: alpha_gn = alpha_n + an offset with
        the prior of delta. Embeddings of different groups are then comparable only as far as the
        prior keeps context vectors together.

    Notes
    -----
    The array ``grouped.vectors`` holds sqrt(precision) delta, which has the prior of rho: steps of
    an optimizer are then proportional to what the prior expects of delta.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> trips = efemb.Dataset(rng.poisson(0.7, (600, 4)), rows={"kids": ["no", "yes", "yes"] * 200})
    >>> model = efemb.PoissonEmbedding(2, structure=Grouped("kids"), random_state=0).fit(trips)
    >>> sorted(model.report_["groups"])
    ['no', 'yes']
    """

    from_fit = ("groups",)

    def __init__(
        self,
        column: str,
        precision: float = 100.0,
        intercepts: bool = True,
        min_rows: int = 100,
        amortized: bool = False,
        hidden: int = 5,
        groups: Sequence[Hashable] | None = None,
        contexts: bool = False,
    ) -> None:
        self.column = column
        self.precision = precision
        self.intercepts = intercepts
        self.min_rows = min_rows
        self.amortized = amortized
        self.hidden = hidden
        self.groups = groups
        self.contexts = contexts

    def check(self) -> None:
        """The column must be a name, the precision positive, and sizes positive integers."""
        super().check()
        flag("Grouped.amortized", self.amortized)
        if self.amortized and self.contexts:
            raise ParameterError(
                "Grouped(contexts=True) needs amortized=False: networks compute embeddings only"
            )
        for option in ("min_rows", "hidden"):
            check_integer(f"Grouped.{option}", getattr(self, option))

    @property
    def labels(self) -> list[Any]:
        """The groups with embeddings of their own."""
        return list(self.groups or ())

    def freeze(self, data: Dataset) -> Self:
        """Find the groups with enough training rows, in the order of their first rows."""
        if self.groups is not None:
            return self
        column = row_column(data, self.column, self).tolist()
        labels = distinct_labels(column)
        codes = label_codes(column, labels)
        sizes = np.bincount(codes[codes >= 0], minlength=len(labels))
        groups = [label for label, size in zip(labels, sizes, strict=True) if size >= self.min_rows]
        if not groups:
            largest = sizes.max(initial=0)
            raise DataError(
                f"no group of the row column {self.column!r} has min_rows={self.min_rows} rows: "
                f"{len(sizes):,} groups, the largest of {largest:,} rows; lower min_rows, or group "
                "the rows by a column with fewer values"
            )
        options = {**self.get_params(deep=False), "groups": groups}
        return type(self)(**options)

    def code_of(self, label: Any) -> int:
        """Index of the label among the groups."""
        code = int(label_codes([label], self.labels)[0])
        if code < 0:
            raise ParameterError(
                f"{label!r} is not a group of {self.column!r} with embeddings of its own, which "
                f"takes min_rows={self.min_rows} rows; "
                f"{suggest(label, self.labels) if isinstance(label, str) else self.labels}"
            )
        return code

    def codes(self, data: Dataset) -> Ints:
        """Index of each row's label among the groups, -1 for other labels."""
        return label_codes(row_column(data, self.column, self).tolist(), self.labels)

    def arrays(self, n_entities: int, k: int, prior: Prior | None) -> tuple[StructureArray, ...]:
        """Vectors of groups and entities, or the weights of a network per group; intercepts."""
        ridge = Normal(self.shrinkage_of(prior))
        g, h = len(self.labels), self.hidden
        own = [StructureArray("vectors", (g, n_entities, k), ridge)]
        if self.amortized:
            own = [
                StructureArray("inner", (g, k, h), Normal(1.0), SPREAD),
                StructureArray("outer", (g, h, k), Normal(1.0)),
            ]
        if self.intercepts:
            own.append(StructureArray("intercepts", (g, n_entities), Normal(1.0)))
        if self.contexts:
            own.append(StructureArray("contexts", (g, n_entities, k), ridge))
        return tuple(own)

    def offsets(self, array: Floats, groups: Ints) -> Floats:
        """delta of some groups."""
        return np.asarray(array[groups] * array.dtype.type(self.precision**-0.5))

    def collect_offsets(self, array: Floats, groups: Ints, gradient: Floats) -> Floats:
        """The gradient in the scale of the array; 0 for other groups."""
        own = np.zeros_like(array)
        own[groups] = gradient * gradient.dtype.type(self.precision**-0.5)
        return own

    def hold_offsets(self, vectors: Floats) -> tuple[Floats, Floats]:
        """The offsets in the scale of the array; groups share nothing."""
        return vectors * vectors.dtype.type(self.precision**0.5), np.zeros_like(vectors[0])

    def spread_groups(
        self, arrays: Arrays, target: Floats, intercept: Floats, groups: Ints
    ) -> tuple[Floats, Floats]:
        """rho + delta and b + beta of some groups."""
        if self.amortized:
            delta = np.tanh(target @ arrays["inner"][groups]) @ arrays["outer"][groups]
        else:
            delta = self.offsets(arrays["vectors"], groups)
        shift = arrays["intercepts"][groups] if self.intercepts else np.zeros_like(delta[..., 0])
        return target + delta, intercept + shift

    def collect_groups(
        self, arrays: Arrays, target: Floats, groups: Ints, d_target: Floats, d_intercept: Floats
    ) -> tuple[dict[str, Floats], Floats, Floats]:
        """Gradients of the shared vectors are sums over the groups."""
        own, total = {}, d_target.sum(axis=0)
        if self.amortized:
            inner, outer = arrays["inner"][groups], arrays["outer"][groups]
            units = np.tanh(target @ inner)
            slopes = (d_target @ outer.swapaxes(1, 2)) * (1 - units**2)
            own = {name: np.zeros_like(arrays[name]) for name in ("inner", "outer")}
            own["outer"][groups] = units.swapaxes(1, 2) @ d_target
            own["inner"][groups] = target.T @ slopes
            total = total + (slopes @ inner.swapaxes(1, 2)).sum(axis=0)
        else:
            own["vectors"] = self.collect_offsets(arrays["vectors"], groups, d_target)
        if self.intercepts:
            own["intercepts"] = np.zeros_like(arrays["intercepts"])
            own["intercepts"][groups] = d_intercept
        return own, total, d_intercept.sum(axis=0)

    def offset_precision(self, prior: Prior | None) -> float | None:
        """Precision of delta, None if a network computes it."""
        return None if self.amortized else self.precision * self.shrinkage_of(prior)

    @property
    def has_proximal_step(self) -> bool:
        """True unless a network computes the offsets."""
        return not self.amortized

    def proximal_step(self, offsets: Floats, weight: Floats, precision: float) -> Floats:
        """Shrink each offset toward 0."""
        return np.asarray(offsets * (weight / (weight + precision))[..., None])

    def from_offsets(
        self, vectors: Floats, intercepts: Floats
    ) -> tuple[dict[str, Floats], Floats, Floats]:
        """The offsets, in the scale of the array."""
        array, common = self.hold_offsets(vectors)
        own = {"vectors": array}
        if self.intercepts:
            own["intercepts"] = intercepts
        return own, common, np.zeros_like(intercepts[0])

    def save_memory(self, solver: str) -> str:
        """Advice to use networks instead of vectors, or fewer groups."""
        if self.amortized:
            return ", or larger min_rows in Grouped"
        if self.contexts:
            return ", or Grouped without contexts=True, or with larger min_rows"
        exact = " with zeros='all'" if solver == "windows" else ""
        return f", or Grouped({self.column!r}, amortized=True){exact}, or larger min_rows"
