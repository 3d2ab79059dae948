"""`make bench-compare`: its jobs run on a package of any layout, and worse figures are noticed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks.compare_revisions import (
    PEAK,
    ROOT,
    fit_in_turn,
    report,
    run_jobs,
    run_script,
    write_trips,
)
from benchmarks.data import Counts
from benchmarks.revision_jobs import JOBS, SCORE, WHOLE_FIT

import efemb
from benchmarks import compare_revisions, revision_jobs


@pytest.mark.slow
def test_every_job_runs() -> None:
    figures = run_jobs(ROOT / "src", list(JOBS), 0.01, "--turns", "1")
    assert set(figures) == {*JOBS, PEAK}
    assert all(value > 0 for value in figures.values())


def test_only_public_names_are_used() -> None:
    """Modules move between revisions."""
    source = Path(revision_jobs.__file__).read_text("utf-8")
    assert not re.findall(r"(?:from|import) efemb\.\w+", source)
    assert not re.findall(r"import_module|\._\w+\(", source)


@pytest.mark.slow
def test_a_base_of_another_layout_runs(tmp_path: Path) -> None:
    package = tmp_path / "src" / "efemb"
    shutil.copytree(ROOT / "src" / "efemb", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.move(package / "table.py", package / "tables.py")
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(r"\befemb\.table\b", "efemb.tables", text), "utf-8")
    figures = run_jobs(tmp_path / "src", ["import efemb", "efemb similar"], 0.01, "--turns", "1")
    assert set(figures) == {"import efemb", "efemb similar", PEAK}


@pytest.mark.parametrize(
    ("now", "worse"),
    [([1.0, 1.0, 1.0], 0), ([1.1, 1.1, 1.1], 1), ([1.1, 1.1, 0.9], 0), ([1.02, 1.02, 1.02], 0)],
    ids=["same", "slower", "not in every turn", "less than three percent"],
)
def test_slower_in_every_turn_is_worse(now: list[float], worse: int) -> None:
    figures = {"a": ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]), "b": ([1.0, 1.0, 1.0], now)}
    assert report(figures, "base") == worse


@pytest.mark.slow
def test_the_recommended_model_is_fitted_to_the_trips_of_the_file(tmp_path: Path) -> None:
    counts = some_trips()
    write_trips(str(tmp_path / "trips.npz"), counts)
    answer = run_script(ROOT / "src", "--trips", str(tmp_path / "trips.npz"), "--score")
    model = efemb.BasketEmbedding(100, random_state=0)
    model.fit(counts.train, validation=counts.validation)
    assert answer[SCORE] == pytest.approx(model.score(counts.test))
    assert answer[WHOLE_FIT] > 0


def test_whole_fits_take_turns_after_both_have_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def run(source: Path, *options: str) -> dict[str, float]:
        calls.append((source.name, len(np.load(options[1])["row"]), "--score" in options))
        return {WHOLE_FIT: float(len(calls)), SCORE: -float(len(calls))}

    monkeypatch.setattr(compare_revisions, "run_script", run)
    counts = some_trips()
    figures, scores = fit_in_turn((Path("old"), Path("new")), counts, 2)
    assert [name for name, _, _ in calls] == ["old", "new"] * 3
    assert [scored for _, _, scored in calls] == [False, False, True, True, False, False]
    n_lines = counts.train.nnz + counts.validation.nnz + counts.test.nnz
    assert [lines for _, lines, _ in calls[2:]] == [n_lines] * 4
    assert figures == {WHOLE_FIT: ([3.0, 5.0], [4.0, 6.0])}
    assert scores == (-3.0, -4.0)


def some_trips() -> Counts:
    trips = efemb.simulation.simulate_baskets(
        n_rows=260, n_entities=20, n_lines=1300, n_topics=2, seed=0
    ).values
    return Counts(trips[:200], trips[200:230], trips[230:])
