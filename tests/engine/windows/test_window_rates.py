"""Lengths of steps: Adagrad, decay, and the share of the prior in each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.threads import Workers
from efemb.model.spec import Spec
from engine.windows import plain, samples
from engine.windows.steps import CASES, DIRECTIONS, SEED, TINY, assert_close, model, visits


@pytest.mark.parametrize(("zeros", "how"), CASES)
@pytest.mark.parametrize("k", [4, 5, 8, 11])
def test_adagrad_keeps_one_sum_a_row(zeros: str, how: str, k: int) -> None:
    epsilon, text, spec = 1e-3, samples.corpus((9, 2, 1, 6)), model(zeros, how)
    start = samples.parameters(5, k, True)
    run = samples.passes(
        spec, text, start.copy(), efemb.engine.optimizers.Adagrad(TINY, epsilon=epsilon)
    )
    listed, _ = visits(spec, samples.drawn(run, SEED), start, text.counts())
    samples.go(run, SEED)
    expected = plain.adagrad(listed, start.rho.shape, epsilon)
    moved = samples.moves(start, run.parameters, TINY, how == "reverse")
    for name, one, other in zip(("target", "bag", "bias"), moved, expected, strict=True):
        assert_close(one, other, name)


def test_adagrad_goes_on_where_it_stood() -> None:
    """Sums of squares add up over passes and are restored from a state."""
    epsilon, text, spec = 1e-3, samples.corpus(), model("negative-sampling", "sum")
    start = samples.parameters(5, 4, True)
    run = samples.passes(
        spec, text, start.copy(), efemb.engine.optimizers.Adagrad(TINY, epsilon=epsilon)
    )
    listed = []
    for seed in (1, 2):
        more, _ = visits(spec, samples.drawn(run, seed), start, text.counts())
        listed += more
        samples.go(run, seed)
    moved = samples.moves(start, run.parameters, TINY, False)
    for one, other in zip(moved, plain.adagrad(listed, (5, 4), epsilon), strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("n_passes", [1, 3])
def test_linear_decay_falls_to_nothing_over_all_passes(n_passes: int) -> None:
    """The step decreases linearly with the text that has been seen, chunk by chunk."""
    text = samples.corpus(tuple([400] * 120), n_words=4)
    spec, start = model("negative-sampling", "sum", 1), samples.parameters(4, 4, False)
    spec = samples.spec(spec.context, spec.zeros, intercept=False)
    optimizer = efemb.engine.optimizers.SGD(TINY, decay="linear")
    run = samples.passes(spec, text, start.copy(), optimizer, n_passes=n_passes)
    steps: list[float] = []
    inner = run._step
    run._step = lambda drawn, step: (steps.append(step), inner(drawn, step))[1]  # type: ignore[method-assign]
    sizes = []
    for number in range(n_passes):
        sizes += [chunk.n_tokens for chunk in samples.chunks(run, number)]
        samples.go(run, number)
    assert len(sizes) > n_passes, "one chunk a pass shows little"
    before = np.cumsum([0, *sizes[:-1]]) / sum(sizes)
    assert_allclose(steps, TINY * np.maximum(1.0 - before, 1e-4))


@pytest.mark.parametrize("decay", [1e-3, 1e6])
def test_decay_by_a_number_is_refused(decay: float) -> None:
    """A linear decay follows the share of the text; a number would need a count of steps."""
    text = samples.corpus((30,) * 4)
    model = efemb.SkipGram(
        3, context=efemb.Window(2), optimizer=efemb.engine.optimizers.SGD(0.05, decay=decay)
    )
    with pytest.raises(efemb.ParameterError, match=r"decay=0 or 'linear'.*got SGD\(.*decay="):
        model.fit(text)


# -- priors ---------------------------------------------------------------------------------------


def shrunk(spec: Spec, text: efemb.Corpus, seeds: int) -> tuple[Any, Any]:
    """-(new - old) / (step theta) beyond the data's gradient, of target and bag: the precision."""
    start = samples.parameters(text.n_entities, 4, False)
    found = []
    for seed in range(seeds):
        run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(TINY))
        listed, _ = visits(spec, samples.drawn(run, seed), start, text.counts())
        expected = plain.summed(listed, start.rho.shape)
        samples.go(run, seed)
        moved = samples.moves(start, run.parameters, TINY, spec.combine.reverse)
        arrays = samples.tables(spec, start)
        used = slice(-1) if isinstance(spec.zeros, efemb.Hierarchical) else slice(None)
        pairs = [
            (moved[0][used], expected[0][used], arrays.target[used]),
            (moved[1], expected[1], arrays.bag),
        ]
        found.append([-((m - e) * t).sum() / (t * t).sum() for m, e, t in pairs])
    target, bag = np.mean(found, axis=0)
    return target, bag


