"""Text: negative sampling against gensim, at the same windows and negatives, one epoch.

Both sides' vectors are judged by the same code: the expected negative-sampling log-likelihood of
held-out words (log sigma(u) of the word plus n times the mean of log sigma(-u) under the noise),
the held-out log-likelihood when noise x odds are normalized over the vocabulary, WordSim-353 and
analogies. gensim's words per CPU-second are those of `train` alone.

Skip-gram is the one job that the sides do not do alike: ours draws its negatives once a word, for
all the words around it, gensim anew for each of them. What that costs in quality is judged as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Report, Settings, Spread, in_new_process, stopwatch
from benchmarks.rivals.gensim import Gensim, word_vectors
from benchmarks.text_data import imdb, newsgroups, pairs_file, questions_file

WORDS_SCORED = 20_000
SHORT = 10_000_000  # words: a second is soon over, and needs more turns
TARGETS = {5: 3.5, 10: 3.0, 20: 2.7}  # by the number of negatives
JUDGED, SKIP_GRAM = 5, 3.0  # with so many negatives scores are told; the target of skip-gram


@dataclass(frozen=True)
class Trained:
    """Factors, and thousands of target words per CPU-second and per second."""

    fitted: Any
    speed: float
    wall_speed: float


def run(settings: Settings) -> Report:
    """CBOW for several numbers of negatives, skip-gram, memory."""
    report = Report("text", settings)
    if not Gensim.available():
        report.add("gensim, which all is compared with", Gensim.missing())
        return report
    for name, read in (("imdb", imdb), ("20newsgroups", newsgroups)):
        train, test = read(settings)
        report.add(f"{name}: tokens, words", f"{train.n_tokens:,}, {train.n_entities:,}")
        for n in TARGETS:
            _contest(report, name, train, test, n)
        _contest(report, name, train, test, JUDGED, reverse=True)
        if settings.quick:
            break
    if not settings.quick:
        found = in_new_process(fit_imdb, data=str(settings.data or ""))
        report.add("imdb: peak memory of read and fit, GB", found["peak_bytes"] / 1e9, at_most=1.0)
    return report


def fit_imdb(data: str) -> dict[str, Any]:
    """Read the reviews and fit, for the peak memory of a process that does nothing else."""
    from pathlib import Path

    train, _ = imdb(Settings(data=Path(data) if data else None))
    ours(train, n=5, seed=0)
    return {}


# -- the two sides ---------------------------------------------------------------------------------


def ours(train: Any, n: int, seed: int, *, reverse: bool = False, n_jobs: int = 1) -> Trained:
    """One epoch of our model, window 5, mean context, K=100."""
    import efemb

    kind = efemb.SkipGram if reverse else efemb.BernoulliTextEmbedding
    zeros = efemb.NegativeSampling(n, "smoothed")
    options = {"context": efemb.Window(5, scale="items"), "zeros": zeros, "max_iter": 1}
    model = kind(100, random_state=seed, n_jobs=n_jobs, **options)
    with stopwatch() as timing:
        model.fit(train)
    return Trained(model.fitted(), *_rates(train, timing))


def gensim(train: Any, n: int, seed: int, *, reverse: bool = False, n_jobs: int = 1) -> Trained:
    """gensim's vectors as a model of ours, for the common judge."""
    import efemb

    inner, outer, timing = word_vectors(train, n, seed, reverse=reverse, n_jobs=n_jobs)
    # gensim predicts a word from those around it in both modes; ours does the reverse in one.
    parameters = efemb.model.parameters.Parameters(*((inner, outer) if reverse else (outer, inner)))
    fitted = efemb.fitted.FittedEmbedding(parameters, ours_spec(n, reverse), train.vocabulary)
    return Trained(fitted, *_rates(train, timing))


def ours_spec(n: int, reverse: bool) -> Any:
    """Ingredients of the model that both sides fit."""
    import efemb
    from efemb.model.spec import Spec

    return Spec.resolve(
        context=efemb.Window(5, scale="items"),
        family="bernoulli",
        combine="reverse" if reverse else "linear",
        prior=None,
        zeros=efemb.NegativeSampling(n, "smoothed"),
        intercept=False,
    )


