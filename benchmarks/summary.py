"""The tables of the README and of the page of figures, made of the kept results."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ranking_tables
from benchmarks.cold_start import IMPORTS

BEGIN = "<!-- made by `python -m benchmarks --readme docs/figures.md` -->"
END = "<!-- end -->"
HEAD = "| task | efemb | for comparison |\n|---|---|---|"


class Figures:
    """What was measured, by scenario and name."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self._rows = {
            (content["scenario"], row["what"].strip()): row
            for content in results
            for row in content["rows"]
        }

    def _row(self, scenario: str, what: str) -> dict[str, Any]:
        if (scenario, what) not in self._rows:
            raise SystemExit(f"the results of {scenario} lack {what!r}: run it again, in full")
        return self._rows[scenario, what]

    def value(self, scenario: str, what: str) -> float:
        """The figure, the median where there are several."""
        value = self._row(scenario, what)["value"]
        return float(value["median"] if isinstance(value, dict) else value)

    def turns(self, scenario: str, what: str) -> str:
        """The median of several turns, with the least and the greatest."""
        low, high = (self._row(scenario, what)["value"][end] for end in ("low", "high"))
        return f"{self.value(scenario, what):.1f} ({low:.1f} to {high:.1f})"

    def beside(self, scenario: str, what: str, pattern: str) -> float:
        """A number in the text beside a figure, where the pattern has a #."""
        text = str(self._row(scenario, what)["beside"])
        found = re.search(pattern.replace("#", r"(-?[\d.,]*\d)"), text)
        if found is None:
            raise SystemExit(f"no {pattern!r} beside {what!r} of {scenario}: {text}")
        return float(found[1].replace(",", ""))

    def has(self, scenario: str, what: str) -> bool:
        """Whether this was measured."""
        return (scenario, what) in self._rows

    def text(self, scenario: str, what: str) -> str:
        """What stands beside a figure."""
        return str(self._row(scenario, what)["beside"])


def _trips(f: Figures) -> tuple[str, str, str]:
    slower = 1 / f.value("baskets", "K=100: ours / NumPy, time a pass")
    later = 1 / f.value("baskets", "ours / NumPy, time to NumPy's best score")
    return (
        "104,777 grocery trips x 7,840 items, p-emb K=100, every zero exact",
        f"**{f.value('baskets', 'defaults, test score'):.3f}** nats per unit, "
        f"{f.value('baskets', 'defaults, CPU-s to the best validation score'):.0f} CPU-s to the "
        f"best, {f.value('baskets', 'defaults, CPU-s of the whole fit'):.0f} in all, "
        f"{f.value('baskets', 'peak memory, reading and fitting, GB'):.1f} GB",
        f"popularity {f.value('baskets', 'popularity, test score'):.3f}; plain NumPy {slower:.1f} "
        f"times the time per pass, {later:.1f} times the time to its own best score",
    )


def _few_components(f: Figures) -> tuple[str, str, str]:
    return (
        "a pass over the same trips with K=20",
        f"{f.value('baskets', 'K=20: CPU-s a pass, ours'):.1f} CPU-s",
        f"plain NumPy {f.value('baskets', 'K=20: NumPy / ours, time a pass'):.1f} times",
    )


def _limit(f: Figures) -> tuple[str, str, str]:
    return (
        "share of OpenBLAS's own rate of matrix products (sgemm), K=100",
        f"{f.value('baskets', 'K=100: ours, % of sgemm of the same turn'):.0f}%",
        f"plain NumPy {f.value('baskets', 'K=100: NumPy, % of sgemm of the same turn'):.0f}%",
    )


def _threads(f: Figures) -> tuple[str, str, str]:
    trips = f.turns("baskets", "p-emb K=100: wall-clock speed-up of n_jobs=2")
    frames = f.turns("neurons", "simulated: wall-clock speed-up of n_jobs=2")
    short = f.turns("baskets", "ap-emb K=100: wall-clock speed-up of n_jobs=2")
    words = f.turns("text_threads", "imdb: two threads over one, wall")
    return (
        "2 threads",
        f"speed-up: trips {trips}, recordings {frames}, with the same bits; "
        f"text without locks {words}",
        f"ap-emb (short steps) {short}",
    )


def _movies(f: Figures) -> tuple[str, str, str]:
    return (
        "MovieLens-100K, p-emb K=20, mean of 3 splits",
        f"{f.value('movies', 'p-emb (paper), K=20: test'):.3f} (paper's settings), "
        f"{f.value('movies', 'PoissonEmbedding, defaults, K=20: test'):.3f} (defaults)",
        f"the paper -5.691; popularity {f.value('movies', 'popularity, test score'):.3f}",
    )


def _zebrafish(f: Figures) -> tuple[str, str, str]:
    analysis = "thunder, factor analysis K=100: error"
    return (
        "zebrafish, 8,462 voxels, g-emb c=50 K=100, leave one out",
        f"**{f.value('neurons', 'thunder, g-emb c=50 K=100: error'):.3f}** squared error, "
        f"{f.value('neurons', 'thunder, g-emb c=50 K=100: CPU-s'):.1f} CPU-s",
        f"scikit-learn's factor analysis {f.value('neurons', analysis):.3f}, "
        f"{f.beside('neurons', analysis, '# CPU-s'):.1f} CPU-s",
    )


