"""Laws of the scores: what must not matter, and models whose score is known in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

import efemb
from efemb.evaluation import Predictions, held_out_entries, leave_fold_out, leave_one_out
from efemb.evaluation.scores import average
from evaluation.plain import Table, embedding, judged_entries, means_given, rank_of

pytestmark = pytest.mark.slow

Array = Any
COUNTS = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 7), st.just(5)), elements=st.integers(0, 3)
)
MODEL = embedding(efemb.PoissonEmbedding(2), 5)
LABELS = list("abcde")


def has_context(X: Array) -> bool:
    return bool(((X != 0).sum(axis=1) > 1).any())


def scores(found: Predictions) -> list[float]:
    return found.summary()["score"].tolist()


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(X: Array, random: Any) -> None:
    assume(has_context(X))
    order = list(range(len(X)))
    random.shuffle(order)
    assert_allclose(scores(leave_one_out(MODEL, X[order])), scores(leave_one_out(MODEL, X)))


@given(COUNTS, st.permutations(range(5)))
def test_labeled_entities_may_come_in_any_order(X: Array, order: list[int]) -> None:
    """The same entry gets the same prediction, and is named by its place in the user's data."""
    assume(has_context(X))
    model = embedding(efemb.PoissonEmbedding(2), 5, vocabulary=efemb.Vocabulary(LABELS))
    plain = leave_one_out(model, efemb.Dataset(X, entities=LABELS))
    mixed = efemb.Dataset(X[:, order], entities=[LABELS[n] for n in order])
    found = leave_one_out(model, mixed)
    assert found.x.tolist() == X[found.row, np.array(order)[found.entity]].tolist()
    assert (np.diff(found.row * 5 + found.entity) > 0).all(), "row by row, entity by entity"
    expected = dict(zip(zip(plain.row, plain.entity, strict=True), plain.log_share, strict=True))
    for t, n, share in zip(found.row, found.entity, found.log_share, strict=True):
        assert share == pytest.approx(expected[t, order[n]])
    assert_allclose(scores(found), scores(plain))


@given(COUNTS)
def test_a_uniform_model_scores_minus_log_n(X: Array) -> None:
    assume(has_context(X))
    found = leave_one_out(Table(lambda _: np.full(5, 1.7)), X)
    score = found.normalized_log_likelihood()
    assert score.value == pytest.approx(-math.log(5))
    assert score.standard_error == pytest.approx(0.0, abs=1e-12)
    # All candidates are tied: each place is as likely as any other.
    sizes = (X != 0).sum(axis=1)[found.row]
    assert_allclose(found.rank, (5 - (sizes - 1) + 1) / 2)


@given(COUNTS, hnp.arrays(np.float64, 5, elements=st.floats(0.01, 9.0)))
def test_popularity_scores_its_closed_form(X: Array, popularity: Array) -> None:
    assume(has_context(X))
    share = np.log(popularity / popularity.sum())
    found = leave_one_out(Table(lambda _: np.log(popularity)), X)
    known = X[(X != 0).sum(axis=1) > 1]
    expected = (known @ share).sum() / known.sum()
    assert found.normalized_log_likelihood().value == pytest.approx(expected)
    entries = (known != 0).astype(float)
    by_entry = found.normalized_log_likelihood(by="entry").value
    assert by_entry == pytest.approx((entries @ share).sum() / entries.sum())


@given(COUNTS, st.integers(2, 4))
def test_duplicated_rows_only_shrink_the_standard_error(X: Array, times: int) -> None:
    assume(has_context(X))
    one, many = leave_one_out(MODEL, X), leave_one_out(MODEL, np.tile(X, (times, 1)))
    assert many.n_skipped == times * one.n_skipped
    for by in ("unit", "entry", "row"):
        a, b = one.normalized_log_likelihood(by), many.normalized_log_likelihood(by)
        assert (b.value, b.n) == (pytest.approx(a.value), times * a.n)
        expected = a.standard_error / math.sqrt(times)
        assert b.standard_error == pytest.approx(expected, abs=1e-9)


@given(
    hnp.arrays(np.float64, 6, elements=st.floats(-9, 0)),
    hnp.arrays(np.float64, 6, elements=st.integers(1, 5)),
)
def test_units_weigh_as_entries_written_out(values: Array, x: Array) -> None:
    row = np.arange(6) // 2
    found = average(values, "unit", x=x, row=row)
    each = np.repeat(values, x.astype(int))
    assert (found.value, found.n) == (pytest.approx(each.mean()), len(each))
    assert found.standard_error == pytest.approx(each.std() / math.sqrt(len(each)), abs=1e-9)
    entry = average(values, "entry", x=x, row=row)
    assert entry.standard_error == pytest.approx(values.std() / math.sqrt(6), abs=1e-9)
    rows = [values[row == t].mean() for t in range(3)]
    by_row = average(values, "row", x=x, row=row)
    assert (by_row.value, by_row.n) == (pytest.approx(np.mean(rows)), 3)
    assert by_row.standard_error == pytest.approx(np.std(rows) / math.sqrt(3), abs=1e-9)


