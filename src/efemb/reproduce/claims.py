"""Claims: statements of the paper next to our results, judged by the figures alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.reproduce.study import Results
from efemb.table import Table

NAN = float("nan")
EMPTY = "–"
HOLDS, NOT, PARTLY, UNCLEAR = "holds", "does not hold", "holds in part", "inconclusive"


@dataclass(frozen=True)
class Gap:
    """Difference between the scores of two rows on the same entries, averaged over splits.

    error : standard error of the mean; splits are taken as independent, test rows as the units
    least : smallest difference over the splits
    """

    value: float
    error: float
    least: float

    @property
    def sign(self) -> int:
        """1 or -1 if the difference exceeds two standard errors, else 0."""
        return int(np.sign(self.value)) if abs(self.value) > 2 * self.error else 0


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the verdict, and the figure that supports it."""

    sentence: str
    verdict: str
    figure: str


@dataclass(frozen=True)
class Check:
    """A figure and the bound that it must reach."""

    what: str
    value: float
    at_least: float

    @property
    def met(self) -> bool:
        """Whether the bound is reached."""
        return self.value >= self.at_least


def judge_gaps(gaps: Sequence[Gap]) -> str:
    """The verdict on a claim that every difference exceeds 0 by two standard errors."""
    signs = [gap.sign for gap in gaps]
    if all(sign > 0 for sign in signs):
        return HOLDS
    if any(sign > 0 for sign in signs):
        return PARTLY
    return NOT if any(sign < 0 for sign in signs) else UNCLEAR


def format_gap(gap: Gap) -> str:
    """A difference with its standard error."""
    return ("+" if gap.value > 0 else "") + format_number(gap.value, gap.error)


def judge_count(holding: int, of: int) -> str:
    """The verdict on a claim that holds in `holding` of so many cases."""
    return HOLDS if holding == of else PARTLY if holding else NOT


def show_claims(name: str, claims: Sequence[Claim], out: Results) -> None:
    """Write claims to a file and show them on the page."""
    if not claims:
        return
    out.write(name, tabulate_claims(claims))
    out.page.paragraph("Claims of the paper, and our results:")
    for claim in claims:
        verdict = claim.verdict[0].upper() + claim.verdict[1:]
        out.page.paragraph(f"“{claim.sentence}” {verdict}: {claim.figure}")


def tabulate_claims(claims: Sequence[Claim]) -> Table:
    """One row per claim."""
    return Table(
        {
            "claim": [claim.sentence for claim in claims],
            "verdict": [claim.verdict for claim in claims],
            "figure": [claim.figure for claim in claims],
        }
    )


def tabulate_checks(checks: Sequence[Check]) -> Table:
    """One row per bound."""
    return Table(
        {
            "figure": [check.what for check in checks],
            "value": [check.value for check in checks],
            "at_least": [check.at_least for check in checks],
            "met": ["yes" if check.met else "NO" for check in checks],
        }
    )


def format_number(value: float, error: float | None = None) -> str:
    """-5.691 ± .006, as the paper prints scores."""
    if value != value:
        return EMPTY
    text = f"{value:.3f}".replace("-", "−")
    if error is None or error != error:
        return text
    return f"{text} ± {error:.3f}".replace("± 0.", "± .")


def make_table(rows: Sequence[Mapping[str, Any]]) -> Table | None:
    """A table from rows with equal keys; None if there are no rows."""
    return join_rows(rows) if rows else None


def join_rows(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table from at least one row."""
    return Table({name: [row[name] for row in rows] for name in rows[0]})
