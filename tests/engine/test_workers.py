"""Workers: pieces of work in threads, results and errors in the order of the pieces."""

from __future__ import annotations

import os
import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from efemb.engine.threads import Workers, workers

N_JOBS = [1, 2, 5]


@pytest.mark.parametrize("n_jobs", N_JOBS)
@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_results_come_in_the_order_of_the_pieces(n_jobs: int, n: int) -> None:
    def work(piece: int) -> int:
        time.sleep(0.001 * (piece % 3 == 0))
        return piece**2

    with workers(n_jobs) as pool:
        expected = [piece**2 for piece in range(n)]
        assert list(pool.map(work, range(n))) == expected
        assert list(pool.ahead(work, range(n))) == expected
        assert [pool.begin(work, piece)() for piece in range(n)] == expected


def test_the_number_of_threads_is_bounded() -> None:
    before = threading.active_count()
    with workers(10**9) as pool:
        assert threading.active_count() - before == pool.n <= max(64, os.cpu_count() or 1)
    assert threading.active_count() == before


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_whoever_calls_works_beside_the_threads(n_jobs: int) -> None:
    together = threading.Barrier(n_jobs, timeout=20)
    with workers(n_jobs) as pool:
        names = list(pool.map(lambda _: (together.wait(), threading.get_ident())[1], range(n_jobs)))
    assert len(set(names)) == n_jobs
    assert threading.get_ident() in names


@pytest.mark.parametrize("n_jobs", N_JOBS)
def test_an_error_reaches_the_caller_and_the_pool_goes_on(n_jobs: int) -> None:
    def work(piece: int) -> int:
        if piece == 3:
            raise ValueError("piece 3")
        return piece

    with workers(n_jobs) as pool:
        with pytest.raises(ValueError, match="piece 3"):
            list(pool.map(work, range(20)))
        with pytest.raises(ValueError, match="piece 3"):
            list(pool.ahead(work, range(20)))
        with pytest.raises(ValueError, match="piece 3"):
            pool.begin(work, 3)()
        assert list(pool.map(work, range(3))) == [0, 1, 2]


def test_after_an_error_no_further_piece_is_begun() -> None:
    begun = []

    def work(piece: int) -> None:
        begun.append(piece)
        time.sleep(0.01)
        raise KeyboardInterrupt

    with workers(2) as pool, pytest.raises(KeyboardInterrupt):
        pool.map(work, range(100))
    assert len(begun) <= 2


def test_closing_ends_the_threads() -> None:
    before = threading.active_count()
    pool = Workers(4)
    assert threading.active_count() == before + 4
    pool.close()
    assert threading.active_count() == before


def test_buffers_belong_to_one_thread() -> None:
    with workers(2) as pool:
        together = threading.Barrier(2, timeout=20)

        def address(_: int) -> int:
            found = pool.buffer("one", (4, 2), "f4")
            together.wait()
            return found.__array_interface__["data"][0]

        first, second = pool.map(address, range(2))
        assert first != second
        assert pool.buffer("one", (2, 3), "f4").shape == (2, 3)


def test_blas_is_free_again_after_fits_that_overlapped() -> None:
    """Whichever ends first; otherwise the last one would restore the limit of the first."""

    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    with threadpool_limits(limits=3, user_api="blas"):
        before = threads()
        first, second = workers(1), workers(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads()) == {1}, "the second fit still runs"
        second.__exit__(None, None, None)
        assert threads() == before
