"""Value and gradient of every valid combination, by every solver, against the loop oracle.

Each combination of family, link, structure, combine, scale, binary context, intercept, priors and
zero weight runs on some context kinds; EFEMB_ALL_COMBINATIONS=1 runs it on every kind.
"""

from __future__ import annotations

import os

import pytest

from model.objective.build import Expected, check_solver, solver_rule
from oracle import cases
from oracle.cases import combinations

COMPLETE = bool(os.environ.get("EFEMB_ALL_COMBINATIONS"))
SHOWN = 5


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("structure", cases.STRUCTURES)
@pytest.mark.parametrize(
    ("family", "link"), [(family, link) for family, links in cases.LINKS.items() for link in links]
)
def test_objective(family: str, link: str, structure: str, combine: str) -> None:
    failures = []
    n_checked = 0
    for case in combinations(family, link, structure, combine, COMPLETE):
        expected = Expected(case)
        for solver in ("generic", "rows", "moments"):
            if solver_rule(case, solver) == "never":
                continue
            n_checked += 1
            try:
                check_solver(expected, solver)
            except Exception as error:  # every combination gets its say before the test fails
                failures.append(f"[{case.name}] {solver}: {type(error).__name__}: {error}")
    assert n_checked
    assert not failures, f"{len(failures)} of {n_checked} failed:\n" + "\n".join(failures[:SHOWN])
