"""Minibatches: scaled so that their mean is the gradient of all rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from engine import models, plain

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("solver", ["rows", "generic"])
@pytest.mark.parametrize("model", sorted(models.MODELS))
def test_the_mean_over_all_minibatches_is_the_full_gradient(model: str, solver: str) -> None:
    X = models.counts(model)
    spec = models.spec(model)
    made = models.solver(solver, models.bind(X, spec), spec)
    vectors = models.vectors()
    value, whole = made.value_and_gradient(vectors)
    found = []
    for rows in combinations(range(len(X)), 3):
        part, slopes = made.value_and_gradient(vectors, np.array(rows[::-1]))
        found.append(np.append(plain.flat(slopes, 5), part) * len(X) / 3)
    assert_allclose(np.mean(found, axis=0), np.append(plain.flat(whole, 5), value), rtol=1e-10)


def tiny_pass(X: Any, batch_size: int | None, zeros: Any = "all") -> tuple[Any, Any]:
    """Displacement of one pass of tiny SGD steps, in units of a step, and the full gradient."""
    options: dict[str, Any] = {
        "prior": efemb.Normal(2.0),
        "zeros": zeros,
        "early_stopping": False,
        "dtype": "float64",
        "random_state": 0,
        "batch_size": batch_size,
        "max_iter": 1,
    }
    step = 1e-7
    still = efemb.PoissonEmbedding(2, optimizer=efemb.engine.optimizers.SGD(1e-300), **options).fit(
        X
    )
    moved = efemb.PoissonEmbedding(2, optimizer=efemb.engine.optimizers.SGD(step), **options).fit(X)
    pairs = zip(moved.parameters_.arrays(), still.parameters_.arrays(), strict=True)
    shift = [(after - before) / step * len(X) for after, before in pairs]
    _, gradient = still.objective(X, still.parameters_)
    return shift, list(gradient.arrays())


def rows_of_counts(n_rows: int) -> Any:
    X = np.random.default_rng(0).poisson(0.8, (n_rows, 6)).astype(float)
    X[:, :2] += 1
    return X


@pytest.mark.parametrize(("batch_size", "n_steps"), [(None, 1), (5, 8), (10, 4), (20, 2)])
@pytest.mark.parametrize("zeros", ["all", efemb.Sampled(6)])
def test_a_pass_of_tiny_steps_moves_along_the_gradient_of_the_objective(
    batch_size: int | None, n_steps: int, zeros: Any
) -> None:
    """Data term and prior both: steps x full gradient, whatever the size of a minibatch.

    Sampling 6 of 6 entities draws them all, so it has no noise, but takes the sparse path.
    """
    shift, gradient = tiny_pass(rows_of_counts(40), batch_size, zeros)
    for moved, slope in zip(shift, gradient, strict=True):
        assert_allclose(moved, n_steps * slope, rtol=1e-4, atol=1e-4)


def test_a_longer_last_batch_is_weighted_by_its_own_size() -> None:
    """42 equal rows in batches of 10, 10, 10 and 12: each estimates the same gradient."""
    X = np.tile(rows_of_counts(1), (42, 1))
    shift, gradient = tiny_pass(X, 10)
    for moved, slope in zip(shift, gradient, strict=True):
        assert_allclose(moved, 4 * slope, rtol=1e-4, atol=1e-4)


def test_minibatches_visit_every_row_once_a_pass() -> None:
    seen: list[Any] = []
    X = rows_of_counts(37)
    from efemb.engine.solvers.rows.solver import RowsSolver

    class Watching(RowsSolver):
        def value_and_gradient(self, vectors: Any, rows: Any = None, *, exact: bool = False) -> Any:
            seen.append(rows)
            return super().value_and_gradient(vectors, rows, exact=exact)

    from efemb.engine.solvers import choice as solvers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers, "RowsSolver", Watching)
        efemb.PoissonEmbedding(2, batch_size=8, max_iter=2, early_stopping=False).fit(X)
    per_pass = len(seen) // 2
    first, second = seen[:per_pass], seen[per_pass:]
    for one in (first, second):
        assert_allclose(np.sort(np.concatenate(one)), np.arange(37))
    assert not np.array_equal(np.concatenate(first), np.concatenate(second))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": "many"}, "batch_size"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"batch_size": 4, "optimizer": efemb.engine.optimizers.LBFGS()}, "all rows"),
    ],
)
def test_a_batch_size_that_cannot_be_is_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(efemb.EfembError, match=match):
        efemb.PoissonEmbedding(2, **options).fit(models.counts("p-emb"))
