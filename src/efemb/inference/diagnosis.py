"""report: a diagnosis of a fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.array_checks import generator
from efemb.data.dataset import Dataset
from efemb.data.matrices import dense
from efemb.errors import ParameterError
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.queries.model_queries import ModelQueries
from efemb.inference.findings import (
    Finding,
    Report,
    check_columns,
    check_contexts,
    check_popularity,
    check_rare,
    check_reliability,
    count_entities,
)
from efemb.model.contexts.base import BoundContext
from efemb.model.families.base import Family

CELLS, CELLS_AT_ONCE = 1 << 25, 1 << 21
FAR, NEAR = 1.5, 1.2  # ratios to the expected value


@as_function_of(ModelQueries.report)
def report(model: Any, data: Any = None, *, seed: int = 0, progress: bool = False) -> Report:
    """Any fitted model; an estimator also tells whether its fit converged."""
    fitted: FittedEmbedding = model.fitted()
    findings = [_check_convergence(model, fitted), _check_gradient(model, fitted)]
    if hasattr(model, "reliability_"):
        findings.append(check_reliability(model.reliability_))
    bound: BoundContext | None = None
    if data is not None and not fitted.spec.context.reads_text:
        bound = model._bind(data)[1]  # as the model reads its data
        data = bound.data
    counts = count_entities(fitted, data)
    if counts is not None:
        findings.append(check_rare(fitted, counts))
    if bound is not None:
        findings += check_columns(fitted, data)
        findings += check_contexts(fitted, bound)
        findings += check_popularity(model, fitted, bound)
        rng = generator(seed)
        findings += _check_residuals(fitted, data, rng, progress=progress)
    size = f"{fitted.n_entities:,} entities, K = {fitted.n_components}"
    return Report(f"{fitted.model}: {size}, {fitted.spec.family!r}", tuple(findings))


def _check_convergence(model: Any, fitted: FittedEmbedding) -> Finding:
    history = fitted.history
    if not history:
        return Finding("convergence", "note", "The model stores no history of its fit.")
    scores = [
        (record["validation"], record["iteration"])
        for record in history
        if record.get("validation") is not None
    ]
    last = int(history[-1]["iteration"])
    numbers: dict[str, Any] = {"iterations": last, "held_out": bool(scores)}
    if scores:
        best, iteration = max(scores)
        numbers |= {"best_iteration": int(iteration), "best_score": float(best)}
        done = bool(getattr(model, "converged_", iteration < scores[-1][1]))
        text = (
            f"The best held-out score, {best:.4f}, was reached in pass {iteration} of {last}; "
            "the model has the parameters of that pass."
        )
    else:
        done = bool(getattr(model, "converged_", _is_flat(history)))
        objective = float(history[-1]["objective"])
        text = f"{last} passes, no data held out; the final objective is {objective:.6g}."
    numbers["converged"] = done
    if done:
        return Finding("convergence", "ok", text, numbers=numbers)
    advice = "It was still improving: raise max_iter, or resume with warm_start=True."
    return Finding("convergence", "warning", text, advice, numbers)


def _is_flat(history: list[dict[str, Any]]) -> bool:
    """Whether the last tenth of the passes contributed a negligible part of the total gain."""
    values = [float(record["objective"]) for record in history]
    if len(values) <= 2:
        return False
    gained = max(values) - values[0]
    before = values[-max(2, len(values) // 10)]
    return max(values) - before <= 1e-3 * max(gained, 1e-12)


def _check_gradient(model: Any, fitted: FittedEmbedding) -> Finding:
    kind = str(getattr(model, "gradient_", fitted.spec.zeros.gradient))
    numbers = {"gradient": kind, "zeros": repr(fitted.spec.zeros)}
    if kind == "exact":
        return Finding("gradient", "ok", "Every zero was counted exactly.", numbers=numbers)
    if kind == "unbiased":
        text = "Zeros were sampled and weighted: the gradient is noisy but unbiased."
        return Finding("gradient", "ok", text, numbers=numbers)
    text = "Trained with negative sampling, as in word2vec: means are relative, not counts."
    advice = f"For means and intervals use {fitted.model}(zeros='all')."
    return Finding("gradient", "note", text, advice, numbers)


# -- residuals: do the data vary, and are they zero, as often as the family predicts? ----------


@dataclass
class _Sums:
    """Sums over cells: x, mean, (x - mean)^2, variance, mean^2, non-zeros, and expected ones."""

    cells: float = 0.0
    x: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    variance: float = 0.0
    mean_squares: float = 0.0
    positive: float = 0.0
    expected_positive: float = 0.0

    def add(self, x: Floats, mean: Floats, family: Family) -> None:
        """Add observed cells and their means."""
        self.cells += x.size
        self.x += float(x.sum())
        self.mean += float(mean.sum())
        self.squares += float(((x - mean) ** 2).sum())
        self.variance += float(family.variance_of_mean(mean).sum())
        self.mean_squares += float((mean**2).sum())
        self.positive += float(np.count_nonzero(x))
        if _is_count(family):
            self.expected_positive += float((1.0 - _zero_probability(family, mean)).sum())


def _check_residuals(
    fitted: FittedEmbedding, data: Dataset, rng: np.random.Generator, *, progress: bool
) -> list[Finding]:
    """Dispersion, and for counts the share of zeros, of a family whose variance is known."""
    family = fitted.spec.family
    if not _has_variance(family) or data.n_dims > 1 or fitted.spec.combine.reverse:
        return []
    if fitted.spec.context.rest_of_row:
        data = data.take_rows(data.filled_rows())  # as in a fit
    sums, n_rows = _Sums(), 0
    for x, mean in _blocks(fitted, data, rng, progress):
        observed = ~np.isnan(x)
        sums.add(x[observed], mean[observed], family.at(np.nonzero(observed)[1]))
        n_rows += len(x)
    if family.support.low != 0:
        return [_check_spread(sums)]
    where = f"{n_rows:,} rows" + (", drawn at random" if n_rows < data.n_rows else "")
    findings = [_check_level(fitted, sums)]
    if not fitted.spec.relative_means:
        findings.append(_check_dispersion(fitted, sums, where))
        if _is_count(family):
            findings.append(_check_zeros(sums))
    return findings


def _has_variance(family: Family) -> bool:
    """Whether the family defines its variance as a function of the mean."""
    try:
        family.at(np.zeros(1, dtype=np.int64)).variance_of_mean(np.full(1, 0.5))
    except ParameterError:
        return False
    return True


def _is_count(family: Family) -> bool:
    return family.support.low == 0 and family.support.high == np.inf


def _zero_probability(family: Family, mean: Floats) -> Floats:
    """p(x = 0) of counts with these means."""
    zero = np.zeros_like(mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_density, _ = family.value_and_slope(zero, family.predictor(mean))
    return np.where(mean > 0, np.exp(log_density + family.log_base_measure(zero)), 1.0)


def _blocks(
    fitted: FittedEmbedding, data: Dataset, rng: np.random.Generator, progress: bool
) -> Iterator[tuple[Floats, Floats]]:
    """Observations and their conditional means, a block of rows at a time."""
    if fitted.spec.context.reaches_other_rows or data.n_rows * data.n_entities <= CELLS_AT_ONCE:
        yield dense(data), fitted.conditional(data)
        return
    n_rows = min(data.n_rows, max(1, CELLS // data.n_entities))
    rows: Ints = np.sort(rng.permutation(data.n_rows)[:n_rows])
    size = max(1, CELLS_AT_ONCE // data.n_entities)
    with progress_bar("residuals", len(rows), progress) as advance:
        for start in range(0, len(rows), size):
            block = data.take_rows(rows[start : start + size])
            yield dense(block), fitted.conditional(block)
            advance(block.n_rows)


def _check_level(fitted: FittedEmbedding, sums: _Sums) -> Finding:
    ratio = sums.mean / max(sums.x, 1e-300)
    numbers = {"predicted": sums.mean, "observed": sums.x, "ratio": ratio}
    text = f"The predicted means sum to {ratio:.2f} times the observed total."
    if abs(np.log(max(ratio, 1e-300))) < np.log(NEAR):
        return Finding("level", "ok", text, numbers=numbers)
    if fitted.spec.relative_means:
        advice = "This is expected if zeros have less weight: shares are right, counts are not."
        return Finding("level", "note", text, advice, numbers)
    advice = (
        "Fit longer, allow intercepts (intercept=True), or check for rows unlike those of the fit."
    )
    return Finding("level", "warning", text, advice, numbers)


def _check_dispersion(fitted: FittedEmbedding, sums: _Sums, where: str) -> Finding:
    """Sum of squared residuals over the sum of the variances: 1 if the family is right."""
    ratio = sums.squares / max(sums.variance, 1e-300)
    numbers: dict[str, Any] = {"dispersion": ratio, "rows": where}
    name = type(fitted.spec.family).__name__
    text = f"Counts vary {ratio:.2f} times as much as {name} counts of these means ({where})."
    if 1.0 / FAR <= ratio <= FAR:
        return Finding("dispersion", "ok", text, numbers=numbers)
    if ratio < 1.0:
        advice = "Underdispersed: if values are 0 and 1, use BernoulliEmbedding."
        return Finding("dispersion", "note", text, advice, numbers)
    if not _is_count(fitted.spec.family):
        advice = "Probabilities are too extreme: use a tighter prior, or stop earlier."
        return Finding("dispersion", "warning", text, advice, numbers)
    size = sums.mean_squares / max(sums.squares - sums.mean, 1e-300)
    numbers["r"] = size
    advice = (
        f"Overdispersed: try PoissonEmbedding(family=efemb.NegativeBinomial({size:.2g})), and "
        "prefer laplace(data, sandwich=True)."
    )
    return Finding("dispersion", "warning", text, advice, numbers)


def _check_zeros(sums: _Sums) -> Finding:
    ratio = sums.expected_positive / max(sums.positive, 1e-300)
    zeros, expected = (
        (sums.cells - n_positive) / max(sums.cells, 1.0)
        for n_positive in (sums.positive, sums.expected_positive)
    )
    numbers = {"zeros": zeros, "expected_zeros": expected, "ratio": ratio}
    text = (
        f"{zeros:.2%} of the cells are zero, {expected:.2%} are expected: {sums.positive:,.0f} "
        f"non-zero cells where the model predicts {sums.expected_positive:,.0f}."
    )
    if ratio <= NEAR:
        return Finding("zeros", "ok", text, numbers=numbers)
    advice = (
        "More zeros than the means imply: few entries have large counts. Use PoissonEmbedding("
        "family=efemb.NegativeBinomial(1.0)), or BernoulliEmbedding(binarize=True) if presence "
        "is what matters."
    )
    return Finding("zeros", "warning", text, advice, numbers)


def _check_spread(sums: _Sums) -> Finding:
    ratio = sums.squares / max(sums.variance, 1e-300)
    variance, sigma2 = (total / max(sums.cells, 1.0) for total in (sums.squares, sums.variance))
    numbers = {"dispersion": ratio, "variance": variance, "sigma2": sigma2}
    text = f"Residuals have variance {variance:.4g}; the model assumes {sigma2:.4g}."
    if 1.0 / FAR <= ratio <= FAR:
        return Finding("dispersion", "ok", text, numbers=numbers)
    advice = (
        "Intervals and scores depend on it: use "
        "GaussianEmbedding(family=efemb.Gaussian('learned'))."
    )
    return Finding("dispersion", "warning", text, advice, numbers)
