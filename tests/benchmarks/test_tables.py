"""Kept results as Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.__main__ import SCENARIOS, main
from benchmarks.summary import BEGIN, BLOCKS, END, HEAD, LINES, Figures, summary, write_into
from benchmarks.tables import markdown, read_results

from benchmarks import ranking_tables
from benchmarks import summary as made

MACHINE = {
    "python": "3.12.1",
    "numpy": "2.0",
    "processor": "x86_64",
    "cores": 2,
    "when": "2026-11-17",
    "revision": "abc+",
}


def row(what: str, value: Any, **more: Any) -> dict[str, Any]:
    empty = {"at_least": None, "at_most": None, "beside": None, "met": None}
    return {"what": what, "value": value, **empty, **more}


ROWS = [
    row("time", {"median": 2.0, "low": 1.0, "high": 3.0, "n": 3}, at_most=2.5, met=True),
    row("    a | b", 0.5, at_least=1.0, beside=4.0, met=False),
    row("rival", "not installed: pip install x"),
]


def test_one_table_a_scenario() -> None:
    text = markdown([{"scenario": "movies", "machine": MACHINE, "rows": ROWS}])
    lines = text.splitlines()
    assert lines[0] == "### movies"
    assert lines[2] == "Python 3.12.1, NumPy 2.0, 2 cores; 2026-11-17, revision abc+"
    assert lines[6] == "| time | 2.000 [1.000 .. 3.000] of 3 |  | <= 2.500 | met |"
    assert lines[7] == "| a \\| b | 0.5000 | 4.000 | >= 1.000 | **missed** |"
    assert lines[8] == "| rival | not installed: pip install x |  |  |  |"
    assert len(lines) == 9


def test_quick_and_full_results_are_apart(tmp_path: Path) -> None:
    for name in ("b", "a", "a-quick"):
        content = {"scenario": name, "machine": MACHINE, "rows": []}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert [one["scenario"] for one in read_results(tmp_path)] == ["a", "b"]
    assert [one["scenario"] for one in read_results(tmp_path, quick=True)] == ["a-quick"]


def test_nothing_measured_yet(tmp_path: Path) -> None:
    assert "run" in markdown(read_results(tmp_path))


def test_table_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--table"]) == 0
    assert "==" not in capsys.readouterr().out


def test_every_scenario_is_there() -> None:
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    for name in SCENARIOS:
        assert "def run(settings: Settings) -> Report:" in (folder / f"{name}.py").read_text(
            "utf-8"
        )


def figures(scenario: str, *rows: dict[str, Any]) -> dict[str, Any]:
    return {"scenario": scenario, "machine": MACHINE, "rows": list(rows)}


HUGE = figures(
    "huge",
    row("1,000,000 items x 2,000,000 trips, 20,000,000 lines, K=100: CPU-s of the pass", 68.4),
    row("    peak memory, GB", 4.79),
)
ZEBRAFISH = figures(
    "neurons",
    row("thunder, factor analysis K=100: error", 0.1101, beside="1.1 CPU-s, known 0.110"),
    row("thunder, g-emb c=50 K=100: error", 0.0822),
    row("thunder, g-emb c=50 K=100: CPU-s", {"median": 5.6, "low": 5.0, "high": 6.0}),
)


@pytest.fixture
def two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "LINES", (made._zebrafish, made._huge))


@pytest.mark.usefixtures("two_lines")
def test_summary_has_the_figures() -> None:
    lines = summary([HUGE, ZEBRAFISH]).splitlines()
    assert len(lines) == 4
    assert (
        "0.082** squared error, 5.6 CPU-s | scikit-learn's factor analysis 0.110, 1.1" in lines[2]
    )
    assert lines[3].endswith("| 68 CPU-s, 4.8 GB |  |")


@pytest.mark.usefixtures("two_lines")
def test_summary_refuses_results_in_which_a_figure_is_missing() -> None:
    with pytest.raises(SystemExit, match="results of huge lack 'peak memory, GB': run it again"):
        summary([ZEBRAFISH, figures("huge", HUGE["rows"][0])])
    with pytest.raises(SystemExit, match="results of huge lack"):
        summary([ZEBRAFISH])


@pytest.mark.usefixtures("two_lines")
def test_summary_goes_between_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    both = [HUGE, ZEBRAFISH]
    write_into(path, both, ("all",))
    assert path.read_text("utf-8") == f"before\n{BEGIN}\n{summary(both)}\n{END}\nafter\n"
    with pytest.raises(SystemExit, match="no place for a table of ranking"):
        write_into(path, both, ("ranking",))
    path.write_text(f"{BEGIN} no end", encoding="utf-8")
    with pytest.raises(SystemExit, match="no <!-- end -->"):
        write_into(path, both, ("all",))


def test_the_page_of_figures_has_a_place_for_the_summary() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/figures.md").read_text("utf-8")
    table = text.partition(BEGIN)[2].partition(END)[0]
    assert table.strip().startswith(HEAD)
    assert len(table.strip().splitlines()) == 2 + len(LINES)


def rank_rows(contest: str, model: str, recall: float, gap: float) -> list[dict[str, Any]]:
    beside = f"error 0.0100, to the best {gap:.4f} (error 0.0040), n 9"
    names = ("recall@10", "MRR@100", "log-likelihood", "calibrated")
    sets = ("test", "all", "context 1", "context 3", "context 10")
    rows = [
        row(f"{contest}, {asked}: {model}: {name}", recall - (place > 1), beside=beside)
        for asked in sets
        for place, name in enumerate(names)
    ]
    cost = row(f"{contest}: {model}: CPU-s of the fit", 12.3, beside="best of 3, peak 1.00 GB")
    return [cost, *rows]


def test_tables_of_ranking(tmp_path: Path) -> None:
    rows = rank_rows("Complete Journey", "EASE", 0.25, 0.0)
    rows += rank_rows("Complete Journey", "popularity", 0.125, -0.125)
    rows += rank_rows("MovieLens-100K", "EASE", 0.5, -0.006)
    results = [figures("ranking", *rows)]
    path = tmp_path / "page.md"
    blocks = [block for block in BLOCKS if block.scenario == "ranking"]
    places = [f"{block.begin}\nold\n{block.end}" for block in blocks]
    path.write_text("\n".join(places), encoding="utf-8")
    write_into(path, results, ("ranking",))
    lines = path.read_text("utf-8").splitlines()
    assert "old" not in lines
    assert lines[3] == "| popularity | .125 / .125 / -.875 | – | – | 12 |"
    both = "**.250** / **.250** / **-.750** | **.500** / **.500** / **-.500**"
    assert lines[4] == f"| EASE | {both} | – | 12 |"
    assert (
        "| Complete Journey, popularity | .125 ± .004 | .125 ± .004 | -.875 ± .004 | "
        "-.875 ± .004 | .125 | .125 | -.875 | 12 | best of 3 |"
    ) in lines
    assert lines.index("#### Complete Journey") < lines.index("#### MovieLens-100K")
    four = " | ".join(["**.250** / **-.750**"] * 4)
    assert f"| Complete Journey, EASE | {four} |" in lines


def test_tables_of_differences() -> None:
    ours = "efemb BasketEmbedding"
    rows = rank_rows("Groceries", ours, 0.5, 0.0)
    asked = "Groceries, test: efemb BasketEmbedding - "
    rows += [
        row(f"{asked}EASE: recall@10", -0.0123, beside="error 0.0040"),
        row(f"{asked}efemb Blend: recall@10", 0.0019, beside="error 0.0010, the best"),
    ]
    for size in ("context 1", "context 3", "context 10", "test"):
        asked = f"Groceries, {size}: {ours} - "
        rows.append(row(f"{asked}popularity: log-likelihood", 0.25, beside="error 0.0100"))
        rows.append(row(f"{asked}item-kNN (cosine): recall@10", -0.015, beside="error 0.0080"))
    results = Figures([figures("ranking", *rows)])
    lines = ranking_tables.duels(results).splitlines()
    assert "| Groceries, efemb BasketEmbedding | **-.012 ± .004** | – | – | – |" in lines
    assert lines[-1] == "| Groceries, efemb BasketEmbedding | +.002 ± .001 (Blend) | – | – | – |"
    four = " | ".join(["+.250 ± .010 / -.015 ± .008"] * 4)
    assert ranking_tables.every_size(results).splitlines()[-1] == (
        f"| Groceries, efemb BasketEmbedding | {four} |"
    )


def test_pages_have_places_for_the_tables_of_ranking() -> None:
    root = Path(__file__).resolve().parents[2]
    pages = "".join((root / name).read_text("utf-8") for name in ("README.md", "docs/figures.md"))
    places = [pages.count(block.begin) for block in BLOCKS if block.scenario == "ranking"]
    assert places == [1] * 5
