"""Baskets: Complete Journey with every zero exact, and with sampled zeros."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.data import Counts, baskets, popularity_score
from benchmarks.harness import (
    Report,
    Settings,
    Spread,
    Watched,
    fit_watched,
    in_new_process,
    interleaved,
    sgemm_rate,
    stopwatch,
)
from benchmarks.plain_numpy import Baskets, reference_pass, trained_baskets
from benchmarks.threads import two_threads

AFTER_BEST = 10  # further evaluations in which sampled zeros must not diverge
DIVERGED = 0.05


def run(settings: Settings) -> Report:
    """Speed first, while the machine is in one state; then scores."""
    report = Report("baskets", settings)
    counts = baskets(settings)
    k, small_k = (10, 4) if settings.quick else (100, 20)
    _rate(report, counts, k)
    _small_rate(report, counts, small_k)
    _additive_rate(report, counts, k)
    _threads(report, counts, k)
    report.add("popularity, test score", popularity_score(counts.train, counts.test))
    exact = _exact(report, counts, k)
    _to_numpys_best(report, counts, k, exact)
    _sampled(report, counts, k, exact)
    _additive(report, counts, k)
    _memory(report, settings, k)
    return report


def _made(k: int, **options: Any) -> Any:
    from efemb import PoissonEmbedding

    return PoissonEmbedding(k, **{"random_state": 0, **options})


def _pass_of(model: Any, counts: Counts) -> float:
    """CPU-seconds of a pass without validation."""
    model.set_params(max_iter=3, early_stopping=False)
    return fit_watched(model, counts.train).watch.per_pass()


def _numpy_pass(yardstick: Baskets) -> float:
    with stopwatch() as timing:
        yardstick.one_pass()
    return timing.cpu


def _rate(report: Report, counts: Counts, k: int) -> None:
    """Passes of ours, of NumPy and matrix products, in turn; 6 T N K operations a pass."""
    n_rows, n_items = counts.train.shape
    work = 6.0 * n_rows * n_items * k / 1e9
    yardstick = Baskets(counts.train, k)
    jobs: dict[str, Callable[[], float]] = {
        "sgemm": sgemm_rate,
        "ours": lambda: _pass_of(_made(k), counts),
        "NumPy": lambda: _numpy_pass(yardstick),
    }
    if report.settings.reference is not None:
        path: Path = report.settings.reference
        jobs["reference"] = lambda: reference_pass(path, counts, k)
    jobs["ours"]()
    found = interleaved(jobs, report.settings.repeats)
    spread = {name: Spread.of(values) for name, values in found.items()}
    report.add("sgemm-2048, GFLOP/s", spread["sgemm"])
    for name in list(spread)[1:]:
        report.add(f"K={k}: CPU-s a pass, {name}", spread[name])
        turns = zip(found[name], found["sgemm"], strict=True)
        shares = Spread.of([100 * work / cpu / rate for cpu, rate in turns])
        least = 60.0 if name == "ours" else None
        report.add(f"K={k}: {name}, % of sgemm of the same turn", shares, at_least=least)
    parts = _ratios(found["ours"], found["NumPy"])
    report.add(f"K={k}: ours / NumPy, time a pass", parts, at_most=0.70)
    if "reference" in spread:
        ratio = _ratios(found["NumPy"], found["reference"])
        report.add("NumPy yardstick / reference script, time a pass", ratio, at_most=1.0)
        ratio = _ratios(found["ours"], found["reference"])
        report.add(f"K={k}: ours / reference script, time a pass", ratio, at_most=0.70)


def _ratios(above: list[float], below: list[float]) -> Spread:
    """Of figures of the same turns."""
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def _small_rate(report: Report, counts: Counts, k: int) -> None:
    """With few components the exponential counts for more than the products."""
    yardstick = Baskets(counts.train, k)
    jobs: dict[str, Callable[[], float]] = {
        "ours": lambda: _pass_of(_made(k), counts),
        "NumPy": lambda: _numpy_pass(yardstick),
    }
    found = interleaved(jobs, report.settings.repeats)
    for name, values in found.items():
        report.add(f"K={k}: CPU-s a pass, {name}", Spread.of(values))
    gain = _ratios(found["NumPy"], found["ours"])
    report.add(f"K={k}: NumPy / ours, time a pass", gain, at_least=2.2)


def _additive_rate(report: Report, counts: Counts, k: int) -> None:
    """ap-emb adds its zeros in closed form: a pass costs what the stored entries cost."""
    from efemb import AdditivePoissonEmbedding

    jobs: dict[str, Callable[[], float]] = {
        "ap-emb": lambda: _pass_of(AdditivePoissonEmbedding(k, random_state=0), counts),
        "p-emb": lambda: _pass_of(_made(k), counts),
    }
    jobs["ap-emb"]()
    found = interleaved(jobs, report.settings.repeats)
    report.add(f"K={k}: CPU-s a pass, ap-emb", Spread.of(found["ap-emb"]))
    gain = _ratios(found["p-emb"], found["ap-emb"])
    report.add(f"K={k}: exact p-emb / ap-emb, time a pass", gain, at_least=5.0)


def _threads(report: Report, counts: Counts, k: int) -> None:
    """Exact zeros, and closed forms, whose steps are ten times shorter."""
    from efemb import AdditivePoissonEmbedding

    options = {"max_iter": 2, "early_stopping": False}
    two_threads(
        report,
        f"p-emb K={k}",
        lambda n_jobs: fit_watched(_made(k, n_jobs=n_jobs, **options), counts.train),
    )
    additive = AdditivePoissonEmbedding(k, random_state=0, max_iter=8, early_stopping=False)
    two_threads(
        report,
        f"ap-emb K={k}",
        lambda n_jobs: fit_watched(clone(additive).set_params(n_jobs=n_jobs), counts.train),
        heavy=False,
    )


def _exact(report: Report, counts: Counts, k: int) -> Watched:
    """Defaults, stopped by the validation trips, and by the internal hold-out."""
    fit = fit_watched(_made(k), counts.train, validation=counts.validation)
    best = fit.watch.best()
    note = f"validation {best.score:.4f} at pass {best.iteration} of {fit.model.n_iter_}"
    report.add("defaults, test score", fit.model.score(counts.test), beside=note, at_least=-7.54)
    report.add("defaults, CPU-s to the best validation score", best.cpu, at_most=65.0)
    report.add("defaults, CPU-s of the whole fit", fit.timing.cpu)
    own = fit_watched(_made(k), counts.train)
    note = f"{own.watch.best().cpu:.1f} CPU-s to the best, {own.timing.cpu:.1f} in all"
    report.add("defaults, internal hold-out: test", own.model.score(counts.test), beside=note)
    return fit


def _to_numpys_best(report: Report, counts: Counts, k: int, exact: Watched) -> None:
    """Time until ours has the best validation score of plain NumPy; both score every pass.

    After one fit of either it is known which passes these are; then both run that far, in turn.
    """
    rows = (counts.train, counts.validation)
    best = trained_baskets(*rows, k)[0].best()
    mark = exact.watch.reaching(best.score)
    label = "ours / NumPy, time to NumPy's best score"
    if mark is None:
        report.add(label, np.inf, beside="never reached", at_most=0.5)
        return

    def ours() -> float:
        model = _made(k, max_iter=mark.iteration)
        return fit_watched(model, counts.train, validation=counts.validation).watch.ends[-1]

    def theirs() -> float:
        return trained_baskets(*rows, k, most=best.iteration)[0].ends[-1]

    found = interleaved({"ours": ours, "NumPy": theirs}, report.settings.repeats)
    note = f"validation {best.score:.4f} at pass {best.iteration}"
    spent = Spread.of(found["NumPy"])
    report.add("NumPy, CPU-s to its best validation score", spent, beside=note)
    note = f"{Spread.of(found['ours'])} CPU-s, pass {mark.iteration}"
    report.add(label, _ratios(found["ours"], found["NumPy"]), beside=note, at_most=0.5)


def _sampled(report: Report, counts: Counts, k: int, exact: Watched) -> None:
    """Few sampled zeros: near the exact score, sooner, and never diverging after the best."""
    from efemb import Sampled

    n = 64 if report.settings.quick else 1024
    for seed in report.settings.seeds[:2]:
        model = _made(k, zeros=Sampled(n), n_iter_no_change=AFTER_BEST, random_state=seed)
        fit = fit_watched(model, counts.train, validation=counts.validation)
        _sampled_figures(report, f"Sampled({n}), seed {seed}", fit, counts, exact)


def _sampled_figures(
    report: Report, name: str, fit: Watched, counts: Counts, exact: Watched
) -> None:
    best, aim = fit.watch.best(), exact.watch.best()
    after = [mark.score for mark in fit.watch.marks if mark.iteration >= best.iteration]
    note = f"pass {best.iteration}; exact {aim.score:.4f}"
    report.add(f"{name}: best validation", best.score, beside=note, at_least=aim.score - 0.1)
    report.add(f"{name}: test", fit.model.score(counts.test))
    report.add(f"{name}: CPU-s to the best", best.cpu, at_most=aim.cpu / 3)
    near = fit.watch.reaching(aim.score - 0.1)
    report.add(
        f"{name}: CPU-s to within 0.1 of exact",
        np.inf if near is None else near.cpu,
        at_most=aim.cpu / 3,
    )
    drop = best.score - min(after)
    passes = f"in {len(after) - 1} evaluations"
    report.add(f"{name}: fall after the best", drop, beside=passes, at_most=DIVERGED)


def _additive(report: Report, counts: Counts, k: int) -> None:
    from efemb import AdditivePoissonEmbedding

    model = AdditivePoissonEmbedding(k, random_state=0)
    fit = fit_watched(model, counts.train, validation=counts.validation)
    best = fit.watch.best()
    note = f"{best.cpu:.1f} CPU-s to the best, pass {best.iteration} of {model.n_iter_}"
    report.add("ap-emb, defaults: test", model.score(counts.test), beside=note)


def _memory(report: Report, settings: Settings, k: int) -> None:
    """Peak of a fresh process that reads the data and fits; and of one that only reads them."""
    data = None if settings.data is None else str(settings.data)
    for what, passes in (("reading only", 0), ("reading and fitting", 2)):
        found = in_new_process(memory_job, quick=settings.quick, data=data, k=k, passes=passes)
        if found["peak_bytes"] is not None:
            limit = None if passes == 0 else 1.5
            report.add(f"peak memory, {what}, GB", found["peak_bytes"] / 1e9, at_most=limit)


def memory_job(quick: bool, data: str | None, k: int, passes: int) -> dict[str, Any]:
    """Runs in a process of its own."""
    counts = baskets(Settings(quick=quick, data=None if data is None else Path(data)))
    if passes:
        fit_watched(_made(k, max_iter=passes), counts.train, validation=counts.validation)
    return {}
