"""Results: rows of a table, printed as they come and kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import efemb

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("gensim", "hpfrec", "implicit", "scikit-learn")


@dataclass(frozen=True)
class Settings:
    """What the command line asked for."""

    quick: bool = False
    data: Path | None = None
    repeats: int = 3
    seeds: tuple[int, ...] = (0, 1, 2)
    reference: Path | None = None
    large: bool = False
    only: tuple[str, ...] = ()
    work: Path | None = None


@dataclass(frozen=True)
class Spread:
    """Median of repeated figures and how far they lie apart."""

    median: float
    low: float
    high: float
    n: int = 1

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Summarize repeats."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def __str__(self) -> str:
        if self.n == 1:
            return number(self.median)
        return f"{number(self.median)} [{number(self.low)} .. {number(self.high)}] of {self.n}"


def number(value: float) -> str:
    """Four significant digits without exponents for everyday sizes."""
    if value == 0 or not np.isfinite(value):
        return str(value)
    digits = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{min(digits, 6)}f}"


class Report:
    """Rows of a table, printed as they come, and a JSON file in the end.

    Targets hold for the full data only; a quick run shows figures without a verdict.
    """

    def __init__(self, scenario: str, settings: Settings) -> None:
        self.scenario, self.settings = scenario, settings
        self.rows: list[dict[str, Any]] = []
        size = "quick, simulated stand-ins" if settings.quick else "full"
        print(f"\n== {scenario} ({size})", flush=True)

    def add(
        self,
        what: str,
        value: float | Spread | str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        beside: float | str | None = None,
    ) -> None:
        """One figure, with what it should be and what it is compared with."""
        figure = value.median if isinstance(value, Spread) else value
        met: bool | None = None
        if not self.settings.quick and isinstance(figure, float | int):
            low = -np.inf if at_least is None else at_least
            high = np.inf if at_most is None else at_most
            met = bool(low <= figure <= high) if (at_least, at_most) != (None, None) else None
        row = {"what": what, "value": value, "at_least": at_least, "at_most": at_most}
        kept = asdict(value) if isinstance(value, Spread) else value
        if isinstance(kept, float) and not np.isfinite(kept):
            kept = str(kept)  # JSON has no infinity
        self.rows.append({**row, "value": kept, "beside": beside, "met": met})
        print(_line(self.rows[-1], plain(value)), flush=True)

    def save(self) -> Path:
        """Write the rows to benchmarks/results/."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.scenario}{'-quick' if self.settings.quick else ''}.json"
        content = {"scenario": self.scenario, "machine": machine(), "rows": self.rows}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return path


def machine() -> dict[str, Any]:
    """Where, when and with what was measured."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "revision": _revision(),
        "efemb": efemb.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "rivals": {name: version for name in PACKAGES if (version := _version(name))},
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }


def _revision() -> str:
    """The commit, with a + where files have changed since; nothing outside a repository."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(
            command, check=False, cwd=RESULTS.parent, capture_output=True, text=True
        )
    except OSError:
        return ""
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def plain(value: object) -> str:
    """A number in four digits, anything else as it is."""
    return number(value) if isinstance(value, float | int) else str(value)


def target(at_least: float | None, at_most: float | None) -> str:
    """What a figure should be."""
    signs = ((">=", at_least), ("<=", at_most))
    return ", ".join(f"{sign} {number(bound)}" for sign, bound in signs if bound is not None)


def _line(row: dict[str, Any], value: str) -> str:
    beside, notes = row["beside"], []
    if beside is not None:
        notes.append(f"beside {plain(beside)}")
    if wanted := target(row["at_least"], row["at_most"]):
        verdict = {True: "ok", False: "MISS", None: "full run only"}[row["met"]]
        notes.append(f"target {wanted}: {verdict}")
    return f"{row['what']:<62} {value:>12}  {'; '.join(notes)}".rstrip()