@given(
    COUNTS,
    hnp.arrays(np.float64, (5, 5), elements=st.integers(-2, 2)),
    st.integers(1, 9),
)
def test_ranks_and_shares_of_tied_means(X: Array, weights: Array, block: int) -> None:
    """Whole numbers give many ties; any block size gives the same."""
    assume(has_context(X))

    def log_means(row: Array) -> Array:
        return weights @ np.minimum(row, 2.0)

    found = leave_one_out(Table(log_means, block=block), X)
    plain, skipped = judged_entries(lambda row: np.exp(log_means(row)), X)
    assert found.n_skipped == skipped
    assert_allclose(found.log_share, [share for *_, share, _ in plain], rtol=1e-9, atol=1e-12)
    for i, (t, n, *_) in enumerate(plain):
        context = X[t].copy()
        context[n] = 0
        assert found.rank is not None
        assert found.rank[i] == rank_of(log_means(context), n, context)
    assert found.rank is not None
    for k in (1, 2, 5):
        hits = [rank <= k for rank in found.rank]
        assert found.recall(k).value == pytest.approx(sum(hits) / len(hits))
        cut = [1 / rank if rank <= k else 0.0 for rank in found.rank]
        assert found.score(f"mrr@{k}").value == pytest.approx(sum(cut) / len(cut))
        gains = [1 / math.log2(1 + rank) if rank <= k else 0.0 for rank in found.rank]
        assert found.score(f"ndcg@{k}").value == pytest.approx(sum(gains) / len(gains))
    reciprocal = [1 / rank for rank in found.rank]
    assert found.mean_reciprocal_rank().value == pytest.approx(sum(reciprocal) / len(reciprocal))


@given(COUNTS, st.floats(-700, 700))
def test_a_common_factor_of_all_means_does_not_matter(X: Array, shift: float) -> None:
    """Also where the means themselves are beyond the floats."""
    assume(has_context(X))
    base = np.log(np.arange(1.0, 6.0))
    plain = leave_one_out(Table(lambda _: base), X)
    moved = leave_one_out(Table(lambda _: base + shift), X)
    assert_allclose(moved.log_share, plain.log_share, rtol=1e-9, atol=1e-9)
    assert_allclose(moved.rank, plain.rank)


@given(COUNTS)
def test_an_entry_is_predicted_alike_left_out_or_held_out(X: Array) -> None:
    assume(has_context(X))
    t = int(np.argmax((X != 0).sum(axis=1)))
    n = int(np.argmax(X[t] != 0))
    held = np.zeros_like(X)
    held[t, n] = X[t, n]
    whole = leave_one_out(MODEL, X)
    place = np.flatnonzero((whole.row == t) & (whole.entity == n))
    found = held_out_entries(MODEL, X - held, held)
    assert_allclose(found.log_share, whole.known("log_share")[place])
    assert_allclose(found.rank, whole.known("rank")[place])


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 6), st.permutations(range(6)))
def test_folds_are_those_of_the_users_order(seed: int, folds: int, order: list[int]) -> None:
    """Two models that order the entities differently leave the same folds out."""
    X = np.random.default_rng(0).normal(size=(8, 6))
    labels = list("abcdef")
    fitted = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), tol=1.0, random_state=0).fit(
        efemb.Dataset(X, entities=labels)
    )
    mixed = efemb.Dataset(X[:, order], entities=[labels[n] for n in order])
    found = leave_fold_out(fitted, mixed, folds=folds, seed=seed)
    expected = np.empty((8, 6))
    for part in np.array_split(np.random.default_rng(seed).permutation(6), folds):
        hidden = X.copy()
        hidden[:, [order[n] for n in part]] = np.nan
        expected[:, part] = fitted.conditional(hidden)[:, [order[n] for n in part]]
    assert_allclose(found.known("mean"), expected.ravel())
    assert found.x.tolist() == X[:, order].ravel().tolist()


def test_means_of_the_loop_are_those_of_the_model() -> None:
    """The plain definition itself, against `conditional` on rows that lack the entry."""
    row = np.array([0.0, 2.0, 0.0, 1.0, 0.0])
    assert_allclose(means_given(MODEL, row)[[0, 2, 4]], MODEL.conditional(row[None])[0, [0, 2, 4]])


def clustered(values: list[float], weight: list[float], row: list[int]) -> float:
    """Standard error of a weighted mean if only rows are independent, by its definition."""
    mean = sum(v * w for v, w in zip(values, weight, strict=True)) / sum(weight)
    squares = 0.0
    for one in set(row):
        mine = [i for i, t in enumerate(row) if t == one]
        squares += sum(weight[i] * (values[i] - mean) for i in mine) ** 2
    return math.sqrt(squares) / sum(weight)


@given(
    st.lists(
        st.tuples(st.floats(-9, 0), st.integers(1, 4), st.integers(0, 5)), min_size=2, max_size=20
    )
)
def test_the_error_over_rows_is_that_of_its_definition(entries: list[Any]) -> None:
    values, x, row = (list(column) for column in zip(*entries, strict=True))
    arrays: Any = {"x": np.array(x, dtype=float), "row": np.array(row)}
    for by, weight in (("unit", x), ("entry", [1.0] * len(x))):
        found = average(np.array(values), by, **arrays).row_error
        if len(set(row)) == 1:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(clustered(values, weight, row), rel=1e-9, abs=1e-12)
    rows = average(np.array(values), "row", **arrays)
    if len(set(row)) > 1:
        assert rows.row_error == pytest.approx(rows.standard_error, rel=1e-9, abs=1e-12)


def test_repeated_entries_of_a_row_teach_nothing_new() -> None:
    values, row = np.array([-1.0, -2.0, -4.0]), np.arange(3)
    once, often = (
        average(np.repeat(values, n), "entry", x=np.ones(3 * n), row=np.repeat(row, n))
        for n in (1, 25)
    )
    assert often.standard_error == pytest.approx(once.standard_error / 5)
    assert often.row_error == pytest.approx(once.row_error) == pytest.approx(once.standard_error)
