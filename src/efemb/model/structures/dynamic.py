"""Dynamic: embeddings and intercepts that move from one slice of time to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.errors import DataError, ParameterError
from efemb.model.ingredient import positive_number, row_column
from efemb.model.priors import Normal, Prior
from efemb.model.structures.base import Arrays, GroupStructure, StructureArray

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

CALENDAR = {"day": "D", "week": "W", "month": "M", "year": "Y"}


class Dynamic(GroupStructure):
    """Embeddings and intercepts follow a random walk over slices of time.

    rho_gn = rho_n + W_gn - mean of W_n over the slices, W_gn = W_(g-1)n + delta_gn. Context vectors
    are shared by all slices, which aligns the embeddings of different times, or they follow a walk
    of the same prior (`contexts`), which alone then keeps slices aligned. A slice without rows is
    interpolated; rows after the last slice have its embeddings, rows before the first those of the
    first. Rows without a time have the mean of all slices.

    Parameters
    ----------
    column : str
        Row column with the time of each row: numbers (week, year), dates, or text like
        "2017-03-28".
    every : float or {"day", "week", "month", "year"}, optional
        Length of a slice: a number in the unit of a numeric column (default 1) or of days, or a
        unit of the calendar (default "month" for dates).
    precision : float, default=100
        Precision of the steps delta in units of the precision of rho. Choose it on validation data
        among 10, 100, 1000 and 10000.
    intercepts : bool, default=True
        Whether intercepts move, too. Without it, delta has to explain changes in popularity.
    origin, n_slices : optional
        First slice (number of its unit) and number of slices; by default those of the training
        rows.
    contexts : bool, default=False
        Whether context vectors move, too. Predictions may be better; embeddings of different
        times are then comparable only as far as the prior keeps context vectors together.

    Notes
    -----
    The array ``dynamic.steps`` holds sqrt(precision) delta: in this form, data of one slice affect
    all other slices in a single step, and steps are proportional to what the prior expects.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> rng = np.random.default_rng(0)
    >>> counts = 1 + rng.poisson(0.7, (300, 4))
    >>> trips = efemb.Dataset(counts, rows={"week": np.arange(300) // 30})
    >>> structure = Dynamic("week", every=2)
    >>> model = efemb.PoissonEmbedding(2, structure=structure, random_state=0).fit(trips)
    >>> model.report_["groups"]
    {0: 60, 2: 60, 4: 60, 6: 60, 8: 60}
    """

    from_fit = ("origin", "n_slices")

    def __init__(
        self,
        column: str,
        every: float | str | None = None,
        precision: float = 100.0,
        intercepts: bool = True,
        origin: float | None = None,
        n_slices: int | None = None,
        contexts: bool = False,
    ) -> None:
        self.column = column
        self.every = every
        self.precision = precision
        self.intercepts = intercepts
        self.origin = origin
        self.n_slices = n_slices
        self.contexts = contexts

    def check(self) -> None:
        """The column must be a name, the precision positive, and the length of a slice valid."""
        super().check()
        if isinstance(self.every, str):
            if self.every not in CALENDAR:
                raise ParameterError(
                    f"Dynamic.every must be a number or one of {', '.join(CALENDAR)}, got "
                    f"{self.every!r}"
                )
        elif self.every is not None:
            positive_number(self, "every")

    @property
    def in_order(self) -> bool:
        """True: slices follow one another."""
        return True

    @property
    def labels(self) -> list[Any]:
        """The beginning of each slice: a number, or a date as text."""
        if self.origin is None or self.n_slices is None:
            return []
        if isinstance(self.every, str):
            unit: Any = CALENDAR[self.every]
            return [str(np.datetime64(int(self.origin) + g, unit)) for g in range(self.n_slices)]
        first, every = self.origin, 1.0 if self.every is None else float(self.every)
        numbers = [first + g * every for g in range(self.n_slices)]
        return [int(number) if number == int(number) else number for number in numbers]

    def freeze(self, data: Dataset) -> Self:
        """Define the slices, from the first training row to the last."""
        if self.origin is not None:
            return self
        column = row_column(data, self.column, self)
        every = self.every
        if every is None:
            every = 1.0 if _is_numeric(column) else "month"
        elif isinstance(every, str) and _is_numeric(column):
            raise ParameterError(
                f"Dynamic.every={every!r} needs dates, but the row column {self.column!r} has "
                "numbers: pass the length of a slice as a number"
            )
        numbers = self._numbers(column, every)
        known = numbers[~np.isnan(numbers)]
        if not len(known):
            raise DataError(f"the row column {self.column!r} contains no times")
        size = 1.0 if isinstance(every, str) else float(every)
        n_slices = int((known.max() - known.min()) // size) + 1
        if n_slices < 2:
            raise DataError(
                f"all rows lie in one slice of {self.column!r} (every={every!r}): use a smaller "
                "every=, or structure='per-entity'"
            )
        options = {**self.get_params(deep=False), "every": every}
        return type(self)(**options | {"origin": float(known.min()), "n_slices": n_slices})

    def _numbers(self, column: Any, every: float | str) -> Floats:
        """Times in the unit of a slice, or of the column; NaN if missing."""
        if _is_numeric(column):
            return np.asarray(column, dtype=np.float64)
        dates = _parse(column, self.column)
        unit: Any = CALENDAR[every] if isinstance(every, str) else "D"
        missing: Bools = np.isnat(dates)
        numbers = dates.astype(f"datetime64[{unit}]").astype(np.int64).astype(np.float64)
        numbers[missing] = np.nan
        return np.asarray(numbers)

    def codes(self, data: Dataset) -> Ints:
        """Slice of each row, the nearest one for times outside all slices; -1 if missing."""
        return self._codes(row_column(data, self.column, self))

    def _codes(self, column: Any) -> Ints:
        assert self.origin is not None
        assert self.n_slices is not None
        assert self.every is not None  # frozen
        numbers = self._numbers(column, self.every)
        size = 1.0 if isinstance(self.every, str) else float(self.every)
        slices = np.floor((np.nan_to_num(numbers) - self.origin) / size)
        codes = np.clip(slices, 0, self.n_slices - 1).astype(np.int64)
        codes[np.isnan(numbers)] = -1
        return np.asarray(codes)

    def code_of(self, label: Any) -> int:
        """Slice that contains a time."""
        column = np.array([label])
        if column.dtype.kind == "U":
            column = column.astype(object)
        try:
            code = int(self._codes(column)[0])
        except DataError:
            code = -1
        if code < 0:
            first, last = self.labels[0], self.labels[-1]
            raise ParameterError(
                f"{label!r} is not a time of {self.column!r}, whose slices begin from {first} to "
                f"{last}"
            )
        return code

    def arrays(self, n_entities: int, k: int, prior: Prior | None) -> tuple[StructureArray, ...]:
        """Steps of embeddings, of intercepts and of context vectors between slices."""
        n_steps = len(self.labels) - 1
        ridge = Normal(self.shrinkage_of(prior))
        own = [StructureArray("steps", (n_steps, n_entities, k), ridge)]
        if self.intercepts:
            own.append(StructureArray("intercepts", (n_steps, n_entities), Normal(1.0)))
        if self.contexts:
            own.append(StructureArray("contexts", (n_steps, n_entities, k), ridge))
        return tuple(own)

    def _walk(self, groups: Ints, dtype: Any) -> Floats:
        """Weight of each step in some slices, (slices, steps): 1 once it is made, less the mean."""
        n, step = len(self.labels), np.arange(1, len(self.labels))
        return ((step <= groups[:, None]) - (n - step) / n).astype(dtype)

    def _scaled_walk(self, groups: Ints, dtype: np.dtype[Any]) -> Floats:
        """The weights of `_walk` in the scale of the array that holds the steps of vectors."""
        return np.asarray(self._walk(groups, dtype) * dtype.type(self.precision**-0.5))

    def offsets(self, array: Floats, groups: Ints) -> Floats:
        """Sums of the steps up to each slice, about their mean."""
        return np.tensordot(self._scaled_walk(groups, array.dtype), array, 1)

    def collect_offsets(self, array: Floats, groups: Ints, gradient: Floats) -> Floats:
        """The gradient of a step is the sum over all later slices."""
        return np.tensordot(self._scaled_walk(groups, gradient.dtype).T, gradient, 1)

    def hold_offsets(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Steps between slices, and the mean over the slices."""
        scale = vectors.dtype.type(self.precision**0.5)
        return np.diff(vectors, axis=0) * scale, vectors.mean(axis=0)

    def spread_groups(
        self, arrays: Arrays, target: Floats, intercept: Floats, groups: Ints
    ) -> tuple[Floats, Floats]:
        """The walks of embeddings and intercepts."""
        moved = self.offsets(arrays["steps"], groups)
        if not self.intercepts:
            return target + moved, np.broadcast_to(intercept, moved.shape[:2])
        return target + moved, intercept + self._walk(groups, target.dtype) @ arrays["intercepts"]

    def collect_groups(
        self, arrays: Arrays, target: Floats, groups: Ints, d_target: Floats, d_intercept: Floats
    ) -> tuple[dict[str, Floats], Floats, Floats]:
        """Gradients of the steps, and sums over the slices."""
        own = {"steps": self.collect_offsets(arrays["steps"], groups, d_target)}
        if self.intercepts:
            own["intercepts"] = self._walk(groups, target.dtype).T @ d_intercept
        return own, d_target.sum(axis=0), d_intercept.sum(axis=0)

    def offset_precision(self, prior: Prior | None) -> float | None:
        """Precision of the embedding in a slice about the mean of all, averaged over the slices."""
        walk = self._walk(np.arange(len(self.labels)), np.float64)
        return float(self.precision * self.shrinkage_of(prior) / (walk**2).sum(axis=1).mean())

    @property
    def has_proximal_step(self) -> bool:
        """Always."""
        return True

    def proximal_step(self, offsets: Floats, weight: Floats, precision: float) -> Floats:
        """Solve a tridiagonal system over the slices of each entity."""
        last, solved = len(offsets) - 1, offsets * weight[..., None]
        pivot = weight + offsets.dtype.type(precision)
        pivot[1:last] += offsets.dtype.type(precision)
        for g in range(1, last + 1):
            ratio = precision / pivot[g - 1]
            pivot[g] -= precision * ratio
            solved[g] += ratio[:, None] * solved[g - 1]
        solved[last] /= pivot[last][:, None]
        for g in range(last - 1, -1, -1):
            solved[g] = (solved[g] + precision * solved[g + 1]) / pivot[g][:, None]
        return np.asarray(solved)

    def from_offsets(
        self, vectors: Floats, intercepts: Floats
    ) -> tuple[dict[str, Floats], Floats, Floats]:
        """Steps between slices, and the means over the slices."""
        array, common = self.hold_offsets(vectors)
        own = {"steps": array}
        if self.intercepts:
            own["intercepts"] = np.diff(intercepts, axis=0)
        return own, common, intercepts.mean(axis=0)

    def describe(self, data: Dataset) -> dict[str, Any]:
        """Number of rows of every slice, and the empty slices, which are interpolated."""
        report = super().describe(data)
        empty = [label for label, size in report["groups"].items() if size == 0]
        return {**report, "slices_without_rows": empty}

    def save_memory(self, solver: str) -> str:
        """Advice to use longer slices."""
        return f", or longer slices: Dynamic({self.column!r}, every=...)"


def _is_numeric(column: Any) -> bool:
    """Whether all times are numbers; readers that keep labels store them as objects."""
    values = np.asarray(column)
    if values.dtype.kind == "O":
        return all(value is None or isinstance(value, int | float | np.number) for value in values)
    return bool(values.dtype.kind in "iufb")


def _parse(column: Any, name: str) -> Any:
    """Dates as datetime64; an error names the first value that is not a date."""
    values = np.asarray(column)
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    dates = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[s]")
    for row, value in enumerate(values.tolist()):
        if value is None or value != value:
            continue
        try:
            dates[row] = np.datetime64(value)
        except (ValueError, TypeError) as error:
            raise DataError(
                f"the row column {name!r} has {value!r} in row {row}, which is neither a number "
                "nor a date like '2017-03-28': correct it, or pass None where the time is unknown"
            ) from error
    return dates