@pytest.mark.slow
@pytest.mark.parametrize("how", DIRECTIONS)
@pytest.mark.parametrize("zeros", ["negative-sampling", "hierarchical"])
def test_a_pass_carries_the_whole_prior(zeros: str, how: str) -> None:
    """Each visit applies a share of the prior; the visits of a pass add up to all of it."""
    prior = (efemb.Normal(2.0), efemb.Normal(3.0))
    spec = model(zeros, how, prior=prior, intercept=False)
    target, bag = shrunk(spec, samples.corpus((60, 60), n_words=4), 40)
    expected = (3.0, 2.0) if how == "reverse" else (2.0, 3.0)
    assert_allclose((target, bag), expected, rtol=0.05)


def test_a_pass_over_a_part_of_the_text_carries_the_whole_prior() -> None:
    """A vocabulary may come from a longer text."""
    whole = samples.corpus((60,) * 4, n_words=4)
    part = samples.corpus((60,), n_words=4, counts=whole.counts())
    spec = model("hierarchical", "sum", prior=efemb.Normal(2.0), intercept=False)
    target, bag = shrunk(spec, part, 1)
    assert_allclose((target, bag), (2.0, 2.0), rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", DIRECTIONS)
def test_a_pass_over_thinned_text_carries_the_whole_prior(how: str) -> None:
    """Fewer visits with larger shares; the number of remaining neighbors is an expectation."""
    spec = model("hierarchical", how, prior=efemb.Normal(2.0), intercept=False)
    thinned = samples.spec(
        efemb.Window(2, subsample=0.05), spec.zeros, **_rest(spec), intercept=False
    )
    target, bag = shrunk(thinned, samples.corpus((300, 300), n_words=6), 6)
    assert_allclose((target, bag), (2.0, 2.0), rtol=0.1)


def _rest(spec: Spec) -> dict[str, Any]:
    return {"combine": spec.combine, "prior": spec.prior_rho}


def test_tied_vectors_are_shrunk_once() -> None:
    spec = model("hierarchical", "sum", prior=efemb.Normal(2.0), intercept=False)
    tied = model(
        "negative-sampling", "sum", prior=efemb.Normal(2.0), intercept=False, structure="tied"
    )
    text = samples.corpus((200,), n_words=60)
    start = samples.parameters(60, 4, False, tied=True)
    found = []
    for seed in range(6):
        ends = []
        for one in (
            tied,
            samples.spec(spec.context, tied.zeros, intercept=False, structure="tied"),
        ):
            run = samples.passes(one, text, start.copy(), efemb.engine.optimizers.SGD(TINY))
            samples.go(run, seed)
            ends.append(run.parameters.rho)
        gap = (ends[1] - ends[0]) / TINY
        found.append((gap * start.rho).sum() / (start.rho**2).sum())
    assert_allclose(np.mean(found), 2.0, rtol=0.05)


@pytest.mark.parametrize(
    "optimizer",
    [efemb.engine.optimizers.SGD(0.5), efemb.engine.optimizers.Adagrad(0.3, epsilon=1e-4)],
)
@pytest.mark.parametrize("precision", [1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("how", DIRECTIONS)
def test_no_prior_throws_a_vector_beyond_zero(how: str, precision: float, optimizer: Any) -> None:
    """Documents of one word have no context, so that only the prior changes vectors in a pass."""
    text = samples.corpus((1,) * 12, n_words=4)
    spec = model("negative-sampling", how, prior=efemb.Normal(precision), intercept=False)
    start = samples.parameters(4, 5, False)
    run = samples.passes(spec, text, start.copy(), optimizer)
    samples.go(run, SEED)
    moved = run.parameters.alpha if how == "reverse" else run.parameters.rho
    before = start.alpha if how == "reverse" else start.rho
    assert (moved * before >= 0).all()
    assert (np.abs(moved) < np.abs(before)).all()


@pytest.mark.parametrize("how", DIRECTIONS)
def test_the_strongest_prior_leaves_nothing(how: str) -> None:
    spec = model("negative-sampling", how, prior=efemb.Normal(1e9), intercept=False)
    start = samples.parameters(4, 5, False)
    text = samples.corpus((60, 60), n_words=4)
    run = samples.passes(
        spec, text, start.copy(), efemb.engine.optimizers.Adagrad(0.3, epsilon=1e-4)
    )
    samples.go(run, SEED)
    for vectors in run.parameters.arrays():
        assert np.abs(vectors).max() < 1e-6


@pytest.mark.parametrize("prior", [None, efemb.Normal(30.0)])
def test_what_a_prior_shrinks_is_not_copied(prior: Any) -> None:
    """If each copy were shrunk to zero, the row would be subtracted once per thread."""
    spec = model("negative-sampling", "sum", prior=prior, intercept=False)
    pool = Workers(3)
    text = samples.corpus((700,) * 90, n_words=20)
    run = samples.passes(
        spec, text, samples.parameters(20, 5, False), efemb.engine.optimizers.SGD(0.1), workers=pool
    )
    pool.close()
    assert [len(copies.hot) > 0 for copies in run.hot] == [prior is None] * 2
