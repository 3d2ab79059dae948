"""The kept results as Markdown: one table a scenario, targets and verdicts beside the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.reporting import RESULTS, Spread, number

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
    if "repeats" in content:
        about += f", repeats: {content['repeats']}"
    lines = [_line(HEAD), "|---|---:|---|---|---|"]
    lines += [_line(_cells(row)) for row in content["rows"]]
    return f"### {content['scenario']}\n\n{about}\n\n" + "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    value = row["value"]
    shown = str(Spread(**value)) if isinstance(value, dict) else _plain(value)
    target = _target(row["at_least"], row["at_most"])
    beside = "" if row["beside"] is None else _plain(row["beside"])
    return row["what"].strip(), shown, beside, target, VERDICT[row["met"]]


def _target(at_least: float | None, at_most: float | None) -> str:
    signs = (("≥", at_least), ("≤", at_most))
    return ", ".join(f"{sign} {number(bound)}" for sign, bound in signs if bound is not None)


def _plain(value: Any) -> str:
    return number(value) if isinstance(value, float | int) else str(value)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
