"""Huffman: prefix-free, as short as any code, and a distribution over words."""

from __future__ import annotations

import heapq
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import efemb
from efemb.model.huffman import Huffman
from engine.windows import plain, samples

COUNTS = st.lists(st.integers(0, 1000), min_size=2, max_size=40)


def paths(tree: Huffman) -> list[list[tuple[int, int]]]:
    edges = tree.starts.tolist()
    return [
        list(zip(tree.nodes[a:b].tolist(), tree.turns[a:b].tolist(), strict=True))
        for a, b in pairwise(edges)
    ]


def least_cost(weights: list[float]) -> float:
    """Total length of the best code: the sum of all merged weights."""
    heap = list(weights)
    heapq.heapify(heap)
    total = 0.0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        total += both
        heapq.heappush(heap, both)
    return total


@given(COUNTS)
def test_codes_are_prefix_free_and_of_least_length(counts: list[int]) -> None:
    found = paths(Huffman.of(np.array(counts, float)))
    codes = ["".join(str(turn) for _, turn in path) for path in found]
    for i, code in enumerate(codes):
        assert code, "the root is no word"
        assert not any(other.startswith(code) for j, other in enumerate(codes) if j != i)
    assert math.isclose(sum(2.0 ** -len(code) for code in codes), 1.0)
    weights = [max(count, 0.5) for count in counts]
    cost = sum(w * len(code) for w, code in zip(weights, codes, strict=True))
    assert math.isclose(cost, least_cost(weights))


@given(COUNTS)
def test_paths_are_paths(counts: list[int]) -> None:
    """All start at the root; a node is always reached by the same turns; every node is used."""
    found = paths(Huffman.of(np.array(counts, float)))
    before: dict[int, list[tuple[int, int]]] = {}
    for path in found:
        for depth, (node, _) in enumerate(path):
            assert before.setdefault(node, path[:depth]) == path[:depth]
    assert sorted(before) == list(range(len(counts) - 1))


def path_probability(path: list[tuple[int, int]], u: Any) -> float:
    p = 1.0
    for node, turn in path:
        yes = 1.0 / (1.0 + math.exp(-u[node]))
        p *= yes if turn else 1.0 - yes
    return p


@given(COUNTS, st.integers(0, 1000))
def test_probabilities_are_products_along_paths(counts: list[int], seed: int) -> None:
    tree = Huffman.of(np.array(counts, float))
    n = len(counts)
    u = np.random.default_rng(seed).normal(0, 2, (3, n))
    expected = [[path_probability(path, row) for path in paths(tree)] for row in u]
    assert_allclose(tree.probabilities(u), expected, rtol=1e-9)
    assert_allclose(tree.probabilities(u).sum(axis=1), 1.0)
    words = np.random.default_rng(seed).integers(0, n, 3)
    picked = [math.log(expected[i][word]) for i, word in enumerate(words)]
    assert_allclose(tree.log_probability(u, words), picked, rtol=1e-9)


@given(COUNTS)
def test_odds_reproduce_the_unigram(counts: list[int]) -> None:
    tree = Huffman.of(np.array(counts, float))
    weights = np.maximum(np.array(counts, float), 0.5)
    assert_allclose(tree.probabilities(tree.odds[None])[0], weights / weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("combine", ["linear", "reverse"])
def test_a_hierarchical_softmax_starts_at_the_unigram(combine: str) -> None:
    text = samples.corpus((60, 50), n_words=6)
    options: dict[str, Any] = {"context": efemb.Window(2), "combine": combine, "random_state": 0}
    still = efemb.engine.optimizers.SGD(1e-12)
    zeros = efemb.Hierarchical()
    model = efemb.CBOW(3, zeros=zeros, optimizer=still, max_iter=1, **options).fit(text)
    tree = Huffman.of(text.counts())
    assert model.intercept_ is not None
    found = tree.probabilities(np.asarray(model.intercept_, float)[None])[0]
    assert_allclose(found, text.counts() / text.n_tokens, rtol=1e-4)


def test_outputs_of_a_token_are_its_path() -> None:
    text = samples.corpus((30, 1, 0, 4), n_words=6)
    spec = samples.spec(efemb.Window(2), efemb.Hierarchical())
    run = samples.passes(
        spec, text, samples.parameters(6, 2, True), efemb.engine.optimizers.SGD(1e-7)
    )
    drawn, known = samples.drawn(run, 0), paths(Huffman.of(text.counts()))
    assert drawn.documents == samples.documents(text)
    for document, outputs in zip(drawn.documents, drawn.outputs, strict=True):
        assert outputs == [known[word] for word in document]


def test_the_unused_row_of_a_tree_never_moves() -> None:
    text = samples.corpus((30,), n_words=6)
    start = samples.parameters(6, 3, True)
    spec = samples.spec(efemb.Window(2), efemb.Hierarchical())
    run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(0.1))
    samples.go(run, 0)
    moved = samples.moves(start, run.parameters, 1.0, False)
    assert not moved[0][-1].any()
    assert not moved[2][-1]
    assert plain.squares(moved[0][:-1]) > 0
