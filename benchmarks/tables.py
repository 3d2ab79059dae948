"""The kept results as Markdown: one table a scenario, targets and verdicts beside the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.reporting import RESULTS, Spread, plain, target

HEAD = ("figure", "value", "beside", "target", "")
VERDICT = {True: "met", False: "**missed**", None: ""}


def read_results(folder: Path = RESULTS, *, quick: bool = False) -> list[dict[str, Any]]:
    """Contents of the result files, full or quick ones, by the names of the scenarios."""
    paths = [
        path for path in sorted(folder.glob("*.json")) if path.stem.endswith("-quick") == quick
    ]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def markdown(results: list[dict[str, Any]]) -> str:
    """A heading, the machine and a table for each scenario."""
    if not results:
        return "No results yet: run `python -m benchmarks` first."
    return "\n\n".join(_scenario(one) for one in results)


def _scenario(content: dict[str, Any]) -> str:
    machine = content["machine"]
    about = f"Python {machine['python']}, NumPy {machine['numpy']}, {machine['cores']} cores"
    if "efemb" in machine:
        about = f"efemb {machine['efemb']}, {about}"
    if "when" in machine:
        about += f"; {machine['when']}, revision {machine['revision']}"
    lines = [_line(HEAD), "|---|---:|---|---|---|"]
    lines += [_line(_cells(row)) for row in content["rows"]]
    return f"### {content['scenario']}\n\n{about}\n\n" + "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    value = row["value"]
    shown = plain(Spread(**value) if isinstance(value, dict) else value)
    wanted = target(row["at_least"], row["at_most"])
    beside = "" if row["beside"] is None else plain(row["beside"])
    return row["what"].strip(), shown, beside, wanted, VERDICT[row["met"]]


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
