"""History: what the same household bought in its other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.columns import distinct_labels, label_codes
from efemb.data.vocabulary import canonical_label
from efemb.errors import DataError, ParameterError, check_name
from efemb.model.ingredient import positive_number, row_column
from efemb.model.priors import Prior
from efemb.model.terms.base import (
    BoundCells,
    CellTerm,
    TermArray,
)
from efemb.model.terms.cell_values import SparseRows, TableRows
from efemb.model.terms.row_units import mix_numbers, read_units
from efemb.model.terms.scaled_cells import ScaledCells

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.model.families.base import Family
    from efemb.model.links import Link


class History(CellTerm):
    """u_tn += c log(1 + h_tn / (kappa pi_n)): a household buys again what it bought before.

    h_tn are the units of n in the other training rows of the household of row t, never in row t
    itself, and pi_n is the share of n in all training units. Without an embedding, and with c = 1,
    these are the shares of `efemb.baselines.PersonalPopularity`.

    In a model with a positive predictor (`AdditivePoissonEmbedding`) the term adds to the mean:
    u_tn += c h_tn / (kappa + h_t), where h_t is the sum of h_tn over all n, and c > 0. These are
    the shares of the household among those of `PersonalPopularity`, and the model takes the place
    of popularity. c are the units of a row that come from a very long history.

    Parameters
    ----------
    column : str
        Row column of the data that names the household of each row. Unknown and missing
        households have no history.
    decay : float, optional
        Units of a row that is `age` older count exp(-age / decay), in the unit of `time` (days
        for dates). By default all rows count alike. Needs `time`.
    time : str, optional
        Row column with the time of each row, numbers or dates. Only earlier rows count, also
        those of the data that are predicted. A row whose time is missing comes after all others.
        By default all other training rows count.
    kappa : float, default=1000.0
        Units of popularity that the history of a household is weighed against.
    prior : Prior or str, default="normal"
        Prior of the coefficient c, which starts at 1. A normal one becomes half-normal, with the
        same precision, in models with a positive predictor.
    rows : mapping of str to array, optional
        The training rows, as a fit stores them in its model.

    Notes
    -----
    The term holds the training rows, so that a fitted model knows the history of its households;
    they are saved with the model. A row is recognized as a training row, and its own units are
    taken out, by its label (``rows["row"]``) or, where one of the data sets has no labels, by its
    household, items and amounts.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.Dataset([[2, 0], [1, 0], [0, 1]], rows={"household": ["a", "a", "b"]})
    >>> term = History("household", kappa=1.0).freeze(trips)
    >>> new = term.bind(efemb.Dataset([[0, 0]], rows={"household": ["a"]}))
    >>> cells = new.cells({"coefficient": np.ones(1)}, np.array([0]))
    >>> cells.at(np.array([0, 0]), np.array([0, 1])).round(2).tolist()
    [1.61, 0.0]
    """

    from_fit = ("rows",)

    def __init__(
        self,
        column: str,
        decay: float | None = None,
        time: str | None = None,
        kappa: float = 1000.0,
        prior: Any = "normal",
        rows: Mapping[str, Any] | None = None,
    ) -> None:
        self.column = column
        self.decay = decay
        self.time = time
        self.kappa = kappa
        self.prior = prior
        self.rows = rows

    @property
    def label(self) -> str:
        """History of the column, which may have vectors of its own."""
        return f"history of {self.column}"

    @property
    def groups(self) -> Any:
        """The households of the training rows, None before a fit."""
        return None if self.rows is None else self.rows["groups"]

    @property
    def columns(self) -> tuple[str, ...]:
        """The household, and the time where it counts."""
        return (self.column,) if self.time is None else (self.column, self.time)

    def check(self) -> None:
        """Columns are names, kappa and decay positive numbers."""
        check_name("History.column", self.column)
        if self.time is not None:
            check_name("History.time", self.time)
        positive_number(self, "kappa")
        if self.decay is not None:
            positive_number(self, "decay")
            if self.time is None:
                raise ParameterError(
                    f"History(decay={self.decay!r}) needs time=, the row column with the time of "
                    "each row"
                )
        Prior.resolve(self.prior).check()

    def check_model(self, family: Family, link: Link) -> None:
        """A positive coefficient needs a link that needs it."""
        self.check_sign(link)

    @property
    def positive(self) -> bool:
        """Whether the coefficient is positive, and adds to means."""
        return Prior.resolve(self.prior).positive

    def with_positive(self) -> History:
        """With the prior on positive coefficients."""
        prior = Prior.resolve(self.prior).of_positive()
        return type(self)(**{**self.get_params(deep=False), "prior": prior})

    def freeze(self, data: Dataset) -> History:
        """The training rows, by household."""
        if self.rows is not None:
            return self
        groups = distinct_labels(row_column(data, self.column, self).tolist())
        stored = _read_rows(self, data, groups, data.n_entities)
        sizes = np.bincount(stored.code[stored.code >= 0], minlength=1)
        if sizes.max() < 2:
            raise DataError(
                f"no {self.column} has two training rows, so there is no history to learn from: "
                "leave the term out"
            )
        return self._with_rows(groups, data.n_entities, stored)

    def _with_rows(self, groups: list[Any], n_entities: int, stored: _Rows) -> History:
        """The same options with training rows."""
        rows: dict[str, Any] = {
            "groups": groups,
            "n_entities": n_entities,
            "code": stored.code,
            "ptr": stored.units.ptr,
            "ids": stored.units.ids,
            "units": stored.units.values,
            "time": stored.time,
            "labels": stored.labels,
        }
        return type(self)(self.column, self.decay, self.time, self.kappa, self.prior, rows)

    def add_groups(self, data: Dataset) -> History:
        """Add the rows of further households; the shares of the items do not change."""
        assert self.rows is not None
        labels = row_column(data, self.column, self).tolist()
        new = distinct_labels(labels, self.rows["groups"])
        if not new:
            return self
        groups = [*self.rows["groups"], *new]
        rows = data.take_rows(label_codes(labels, new) >= 0)
        n_entities = self.rows["n_entities"]
        added = _read_rows(self, rows, groups, n_entities)
        extended = self._with_rows(groups, n_entities, self._training.append(added))
        assert extended.rows is not None
        options = {
            **extended.get_params(deep=False),
            "rows": {**extended.rows, "shares": self._shares},
        }
        return type(self)(**options)

    def arrays(self, n_entities: int) -> tuple[TermArray, ...]:
        """One coefficient."""
        return (TermArray("coefficient", (1,), Prior.resolve(self.prior), 0.0, 1.0),)

    @cached_property
    def _training(self) -> _Rows:
        assert self.rows is not None
        rows = self.rows
        units = SparseRows(rows["ptr"], rows["ids"], rows["units"])
        return _Rows(rows["code"], units, rows["time"], rows["labels"])

    @cached_property
    def _shares(self) -> Floats:
        """Share of each entity in the units of the training rows."""
        assert self.rows is not None
        if self.rows.get("shares") is not None:  # as they were when the model was fitted
            return np.asarray(self.rows["shares"])
        units = self._training.units
        total = np.bincount(units.ids, units.values, self.rows["n_entities"])
        return np.asarray(total / total.sum())

    @cached_property
    def _totals(self) -> SparseRows:
        """Units of each household, and a row without any for rows of no household."""
        assert self.rows is not None
        training, n_groups = self._training, len(self.rows["groups"])
        size = np.int64(len(self._shares))
        group = training.code[training.units.row]
        known = group >= 0
        cell = group[known] * size + training.units.ids[known]
        cells, place = np.unique(cell, return_inverse=True)
        total: Any = np.bincount(place, training.units.values[known], len(cells))
        # The last row is that of no household: it has no cells.
        ptr = np.searchsorted(cells // size, np.append(np.arange(n_groups + 1), n_groups))
        return SparseRows(ptr, (cells % size).astype(np.int32), total)

    @cached_property
    def _table(self) -> SparseRows:
        """`weigh` of each household, with all of its rows."""
        totals = self._totals
        return SparseRows(totals.ptr, totals.ids, self.weigh(totals.values, totals.ids))

    @cached_property
    def _own(self) -> tuple[SparseRows, Ints]:
        """The entries of training rows with values of the household without the row.

        Beside them their places among the cells of the household.
        """
        training, totals, size = self._training, self._totals, np.int64(len(self._shares))
        units, code = training.units, np.maximum(training.code, 0)[training.units.row]
        cell = np.searchsorted(totals.row * size + totals.ids, code * size + units.ids)
        cell = np.minimum(cell, len(totals.ids) - 1)  # of no household: never asked for
        rest = self.weigh(totals.values[cell] - units.values, units.ids)
        ids = units.ids.astype(totals.ids.dtype)
        return SparseRows(units.ptr, ids, rest), cell - totals.ptr[code]

    def weigh(self, units: Floats, ids: Ints) -> Floats:
        """log(1 + h / (kappa pi)) of units of entities that occur in the training rows.

        Where the term adds to means, the units themselves: see `factor`.
        """
        units = np.maximum(units, 0.0)
        if self.positive:
            return np.asarray(units, dtype=np.float32)
        return np.asarray(np.log1p(units / (self.kappa * self._shares[ids])), dtype=np.float32)

    def factor(self, rows: TableRows) -> TableRows:
        """With the factors 1 / (kappa + units of the row), where the term adds to means."""
        return replace(rows, factor=1.0 / (self.kappa + rows.sums)) if self.positive else rows

    def bind(self, data: Dataset) -> BoundCells:
        """The rows of the data, those that are training rows by their place among these."""
        assert self.rows is not None
        asked = _read_rows(self, data, self.rows["groups"], self.rows["n_entities"])
        place = self._training.find(asked)
        if self.time is None:
            return _OtherRows(self, asked.code, place)
        return _EarlierRows(self, asked, place)


@dataclass(frozen=True)
class _Rows:
    """Rows by household: code (-1 for none), units, time and a number for each label."""

    code: Ints
    units: SparseRows
    time: Floats | None
    labels: Ints | None

    def append(self, other: _Rows) -> _Rows:
        """These rows, then others."""
        ends = self.units.ptr[-1] + other.units.ptr[1:]
        units = SparseRows(
            np.concatenate([self.units.ptr, ends]),
            np.concatenate([self.units.ids, other.units.ids]),
            np.concatenate([self.units.values, other.units.values]),
        )
        code = np.concatenate([self.code, other.code])
        return _Rows(code, units, _join(self.time, other.time), _join(self.labels, other.labels))

    def find(self, asked: _Rows) -> Ints:
        """Place of each of the asked rows among these rows, -1 where it is not one of them."""
        if len(asked.code) == 0 or len(self.code) == 0:
            return np.full(len(asked.code), -1)
        by_label = self.labels is not None and asked.labels is not None
        mine, theirs = (rows.identify(by_label=by_label) for rows in (self, asked))
        order = np.argsort(mine, kind="stable")
        place = np.minimum(np.searchsorted(mine, theirs, sorter=order), len(order) - 1)
        place = order[place]
        return np.where((mine[place] == theirs) & (asked.code >= 0), place, -1)

    def identify(self, *, by_label: bool) -> Ints:
        """A number for each row that other rows do not have, of its label or of its content."""
        if by_label and self.labels is not None:
            return mix_numbers(self.labels, self.code)
        values = self.units.values.astype(np.float64).view(np.int64)
        each = mix_numbers(values, self.units.ids.astype(np.int64))
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
        content = sums[self.units.ptr[1:]] - sums[self.units.ptr[:-1]]
        if self.time is not None:
            content = mix_numbers(content, self.time.view(np.int64))
        return mix_numbers(content, self.code)


def _join(mine: Any, theirs: Any) -> Any:
    """Both columns, None where either is missing."""
    return None if mine is None or theirs is None else np.concatenate([mine, theirs])


class _OtherRows(ScaledCells):
    """All rows of the household but the row itself.

    code : household of each row;  place : the training row that it is, or -1
    """

    def __init__(self, term: History, code: Ints, place: Ints) -> None:
        self.term = term
        self.place, self.table = place, term._table
        self.code = np.where(code < 0, len(self.table.ptr) - 2, code)

    def weighed(self, rows: Ints) -> TableRows:
        """The table of the household, less the units of training rows themselves."""
        cells = TableRows(self.table, self.code[rows], *self.term._own, self.place[rows])
        return self.term.factor(cells)


class _EarlierRows(ScaledCells):
    """Rows of the household that are earlier: of the training rows and of the data themselves."""

    def __init__(self, term: History, asked: _Rows, place: Ints) -> None:
        self.term = term
        training, new = term._training, np.flatnonzero(place < 0)
        assert training.time is not None
        assert asked.time is not None
        # What is predicted has a past too, unless it is that of the training rows.
        new = new[np.isfinite(asked.time[new]) & (asked.code[new] >= 0)]
        units = asked.units.take(new)
        known = term._shares[units.ids] > 0  # others have no share to compare with
        ptr = np.concatenate([[0], np.cumsum(known)])[units.ptr]
        self.units = SparseRows(
            np.concatenate([training.units.ptr, training.units.ptr[-1] + ptr[1:]]),
            np.concatenate([training.units.ids, units.ids[known]]),
            np.concatenate([training.units.values, units.values[known]]),
        )
        code = np.concatenate([training.code, asked.code[new]])
        time = np.concatenate([training.time, asked.time[new]])
        self.order = np.lexsort((time, code))
        self.code, self.time = code[self.order], time[self.order]
        latest = np.nanmax(training.time, initial=-np.inf)
        self.now = np.where(np.isnan(asked.time), latest, asked.time)
        self._find_earlier(asked.code, asked.time)

    def _find_earlier(self, code: Ints, time: Floats) -> None:
        """First and last of the sorted rows that come before each row."""
        first, end = (np.searchsorted(self.code, code, side=side) for side in ("left", "right"))
        earlier = [
            np.searchsorted(self.time[a:b], t) if a < b else 0
            for a, b, t in zip(first.tolist(), end.tolist(), time.tolist(), strict=True)
        ]
        self.first, self.last = first, first + np.where(code < 0, 0, earlier)

    def weighed(self, rows: Ints) -> TableRows:
        """Sums over earlier rows, each with its weight."""
        first, last = self.first[rows], self.last[rows]
        ptr = np.concatenate([[0], np.cumsum(last - first)])
        pair = np.repeat(np.arange(len(rows)), last - first)
        source = np.arange(ptr[-1]) - np.repeat(ptr[:-1] - first, last - first)
        weight = np.ones(len(source))
        if self.term.decay is not None:
            age = self.now[rows][pair] - self.time[source]
            weight = np.exp(-np.maximum(age, 0.0) / self.term.decay)
        weights = SparseRows(ptr, self.order[source], weight)
        total = self.units.sum_rows(weights)
        weighed = self.term.weigh(total.values, total.ids)
        return self.term.factor(TableRows.of(SparseRows(total.ptr, total.ids, weighed)))


def _read_rows(term: History, data: Dataset, groups: list[Any], n_entities: int) -> _Rows:
    """The rows of the data by household, with their units, times and labels.

    Entities beyond the first `n_entities` are new, and unknown to the history.
    """
    code = label_codes(row_column(data, term.column, term).tolist(), groups)
    time = None if term.time is None else _read_times(term, data)
    names = None
    if data.row_labels is not None:
        names = np.array([_number(label) for label in data.row_labels.tolist()], dtype=np.int64)
    units = read_units(term, data, n_entities)
    return _Rows(code, units, time, names)


def _read_times(term: History, data: Dataset) -> Floats:
    """Times as numbers, dates in days; NaN where missing."""
    assert term.time is not None
    column = row_column(data, term.time, term)
    if column.dtype.kind == "M":
        days = column.astype("datetime64[s]").astype(np.float64) / 86400.0
        return np.where(np.isnat(column), np.nan, days)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{term!r} needs numbers or dates, but the column {term.time!r} holds other values "
            f"({error})"
        ) from error


def _number(label: Any) -> int:
    """A number that stands for a label."""
    text = repr(canonical_label(label)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)
