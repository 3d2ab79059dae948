"""Products of tiles against NumPy, for every remainder of rows, columns and depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from efemb.engine.solvers.rows.zero_stages import TiledRows
from efemb.engine.threads import aligned, workers
from efemb.kernels.products import BLOCK, ROW_BYTES, inner_products, multiply

DTYPES = ["f4", "f8"]
Shape = tuple[int, int, int]
shapes = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 70))


def close(found: Any, wanted: Any) -> None:
    tolerance = 1e-4 if found.dtype == np.float32 else 1e-12
    assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def random(seed: int, *shape: int, dtype: str) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
@given(shape=shapes, fresh=st.booleans())
def test_multiply_is_a_product(dtype: str, transposed: bool, shape: Shape, fresh: bool) -> None:
    n, depth, columns = shape
    unit = ROW_BYTES // np.dtype(dtype).itemsize
    width = -(-columns // unit) * unit
    A = random(0, depth, n, dtype=dtype).T if transposed else random(0, n, depth, dtype=dtype)
    B, C = random(1, depth, width, dtype=dtype), random(2, n + 1, width, dtype=dtype)
    wanted = A @ B + (0 if fresh else C[:n])
    beyond = C[n:].copy()
    multiply(A, B, C, width, fresh)
    close(C[:n], wanted)
    assert_array_equal(C[n:], beyond)


@pytest.mark.parametrize("dtype", DTYPES)
@given(shape=shapes)
def test_inner_products_are_a_product_with_a_transpose(dtype: str, shape: Shape) -> None:
    n, m, columns = (BLOCK * shape[0], BLOCK * shape[1], shape[2])
    unit = ROW_BYTES // np.dtype(dtype).itemsize
    width = -(-columns // unit) * unit
    A, B = random(0, n, width + unit, dtype=dtype), random(1, m, width + unit, dtype=dtype)
    C = np.full((n, m), np.nan, dtype=dtype)
    inner_products(A, B, C, width)
    close(C, A[:, :width] @ B[:, :width].T)


@pytest.mark.parametrize("dtype", DTYPES)
@given(shape=shapes)
def test_cells_and_what_their_slopes_are_to_rows_and_entities(dtype: str, shape: Shape) -> None:
    n_entities, size, n_rows = shape
    rho, Z = random(0, n_entities, size, dtype=dtype), random(1, n_rows, size, dtype=dtype)
    with workers(1) as pool:
        rows = TiledRows(Z, pool)
        E = rows.inner_products(rho)
        close(E[:n_entities, :n_rows], rho @ Z.T)
        slopes = random(2, n_entities, n_rows, dtype=dtype)
        E[:n_entities, :n_rows] = slopes
        found = rows.slopes_to_entities(E)[:n_entities, :size]
        close(found, slopes @ Z)
        (g_rows,) = rows.unset()
        for times in (1, 2):
            rows.slopes_to_rows(E, rho, g_rows, fresh=times == 1)
            wanted = times * (rho.T @ slopes)
            close(g_rows[:, :n_rows], wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_cells_begin_at_cache_lines_and_spread_over_the_cache(dtype: str) -> None:
    assert aligned((3, 5), dtype).ctypes.data % 64 == 0
    with workers(1) as pool:
        for n_rows in (1, 31, 512, 1024, 1040):
            rows = TiledRows(np.zeros((n_rows, 2), dtype=dtype), pool)
            step = rows.transposed.strides[0]
            assert rows.width >= n_rows
            assert step % ROW_BYTES == 0
            assert step // ROW_BYTES % 2 == 1
