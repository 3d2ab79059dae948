"""Inputs that once ended in a bare error, and a few new ones for every target of `make fuzz`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.mutations import damage
from fuzz.targets import clear, targets

SEEDS = sorted((Path(__file__).parent / "seeds").iterdir())


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_what_failed_once(path: Path, tmp_path: Path) -> None:
    name, _, content = path.read_bytes().partition(b"\n")
    targets()[name.decode()].check(content, clear(tmp_path / "case"))


@pytest.mark.parametrize("name", targets())
def test_a_valid_input_is_used(name: str, tmp_path: Path) -> None:
    """The seed itself is not refused, so that damage begins from something that works."""
    target = targets()[name]
    assert target.run(target.seed(), clear(tmp_path / "case")) in (None, 0)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_few_damaged_inputs(data: st.DataObject, tmp_path: Path) -> None:
    target = targets()[data.draw(st.sampled_from(sorted(targets())))]
    target.check(data.draw(damage(target.seed())), clear(tmp_path / "case"))
