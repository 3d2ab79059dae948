"""Residual checks: do the data vary, and are they zero, as often as the family says?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from efemb.contexts.base import BoundContext, SumOfBound
from efemb.contexts.entity_lists import EntityLists
from efemb.contexts.row_bags import RowBags
from efemb.data.dataset import Dataset
from efemb.data.readers.progress import progress_bar
from efemb.families import Bernoulli, Family, Gaussian, NegativeBinomial, Poisson
from efemb.fitted import FittedEmbedding
from efemb.inference.findings import Finding
from efemb.types import Floats, Ints

# Variance and probability of 0 as functions of the mean.
Moments = tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]
CELLS, CELLS_AT_ONCE = 1 << 25, 1 << 21
FAR, NEAR = 1.5, 1.2  # times as much as expected


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

    def add(self, x: Floats, mean: Floats, moments: Moments) -> None:
        """Add observed cells and their means."""
        variance, zero = moments
        self.cells += x.size
        self.x += float(x.sum())
        self.mean += float(mean.sum())
        self.squares += float(((x - mean) ** 2).sum())
        self.variance += float(variance(mean).sum())
        self.mean_squares += float((mean**2).sum())
        self.positive += float(np.count_nonzero(x))
        self.expected_positive += float((1.0 - zero(mean)).sum())


def residual_findings(
    fitted: FittedEmbedding, data: Dataset, rng: np.random.Generator, *, progress: bool = False
) -> list[Finding]:
    """Dispersion, and for counts the share of zeros, of a family whose variance is known."""
    moments = _moments(fitted.spec.family)
    if moments is None or data.n_dims > 1 or fitted.spec.combine.reverse:
        return []
    if fitted.spec.context.name() == "basket":
        data = data.take_rows(data.filled_rows())  # as the fit did
    sums, n_rows = _Sums(), 0
    for x, mean in _blocks(fitted, data, rng, progress):
        seen = ~np.isnan(x)
        sums.add(x[seen], mean[seen], moments)
        n_rows += len(x)
    if isinstance(fitted.spec.family, Gaussian):
        return [_spread(fitted.spec.family, sums)]
    where = f"{n_rows:,} rows" + (", drawn at random" if n_rows < data.n_rows else "")
    found = [_level(fitted, sums)]
    if _shares_only(fitted):
        return found
    found.append(_dispersion(fitted, sums, where))
    return found if isinstance(fitted.spec.family, Bernoulli) else [*found, _zeros(sums)]


def _shares_only(fitted: FittedEmbedding) -> bool:
    """Whether means are right but for a factor, so that nothing can be said of how counts vary."""
    return float(fitted.spec.zeros.weight) != 1.0 or fitted.spec.zeros.gradient == "biased"


def _moments(family: Family) -> Moments | None:
    """Of the families that have both in closed form."""
    if type(family) is Poisson:
        return lambda m: m, lambda m: np.exp(-m)
    if isinstance(family, NegativeBinomial):
        r = float(family.r)
        return lambda m: m + m * m / r, lambda m: np.asarray((r / (r + m)) ** r)
    if isinstance(family, Bernoulli):
        return lambda m: m * (1.0 - m), lambda m: 1.0 - m
    if isinstance(family, Gaussian):
        return lambda m: np.full(m.shape, family.variance), np.zeros_like
    return None


def _blocks(
    fitted: FittedEmbedding, data: Dataset, rng: np.random.Generator, progress: bool
) -> Iterator[tuple[Floats, Floats]]:
    """Observations and their conditional means, some rows at a time."""
    _, bound, _ = fitted._bind(data)
    if _reaches_other_rows(bound) or data.n_rows * data.n_entities <= CELLS_AT_ONCE:
        yield _dense(data), fitted.conditional(data)
        return
    most = min(data.n_rows, max(1, CELLS // data.n_entities))
    rows: Ints = np.sort(rng.permutation(data.n_rows)[:most])
    size = max(1, CELLS_AT_ONCE // data.n_entities)
    with progress_bar("residuals", len(rows), progress) as advance:
        for start in range(0, len(rows), size):
            some = data.take_rows(rows[start : start + size])
            yield _dense(some), fitted.conditional(some)
            advance(some.n_rows)


def _reaches_other_rows(bound: BoundContext) -> bool:
    """Whether a row alone may not have its whole context."""
    if isinstance(bound, SumOfBound):
        return _reaches_other_rows(bound.left) or _reaches_other_rows(bound.right)
    if isinstance(bound, EntityLists):
        return any(bool(part.offset.any()) for part in bound.lists)
    return not isinstance(bound, RowBags)


def _dense(data: Dataset) -> Floats:
    return np.asarray(data.values.toarray() if data.is_sparse else data.values, dtype=np.float64)


def _level(fitted: FittedEmbedding, sums: _Sums) -> Finding:
    ratio = sums.mean / max(sums.x, 1e-300)
    numbers = {"predicted": sums.mean, "observed": sums.x, "ratio": ratio}
    text = f"The means add up to {ratio:.2f} times what was observed."
    if abs(np.log(max(ratio, 1e-300))) < np.log(NEAR):
        return Finding("level", "ok", text, numbers=numbers)
    if _shares_only(fitted):
        advice = "That is meant where zeros count for less: shares are right, counts are not."
        return Finding("level", "note", text, advice, numbers)
    advice = (
        "Fit longer, allow intercepts (intercept=True), or look for rows unlike those of the fit."
    )
    return Finding("level", "warning", text, advice, numbers)


def _dispersion(fitted: FittedEmbedding, sums: _Sums, where: str) -> Finding:
    """Sum of squared residuals over the sum of the variances: 1 where the family is right."""
    ratio = sums.squares / max(sums.variance, 1e-300)
    numbers: dict[str, Any] = {"dispersion": ratio, "rows": where}
    name = type(fitted.spec.family).__name__
    text = f"Counts vary {ratio:.2f} times as much as {name} counts of these means ({where})."
    if 1.0 / FAR <= ratio <= FAR:
        return Finding("dispersion", "ok", text, numbers=numbers)
    if ratio < 1.0:
        advice = "Less than random: if values are 0 and 1, use family='bernoulli'."
        return Finding("dispersion", "note", text, advice, numbers)
    if isinstance(fitted.spec.family, Bernoulli):
        advice = "Probabilities are too extreme: a tighter prior, or stop earlier."
        return Finding("dispersion", "warning", text, advice, numbers)
    size = sums.mean_squares / max(sums.squares - sums.mean, 1e-300)
    numbers["r"] = size
    advice = (
        f"Overdispersed: try family=NegativeBinomial({size:.2g}), and trust sandwich intervals "
        "rather than Laplace ones."
    )
    return Finding("dispersion", "warning", text, advice, numbers)


def _zeros(sums: _Sums) -> Finding:
    ratio = sums.expected_positive / max(sums.positive, 1e-300)
    zeros, expected = (
        (sums.cells - many) / max(sums.cells, 1.0)
        for many in (sums.positive, sums.expected_positive)
    )
    numbers = {"zeros": zeros, "expected_zeros": expected, "ratio": ratio}
    text = (
        f"{zeros:.2%} of the cells are zero, {expected:.2%} are expected: {sums.positive:,.0f} "
        f"non-zero cells where the model has {sums.expected_positive:,.0f}."
    )
    if ratio <= NEAR:
        return Finding("zeros", "ok", text, numbers=numbers)
    advice = (
        "More zeros than the means allow: few entries hold large counts. Try NegativeBinomial, or "
        "family='bernoulli' with binarize=True if only presence matters."
    )
    return Finding("zeros", "warning", text, advice, numbers)


def _spread(family: Gaussian, sums: _Sums) -> Finding:
    ratio = sums.squares / max(sums.variance, 1e-300)
    found = sums.squares / max(sums.cells, 1.0)
    numbers = {"dispersion": ratio, "variance": found, "sigma2": family.variance}
    text = f"Residuals have the variance {found:.4g}; the model takes it for {family.variance:.4g}."
    if 1.0 / FAR <= ratio <= FAR:
        return Finding("dispersion", "ok", text, numbers=numbers)
    advice = "Intervals and scores need the right one: use family=Gaussian('learned')."
    return Finding("dispersion", "warning", text, advice, numbers)
