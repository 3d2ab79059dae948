"""One pass over a source: cells become codes and counts, unusable lines are noted."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb.data.readers.badlines import BadLines
from efemb.data.readers.interning import MISSING, CountTable, LabelTable
from efemb.data.readers.progress import progress_bar
from efemb.data.readers.source import Batch, Source
from efemb.data.readers.sums import PairSums

# float64 counts exactly up to here.
LARGEST_COUNT = 2.0**53
# What databases, NumPy, pandas and Excel write where there is no label; as one label, all of their
# lines would be one basket. "None" and "NA" may be names.
NO_LABEL = ("NULL", r"\N", "NaN", "nan", "<NA>", "#N/A")


def _label_table() -> LabelTable:
    return LabelTable(NO_LABEL)


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read."""

    basket: str
    item: str
    count: str | None
    user: str | None

    @property
    def roles(self) -> list[str]:
        """The columns that are asked for."""
        return [one.name for one in fields(self) if getattr(self, one.name) is not None]

    @property
    def wanted(self) -> list[str]:
        """Their names."""
        return [getattr(self, role) for role in self.roles]

    @property
    def numeric(self) -> list[bool]:
        """Which of them hold numbers."""
        return [role == "count" for role in self.roles]


@dataclass
class Collected:
    """Everything that is kept of a source."""

    baskets: LabelTable = field(default_factory=_label_table)
    items: LabelTable = field(default_factory=_label_table)
    users: LabelTable = field(default_factory=_label_table)
    user_of: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    sums: PairSums = field(default_factory=PairSums)
    report: dict[str, Any] = field(default_factory=dict)

    def user_labels(self, baskets: NDArray[np.int64]) -> NDArray[Any] | None:
        """User of each of the given baskets, or None if there are no users."""
        if not self.users.labels:
            return None
        labels = np.empty(len(self.users.labels), dtype=object)
        labels[:] = self.users.labels
        return labels[self.user_of[baskets]]

    def assign_users(
        self, baskets: NDArray[np.int64], users: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Give each basket its first user; True where a line names another one."""
        grown = len(self.baskets.labels) - len(self.user_of)
        self.user_of = np.append(self.user_of, np.full(grown, MISSING, np.int64))
        new = self.user_of[baskets] == MISSING
        # The last of several assignments to one place stays: backwards, so that it is the first.
        self.user_of[baskets[new][::-1]] = users[new][::-1]
        return np.not_equal(self.user_of[baskets], users)


def collect(source: Source, columns: Columns, bad: BadLines, progress: bool) -> Collected:
    """Read the whole source; what cannot be used is left out and noted in `bad`."""
    kept = Collected()
    numbers = CountTable()
    lines = 0
    with progress_bar(f"reading {source.name}", source.size, progress) as advance:
        for batch in source.batches(columns.wanted, columns.numeric, bad, advance):
            lines += len(batch.places)
            _add(kept, batch, columns, numbers, bad)
    lines += bad.left_out
    kept.report = {
        "source": source.name,
        "lines": lines,
        "lines_dropped": lines - kept.sums.lines,
        "bad": bad.totals,
        "baskets": len(kept.baskets.labels),
        "items": len(kept.items.labels),
    }
    return kept


def _add(
    kept: Collected, batch: Batch, columns: Columns, numbers: CountTable, bad: BadLines
) -> None:
    cells = dict(zip(columns.roles, batch.columns, strict=True))
    counts = np.ones(len(batch.places))
    usable = np.ones(len(batch.places), dtype=bool)
    if columns.count is not None:
        counts = numbers.numbers(cells["count"])
        usable &= _check_counts(counts, columns.count, batch, bad)
    tables = {"basket": kept.baskets, "item": kept.items, "user": kept.users}
    codes = []
    for role, table in tables.items():
        if role in cells:
            codes.append(table.codes(cells[role]))
            missing = codes[-1] == MISSING
            bad.add(f"column {getattr(columns, role)!r} is missing", batch.places[missing])
            usable &= ~missing
    baskets, items = codes[0][usable], codes[1][usable]
    counts = counts[usable]
    if columns.user is not None:
        other = kept.assign_users(baskets, codes[2][usable])
        bad.add(f"column {columns.user!r} differs within a basket", batch.places[usable][other])
        baskets, items, counts = baskets[~other], items[~other], counts[~other]
    kept.sums.add(baskets, items, counts)


def _check_counts(
    counts: NDArray[np.float64], name: str, batch: Batch, bad: BadLines
) -> NDArray[np.bool_]:
    """True where a count can be used."""
    usable = (counts > 0) & (counts <= LARGEST_COUNT)
    if not usable.all():
        problems = {
            "is missing or not a number": np.isnan(counts),
            "is infinite": np.isinf(counts),
            "is not positive": np.isfinite(counts) & (counts <= 0),
            "is above 2**53, where counts stop being exact": np.isfinite(counts)
            & (counts > LARGEST_COUNT),
        }
        for problem, found in problems.items():
            bad.add(f"column {name!r} {problem}", batch.places[found])
    return usable