def _huge(f: Figures) -> tuple[str, str, str]:
    what = "1,000,000 items x 2,000,000 trips, 20,000,000 lines, K=100: CPU-s of the pass"
    return (
        "1,000,000 items x 2,000,000 trips, K=100, one pass, 1,024 sampled zeros per batch",
        f"{f.value('huge', what):.0f} CPU-s, {f.value('huge', 'peak memory, GB'):.1f} GB",
        "",
    )


def _text(f: Figures) -> tuple[str, str, str]:
    likelihood, likeness = "imdb: CBOW LL a word", "imdb: CBOW WordSim-353 rho"
    return (
        "22.7 M words of film reviews, CBOW with 5 negatives, K=100, one epoch",
        f"{f.value('text', likelihood):.3f} nats per held-out word, WordSim-353 "
        f"{f.value('text', likeness):.2f}, "
        f"{f.value('text', SPEED_OF_WORDS):.1f} times gensim's speed",
        f"gensim {f.beside('text', likelihood, 'gensim #'):.3f}, "
        f"{f.beside('text', likeness, 'gensim #'):.2f}",
    )


SPEED_OF_WORDS = "imdb: CBOW n=5, speed over gensim's"


def _questions(f: Figures) -> tuple[str, str, str]:
    many = "1,000 queries among 1,000,000 x 100, top 10: CPU-s"
    one = "efemb similar, 8,000 items: CPU-s"
    return (
        "top 10 of 1,000 items among 1,000,000 vectors; `efemb similar` among 8,000, start to end",
        f"{f.value('queries', many):.1f} CPU-s; {f.value('cold_start', one):.1f} CPU-s",
        f"{100 * f.value('queries', 'share of the sgemm rate'):.0f}% of sgemm",
    )


def _start(f: Figures) -> tuple[str, str, str]:
    first = "first fit, PoissonEmbedding: CPU-s"
    return (
        "`import efemb`; import and a small fit in a new process (kernels already compiled)",
        f"{f.value('cold_start', 'import efemb: CPU-s'):.2f} CPU-s; "
        f"{f.value('cold_start', first):.1f} CPU-s",
        f"importing scikit-learn and numba {f.value('cold_start', IMPORTS + ': CPU-s'):.1f}",
    )


LINES: tuple[Callable[[Figures], tuple[str, str, str]], ...] = (
    _trips, _few_components, _limit, _threads, _movies, _zebrafish, _huge, _text,
    _questions, _start,
)  # fmt: skip


def summary(results: list[dict[str, Any]]) -> str:
    """The whole table: a scenario that is missing would be a line that is lost."""
    figures = Figures(results)
    return "\n".join([HEAD, *("| " + " | ".join(line(figures)) + " |" for line in LINES)])


@dataclass(frozen=True)
class Block:
    """A table between two marks of a document.

    scenario : what it is made of, "all" for every scenario;  make : its text
    """

    begin: str
    end: str
    scenario: str
    make: Callable[[list[dict[str, Any]]], str]

    @classmethod
    def of_ranking(cls, name: str, make: Callable[[Figures], str]) -> Block:
        """A table of `ranking`, marked by its name."""
        begin = f"<!-- {name}, made by `python -m benchmarks ranking --readme FILE` -->"
        return cls(
            begin, f"<!-- end of {name} -->", "ranking", lambda results: make(Figures(results))
        )

    def put_into(self, text: str, results: list[dict[str, Any]], path: Path) -> str:
        """The document with the table of these results."""
        before, _, rest = text.partition(self.begin)
        _, closed, after = rest.partition(self.end)
        if not closed:
            raise SystemExit(f"{path} has no {self.end} after {self.begin}")
        return f"{before}{self.begin}\n{self.make(results)}\n{self.end}{after}"


BLOCKS = (
    Block(BEGIN, END, "all", summary),
    Block.of_ranking("ranking in short", ranking_tables.in_short),
    Block.of_ranking("ranking in full", ranking_tables.in_full),
    Block.of_ranking("duels", ranking_tables.duels),
    Block.of_ranking("short contexts", ranking_tables.short_contexts),
    Block.of_ranking("every size", ranking_tables.every_size),
)


def write_into(path: Path, results: list[dict[str, Any]], scenarios: tuple[str, ...]) -> None:
    """Put tables between the marks of a document: those of some scenarios, or all of them."""
    text = path.read_text(encoding="utf-8")
    asked = [
        block
        for block in BLOCKS
        if block.begin in text and ("all" in scenarios or block.scenario in scenarios)
    ]
    if not asked:
        places = ", ".join(block.begin for block in BLOCKS)
        raise SystemExit(f"{path} has no place for a table of {', '.join(scenarios)}: {places}")
    for block in asked:
        text = block.put_into(text, results, path)
    path.write_text(text, encoding="utf-8")
