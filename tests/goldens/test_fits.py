"""Fits give the bits they gave; on another machine, where bits may differ, the same numbers.

A refactoring leaves them alone. Where numbers were meant to change, `make goldens` keeps the new
ones, and the changelog says so.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from goldens import fits, records
from goldens.make import FITS_FILE

GOLDEN = json.loads(FITS_FILE.read_text("utf-8"))
# On another machine float32 rounds otherwise, and a few steps make the most of it: with the code
# for the oldest x86 CPU, arrays were up to 1.3e-4 of their norm apart, scores up to 1.4e-6.
OF_ARRAYS, OF_SCORES = 1e-3, 1e-5


@pytest.fixture(scope="module")
def same_machine() -> bool:
    return bool(records.machine() == GOLDEN["machine"])


def test_every_fit_has_its_golden() -> None:
    assert set(GOLDEN["fits"]) == set(fits.FITS)
    assert set(GOLDEN["simulations"]) == set(fits.SIMULATIONS)


def check_arrays(arrays: dict[str, Any], golden: dict[str, Any], *, bits: bool) -> None:
    assert set(arrays) == set(golden)
    for name, array in arrays.items():
        wanted = golden[name]
        assert (array["shape"], array["dtype"]) == (wanted["shape"], wanted["dtype"]), name
        for summary in ("sum", "norm", "first"):
            close = pytest.approx(wanted[summary], rel=0, abs=OF_ARRAYS * wanted["norm"])
            assert array[summary] == close, f"{summary} of {name}"
        if bits:
            assert array["sha256"] == wanted["sha256"], f"{name} is close, but not the same bits"


@pytest.mark.slow
@pytest.mark.parametrize("name", fits.FITS)
def test_fit_is_unchanged(name: str, same_machine: bool) -> None:
    fitted, golden = records.record_fit(name), GOLDEN["fits"][name]
    check_arrays(fitted["arrays"], golden["arrays"], bits=same_machine)
    assert fitted["score"] == pytest.approx(golden["score"], rel=OF_SCORES)
    if same_machine:
        assert (fitted["score"], fitted["n_iter"]) == (golden["score"], golden["n_iter"])


@pytest.mark.parametrize("name", fits.SIMULATIONS)
def test_simulation_is_unchanged(name: str, same_machine: bool) -> None:
    drawn = records.record_arrays(fits.simulated_arrays(name))
    check_arrays(drawn, GOLDEN["simulations"][name], bits=same_machine)


@pytest.mark.parametrize("summary", ["sum", "norm", "first", "sha256"])
def test_a_changed_array_is_noticed(summary: str) -> None:
    array = {"shape": [2], "dtype": "float32", "sha256": "a", "sum": 1.0, "norm": 1.0, "first": 0.5}
    changed = {**array, summary: "b" if summary == "sha256" else array[summary] + 2e-3}
    check_arrays({"rho": array}, {"rho": array}, bits=True)
    with pytest.raises(AssertionError):
        check_arrays({"rho": array}, {"rho": changed}, bits=True)
