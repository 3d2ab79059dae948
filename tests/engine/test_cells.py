"""Sparse rows with every zero exact: the kernel of whole strips against plain float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.solvers.rows import entries as cell_terms
from efemb.engine.threads import Tuning, Workers
from efemb.model.factors import Factors
from engine import models, plain

N = 300


@pytest.fixture
def strips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of strips that were done in one kernel."""
    done: list[int] = []
    plainly = cell_terms._Tiles._in_one_kernel

    def counted(self: Any, first: int, last: int) -> Any:
        done.append(last - first)
        return plainly(self, first, last)

    monkeypatch.setattr(cell_terms._Tiles, "_in_one_kernel", counted)
    return done


def sparse_counts(model: str, n_rows: int) -> Any:
    """About one cell in a hundred, hundredfold popularity, one empty row."""
    rng = np.random.default_rng(3)
    X = rng.poisson(rng.dirichlet(np.full(N, 0.3)) * 4, (n_rows, N)).astype(float)
    X[0] = 0.0
    return np.minimum(X, 1.0) if model == "b-emb" else X


def answer(
    X: Any,
    model: str,
    dtype: Any,
    hidden: Any,
    combine: str,
    n_jobs: int,
    tuning: Tuning | None = None,
) -> tuple[float, Factors]:
    spec = models.spec(model, zeros=efemb.All(0.3), combine=combine)
    bound = models.bind(np.where(hidden, 0.0, X), spec, masked=hidden)
    weight = np.random.default_rng(4).uniform(0, 2, len(X)).astype(dtype)
    pool = Workers(n_jobs, tuning)
    try:
        made = make_solver("rows", bound, spec, pool, row_weight=weight, dtype=dtype)
        found: tuple[float, Factors] = made.value_and_gradient(models.vectors(N, dtype=dtype))
    finally:
        pool.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("model", ["p-emb", "b-emb", "nb-emb"])
def test_one_kernel_is_float64_step_by_step(
    model: str,
    combine: str,
    narrow: bool,
    n_jobs: int,
    strips: list[int],
) -> None:
    X = sparse_counts(model, 1300)
    hidden = np.random.default_rng(5).random(X.shape) < 0.002
    given = (hidden, combine, n_jobs, Tuning(tile_bytes=1) if narrow else None)
    value, slopes = answer(X, model, np.float32, *given)
    assert strips
    strips.clear()
    wanted, gradient = answer(X, model, np.float64, *given)
    assert not strips
    assert value == pytest.approx(wanted, rel=1e-5)
    assert_allclose(plain.flat(slopes, N), plain.flat(gradient, N), rtol=2e-4, atol=2e-3)


def test_nothing_beyond_the_rows_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding is never set: if it were used, the overflow would be an error here."""

    def filled(pool: Workers, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        limits = np.iinfo if np.issubdtype(dtype, np.integer) else np.finfo
        return np.full(shape, limits(dtype).max, dtype)

    monkeypatch.setattr(Workers, "buffer", filled)
    X, narrow = sparse_counts("p-emb", 1024), Tuning(tile_bytes=1)
    value, slopes = answer(X, "p-emb", np.float32, np.zeros(X.shape, bool), "linear", 1, narrow)
    assert np.isfinite(value)
    assert np.isfinite(plain.flat(slopes, N)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", ["p-emb", "ap-emb", "b-emb", "g-emb"])
def test_no_row_at_all_is_worth_nothing(model: str, dtype: Any) -> None:
    """A minibatch of the reverse conditional may have no item that another could give."""
    spec = models.spec(model)
    bound = models.bind(models.counts(model), spec)
    made = models.solver("rows", bound, spec, dtype=dtype)
    nobody = np.array([], dtype=np.int64)
    value, slopes = made.value_and_gradient(models.vectors(dtype=dtype), nobody)
    assert value == 0
    assert not plain.flat(slopes, 5).any()


def test_strips_cover_all_tiles_and_are_few() -> None:
    for n_entities in (1, 63, 64, 65, 7840, 1_000_000):
        edges, bounds = cell_terms.cut_strips(n_entities, 124, 8, 64)
        assert (edges[0], edges[-1]) == (0, n_entities)
        assert (bounds[0], bounds[-1]) == (0, len(edges) - 1)
        assert (np.diff(edges) > 0).all()
        assert (np.diff(bounds) > 0).all()
        assert len(bounds) < 100
