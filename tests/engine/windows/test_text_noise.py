"""Noise: what is drawn, how often, and what its gradient tends to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import Workers
from efemb.kernels.negatives import alias_table
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from engine.windows import plain, samples

RARE = 1e-6  # a p-value that no right program meets


# -- the distribution -----------------------------------------------------------------------------

SHARES: dict[str, Any] = {
    "even": np.ones(8),
    "one-rules": np.array([1e4, 1, 1, 1, 1e-3]),
    "zipf": 1.0 / np.arange(1, 1000),
    "zeros": np.array([0.0, 3.0, 0.0, 1.0, 0.0]),
    "rising": np.arange(1.0, 30.0),
    "alone": np.array([0.0, 1.0]),
}


@pytest.mark.parametrize("name", SHARES)
def test_the_alias_table_holds_the_distribution(name: str) -> None:
    """Every place gives a part to itself and the rest to another."""
    share = SHARES[name] / SHARES[name].sum()
    table = np.empty((len(share), 2), np.uint32)
    alias_table(share, table)
    held = np.zeros(len(share))
    for i, (bound, other) in enumerate(table.tolist()):
        keep = bound / (2**32 - 1)
        held[i] += keep / len(share)
        held[other] += (1 - keep) / len(share)
    assert_allclose(held, share, atol=1e-8)


@pytest.mark.parametrize(
    ("distribution", "power"),
    [("popularity", 1.0), ("sqrt", 0.5), ("smoothed", 0.75), ("uniform", 0)],
)
def test_noise_has_its_distribution(distribution: str, power: float) -> None:
    """Given that it is not the word itself."""
    text = samples.corpus((3000, 2000), n_words=6)
    source = samples.streams(text, efemb.NegativeSampling(7, distribution))
    found = samples.outputs(source, 1)
    seen = np.zeros((6, 6))
    for document, outputs in zip(found.documents, found.outputs, strict=True):
        for word, pairs in zip(document, outputs, strict=True):
            for row, label in pairs:
                seen[word, row] += label == 0
    q = np.array(plain.noise(text.counts().tolist(), power))
    for word in range(6):
        assert seen[word, word] == 0
        others = np.delete(q, word)
        expected = others / others.sum() * seen[word].sum()
        assert stats.chisquare(np.delete(seen[word], word), expected).pvalue > RARE
        n_draws = 7 * int(text.counts()[word])
        assert stats.binomtest(int(seen[word].sum()), n_draws, 1 - q[word]).pvalue > RARE


def test_noise_of_ones_own_distribution_and_counts_of_the_vocabulary() -> None:
    text = samples.corpus((4000,), n_words=4, counts=[1.0, 1.0, 1.0, 97.0])
    for distribution in ("popularity", np.array([0.01, 0.01, 0.01, 0.97])):
        found = samples.outputs(samples.streams(text, efemb.NegativeSampling(2, distribution)), 0)
        rows = [
            row
            for document, outputs in zip(found.documents, found.outputs, strict=True)
            for word, pairs in zip(document, outputs, strict=True)
            for row, label in pairs
            if not label and word == 0
        ]
        n = int((text.tokens == 0).sum()) * 2
        assert stats.binomtest(rows.count(3), n, 0.97).pvalue > RARE


def test_each_token_comes_first_with_label_one_and_once() -> None:
    text = samples.corpus((40, 1, 0, 9), n_words=3)
    found = samples.outputs(samples.streams(text, efemb.NegativeSampling(4, "uniform")), 2)
    assert found.documents == samples.documents(text)
    for document, outputs in zip(found.documents, found.outputs, strict=True):
        for word, pairs in zip(document, outputs, strict=True):
            assert pairs[0] == (word, 1)
            assert all(row != word and label == 0 for row, label in pairs[1:])
            assert len(pairs) <= 5


def test_other_seeds_other_draws() -> None:
    source = samples.streams(samples.corpus((200,)), efemb.NegativeSampling(4, "uniform"))
    first, again, second = (samples.outputs(source, seed).outputs for seed in (0, 0, 1))
    assert first == again
    assert first != second


# -- what the draws tend to -----------------------------------------------------------------------


def mean_moves(spec: Any, text: efemb.Corpus, start: Parameters, seeds: int) -> tuple[Any, Any]:
    """Mean over seeds of the moves of a pass as one vector, and its standard error."""
    step, found = 1e-7, []
    for seed in range(seeds):
        run = samples.passes(spec, text, start.copy(), efemb.engine.optimizers.SGD(step))
        samples.go(run, seed)
        moved = samples.moves(start, run.parameters, step, spec.combine.reverse)
        found.append(np.concatenate([one.ravel() for one in moved]))
    return np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(seeds)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sum", "mean", "reverse"])
def test_negative_sampling_tends_to_its_objective(how: str) -> None:
    """The mean of drawn gradients is the gradient of positives + n sum of q_v log s(-u_v)."""
    text, start = samples.corpus((8, 3, 6)), samples.parameters(5, 3, True)
    zeros = efemb.NegativeSampling(2, "smoothed")
    context = efemb.Window(2, scale="items" if how == "mean" else "none")
    combine = "reverse" if how == "reverse" else "linear"
    spec = samples.spec(context, zeros, combine=combine)
    mean, error = mean_moves(spec, text, start, 1500)
    options: dict[str, Any] = {"context": context, "combine": combine, "prior": None}
    model = efemb.Embedding(3, family="bernoulli", zeros=zeros, **options)
    _, g = model.objective(text, start)
    pair = (g.alpha, g.rho) if combine == "reverse" else (g.rho, g.alpha)
    assert g.intercept is not None
    exact = np.concatenate([pair[0].ravel(), pair[1].ravel(), g.intercept])
    assert_allclose((mean - exact) / (5 * error + 1e-4), 0, atol=1.0)


@pytest.mark.parametrize(
    "zeros",
    [efemb.NoiseContrastive(4, "smoothed"), efemb.SampledSoftmax(4, "smoothed")],
    ids=["noise-contrastive", "sampled-softmax"],
)
def test_the_true_unigram_is_where_noise_stands_still(zeros: Any) -> None:
    """With rho = 0 and intercept = log p, u is the logarithm of a probability: no mean gradient."""
    text = samples.corpus((300,), n_words=4)
    start = samples.parameters(4, 3, True)
    chance = text.counts() / text.n_tokens
    start = Parameters(np.zeros_like(start.rho), start.alpha, np.log(chance))
    mean, error = mean_moves(samples.spec(efemb.Window(2), zeros), text, start, 300)
    assert_allclose(mean[-4:] / (5 * error[-4:] + 1e-3), 0, atol=1.0)


@pytest.mark.parametrize(
    "zeros",
    [efemb.NoiseContrastive(4000, "smoothed"), efemb.SampledSoftmax(4000, "smoothed")],
    ids=["noise-contrastive", "sampled-softmax"],
)
def test_many_draws_tend_to_the_exact_softmax(zeros: Any) -> None:
    """As the docstrings say; contexts whose u is normalized, as noise contrast needs."""
    text = samples.corpus((40, 30), n_words=4)
    start = samples.parameters(4, 3, True)
    share = np.array([0.4, 0.3, 0.2, 0.1])
    start = Parameters(np.zeros_like(start.rho), start.alpha, np.log(share))
    mean, _ = mean_moves(samples.spec(efemb.Window(2), zeros), text, start, 4)
    _, g = efemb.CBOW(3, context=efemb.Window(2)).objective(text, start)
    assert g.intercept is not None
    exact = np.concatenate([g.rho.ravel(), g.alpha.ravel(), g.intercept])
    assert_allclose(mean, exact, atol=0.05 * np.abs(exact).max())


@pytest.mark.parametrize("kind", [efemb.NoiseContrastive, efemb.SampledSoftmax])
def test_softmaxes_start_at_the_unigram(kind: Any) -> None:
    text = samples.corpus((80, 40), n_words=5)
    still = efemb.engine.optimizers.SGD(1e-12)
    options: dict[str, Any] = {"context": efemb.Window(2), "random_state": 0, "max_iter": 1}
    model = efemb.CBOW(3, zeros=kind(4, "smoothed"), optimizer=still, **options).fit(text)
    assert model.intercept_ is not None
    gap = model.intercept_ - np.log(text.counts() / text.n_tokens)
    assert np.ptp(gap) < 1e-3


@pytest.mark.parametrize("zeros", ["negative-sampling", "noise-contrastive", "sampled-softmax"])
def test_words_that_never_occur_do_no_harm(zeros: str) -> None:
    text = efemb.Corpus([0, 1, 1] * 12, [0, 36], ["a", "b", "never"])
    kind = efemb.BernoulliTextEmbedding if zeros == "negative-sampling" else efemb.CBOW
    options: dict[str, Any] = {"context": efemb.Window(2), "intercept": True, "random_state": 0}
    model = kind(2, zeros=zeros, **options).fit(text)
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.score(text))


# -- unbiased zeros -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("positional", [False, True], ids=["plain", "positional"])
@pytest.mark.parametrize("combine", ["linear", "reverse"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_sampled_zeros_are_unbiased(family: str, combine: str, positional: bool) -> None:
    text, zeros = samples.corpus(), efemb.Sampled(2, "sqrt")
    context = efemb.Window(2, positional=positional)
    spec = samples.spec(context, zeros, family=family, combine=combine)
    solver = make_solver("rows", context.bind(text), spec, Workers(1), dtype=np.float64)
    space = ParameterSpace(spec, 5, solver.bound.n_slots, 1, 3)
    start = samples.parameters(5, 3, True)
    if positional:
        start.position = np.random.default_rng(0).normal(size=(4, 3))
    vectors = space.vectors(start)

    def flat(slopes: Any) -> Any:
        parts = []
        for name in ("target", "bag", "intercept"):
            array = getattr(slopes, name)
            full = np.zeros_like(getattr(vectors, name))
            full[slice(None) if slopes.rows is None else slopes.rows] = array
            parts.append(full.ravel())
        return np.concatenate(parts)

    found = []
    for _ in range(600):
        value, slopes = solver.value_and_gradient(vectors)
        found.append(np.append(flat(slopes), value))
    options: dict[str, Any] = {"context": context, "combine": combine, "prior": None}
    value, gradient = efemb.Embedding(3, family=family, **options).objective(text, start)
    exact_value, exact = solver.value_and_gradient(vectors, exact=True)
    pulled = space.pull_back(start, exact)
    for one, other in zip(pulled.arrays(), gradient.arrays(), strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    assert_allclose(exact_value, value, rtol=1e-8)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (error > 0).any()
    gap = np.mean(found, axis=0) - np.append(flat(exact), value)
    assert_allclose(gap / (4 * error + 1e-6), 0, atol=1.0)


def test_words_that_never_occur_are_told_to_be_rare() -> None:
    """Never drawn as noise, they would stay at u = 0, above words at the logarithm of a share."""
    tokens = np.random.default_rng(0).integers(0, 20, 6_000)
    text = efemb.Corpus(tokens, np.arange(0, 6_001, 60), [f"w{n}" for n in range(24)])
    model = efemb.CBOW.paper(3, zeros=efemb.NoiseContrastive(5), max_iter=8, random_state=0)
    assert model.fit(text).conditional(text)[:, 20:].sum(axis=1).mean() < 0.2
