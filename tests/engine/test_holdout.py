"""Hold-outs: what is kept for validation is neither zero, target nor context of training."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import efemb
from engine.tasks import PRESETS, Array, held_out
from estimators.samples import baskets, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_value_of_a_held_out_entry_does_not_touch_training(preset: str, make: Any) -> None:
    train, entries = held_out(baskets())
    # The scores' order decides which iteration is kept, so only the last one is compared.
    kept: list[list[Any]] = []
    for values in (entries, np.where(entries > 0, entries + 7, 0.0)):
        seen: list[Any] = []
        model = PRESETS[preset](
            2,
            random_state=0,
            max_iter=15,
            n_iter_no_change=100,
            callbacks=[lambda progress, seen=seen: seen.append(progress.parameters())],
        )
        model.fit(make(train), validation=make(values))
        kept.append(seen)
    for one, two in zip(*kept, strict=True):
        for first, second in zip(one.arrays(), two.arrays(), strict=True):
            assert first.tobytes() == second.tobytes()


def test_a_masked_entry_is_not_a_zero_either() -> None:
    train, entries = held_out(baskets())
    options: dict[str, Any] = {"random_state": 0, "max_iter": 15, "n_iter_no_change": 100}
    masked = efemb.PoissonEmbedding(2, **options).fit(train, validation=entries)
    zeros = efemb.PoissonEmbedding(2, **options).fit(train, validation=baskets(seed=5))
    assert np.abs(masked.embedding_ - zeros.embedding_).max() > 1e-4


@pytest.mark.slow
def test_the_own_hold_out_leaves_every_entry_a_context() -> None:
    """Of 16 rows of two, two entries are held out; with some seeds both would be of one row."""
    X = np.array([[2, 1], [3, 3], [4, 1], [1, 2]] * 4)
    for seed in range(60, 130):
        model = efemb.PoissonEmbedding(1, random_state=seed, max_iter=2)
        model.fit(X, sample_weight=np.ones(len(X)))
        assert np.isfinite(model.history_[-1]["validation"])


def test_an_emptied_training_row_keeps_its_entries_masked() -> None:
    """A row whose entries are all held out is dropped from both."""
    train, entries = held_out(baskets())
    entries[3] = train[3] + entries[3]
    train[3] = 0.0
    options: dict[str, Any] = {"random_state": 0, "max_iter": 10, "dtype": "float64"}
    whole = efemb.PoissonEmbedding(2, **options).fit(train, validation=entries)
    without = efemb.PoissonEmbedding(2, **options)
    without.fit(np.delete(train, 3, axis=0), validation=np.delete(entries, 3, axis=0))
    assert_allclose(whole.embedding_, without.embedding_, rtol=1e-10)


def best_score(model: Any) -> float:
    return max(one["validation"] for one in model.history_ if one["validation"] is not None)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_held_out_entries_weigh_as_much_as_their_rows(make: Any) -> None:
    train, entries = held_out(baskets())
    weight = np.random.default_rng(2).integers(0, 4, len(train)).astype(float)
    model = efemb.PoissonEmbedding(2, random_state=0, dtype="float64", max_iter=10)
    model.fit(make(train), validation=make(entries), sample_weight=weight)
    total = units = 0.0
    for t, n in np.argwhere(entries > 0):
        if train[t].sum() == 0:
            continue
        u = model.embedding_ @ (train[t] @ model.context_) / train[t].sum() + model.intercept_
        amount = weight[t] * entries[t, n]
        total += amount * (u[n] - np.log(np.exp(u).sum()))
        units += amount
    assert best_score(model) == pytest.approx(total / units, rel=1e-9)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_without_weight_are_not_asked_when_to_stop(make: Any) -> None:
    """Their values change nothing at all."""
    X, weight = baskets(), np.ones(len(baskets()))
    weight[20:] = 0.0
    other = X.copy()
    other[20:, 2:] = np.where(X[20:, 2:] > 0, X[20:, 2:] + 5, 0.0)
    options: dict[str, Any] = {"random_state": 0, "dtype": "float64", "max_iter": 10}
    one = efemb.PoissonEmbedding(2, **options).fit(make(X), sample_weight=weight)
    two = efemb.PoissonEmbedding(2, **options).fit(make(other), sample_weight=weight)
    assert one.report_["held_out"]
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    assert best_score(one) == best_score(two)


@pytest.mark.parametrize("context", [efemb.Neighbors(2), efemb.Lagged((-1,))], ids=repr)
def test_a_share_of_the_rows_with_weight_is_held_out(context: Any) -> None:
    X = neurons(n_rows=200)
    weight = np.zeros(len(X))
    weight[:20] = 1.0
    for seed in range(8):
        model = efemb.GaussianEmbedding(2, context=context, random_state=seed, max_iter=2)
        assert model.fit(X, sample_weight=weight).report_["held_out"]
    weight[9:] = 0.0
    few = efemb.GaussianEmbedding(2, context=context, random_state=0, max_iter=2)
    assert not few.fit(X, sample_weight=weight).report_["held_out"]


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_other_rows_stay_where_as_many_training_rows_are_empty(make: Any) -> None:
    train, other = baskets(), baskets(seed=5)[: len(baskets())]
    train[: len(train) // 2] = 0.0
    options: dict[str, Any] = {"random_state": 0, "max_iter": 1}
    model = efemb.PoissonEmbedding(2, **options).fit(make(train), validation=make(other))
    assert_allclose(best_score(model), model.score(make(other)), rtol=1e-5)


def test_validation_entries_of_rows_without_weight_say_nothing() -> None:
    train, entries = held_out(baskets())
    weight = (entries.sum(axis=1) == 0).astype(float)
    with pytest.raises(efemb.DataError, match="sample_weight"):
        efemb.PoissonEmbedding(2).fit(train, validation=entries, sample_weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_entries_of_fixed_contexts_are_predicted_from_the_training_rows(weighted: bool) -> None:
    X = neurons()
    weight = np.random.default_rng(2).integers(0, 4, len(X)) if weighted else np.ones(len(X))
    cells = np.random.default_rng(1).random(X.shape) < 0.1
    train, entries = np.where(cells, np.nan, X), np.where(cells, X, np.nan)
    model = efemb.GaussianEmbedding(
        2, context=efemb.Graph(1 - np.eye(6)), random_state=0, dtype="float64", max_iter=10
    ).fit(train, validation=entries, sample_weight=weight)
    total, count, variance = 0.0, 0.0, model.family_.variance
    means = np.nansum(weight[:, None] * train, axis=0) / (weight @ ~cells)
    for t, n in np.argwhere(cells):
        members = [m for m in range(6) if m != n and not cells[t, m]]
        s = sum((train[t, m] - means[m]) * model.context_[m] for m in members)
        u = model.embedding_[n] @ (s + np.zeros(2)) + model.intercept_[n]
        density = -0.5 * (X[t, n] - u) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
        total += weight[t] * density
        count += weight[t]
    assert best_score(model) == pytest.approx(total / count, rel=1e-9)


@pytest.mark.parametrize("offset", [0, -1])
def test_entries_are_asked_of_the_reverse_conditional_too(offset: int) -> None:
    X = neurons()
    cells = np.random.default_rng(1).random(X.shape) < 0.1
    train, entries = np.where(cells, np.nan, X), np.where(cells, X, np.nan)
    ring = efemb.Graph(np.roll(np.eye(6), 1, axis=1))  # entity n has n + 1 in its context
    context = efemb.Lagged((offset,), of=ring, include_self=False) if offset else ring
    model = efemb.GaussianEmbedding(
        2,
        context=context,
        combine="reverse",
        family="gaussian",
        center=False,
        random_state=0,
        dtype="float64",
        max_iter=10,
    ).fit(train, validation=entries)
    found = []
    for t, n in np.argwhere(cells):
        row, owner = t - offset, (n - 1) % 6
        if row < len(X) and not cells[row, owner]:
            u = model.context_[n] @ model.embedding_[owner] * X[row, owner] + model.intercept_[n]
            found.append(-0.5 * (X[t, n] - u) ** 2 - 0.5 * np.log(2 * np.pi))
    assert best_score(model) == pytest.approx(np.mean(found), rel=1e-9)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_held_out_rows_are_no_context_of_training_rows(make: Any) -> None:
    """With lags a row is context of the next: blank it, and nothing of it may remain."""
    X = np.abs(neurons(40, 4)).round()
    fits = []
    for scale in (1.0, 3.0):
        values, seen = X.copy(), []
        # Which rows are held out follows from the seed alone, so find them by a first fit.
        rows = _held_rows(X, make)
        values[rows] *= scale
        model = _lagged(seen)
        model.fit(efemb.Dataset(make(values)))
        fits.append(seen[-1])
    for one, two in zip(fits[0].arrays(), fits[1].arrays(), strict=True):
        assert_allclose(one, two, rtol=1e-12)


def _lagged(seen: list[Any]) -> efemb.Embedding:
    return efemb.Embedding(
        2,
        context=efemb.Lagged((-1, 1)),
        random_state=0,
        dtype="float64",
        max_iter=5,
        n_iter_no_change=100,
        validation_fraction=0.2,
        callbacks=[lambda progress: seen.append(progress.parameters())],
    )


def _held_rows(X: Array, make: Any) -> Array:
    from efemb.engine import holdout

    found = []
    inner = holdout._hold_out_rows

    def watching(bound: Any, rows: Array, *rest: Any) -> Any:
        found.append(rows)
        return inner(bound, rows, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holdout, "_hold_out_rows", watching)
        _lagged([]).fit(efemb.Dataset(make(X)))
    assert len(found[0]) == 8
    return found[0]


def test_lists_chosen_before_the_hold_out_are_those_of_training() -> None:
    X = np.random.default_rng(3).normal(size=(40, 8))
    near = efemb.Neighbors(2)
    model = efemb.GaussianEmbedding(
        2, context=near + efemb.Lagged((-1,), of=near), random_state=0, dtype="float64", max_iter=4
    ).fit(X)
    best = max(one["validation"] for one in model.history_ if one["validation"] is not None)
    fixed = efemb.GaussianEmbedding(
        2,
        context=_graph(X) + efemb.Lagged((-1,), of=_graph(X)),
        random_state=0,
        dtype="float64",
        max_iter=4,
    ).fit(X)
    other = max(one["validation"] for one in fixed.history_ if one["validation"] is not None)
    assert best == pytest.approx(other, rel=1e-10)


def _graph(X: Array) -> efemb.Graph:
    """The two most correlated others of every column."""
    strength = np.abs(np.corrcoef(X.T)) - 2 * np.eye(X.shape[1])
    adjacency = np.zeros(strength.shape)
    for n, row in enumerate(strength):
        adjacency[n, np.argsort(-row)[:2]] = 1
    return efemb.Graph(adjacency)


def test_the_report_says_whether_anything_was_held_out() -> None:
    rng = np.random.default_rng(0)
    many, few = rng.poisson(0.8, (60, 8)).astype(float), np.eye(3) + np.eye(3)[[1, 2, 0]]
    fits = [efemb.PoissonEmbedding(2, random_state=0, max_iter=5) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert fits[0].fit(many).report_["held_out"] is True
        assert fits[1].fit(few).report_["held_out"] is False


@pytest.mark.slow
@pytest.mark.parametrize(("n_documents", "fraction"), [(20, None), (50, 0.01)])
def test_a_share_of_less_than_one_document_is_one(n_documents: int, fraction: float | None) -> None:
    length = 30_000 if fraction is None else 40  # books, and letters
    tokens = np.random.default_rng(0).integers(5, size=n_documents * length)
    text = efemb.Corpus(tokens, np.arange(n_documents + 1) * length, list("abcde"))
    model = efemb.CBOW(2, random_state=0, max_iter=1, validation_fraction=fraction)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert model.fit(text).report_["held_out"] is True
