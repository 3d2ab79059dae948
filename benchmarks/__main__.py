"""`python -m benchmarks`: run scenarios and print their figures beside the targets.

python -m benchmarks --quick                        every scenario, small, without any data
python -m benchmarks movies baskets --data FOLDER   full scenarios on real data
python -m benchmarks --table                        what was measured last, as Markdown
python -m benchmarks --readme docs/figures.md       the same in short, into a page
python -m benchmarks ranking --readme FILE          only the tables of one scenario, into a page
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.data import MissingDataError
from benchmarks.harness import Settings, one_thread, stopwatch
from benchmarks.summary import write_into
from benchmarks.tables import markdown, read_results

SCENARIOS = (
    "limits",
    "cold_start",
    "movies",
    "baskets",
    "instacart",
    "ranking",
    "households",
    "prices",
    "new_items",
    "neurons",
    "huge",
    "text",
    "text_threads",
    "skip_gram",
    "downstream",
    "groups",
    "language",
    "queries",
    "explorer",
    "storage",
    "scaling",
    "shards",
    "out_of_core",
)


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed, memory and scores of efemb."
    )
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="small, on simulated stand-ins")
    parser.add_argument("--data", type=Path, help="folder of the data (default: EFEMB_DATA)")
    parser.add_argument("--repeats", type=int, help="repeats of each timing (3, quick: 1)")
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[0, 1, 2],
        help="splits of the movies, seeds of texts and sampled zeros",
    )
    parser.add_argument("--large", action="store_true", help="movies with K=100 as well")
    parser.add_argument("--reference", type=Path, help="another basket script to compare with")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        help="words in names, or names of tasks",
    )
    parser.add_argument(
        "--work", type=Path, metavar="FOLDER", help="ranking: keep finished fits here, and resume"
    )
    parser.add_argument("--table", action="store_true", help="print the kept results, run nothing")
    parser.add_argument("--readme", type=Path, metavar="FILE", help="write the tables into FILE")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Run what was asked for; 1 if data were missing."""
    found = _arguments(given)
    if found.table:
        print(markdown(read_results(quick=found.quick)))
        return 0
    asked = [found.scenario] if isinstance(found.scenario, str) else found.scenario
    if found.readme is not None:
        write_into(found.readme, read_results(), tuple(asked))
        return 0
    repeats = found.repeats or (1 if found.quick else 3)
    names = SCENARIOS if "all" in asked else tuple(asked)
    settings = Settings(
        found.quick,
        found.data,
        repeats,
        tuple(found.seeds),
        found.reference,
        found.large,
        tuple(found.only),
        found.work,
    )
    missing = False
    for name in names:
        try:
            with one_thread(), stopwatch() as timing:
                report = importlib.import_module(f"benchmarks.{name}").run(settings)
        except MissingDataError as error:
            print(f"{name}: {error}", file=sys.stderr)
            missing = True
            continue
        kept = "not kept, since --only"
        if not settings.only:  # else a part would take the place of the whole
            path = report.save()
            kept = f"kept in {path.relative_to(path.parents[2])}"
        print(f"-- {timing.wall:.0f} s; {kept}", flush=True)
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
