"""Statistics of shards add up to those of the whole, which plain loops give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import efemb
from efemb.engine.initial import initial_parameters
from efemb.engine.statistics import Statistics, ValueMoments, has_outweighing_entry
from efemb.model.space import ParameterSpace
from engine import models

SHARDS = (slice(0, 7), slice(7, 12), slice(12, 30))


def counts() -> Any:
    X = np.random.default_rng(0).poisson(0.8, (30, 6)).astype(float)
    X[:, 0] += 1  # no row is empty
    return X


def gaps() -> Any:
    rng = np.random.default_rng(1)
    X = rng.normal(3.0, 2.0, (30, 6))
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 5] = np.nan  # never observed
    return X


def datasets(values: Any) -> tuple[efemb.Dataset, list[efemb.Dataset]]:
    return efemb.Dataset(values), [efemb.Dataset(values[rows]) for rows in SHARDS]


def same(left: Any, right: Any) -> None:
    """Equal, array by array, up to the order of a sum."""
    for name, value in vars(left).items():
        other = getattr(right, name)
        if value is None:
            assert other is None
        else:
            assert_allclose(value, other, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "values", [counts(), gaps(), sparse.csr_array(counts()), gaps().reshape(30, 3, 2)]
)
def test_moments_of_values(values: Any) -> None:
    whole, parts = datasets(values)
    moments = ValueMoments.of(whole)
    same(sum((ValueMoments.of(part) for part in parts[1:]), ValueMoments.of(parts[0])), moments)
    dense = np.asarray(values.toarray() if sparse.issparse(values) else values)
    dense = dense.reshape(30, whole.n_entities, -1)
    for n, d in np.ndindex(dense.shape[1:]):
        seen = [x for x in dense[:, n, d] if not np.isnan(x)]
        assert moments.observed[n, d] == len(seen)
        assert moments.mean[n, d] == pytest.approx(sum(seen) / max(len(seen), 1))
        assert moments.mean_square[n, d] == pytest.approx(
            sum(x * x for x in seen) / max(len(seen), 1)
        )
    assert moments.largest == np.nanmax(np.abs(dense))


def test_an_entry_that_outweighs_its_row_does_so_in_its_shard() -> None:
    values = counts()
    assert not has_outweighing_entry(efemb.Dataset(values))
    values[13, 2] = 1e7
    whole, parts = datasets(values)
    assert has_outweighing_entry(whole)
    assert [has_outweighing_entry(part) for part in parts] == [False, False, True]


CONTEXTS: dict[str, tuple[Any, Any]] = {
    "baskets": (efemb.Basket(), counts()),
    "items": (efemb.Basket("items"), sparse.csr_array(counts())),
    "sums": (efemb.Basket("none"), counts()),
    "graph": (efemb.Graph(np.ones((6, 6)) - np.eye(6)), gaps()),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_statistics_of_rows(name: str) -> None:
    context, values = CONTEXTS[name]
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 30)
    whole, parts = datasets(values)
    measured = Statistics.of(context.bind(whole), weight)
    shards = [
        Statistics.of(context.bind(part), weight[rows])
        for part, rows in zip(parts, SHARDS, strict=True)
    ]
    same(shards[0] + shards[1] + shards[2], measured)
    dense = values.toarray() if sparse.issparse(values) else values
    for n in range(6):
        pairs = [(w, x) for w, x in zip(weight, dense[:, n], strict=True) if not np.isnan(x)]
        mass = sum(w for w, _ in pairs)
        assert measured.mean[n] == pytest.approx(sum(w * x for w, x in pairs) / (mass or 1.0))
    if name == "graph":
        assert measured.popularity is None
        return
    assert measured.popularity is not None
    assert measured.popularity.tolist() == [int((dense[:, n] > 0).sum()) for n in range(6)]
    sizes = {"baskets": np.ones(30), "sums": dense.sum(axis=1)}
    sizes["items"] = dense.sum(axis=1) / (dense > 0).sum(axis=1)
    assert measured.context_size == pytest.approx(np.average(sizes[name], weights=weight))


@pytest.mark.parametrize("name", ["p-emb", "ap-emb", "b-emb"])
def test_parameters_start_from_statistics_alone(name: str) -> None:
    spec = models.spec(name)
    values = models.counts(name, 30, 6)
    whole, parts = datasets(values)
    shards = [Statistics.of(spec.context.bind(part), np.ones(part.n_rows)) for part in parts]
    space = ParameterSpace(spec, 6, 1, 1, models.K)
    starts = [
        initial_parameters(space, statistics, np.random.default_rng(3))
        for statistics in (
            Statistics.of(spec.context.bind(whole), np.ones(30)),
            shards[0] + shards[1] + shards[2],
        )
    ]
    for left, right in zip(*(start.arrays() for start in starts), strict=True):
        assert_allclose(left, right, rtol=1e-12)


def test_words_keep_the_counts_of_the_whole_text() -> None:
    text = efemb.Corpus([0, 1, 1, 2, 0, 1], [0, 4, 6], ["a", "b", "c"])
    bound = efemb.Window(1).bind(text)
    statistics = Statistics.of(bound, np.ones(6))
    both = statistics + statistics
    assert both.popularity is statistics.popularity
    assert_allclose(both.mean, np.array([2, 3, 1]) / 6)
