"""Text in shards of documents, and recordings as sums of Gram matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.shards import fit, prepare_recording, prepare_text
from shards.lines import checksum

pytestmark = pytest.mark.slow


def documents(n: int = 400, seed: int = 0) -> list[list[str]]:
    """Documents of five subjects with twenty words each."""
    rng = np.random.default_rng(seed)
    subjects = rng.integers(5, size=n)
    return [[f"w{20 * s + int(k)}" for k in rng.zipf(1.5, 30) % 20] for s in subjects]


def test_shards_of_text_learn_what_one_text_teaches(tmp_path: Path) -> None:
    store = prepare_text(documents(), tmp_path, n_shards=8, min_count=1, held_out=0.1)
    assert store.n_rows + store.test.n_rows == 400
    train, test = (
        efemb.read_text(
            [part.shard(i).document(j) for i in range(part.n_shards) for j in range(n_of(part, i))],
            vocabulary=store.vocabulary,
        )
        for part in (store, store.test)
    )
    scores = {}
    for n_replicas in (1, 4):
        model = efemb.BernoulliTextEmbedding(4, random_state=0)
        scores[n_replicas] = fit(model, store, n_replicas=n_replicas).score(test)
        again = efemb.BernoulliTextEmbedding(4, random_state=0, n_jobs=2)
        fit(again, store, n_replicas=n_replicas, rounds_per_pass=None)
        assert checksum(again) == checksum(model)
    whole = efemb.BernoulliTextEmbedding(4, random_state=0, deterministic=True).fit(train)
    assert min(scores.values()) > whole.score(test) - 0.05


def n_of(store: Any, shard: int) -> int:
    number: int = store.shards[shard].n_rows
    return number


def test_text_does_not_depend_on_files(tmp_path: Path) -> None:
    lines = [" ".join(words) for words in documents(60)]
    (tmp_path / "a.txt").write_text("\n".join(lines[:20]) + "\n")
    (tmp_path / "b.txt").write_text("\n".join(lines[20:]) + "\n")
    options: dict[str, Any] = {"n_shards": 3, "min_count": 1}
    stores = [
        prepare_text(lines, tmp_path / "1", **options),
        prepare_text(str(tmp_path / "*.txt"), tmp_path / "2", **options),
        prepare_text([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "3", **options),
    ]
    assert len({store.checksum for store in stores}) == 1
    with pytest.raises(efemb.ParameterError, match="already"):
        prepare_text(lines, tmp_path / "1", **options)
    with pytest.raises(efemb.DataError, match="too few"):
        prepare_text(lines[:3], tmp_path / "4", **options)
    with pytest.raises(efemb.ParameterError, match="store of rows"):
        fit(efemb.PoissonEmbedding(2), stores[0])
    with pytest.raises(efemb.ParameterError, match="several shards"):
        fit(efemb.SkipGram(2), stores[0], n_replicas=2)


def recording(n_rows: int = 600, n_cells: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    positions = rng.random((n_cells, 2))
    near = np.exp(-8 * ((positions[:, None] - positions[None, :4]) ** 2).sum(axis=-1))
    X = rng.normal(size=(n_rows, 4)) @ near.T + 0.3 * rng.normal(size=(n_rows, n_cells)) + 1.0
    return X, positions


@pytest.mark.parametrize("center", [True, False])
def test_a_recording_in_shards_is_fitted_as_one_in_memory(tmp_path: Path, center: bool) -> None:
    X, positions = recording()
    np.save(tmp_path / "X.npy", X)
    store = prepare_recording(
        tmp_path / "X.npy", tmp_path / "store", n_shards=5, positions=positions
    )
    options: dict[str, Any] = {"context": efemb.Neighbors(6), "center": center, "random_state": 0}
    options |= {"dtype": "float64", "early_stopping": False}
    apart = fit(efemb.GaussianEmbedding(3, **options), store)
    whole = efemb.GaussianEmbedding(3, **options).fit(efemb.Dataset(X, positions=positions))
    assert apart.n_iter_ == whole.n_iter_
    products = [m.parameters_.rho @ m.parameters_.alpha.T for m in (apart, whole)]
    assert_allclose(products[0], products[1], rtol=0, atol=1e-10)
    assert apart.score(X) == pytest.approx(whole.score(X), abs=1e-10)


def test_rows_of_a_recording_are_held_out(tmp_path: Path) -> None:
    X, positions = recording()
    store = prepare_recording(X, tmp_path / "a", n_shards=5, positions=positions)
    options: dict[str, Any] = {"context": efemb.Neighbors(6), "random_state": 0}
    apart = fit(efemb.GaussianEmbedding(3, **options), store, n_replicas=3)
    whole = efemb.GaussianEmbedding(3, **options).fit(efemb.Dataset(X, positions=positions))
    assert apart.report_["held_out"]
    assert apart.score(X) == pytest.approx(whole.score(X), abs=0.02)
    lagged = efemb.GaussianEmbedding(2, context=efemb.Lagged([1]))
    with pytest.raises(efemb.ParameterError, match="other rows"):
        fit(lagged, store)
    batches = efemb.GaussianEmbedding(3, **options, batch_size=64)
    for fit_batches in (lambda: fit(batches, store), lambda: batches.fit(X)):
        with pytest.raises(efemb.ParameterError, match=r"batch_size=64.*works on all rows.*'auto'"):
            fit_batches()
    correlated = prepare_recording(X, tmp_path / "b", n_shards=5)
    with pytest.raises(efemb.ParameterError, match="positions="):
        fit(efemb.GaussianEmbedding(3, **options), correlated)
    few = prepare_recording(X[:60], tmp_path / "c", n_shards=5, positions=positions)
    with pytest.raises(efemb.DataError, match="fewer than 20 rows"):
        fit(efemb.GaussianEmbedding(3, **options), few)
