"""The samples that ship with the package are those that the simulators draw."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from datasets import make_samples
from efemb.cli import main
from efemb.datasets.download import find_here
from efemb.datasets.sample import ENTRIES


def test_they_are_small_and_whole() -> None:
    files = sorted(make_samples.FOLDER.iterdir())
    assert sum(path.stat().st_size for path in files) < 32_000
    for data, _ in ENTRIES:
        there = find_here(data, None, [])
        assert there is not None
        assert there.place == "package"


@pytest.mark.slow
def test_they_are_drawn_by_the_simulators() -> None:
    for name, draw in (("trips.csv.gz", "draw_trips"), ("text.txt.gz", "draw_text")):
        packed = (make_samples.FOLDER / name).read_bytes()
        assert gzip.decompress(packed).decode() == getattr(make_samples, draw)()
    with np.load(make_samples.FOLDER / "recording.npz") as kept:
        for name, array in make_samples.draw_recording().items():
            # A step of rounding may differ where the last bit of a product does.
            np.testing.assert_allclose(kept[name], array, atol=1)


def _baskets(path: Path) -> efemb.Dataset:
    return efemb.read_baskets(path, basket="basket", item="item", count="count")


def _recording(path: Path) -> efemb.Dataset:
    return efemb.read_matrix(path, positions=path.with_name("x-positions.csv"))


@pytest.mark.parametrize(
    ("name", "out", "read"),
    [
        ("sample-trips", "x.csv", _baskets),
        ("sample_trips", "x.tsv.gz", _baskets),
        ("sample-recording", "x.csv", _recording),
        ("sample-text", "x.txt", efemb.read_text),
    ],
)
def test_what_is_written_is_read_back(name: str, out: str, read: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as done:
        main(["datasets", name, "--out", str(tmp_path / out)])
    assert not done.value.code
    loaded: Any = efemb.datasets.catalog.fetch(name, progress=False)
    again = read(tmp_path / out)
    if isinstance(loaded, efemb.Corpus):
        np.testing.assert_array_equal(again.tokens, loaded.tokens)
        return
    assert again.entities == loaded.entities
    if loaded.is_sparse:
        np.testing.assert_array_equal(again.values.toarray(), loaded.values.toarray())
    else:
        np.testing.assert_allclose(again.values, loaded.values, rtol=1e-6)
        np.testing.assert_array_equal(again.positions, loaded.positions)


@pytest.mark.parametrize(
    ("name", "out", "reason"),
    [
        ("sample-text", "x.csv", "the data are text, so the name must end in .txt"),
        ("sample-trips", "x.txt", "the data are a table"),
        ("sample-trips", "x.parquet", "must end in .csv or .tsv or .txt"),
    ],
)
def test_bad_targets(
    name: str, out: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main(["datasets", name, "--out", str(tmp_path / out)])
    assert done.value.code == 2
    assert reason in capsys.readouterr().err


def test_the_samples_hold_what_they_show() -> None:
    trips = efemb.datasets.fetch_sample_trips(progress=False)
    train, test = trips.split(test=0.1, seed=0)
    model = efemb.PoissonEmbedding(4, random_state=0).fit(train)
    popular = efemb.baselines.Popularity().fit(train)
    assert model.score(test) > popular.score(test) + 0.05
