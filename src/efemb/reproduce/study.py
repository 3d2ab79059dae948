"""Study: a part of the paper's empirical section, as jobs and as a report on what they found."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from efemb.files import complete_or_absent
from efemb.reproduce.runner import Job, Outcome
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.plots.page import Page


@dataclass(frozen=True)
class Options:
    """What the user asked for.

    quick : about a minute on two cores: fewer models, rows and passes; says nothing about the paper
    seeds : splits and first vectors;  n_jobs : threads;  data_home : folder of data sets
    """

    quick: bool = False
    seeds: tuple[int, ...] = (0, 1, 2)
    n_jobs: int = -1
    data_home: Path | None = None

    def used_seeds(self) -> tuple[int, ...]:
        """One seed is enough for a quick look."""
        return self.seeds[:1] if self.quick else self.seeds


class Study(ABC):
    """Each study is a file with a subclass of this; `STUDIES` lists them."""

    name: str
    title: str
    minutes: float  # of the full study on two cores
    side_by_side: bool = False  # small fits: one thread each, several at a time

    @abstractmethod
    def jobs(self, options: Options) -> Sequence[Job]:
        """The pieces, in the order in which they run."""

    @abstractmethod
    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """Tables and pictures of what was found."""


@dataclass(frozen=True)
class Results:
    """A folder of tables and pictures, and the page that shows them."""

    folder: Path
    page: Page
    files: list[Path] = field(default_factory=list)

    def write(self, name: str, table: Table) -> None:
        """Write a table as CSV and JSON."""
        with complete_or_absent(self.folder / f"{name}.csv") as stream:
            stream.write(as_csv(table).encode())
        with complete_or_absent(self.folder / f"{name}.json") as stream:
            rows = [{key: _json(value) for key, value in row.items()} for row in table]
            stream.write(json.dumps(rows, indent=1).encode())
        self.files.append(self.folder / f"{name}.csv")

    def table(self, name: str, table: Table, caption: str = "") -> None:
        """Write a table, and show it."""
        self.write(name, table)
        self.page.table(table, caption)

    def figure(self, name: str, picture: Any, caption: str = "") -> None:
        """Write Axes or a Figure as PNG, and show it."""
        figure = getattr(picture, "figure", picture)
        path = self.folder / f"{name}.png"
        with complete_or_absent(path) as stream:
            figure.savefig(stream, format="png", dpi=200, facecolor="white", bbox_inches="tight")
        self.files.append(path)
        self.page.figure(path, caption)


def as_csv(table: Table) -> str:
    """A table as comma-separated values."""
    import csv
    from io import StringIO

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(list(row.values()) for row in table)
    return text.getvalue()


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value
