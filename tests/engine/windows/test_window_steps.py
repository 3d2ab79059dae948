"""Steps of the kernels are gradients of the drawn outputs, term by term, as plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import efemb
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from engine.windows import plain, samples
from engine.windows.steps import CASES, DIRECTIONS, SEED, TINY, assert_close, model, visits


def assert_steps(
    spec: Spec, text: efemb.Corpus, k: int, *, intercept: bool = True, tied: bool = False
) -> None:
    start = samples.parameters(text.n_entities, k, intercept, tied=tied)
    run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(TINY))
    listed, value = visits(spec, samples.drawn(run, SEED), start, text.counts())
    found = samples.go(run, SEED)
    assert_allclose(found, value, rtol=1e-5)
    moved = samples.moves(start, run.parameters, TINY, spec.combine.reverse)
    expected = plain.summed(listed, start.rho.shape)
    if tied:
        both = expected[0] + expected[1]
        expected = (both, both, expected[2])
    if not intercept:
        expected = (*expected[:2], np.zeros_like(expected[2]))
    for name, one, other in zip(("target", "bag", "bias"), moved, expected, strict=True):
        assert_close(one, other, name)


@pytest.mark.parametrize(("zeros", "how"), CASES)
@pytest.mark.parametrize("k", [1, 4, 5, 19, 23])
def test_a_pass_is_the_gradient_of_what_was_drawn(zeros: str, how: str, k: int) -> None:
    """Texts with edges, one word, nothing, and documents shorter than the window."""
    assert_steps(model(zeros, how), samples.corpus(), k)


@pytest.mark.parametrize(("zeros", "how"), CASES)
@pytest.mark.parametrize("window", [1, 6])
def test_windows_of_any_size(zeros: str, how: str, window: int) -> None:
    lengths = (1, 2, 1, 3, 20, 0, 13)
    assert_steps(model(zeros, how, window), samples.corpus(lengths, n_words=9), 3)


@pytest.mark.parametrize("how", DIRECTIONS)
@pytest.mark.parametrize("zeros", ["negative-sampling", "hierarchical"])
def test_without_intercepts(zeros: str, how: str) -> None:
    assert_steps(model(zeros, how, intercept=False), samples.corpus(), 6, intercept=False)


@pytest.mark.parametrize("how", DIRECTIONS)
def test_tied_vectors_move_by_both_roles(how: str) -> None:
    spec = model("negative-sampling", how, structure="tied")
    assert_steps(spec, samples.corpus(), 6, tied=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", DIRECTIONS)
def test_long_documents(how: str) -> None:
    """Running sums are recomputed on the way."""
    text = samples.corpus((2500, 1100), n_words=12)
    start = samples.parameters(12, 3, True)
    spec = model("negative-sampling", how)
    run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(TINY))
    listed, value = visits(spec, samples.drawn(run, SEED), start, text.counts())
    assert_allclose(samples.go(run, SEED), value, rtol=1e-4)
    expected = plain.summed(listed, start.rho.shape)
    moved = samples.moves(start, run.parameters, TINY, how == "reverse")
    for one, other in zip(moved, expected, strict=True):
        assert_allclose(one, other, rtol=1e-3, atol=1e-3 * np.abs(other).max())


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any),
    window=st.integers(1, 5),
    k=st.integers(1, 21),
    how=st.sampled_from(DIRECTIONS),
    zeros=st.sampled_from(["negative-sampling", "hierarchical"]),
    n_words=st.integers(2, 7),
)
def test_any_text_and_window(
    lengths: list[int], window: int, k: int, how: str, zeros: str, n_words: int
) -> None:
    """A vocabulary may have words that the text lacks."""
    counts = [float(n_words - i) for i in range(n_words)]
    text = samples.corpus(tuple(lengths), n_words=n_words, counts=counts)
    spec, start = model(zeros, how, window), samples.parameters(n_words, k, True)
    run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(TINY))
    listed, _ = visits(spec, samples.drawn(run, SEED), start, counts)
    samples.go(run, SEED)
    expected = plain.summed(listed, start.rho.shape)
    moved = samples.moves(start, run.parameters, TINY, how == "reverse")
    for one, other in zip(moved, expected, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize(("zeros", "how"), CASES)
def test_single_precision_walks_the_same_way(zeros: str, how: str) -> None:
    """Real steps, several passes: rounding only."""
    text, spec = samples.corpus((40, 1, 3, 30)), model(zeros, how)
    ends = []
    for dtype in ("float32", "float64"):
        start = samples.parameters(5, 6, True).astype(dtype)
        run = samples.passes(spec, text, start, efemb.engine.optimizers.Adagrad(0.1, epsilon=1e-4))
        for seed in range(3):
            samples.go(run, seed)
        ends.append(run.parameters)
    for one, other in zip(ends[0].arrays(), ends[1].arrays(), strict=True):
        assert one.dtype == np.float32
        assert_allclose(one, other, atol=2e-4)


@pytest.mark.parametrize(("zeros", "how"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_products_stay_finite(zeros: str, how: str, dtype: str) -> None:
    text, spec = samples.corpus(), model(zeros, how)
    big = samples.parameters(5, 4, True)
    start = Parameters(40 * big.rho, 40 * big.alpha, big.intercept).astype(dtype)
    run = samples.passes(spec, text, start, efemb.engine.optimizers.SGD(1e-3))
    assert np.isfinite(samples.go(run, SEED))
    assert run.parameters.is_finite()


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_words_alone_move_their_intercepts(how: str) -> None:
    """A document of one word has no context: u is the intercept, as in the objective."""
    text = samples.corpus((1, 1, 1, 4), n_words=3)
    spec = model("negative-sampling", how)
    start = samples.parameters(3, 4, True)
    run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(TINY))
    drawn, tables = samples.drawn(run, SEED), samples.tables(spec, start)
    every = list(plain.cbow_visits(drawn, tables, 2, how == "mean", False))
    expected = plain.summed([one for one in every if isinstance(one, plain.Visit)], (3, 4))
    samples.go(run, SEED)
    moved = samples.moves(start, run.parameters, TINY, False)
    assert_close(moved[2], expected[2])
