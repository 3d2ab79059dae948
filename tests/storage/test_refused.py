"""Models that could not be loaded again raise an error when they are saved, or earlier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import efemb


def model(seed: int = 0) -> efemb.fitted.FittedEmbedding:
    truth = efemb.simulation.simulate(
        "p-emb", n_rows=9, n_entities=4, n_components=2, seed=seed, sweeps=1
    )
    return efemb.fitted.FittedEmbedding(
        truth.parameters, truth.spec, vocabulary=efemb.Vocabulary("abcd")
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    """Neither labels of another number nor arrays of other shapes; the old model stays."""
    folder = tmp_path / "model"
    model().save(folder)
    before, found = contents(folder), model()
    one_short = found.parameters.alpha[:-1]
    for change, what in (
        ({"vocabulary": efemb.Vocabulary("ab")}, "labels"),
        ({"positions": np.zeros((2, 3))}, "positions"),
        ({"parameters": replace(found.parameters, alpha=one_short)}, "rho and alpha"),
        ({"history": ["text"]}, "history"),
    ):
        with pytest.raises(efemb.DataError, match=what):
            replace(found, **change).save(folder)
    assert contents(folder) == before


@pytest.mark.parametrize("labels", [(17, "17"), ("17", 17.0), (1.5, "1.5")])
def test_a_number_and_its_text_never_get_as_far_as_a_model(labels: Any, tmp_path: Path) -> None:
    """A folder with both would not load."""
    counts = np.random.default_rng(0).poisson(1.0, (20, 3))
    for read in (
        lambda: efemb.Vocabulary([*labels, "x"]),
        lambda: efemb.Dataset(counts, entities=[*labels, "x"]),
        lambda: efemb.Dataset(pd.DataFrame(counts, columns=[*labels, "x"])),
    ):
        with pytest.raises(efemb.DataError, match="a number and its text are the same label"):
            read()
    mixed = pd.DataFrame({"basket": [1, 1, 2, 2, 2], "item": [labels[0], "x", "x", "y", labels[1]]})
    data = efemb.read_baskets(mixed, basket="basket", item="item")
    truth = efemb.simulation.simulate("p-emb", n_rows=9, n_entities=3, n_components=2, sweeps=1)
    found = efemb.fitted.FittedEmbedding(truth.parameters, truth.spec, vocabulary=data.entities)
    found.save(tmp_path / "model")
    assert efemb.load(tmp_path / "model").vocabulary == data.entities


@pytest.mark.parametrize("name", [".DS_Store", "Thumbs.db", "desktop.ini"])
def test_what_systems_leave_in_folders_is_in_nobodys_way(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for _ in range(2):
        (folder / name).write_bytes(b"icons")
        model().save(folder)
        assert efemb.load(folder).n_entities == 4
