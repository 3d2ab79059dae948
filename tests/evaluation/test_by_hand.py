"""Scores of three tiny baskets and of two frames, computed on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

import efemb
from efemb.evaluation import held_out_entries, leave_fold_out, leave_one_out, predictions
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.parameters import Parameters

# rho = 0, log 2, log 4 and alpha = 1: a context sum s gives the means 1, 2^s, 4^s. Contexts are
# divided by their number of items.
MODEL = efemb.fitted.FittedEmbedding(
    Parameters(np.log([[1.0], [2.0], [4.0]]), np.ones((3, 1)), None),
    efemb.PoissonEmbedding.paper(1)._spec(),
)
BASKETS = np.array(
    [
        [1.0, 2.0, 0.0],  # item 0 sees two of item 1, s = 2: 1 / (1 + 4 + 16); item 1: 2 / 7
        [0.0, 0.0, 3.0],  # alone: skipped
        [1.0, 0.0, 1.0],  # item 0 sees one of item 2, s = 1: 1 / 7; item 2 likewise: 4 / 7
    ]
)


@pytest.mark.parametrize("X", [BASKETS, sparse.csr_array(BASKETS)], ids=["dense", "sparse"])
def test_normalized_log_likelihood(X: object) -> None:
    found = leave_one_out(MODEL, X)
    assert found.row.tolist() == [0, 0, 2, 2]
    assert found.entity.tolist() == [0, 1, 0, 2]
    assert found.x.tolist() == [1, 2, 1, 1]
    assert found.n_skipped == 1
    shares = [1 / 21, 2 / 7, 1 / 7, 4 / 7]
    assert found.log_share == pytest.approx([math.log(share) for share in shares])
    unit = found.normalized_log_likelihood()
    assert (unit.value, unit.n) == (pytest.approx(-1.611115, abs=1e-6), 5)
    assert unit.standard_error == pytest.approx(0.375725, abs=1e-6)
    entry = found.normalized_log_likelihood(by="entry")
    assert (entry.value, entry.n) == (pytest.approx(-1.700703, abs=1e-6), 4)


def test_conditional_log_likelihood() -> None:
    """Poisson of means 1, 2, 1, 4 at 1, 2, 1, 1: -1, log 2 - 2, -1, log 4 - 4."""
    found = leave_one_out(MODEL, BASKETS).log_likelihood()
    assert (found.value, found.n) == (pytest.approx(-1.480140, abs=1e-6), 4)


@pytest.mark.parametrize("limit", [0.0, 0.999])
def test_shares_outside_the_context(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is in the context: 1 of 1 + 16, 2 of 2 + 4, 1 of 1 + 2, 4 of 2 + 4."""
    monkeypatch.setattr(predictions, "MOSTLY_INSIDE", limit)  # 0: every sum is added up anew
    found = leave_one_out(MODEL, BASKETS)
    shares = [1 / 17, 2 / 6, 1 / 3, 4 / 6]
    assert found.absent_log_share == pytest.approx([math.log(share) for share in shares])
    table = efemb.compare({"one": MODEL}, BASKETS)
    per_unit = sum(x * math.log(s) for x, s in zip([1, 2, 1, 1], shares, strict=True)) / 5
    assert table["absent_log_likelihood"].tolist() == pytest.approx([per_unit])


def test_ranks() -> None:
    """What is in the context is no candidate: each entry has one rival, which three lose to."""
    found = leave_one_out(MODEL, BASKETS)
    assert found.rank is not None
    assert found.rank.tolist() == [2, 2, 2, 1]
    assert found.recall(1).value == 0.25
    assert found.recall(2).value == 1.0
    assert found.mean_reciprocal_rank().value == 0.625


