"""Chunks of a text: every token once a pass, in a drawn order, in sizes that suit threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import efemb
from efemb.engine.solvers.windows.chunks import (
    LEAST_TOKENS,
    LONGEST,
    MOST_OUTPUTS,
    RUN_TOKENS,
    Chunk,
    Chunks,
)
from engine.windows import samples

SIZES = st.lists(st.integers(0, 30_000), min_size=1, max_size=40).filter(any)


def drawn(sizes: list[int], seed: int = 0, n_threads: int = 1) -> list[Chunk]:
    starts = np.append(0, np.cumsum(sizes))
    return Chunks(starts).drawn(np.random.default_rng(seed), n_threads)


def pieces(chunks: list[Chunk]) -> list[tuple[int, int]]:
    """(begin, end) in the text of everything, in the order of the chunks."""
    return [
        (int(first), int(first + size))
        for chunk in chunks
        for first, size in zip(chunk.first, np.diff(chunk.starts), strict=True)
    ]


@given(SIZES, st.integers(1, 9))
def test_every_token_comes_once_and_documents_are_cut_only_where_they_are_long(
    sizes: list[int], n_threads: int
) -> None:
    found = sorted(pieces(drawn(sizes, n_threads=n_threads)))
    assert all(b - a <= LONGEST for a, b in found)
    places = [place for a, b in found for place in (a, b) if b > a]
    assert places[0] == 0
    assert places[-1] == sum(sizes)
    assert places[1:-1:2] == places[2::2], "each begins where the one before it ends"
    assert set(np.cumsum(sizes).tolist()) <= {b for _, b in found}


def test_tokens_are_those_of_the_text() -> None:
    text = samples.corpus((5_000, 3, 9_000, 0, 1, 4_000), n_words=50)
    source = samples.streams(text, efemb.NegativeSampling(1))
    for chunk in source.chunks.drawn(np.random.default_rng(1)):
        tokens = source.draw(chunk)[0]
        wanted = [text.tokens[a:b] for a, b in pieces([chunk])]
        assert np.array_equal(tokens, np.concatenate(wanted))


def test_passes_have_orders_of_their_own() -> None:
    orders = [pieces(drawn([300] * 400, seed)) for seed in (0, 1)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_what_lies_far_apart_in_a_sorted_text_comes_together() -> None:
    """Any tenth of a pass has about the mean of the whole."""
    sizes = [300] * 4000
    order = np.array([a for a, _ in pieces(drawn(sizes))]) / sum(sizes)
    for part in np.array_split(order, 10):
        n_runs = len(part) * 300 / RUN_TOKENS
        assert abs(part.mean() - 0.5) < 5 * np.sqrt(1 / 12 / n_runs)


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_a_chunk_is_little_beside_what_was_seen_and_what_is_left(n_threads: int) -> None:
    sizes = np.array([chunk.n_tokens for chunk in drawn([250] * 12_000, n_threads=n_threads)])
    before = np.cumsum(sizes) - sizes
    left = sizes.sum() - before
    slack = RUN_TOKENS + 250  # chunks are whole runs, which end with a document
    assert (sizes <= np.maximum(before / (4 * n_threads), LEAST_TOKENS) + slack).all()
    assert (sizes <= np.maximum(left / (2 * n_threads), LEAST_TOKENS) + slack).all()
    assert sizes.max() > 2 * LEAST_TOKENS


def test_many_outputs_make_chunks_short() -> None:
    starts = np.arange(0, 20_000_001, 500)
    rng = np.random.default_rng(0)
    sizes = [
        max(chunk.n_tokens for chunk in Chunks(starts, n_outputs).drawn(rng))
        for n_outputs in (1, 21, 1001)
    ]
    assert sizes[0] == sizes[1] > 100_000
    assert sizes[2] * 1001 < 2 * MOST_OUTPUTS
