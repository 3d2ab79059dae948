"""The default choice of the optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb.engine.fit import choose_optimizer
from efemb.model.spec import Spec


def chosen(k: int, *, minibatches: bool = True, **spec: Any) -> Any:
    found = Spec.resolve(context="basket", family="poisson", **spec)
    return choose_optimizer("auto", "rows", found, k, minibatches=minibatches)


def test_steps_of_minibatches_shrink_with_the_number_of_components() -> None:
    steps = [chosen(k).step for k in (1, 10, 50, 100, 400)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == chosen(1, minibatches=False).step
    assert steps[-2] == pytest.approx(2 * steps[-1])


def test_all_rows_at_once_take_the_same_steps_for_any_number() -> None:
    assert repr(chosen(3, minibatches=False)) == repr(chosen(300, minibatches=False))


def test_an_item_that_is_bought_once_moves_little() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.5, (6000, 8)).astype(np.float32)
    counts[:, 0] = 0
    counts[17, 0] = 1

    def move_of_rare(epsilon: float) -> float:
        options = {"max_iter": 1, "early_stopping": False, "random_state": 0, "prior": None}
        model = efemb.PoissonEmbedding(
            4, optimizer=efemb.engine.optimizers.Adagrad(0.1, epsilon), **options
        )
        with pytest.warns(match="max_iter"):
            first = model.fit(counts).parameters_.rho
        length = np.linalg.norm(first, axis=1)
        return float(length[0] / np.median(length[1:]))

    assert move_of_rare(0.01) < 0.7 * move_of_rare(1e-10)