def test_held_out_entries() -> None:
    """Item 2 of the first basket and item 0 of the second; the third is empty in X."""
    X = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    held = sparse.csr_array(np.array([[0.0, 0, 1], [2, 0, 0], [0, 1, 0]]))
    found = held_out_entries(MODEL, X, held)
    # s = 2: 16 of 1 + 4 + 16; s = 3: 1 of 1 + 8 + 64.
    assert found.log_share == pytest.approx(np.log([16 / 21, 1 / 73]))
    assert found.normalized_log_likelihood().value == pytest.approx(
        (math.log(16 / 21) + 2 * math.log(1 / 73)) / 3
    )
    assert found.rank is not None
    assert found.rank.tolist() == [1, 2]
    assert found.n_skipped == 1


def gaussian(intercept: bool) -> efemb.fitted.FittedEmbedding:
    """Entity 0 is half of 1 plus half of 2; 1 is 2, 2 is 1, both doubled; 3 is 0."""
    frame = efemb.Dataset(np.zeros((1, 4)))
    lists = EntityLists.from_neighbors(frame, [0, 2, 3, 4, 5], [1, 2, 2, 1, 0]).lists
    rho, alpha = [[0.5], [2.0], [2.0], [1.0]], [[1.0], [1.0], [1.0], [1.0]]
    constant = np.array([0.0, 0.0, 0.0, 10.0]) if intercept else None
    model = efemb.GaussianEmbedding(1, context=efemb.Neighbors(1), intercept=intercept)
    parameters = Parameters(np.array(rho), np.array(alpha), constant)
    return efemb.fitted.FittedEmbedding(parameters, model._spec(), lists=lists)


FRAMES = np.array([[1.0, 2.0, 4.0, 3.0], [0.0, 1.0, np.nan, 1.0]])


def test_squared_error_of_frames() -> None:
    """Means 3, 8, 4, 1 and .5, 0 (its member is missing), -, 0."""
    found = leave_one_out(gaussian(intercept=False), FRAMES)
    assert found.mean is not None
    assert found.mean.tolist() == [3, 8, 4, 1, 0.5, 0, 0]
    squares = [4, 36, 0, 4, 0.25, 1, 1]
    by_entry = found.mean_squared_error()
    assert (by_entry.value, by_entry.n) == (pytest.approx(46.25 / 7), 7)
    assert by_entry.standard_error == pytest.approx(np.std(squares) / math.sqrt(7))
    by_row = found.mean_squared_error(by="row")
    assert (by_row.value, by_row.n) == (pytest.approx((11 + 0.75) / 2), 2)
    assert by_row.standard_error == pytest.approx((11 - 0.75) / 2 / math.sqrt(2))
    assert found.n_empty == 1
    assert found.context_size is not None
    assert found.context_size.tolist() == [2, 1, 1, 1, 1, 0, 1]


@pytest.mark.parametrize("intercept", [False, True])
def test_members_in_the_fold_of_the_target_drop_out(intercept: bool) -> None:
    """Every entity a fold of its own is leave one out; two folds empty some contexts."""
    model = gaussian(intercept)
    alone = leave_fold_out(model, FRAMES, folds=4)
    plain = leave_one_out(model, FRAMES)
    assert alone.mean is not None
    assert plain.mean is not None
    assert alone.mean.tolist() == plain.mean.tolist()
    order = np.random.default_rng(0).permutation(4).tolist()
    fold = {n: place // 2 for place, n in enumerate(order)}
    members = {0: [1, 2], 1: [2], 2: [1], 3: [0]}
    factor = {0: 0.5, 1: 2.0, 2: 2.0, 3: 1.0}
    found = leave_fold_out(model, FRAMES[:1], folds=2)
    kept = {n: [m for m in members[n] if fold[m] != fold[n]] for n in range(4)}
    expected = [factor[n] * sum(FRAMES[0, m] for m in kept[n]) for n in range(4)]
    expected[3] += 10.0 * intercept
    assert found.mean is not None
    assert found.mean.tolist() == expected
    assert found.n_empty == sum(not left for left in kept.values())
    assert found.context_sizes()["n"].sum() == 4
