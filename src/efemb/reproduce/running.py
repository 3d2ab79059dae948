"""Running studies: jobs, then a folder of tables, pictures and one page."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from efemb.engine.blocks import n_threads
from efemb.errors import ParameterError, suggest
from efemb.files import check_writable, expanded
from efemb.reproduce.runner import Outcome, Runner
from efemb.reproduce.study import Options, Results, Study

# Each is a module of this package with a class `Study...` under the name `STUDY`.
STUDIES = ("movies", "baskets", "neurons", "text")


def reproduce(
    names: Iterable[str],
    out: str | os.PathLike[str],
    options: Options | None = None,
    *,
    progress: bool = False,
) -> Path:
    """Run studies and write their tables (CSV, JSON), pictures (PNG) and a report (HTML).

    Results of finished jobs are kept in the folder `jobs` of `out`: an interrupted run goes on
    where it was.

    Parameters
    ----------
    names : studies, any of `STUDIES`
    out : folder, made if it is not there
    options : Options, optional
    progress : bool
        Show a progress bar.

    Returns
    -------
    path of the report: in the folder of the study, or of all if there are several
    """
    options = Options() if options is None else options
    studies = [study(name) for name in names]
    if not studies:
        raise ParameterError(f"name at least one study: {', '.join(STUDIES)}")
    from efemb.plots.page import Page

    folder = expanded(out)
    check_writable(folder)
    page = Page("Exponential family embeddings: the study", lead=_lead(studies, options))
    with _bar(progress) as announce, warnings.catch_warnings():
        _ignore_early_stops()
        runner = Runner(folder / "jobs", announce)
        for one in studies:
            _one(one, runner, options, Results(folder / one.name, page))
    home = folder if len(studies) > 1 else folder / studies[0].name
    return page.write(home / "report.html")


def study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise ParameterError(f"there is no study {name!r}; {suggest(name, STUDIES)}")
    found: Study = import_module(f"efemb.reproduce.{name}").STUDY
    return found


def _one(one: Study, runner: Runner, options: Options, results: Results) -> None:
    at_once = n_threads(options.n_jobs) if one.side_by_side else 1
    outcomes: Sequence[Outcome] = runner.run(one.jobs(options), at_once)
    results.page.section(one.title)
    one.report(outcomes, options, results)


def _lead(studies: Sequence[Study], options: Options) -> str:
    names = ", ".join(one.name for one in studies)
    text = f"Studies: {names}. Seeds: {', '.join(map(str, options.used_seeds()))}."
    if options.quick:
        text += (
            " This is a quick run on fewer rows, models and passes: it shows that everything "
            "works, and its figures are not those of the full study."
        )
    return text


def _ignore_early_stops() -> None:
    """The paper's numbers of passes are part of its settings."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)


@contextmanager
def _bar(shown: bool) -> Iterator[Callable[[str, int, int], None] | None]:
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
