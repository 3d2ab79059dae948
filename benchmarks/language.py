"""Language: the exact softmax on the Penn Treebank, its approximations and positions on Brown."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Report, Settings, fit_watched, sgemm_rate
from benchmarks.text_data import brown, ptb


def run(settings: Settings) -> Report:
    """Perplexity and rate of the exact model, then the table of approximations."""
    report = Report("language", settings)
    rate = sgemm_rate()
    report.add("sgemm-2048, GFLOP/s", rate)
    _exact(report, rate)
    _approximations(report)
    return report


def unigram_log_likelihood(train: Any, test: Any) -> float:
    """Mean log-probability of the test words by add-one counts."""
    counts = train.counts() + 1.0
    return float(np.log(counts / counts.sum())[test.tokens].mean())


def _exact(report: Report, rate: float) -> None:
    """Exact CBOW on the Penn Treebank sample."""
    import efemb

    train, validation, test = ptb(report.settings)
    window = efemb.Window(5, scale="items")
    # A pass is 5.6 teraflop: five of them tell what there is to tell.
    model = efemb.CBOW(100, context=window, random_state=0, max_iter=5)
    found = fit_watched(model, train, validation=validation)
    before = np.exp(-unigram_log_likelihood(train, test))
    held = efemb.evaluation.held_out_words(model, test)
    note = f"add-one unigram {before:.1f}, {found.timing.cpu:.0f} CPU-s, {model.n_iter_} passes"
    report.add("PTB: exact CBOW, perplexity a word", held.perplexity, at_most=before, beside=note)
    flops = 6.0 * train.n_tokens * train.n_entities * 100
    cost = found.watch.per_pass() - _validation_cost(model, validation)
    part = flops / cost / 1e9 / rate
    report.add("PTB: part of the sgemm rate", part, at_least=0.4, beside=f"{cost:.1f} CPU-s a pass")


def _validation_cost(model: Any, validation: Any) -> float:
    """CPU-seconds of the score that follows each pass."""
    from benchmarks.harness import stopwatch

    with stopwatch() as timing:
        model.score(validation)
    return timing.cpu


def _approximations(report: Report) -> None:
    """Held-out exact log-likelihood of every way to fit a softmax, on Brown."""
    import efemb

    train, validation, test = brown(report.settings)
    unigram = unigram_log_likelihood(train, test)
    sizes = f"{train.n_tokens:,} tokens, {train.n_entities:,} words"
    report.add("Brown: add-one unigram, LL a word", unigram, beside=sizes)
    window = efemb.Window(5, scale="items")
    amounts = (5, 20, 100)
    models: dict[str, Any] = {
        "exact CBOW": efemb.CBOW(50, context=window, random_state=0),
        "vLBL (positional)": efemb.CBOW(
            50, context=efemb.Window(5, scale="items", positional=True), random_state=0
        ),
        "hierarchical softmax": efemb.CBOW(50, context=window, zeros="hierarchical"),
        **{
            f"noise-contrastive n={n}": efemb.CBOW(
                50, context=window, zeros=efemb.NoiseContrastive(n)
            )
            for n in amounts
        },
        **{
            f"sampled softmax n={n}": efemb.CBOW(50, context=window, zeros=efemb.SampledSoftmax(n))
            for n in amounts
        },
        "negative sampling n=5": efemb.BernoulliTextEmbedding(50, context=window),
    }
    for name, model in models.items():
        planned = model.zeros != "all"
        options = {"early_stopping": True, "max_iter": 20} if planned else {}
        model.set_params(random_state=0, **options)
        found = fit_watched(model, train, validation=validation)
        held = efemb.evaluation.held_out_words(model, test)
        note = f"best of {model.n_iter_} passes: {model.best_iter_}; {found.timing.cpu:.0f} CPU-s"
        report.add(f"Brown: {name}, LL a word", held.log_likelihood, at_least=unigram, beside=note)