def _rates(train: Any, timing: Any) -> tuple[float, float]:
    return train.n_tokens / timing.cpu / 1e3, train.n_tokens / timing.wall / 1e3


# -- the judge -------------------------------------------------------------------------------------


def pseudo_log_likelihood(fitted: Any, test: Any, n: int) -> float:
    """Expected negative-sampling log-likelihood a held-out word, exact over the noise."""
    from efemb.model.contexts import WindowBags
    from efemb.model.score import Entries

    bound = WindowBags(test, fitted.spec.context)
    rows = np.sort(np.random.default_rng(0).permutation(test.n_tokens)[:WORDS_SCORED])
    entries = Entries.leave_one_out(bound.block(rows), test.n_entities).known()
    noise = bound.word_counts**0.75
    noise = (noise / noise.sum()).astype(np.float32)
    rho, alpha = fitted.parameters.rho, fitted.parameters.alpha
    total = 0.0
    for part, Z in entries.blocks(alpha, len(rho)):
        u = Z @ rho.T
        own = u[np.arange(len(u)), entries.ids[part]]
        total -= float(np.logaddexp(0, -own).sum() + n * (np.logaddexp(0, u) @ noise).sum())
    return total / len(entries.ids)


def judged(fitted: Any, test: Any, settings: Settings) -> dict[str, float]:
    """Likelihoods of held-out words, and of full runs how close words are that mean the same."""
    import efemb

    found = {}
    if not fitted.spec.combine.reverse:
        found["pseudo-LL"] = pseudo_log_likelihood(fitted, test, JUDGED)
    held = efemb.evaluation.held_out_words(fitted, test, n_words=WORDS_SCORED)
    found["LL a word"] = held.log_likelihood
    if settings.quick:
        return found
    for which in ("rho", "alpha"):
        vectors = fitted.vectors(which)
        close = efemb.evaluation.word_similarity(vectors, pairs_file(settings))
        found[f"WordSim-353 {which}"] = close.spearman
        best = efemb.evaluation.analogies(vectors, questions_file(settings), restrict=30_000)
        found[f"analogies {which}"] = float(best["accuracy"][-1])
    return found


# -- the contest -----------------------------------------------------------------------------------


def _contest(
    report: Report, name: str, train: Any, test: Any, n: int, *, reverse: bool = False
) -> None:
    """Target words per CPU-second, both sides in turn; the first fits are judged, too."""
    settings = report.settings
    ours(train[:20], n, 0, reverse=reverse)  # compiles, or loads what was compiled
    sides: dict[str, Any] = {"ours": ours, "gensim": gensim}
    speeds: dict[str, list[float]] = {side: [] for side in sides}
    figures: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for seed in range(_turns(settings, train, reverse=reverse)):
        for side, fit in sides.items():
            found = fit(train, n, seed, reverse=reverse)
            speeds[side].append(found.speed)
            if n == JUDGED and seed in settings.seeds:
                figures[side].append(judged(found.fitted, test, settings))
    label = f"{name}: {'skip-gram' if reverse else 'CBOW'}"
    _quality(report, label, *figures.values())
    mine, theirs = speeds.values()
    ratios = Spread.of([a / b for a, b in zip(mine, theirs, strict=True)])
    note = f"{Spread.of(mine)} against {Spread.of(theirs)} thousand words per CPU-s"
    target = SKIP_GRAM if reverse else TARGETS[n]
    report.add(f"{label} n={n}, speed over gensim's", ratios, at_least=target, beside=note)


def _turns(settings: Settings, train: Any, *, reverse: bool) -> int:
    """More of fits that take a second, fewer of those that take minutes."""
    if settings.quick or train.n_tokens >= SHORT:
        return 1 if reverse else settings.repeats
    return settings.repeats if reverse else 3 * settings.repeats


def _quality(
    report: Report, label: str, mine: list[dict[str, float]], theirs: list[dict[str, float]]
) -> None:
    for what in mine[0] if mine else ():
        own, rival = ([each[what] for each in side] for side in (mine, theirs))
        least = min(rival) - (0.005 if "LL" in what else 0.0)
        note = f"gensim {Spread.of(rival)}"
        report.add(f"{label} {what}", Spread.of(own), at_least=least, beside=note)
