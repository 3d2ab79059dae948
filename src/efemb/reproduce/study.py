"""Study: part of the paper's empirical section as jobs and a report; `reproduce` runs them."""

from __future__ import annotations

import csv
import json
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from efemb._files import check_writable, complete_or_absent, expand_home
from efemb.engine.threads import n_threads
from efemb.errors import ParameterError, suggest
from efemb.plots.page import Page
from efemb.reproduce.jobs import Job, Outcome, Runner
from efemb.table import Table


@dataclass(frozen=True)
class Options:
    """Options of a run.

    quick : about a minute on two cores: fewer models, rows and passes; only a test of the program
    seeds : of splits and initial vectors;  n_jobs : threads;  data_home : folder of data sets
    literal : the paper's inference and split to the letter, beside ours, where a study has both
    """

    quick: bool = False
    seeds: tuple[int, ...] = (0, 1, 2)
    n_jobs: int = -1
    data_home: Path | None = None
    literal: bool = False

    def used_seeds(self) -> tuple[int, ...]:
        """A quick run uses a single seed."""
        return self.seeds[:1] if self.quick else self.seeds


class Study(ABC):
    """Part of the empirical section; each subclass is a module, and `STUDIES` lists them."""

    name: str
    title: str
    minutes: float  # of the full study on two cores
    has_literal: bool = False  # whether `Options.literal` applies to it
    side_by_side: bool = False  # small fits: one thread each, several at a time

    @abstractmethod
    def jobs(self, options: Options) -> Sequence[Job]:
        """The steps, in the order in which they run."""

    @abstractmethod
    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """Write and show tables and figures of the results."""


@dataclass(frozen=True)
class Results:
    """A folder of tables and figures, and the page that shows them."""

    folder: Path
    page: Page
    files: list[Path] = field(default_factory=list)

    def write(self, name: str, table: Table) -> None:
        """Write a table as CSV and JSON."""
        with complete_or_absent(self.folder / f"{name}.csv") as stream:
            stream.write(format_csv(table).encode())
        with complete_or_absent(self.folder / f"{name}.json") as stream:
            rows = [{key: _to_json(value) for key, value in row.items()} for row in table]
            stream.write(json.dumps(rows, indent=1).encode())
        self.files.append(self.folder / f"{name}.csv")

    def table(self, name: str, table: Table, caption: str = "") -> None:
        """Write a table and show it."""
        self.write(name, table)
        self.page.table(table, caption)

    def figure(self, name: str, picture: Any, caption: str = "") -> None:
        """Write Axes or a Figure as PNG and show it."""
        figure = getattr(picture, "figure", picture)
        path = self.folder / f"{name}.png"
        with complete_or_absent(path) as stream:
            figure.savefig(stream, format="png", dpi=200, facecolor="white", bbox_inches="tight")
        self.files.append(path)
        self.page.figure(path, caption)


def format_csv(table: Table) -> str:
    """A table as comma-separated values."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(list(row.values()) for row in table)
    return text.getvalue()


def _to_json(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


# -- running studies ------------------------------------------------------------------------------


# Each is a module `<name>_study` of this package that holds its `Study` as `STUDY`.
STUDIES = ("movies", "baskets", "neurons", "text")


def reproduce(
    names: Iterable[str],
    out: str | os.PathLike[str],
    options: Options | None = None,
    *,
    progress: bool = False,
) -> Path:
    """Run studies and write their tables (CSV, JSON), figures (PNG) and a report (HTML).

    Results of finished jobs are stored in the folder `jobs` of `out`: an interrupted run resumes
    where it stopped.

    Parameters
    ----------
    names : studies, any of `STUDIES`
    out : folder, created if necessary
    options : Options, optional
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    path of the report: in the folder of the study, or in `out` if there are several
    """
    options = Options() if options is None else options
    studies = [find_study(name) for name in names]
    if not studies:
        raise ParameterError(f"specify at least one study: {', '.join(STUDIES)}")
    silent = [study.name for study in studies if options.literal and not study.has_literal]
    if silent:
        raise ParameterError(f"literal=True is for movies, not for {', '.join(silent)}")
    folder = expand_home(out)
    check_writable(folder)
    page = Page("Exponential family embeddings: the study", lead=_write_lead(studies, options))
    with _show_progress(progress) as announce, warnings.catch_warnings():
        _ignore_early_stops()
        runner = Runner(folder / "jobs", announce)
        for study in studies:
            _run_study(study, runner, options, Results(folder / study.name, page))
    home = folder if len(studies) > 1 else folder / studies[0].name
    return page.write(home / "report.html")


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise ParameterError(f"there is no study {name!r}; {suggest(name, STUDIES)}")
    study: Study = import_module(f"efemb.reproduce.{name}_study").STUDY
    return study


def _run_study(study: Study, runner: Runner, options: Options, results: Results) -> None:
    at_once = n_threads(options.n_jobs) if study.side_by_side else 1
    outcomes: Sequence[Outcome] = runner.run(study.jobs(options), at_once)
    results.page.section(study.title)
    study.report(outcomes, options, results)


def _write_lead(studies: Sequence[Study], options: Options) -> str:
    names = ", ".join(study.name for study in studies)
    text = f"Studies: {names}. Seeds: {', '.join(map(str, options.used_seeds()))}."
    if options.quick:
        text += (
            " This is a quick run with fewer rows, models and passes: it shows that everything "
            "works, but its figures are not those of the full study."
        )
    return text


def _ignore_early_stops() -> None:
    """The number of passes is part of the paper's settings: no warnings about it."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)


@contextmanager
def _show_progress(shown: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn())
    console = Console(stderr=True)
    hidden = not (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=None)

        def announce(text: str, done: int, total: int) -> None:
            bar.update(task, description=text, completed=done, total=total)

        yield announce
