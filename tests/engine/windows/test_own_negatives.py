"""Skip-gram with separate negatives for each pair of words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.optimizers import SGD
from efemb.errors import InputTypeError, ParameterError
from efemb.model.spec import Spec
from engine.windows import plain, samples

STEP = 1e-7
APART = efemb.NegativeSampling(2, shared=False)


def model(shrink: bool = False) -> Spec:
    return samples.spec(efemb.Window(3, scale="none", shrink=shrink), APART, combine="reverse")


def pairs_of(drawn: tuple[Any, ...]) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """(token, word around it, outputs) of every pair, in the order of the text."""
    tokens, starts, ptr, rows, labels, reach = drawn
    pairs = []
    for begin, end in itertools.pairwise(starts):
        for t in range(begin, end):
            for place in range(max(begin, t - reach[t]), min(end, t + reach[t] + 1)):
                if place != t:
                    first, last = ptr[len(pairs)], ptr[len(pairs) + 1]
                    outputs = [(int(rows[i]), int(labels[i])) for i in range(first, last)]
                    pairs.append((int(tokens[t]), int(tokens[place]), outputs))
    assert len(pairs) == len(ptr) - 1
    return pairs


@pytest.mark.parametrize("shrink", [False, True])
def test_steps_are_those_of_every_pair_with_its_own_draws(shrink: bool) -> None:
    spec, text = model(shrink), samples.corpus((60, 5, 1, 30))
    start = samples.parameters(5, 3, True)
    run = samples.passes(spec, text, start.copy(), SGD(STEP))
    tables, visits, total = samples.tables(spec, start), [], 0.0
    for chunk in samples.chunks(run, 3):
        for token, word, outputs in pairs_of(run.streams.draw(chunk)):
            assert outputs[0] == (token, 1)
            assert all(row != token and label == 0 for row, label in outputs[1:])
            slopes, value = plain.slopes(outputs, tables.bag[word], tables, False)
            total += value
            back = np.zeros(3)
            for g, (row, _) in zip(slopes, outputs, strict=True):
                visits.append(plain.Visit("target", row, g * tables.bag[word], g))
                back += g * tables.target[row]
            visits.append(plain.Visit("bag", word, back))
    expected = plain.summed(visits, (5, 3))
    assert samples.go(run, 3) == pytest.approx(total, rel=1e-5)
    moved = samples.moves(start, run.parameters, STEP, True)
    for move, gradient in zip(moved, expected, strict=True):
        assert_allclose(move, gradient, rtol=1e-4, atol=1e-4)


def test_pairs_have_different_draws() -> None:
    run = samples.passes(model(), samples.corpus((200,)), samples.parameters(5, 3, True), SGD(STEP))
    (chunk,) = samples.chunks(run, 0)
    pairs = pairs_of(run.streams.draw(chunk))
    around: dict[int, set[Any]] = {}
    for place, (_, _, outputs) in enumerate(pairs[:60]):
        around.setdefault(place // 6, set()).add(tuple(outputs[1:]))
    assert max(len(different) for different in around.values()) > 1


@pytest.mark.slow
def test_visits_are_those_of_the_pairs() -> None:
    text = samples.corpus((4000,))
    run = samples.passes(model(), text, samples.parameters(5, 3, True), SGD(STEP))
    (expected, members), counted = run.streams.visits(pairs=True), np.zeros(5)
    around = np.zeros(5)
    for chunk in samples.chunks(run, 1):
        for _, word, outputs in pairs_of(run.streams.draw(chunk)):
            around[word] += 1
            for row, _ in outputs:
                counted[row] += 1
    assert_allclose(counted, expected, rtol=0.05)
    assert_allclose(around, members, rtol=1e-9)


def test_a_fit_is_repeatable_and_saved(tmp_path: Any) -> None:
    text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    fits = [
        efemb.SkipGram(4, min_count=1, random_state=0, zeros=APART, deterministic=True).fit(text)
        for _ in range(2)
    ]
    assert fits[0].rho_.tobytes() == fits[1].rho_.tobytes()
    fits[0].save(tmp_path / "model")
    assert efemb.load(tmp_path / "model").spec.zeros == APART


def test_own_negatives_are_refused_where_nobody_asks_apart() -> None:
    with pytest.raises(ParameterError, match="only skip-gram"):
        efemb.BernoulliTextEmbedding(2, zeros=APART).fit(["a b c"])
    with pytest.raises(ParameterError, match="only skip-gram"):
        efemb.BernoulliEmbedding(2, zeros=APART).fit(np.eye(4))
    with pytest.raises(InputTypeError, match="shared"):
        efemb.NegativeSampling(2, shared="no").check()  # type: ignore[arg-type]
