"""A shop, its trips with the dirt of real files, a fitted model, and a way to run commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import efemb
from efemb.cli import main

ITEMS = (
    "greek yogurt",
    "plain yogurt",
    "whole milk",
    "white metal lantern",
    "cream lantern",
    "lager beer",
    "chips",
    "salsa",
    "E=mc2 mug",
    "rye bread",
)
DIRT = "990,,3\n991,chips,-2\n992,salsa,x\n"


class Ran(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def execute(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as caught:
            main([str(one) for one in arguments])
        code = caught.value.code
        told = capsys.readouterr()
        return Ran(code if isinstance(code, int) else 0, told.out, told.err)

    return execute


def baskets() -> efemb.Dataset:
    data = efemb.simulation.simulate(
        "p-emb", n_rows=300, n_entities=len(ITEMS), n_components=2, seed=1
    ).data
    return efemb.Dataset(data.values, entities=efemb.Vocabulary(ITEMS, counts=range(10, 20)))


def table(header: Sequence[str], data: efemb.Dataset) -> str:
    dense = data.values.toarray() if data.is_sparse else data.values
    lines = [f"{t},{ITEMS[n]},{dense[t, n]:g}" for t, n in zip(*np.nonzero(dense), strict=True)]
    return "\n".join([",".join(header), *lines]) + "\n"


@pytest.fixture(scope="session")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "trips.csv"
    path.write_text(table(("InvoiceNo", "Description", "Quantity"), baskets()) + DIRT, "utf-8")
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "model"
    efemb.PoissonEmbedding(2, random_state=0).fit(baskets()).save(folder)
    return folder


@pytest.fixture(scope="session")
def positive_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "positive"
    efemb.AdditivePoissonEmbedding(2, random_state=0).fit(baskets()).save(folder)
    return folder


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    words = np.array(["the", "cat", "dog", "sat", "ran", "home", "on", "mat"])
    lines = [" ".join(words[rng.integers(0, len(words), 12)]) for _ in range(60)]
    path = tmp_path_factory.mktemp("text") / "corpus.txt"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A folder in which nobody can write, not even root: it is a file."""
    path = tmp_path / "file"
    path.write_text("not a folder")
    return path
