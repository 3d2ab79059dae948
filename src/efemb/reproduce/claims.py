"""Claims: sentences of the paper next to what was found, judged by the figures alone."""

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
    """Mean over splits of the score of a row less that of another, on the same entries.

    error : of the mean; splits count as independent, the entries of a test row as one draw
    least : smallest of the splits' differences
    """

    value: float
    error: float
    least: float

    @property
    def sign(self) -> int:
        """1 or -1 where the difference is more than two standard errors, else 0."""
        return int(np.sign(self.value)) if abs(self.value) > 2 * self.error else 0


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the verdict, and the figure it rests on."""

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
        """Whether it does."""
        return self.value >= self.at_least


def judge_gaps(gaps: Sequence[Gap]) -> str:
    """Whether every difference is above 0: by more than two standard errors, in part, or not."""
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
    """Whether something holds in all cases, in some, or in none."""
    return HOLDS if holding == of else PARTLY if holding else NOT


def show_claims(name: str, claims: Sequence[Claim], out: Results) -> None:
    """Write claims, and show them."""
    if not claims:
        return
    out.write(name, tabulate_claims(claims))
    out.page.paragraph("What the paper says, and what was found here:")
    for claim in claims:
        verdict = claim.verdict[0].upper() + claim.verdict[1:]
        out.page.paragraph(f"“{claim.sentence}” {verdict}: {claim.figure}")


def tabulate_claims(claims: Sequence[Claim]) -> Table:
    """One row a claim."""
    return Table(
        {
            "claim": [claim.sentence for claim in claims],
            "verdict": [claim.verdict for claim in claims],
            "figure": [claim.figure for claim in claims],
        }
    )


def tabulate_checks(checks: Sequence[Check]) -> Table:
    """One row a bound."""
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
    """A table from rows with the same names; None if there is no row."""
    if not rows:
        return None
    return Table({name: [row[name] for row in rows] for name in rows[0]})
