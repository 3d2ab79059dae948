"""Claims: sentences of the paper beside what was found, judged by the figures and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from efemb.reproduce.study import Results
from efemb.reproduce.tables import Gap, Row, gap, number, row_of, sizes_of
from efemb.table import Table

HOLDS, NOT, PARTLY, UNCLEAR = "holds", "does not hold", "holds in part", "not told apart"


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


def verdict_of(gaps: Sequence[Gap]) -> str:
    """Whether every difference is above 0: by more than two standard errors, in part, or not."""
    signs = [one.sign for one in gaps]
    if all(sign > 0 for sign in signs):
        return HOLDS
    if any(sign > 0 for sign in signs):
        return PARTLY
    return NOT if any(sign < 0 for sign in signs) else UNCLEAR


def gap_text(one: Gap) -> str:
    """A difference with its standard error."""
    return ("+" if one.value > 0 else "") + number(one.value, one.error)


def above(rows: Sequence[Row], name: str, other: str, sentence: str) -> list[Claim]:
    """A claim that one model scores above another, for every K that both have."""
    pairs = [(k, row_of(rows, name, k), row_of(rows, other, k)) for k in sizes_of(rows)]
    gaps = {k: gap(a, b) for k, a, b in pairs if a is not None and b is not None}
    if not gaps:
        return []
    text = "; ".join(f"K = {k}: {gap_text(one)}" for k, one in gaps.items())
    return [Claim(sentence, verdict_of(list(gaps.values())), f"{name} less {other}, {text}.")]


def verdict_of_count(holding: int, of: int) -> str:
    """Whether something holds in all cases, in some, or in none."""
    return HOLDS if holding == of else PARTLY if holding else NOT


def show(name: str, claims: Sequence[Claim], out: Results) -> None:
    """Write claims, and show them."""
    if not claims:
        return
    out.write(name, claims_table(claims))
    out.page.paragraph("What the paper says, and what was found here:")
    for one in claims:
        verdict = one.verdict[0].upper() + one.verdict[1:]
        out.page.paragraph(f"“{one.sentence}” {verdict}: {one.figure}")


def claims_table(claims: Sequence[Claim]) -> Table:
    """One row a claim."""
    return Table(
        {
            "claim": [one.sentence for one in claims],
            "verdict": [one.verdict for one in claims],
            "figure": [one.figure for one in claims],
        }
    )


def checks_table(checks: Sequence[Check]) -> Table:
    """One row a bound."""
    return Table(
        {
            "figure": [one.what for one in checks],
            "value": [one.value for one in checks],
            "at_least": [one.at_least for one in checks],
            "met": ["yes" if one.met else "NO" for one in checks],
        }
    )
