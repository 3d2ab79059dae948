"""The Python examples of the documents run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import efemb

ROOT = Path(__file__).parent.parent
BLOCKS = [
    (name, block)
    for name in ("README.md", "CONTRIBUTING.md")
    for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
]


def write_trips(path: Path) -> None:
    """A table of trips, one line for each product of each trip."""
    data = efemb.simulate("p-emb", n_rows=400, n_entities=15, n_components=2, seed=0).data
    dense = data.values.toarray() if data.is_sparse else data.values
    rows, products = np.nonzero(dense)
    lines = [f"{t},product {n},{dense[t, n]:g}" for t, n in zip(rows, products, strict=True)]
    path.write_text("\n".join(["trip,product,quantity", *lines]), encoding="utf-8")


def test_there_are_examples() -> None:
    assert {name for name, _ in BLOCKS} == {"README.md", "CONTRIBUTING.md"}


@pytest.mark.parametrize("block", [block for _, block in BLOCKS], ids=range(len(BLOCKS)))
def test_example_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trips(tmp_path / "trips.csv")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "example", "exec"), {})
