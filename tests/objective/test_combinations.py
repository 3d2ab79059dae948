"""Value and gradient of every valid combination, by every solver, against the loop oracle.

Each combination of family, link, structure, combine, scale, binary context, intercept, priors and
zero weight runs on some context kinds; EFEMB_ALL_COMBINATIONS=1 runs it on every kind.
"""

from __future__ import annotations

import os

import pytest

from objective.build import Expected, check_solver
from oracle import cases, tiny
from oracle.cases import Case, combinations, groups

COMPLETE = bool(os.environ.get("EFEMB_ALL_COMBINATIONS"))
SHOWN = 5


def _check_all(made: list[Case], solvers: tuple[str, ...]) -> None:
    failures = []
    for case in made:
        expected = Expected(case)
        for solver in solvers:
            try:
                check_solver(expected, solver)
            except Exception as error:  # every combination gets its say before the test fails
                failures.append(f"[{case.name}] {solver}: {type(error).__name__}: {error}")
    count = len(made) * len(solvers)
    assert not failures, f"{len(failures)} of {count} failed:\n" + "\n".join(failures[:SHOWN])


@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("structure", cases.STRUCTURES)
@pytest.mark.parametrize(
    ("family", "link"), [(family, link) for family, links in cases.LINKS.items() for link in links]
)
def test_generic_solver(family: str, link: str, structure: str, combine: str) -> None:
    made = list(combinations(family, link, structure, combine, COMPLETE))
    assert made
    _check_all(made, ("generic",))


@pytest.mark.parametrize("group", groups(("linear",)), ids="-".join)
def test_rows_solver(group: tuple[str, str, str, str]) -> None:
    made = [case for case in combinations(*group, COMPLETE) if case.kind == "basket"]
    _check_all(made, ("rows",))


@pytest.mark.parametrize("structure", cases.STRUCTURES)
@pytest.mark.parametrize("family", ["gaussian", "gaussian-learned"])
def test_moments_solver(family: str, structure: str) -> None:
    made = list(combinations(family, "identity", structure, "linear", COMPLETE))
    _check_all([case for case in made if case.kind in tiny.FIXED + tiny.SUMS], ("moments",))
