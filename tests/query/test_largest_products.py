"""The exact search for the largest products, against sorting all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from efemb import nearest
from efemb.nearest import largest_products


def plain(table: Any, query: Any, n: int, rows: Any = None) -> list[tuple[int, float]]:
    """Sort all products, ties in order."""
    places = range(len(table)) if rows is None else rows
    scores = [
        (int(i), float(sum(a * b for a, b in zip(table[i], query, strict=True)))) for i in places
    ]
    return sorted(scores, key=lambda one: (-one[1], one[0]))[:n]


@st.composite
def questions(draw: Any) -> Any:
    """Small whole numbers: many ties, and sums that are exact in any order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, k, n_queries = (draw(st.integers(1, most)) for most in (60, 4, 7))
    table, queries = rng.integers(-2, 3, (size, k)), rng.integers(-2, 3, (n_queries, k))
    rows = np.flatnonzero(rng.random(size) < 0.7) if draw(st.booleans()) else None
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return table.astype(dtype), queries.astype(dtype), draw(st.integers(1, 70)), rows


@pytest.mark.slow
@pytest.mark.parametrize("cached", [8, 64, 1 << 11, 1 << 20])
@pytest.mark.parametrize(("enough", "threads"), [(0, 1), (20_000, 1), (50, 3)])
@given(question=questions())
def test_every_block_size_finds_what_a_sort_finds(
    cached: int, enough: int, threads: int, question: Any
) -> None:
    table, queries, n, rows = question
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "CACHED", cached)
        patch.setattr(nearest, "ENOUGH", enough)
        patch.setattr(nearest, "WORTH_THREADS", -1)
        patch.setattr(nearest, "_threads", lambda: threads)
        places, scores = largest_products(table, queries, n, rows)
    assert places.shape == scores.shape
    for query, place, score in zip(queries, places, scores, strict=True):
        expected = plain(table, query, n, rows)
        assert list(zip(place.tolist(), score.tolist(), strict=True)) == expected


def test_many_queries_are_cut_into_parts() -> None:
    rng = np.random.default_rng(0)
    table, queries = rng.integers(-9, 9, (300, 4)) * 1.0, rng.integers(-9, 9, (2500, 4)) * 1.0
    done: list[int] = []
    places, _ = largest_products(table, queries, 3, advance=done.append)
    assert sum(done) == 2500
    for i in range(0, 2500, 171):
        assert places[i].tolist() == [place for place, _ in plain(table, queries[i], 3)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_number_of_threads(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table, queries = rng.normal(size=(3000, 8)).astype(dtype), rng.normal(size=(40, 8))
    monkeypatch.setattr(nearest, "CACHED", 1 << 12)
    monkeypatch.setattr(nearest, "WORTH_THREADS", -1)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(nearest, "_threads", lambda threads=threads: threads)
        found.append(largest_products(table, queries.astype(dtype), 6))
    for places, scores in found[1:]:
        assert (places == found[0][0]).all()
        assert (scores == found[0][1]).all()


def test_threads_are_those_of_blas() -> None:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        assert nearest._threads() == 1


def test_all_equal_products_come_in_order() -> None:
    places, scores = largest_products(np.zeros((500, 2)), np.ones((3, 2)), 4)
    assert places.tolist() == [[0, 1, 2, 3]] * 3
    assert (scores == 0).all()


def test_no_row_is_left() -> None:
    places, scores = largest_products(np.ones((5, 2)), np.ones((3, 2)), 4, np.empty(0, np.int64))
    assert places.shape == scores.shape == (3, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_rows_are_of_length_one_at_any_size(dtype: Any) -> None:
    top = np.finfo(dtype).max / 4
    rows = np.array([[3, 4], [0, 0], [top, top], [np.finfo(dtype).tiny, 0]], dtype=dtype)
    found = nearest.unit_rows(rows)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0.5**0.5] * 2, [1, 0]], rtol=1e-6)
