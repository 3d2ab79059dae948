"""What the paper says about neurons, and what was found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from efemb.reproduce.claims import Claim, gap_text, verdict_of
from efemb.reproduce.neuron_data import TITLES
from efemb.reproduce.neuron_rows import NeuronRow, gain, row_of, twins
from efemb.reproduce.neuron_settings import NeuronModel, nonnegative
from efemb.reproduce.tables import Gap

SAID = {"one_out": "one neuron out", "fold_out": "25% out"}
OUTPERFORM = "Both ef-emb models significantly outperform FA."
LARGEST = "g-emb obtains the best results with 100 components and a context size of 50."
LAGGED = "all methods resulted in better reconstruction on the lagged data."
HARDER = "This is a more difficult task."
Named = tuple[str, Gap]


def claims(rows: Sequence[NeuronRow], ks: Sequence[int]) -> list[Claim]:
    """One for each sentence and recording; differences are positive where the sentence holds."""
    found = []
    for recording in dict.fromkeys(row.recording for row in rows):
        mine = [row for row in rows if row.recording == recording]
        for protocol in SAID:
            found += list(_against_factors(mine, ks, protocol))
        found += list(_against_factors_outside(mine, ks))
        found += [*_signs(mine, ks), *_largest(mine, ks), *_lagged(mine), *_harder(mine)]
    return found


def _claim(
    sentence: str, how: str, rows: Sequence[NeuronRow], gaps: Sequence[Named]
) -> Iterator[Claim]:
    if gaps:
        figure = "; ".join(f"{name} {gap_text(one)}" for name, one in gaps)
        where = f"{TITLES[rows[0].recording]}, {how}"
        yield Claim(sentence, verdict_of([one for _, one in gaps]), f"{where}: {figure}.")


def _pair(
    rows: Sequence[NeuronRow], better: NeuronModel, worse: NeuronModel, protocol: str
) -> Iterator[Named]:
    one, two = (row_of(rows, rows[0].recording, model) for model in (better, worse))
    if one is not None and two is not None:
        yield (
            f"{better.name} K={better.k} below {worse.name} K={worse.k} by",
            gain(one, two, protocol),
        )


def _against_factors(
    rows: Sequence[NeuronRow], ks: Sequence[int], protocol: str
) -> Iterator[Claim]:
    gaps: list[Named] = []
    for k in ks:
        for model in (NeuronModel("g-emb", k, 10), NeuronModel("g-emb", k, 50), nonnegative(k)):
            gaps += _pair(rows, model, NeuronModel("FA", k), protocol)
    yield from _claim(OUTPERFORM, SAID[protocol], rows, gaps)


def _against_factors_outside(rows: Sequence[NeuronRow], ks: Sequence[int]) -> Iterator[Claim]:
    """Where contexts are made of the other folds, hiding a fold takes no neighbour away."""
    gaps: list[Named] = []
    for k in ks:
        for c in (10, 50):
            model = NeuronModel("g-emb", k, c, outside=True)
            gaps += _pair(rows, model, NeuronModel("FA", k), "fold_out")
    how = "25% out, the nearest neurons of the other folds as contexts"
    yield from _claim(OUTPERFORM, how, rows, gaps)


def _signs(rows: Sequence[NeuronRow], ks: Sequence[int]) -> Iterator[Claim]:
    gaps: list[Named] = []
    for k in ks:
        gaps += _pair(rows, NeuronModel("g-emb", k, 10), nonnegative(k), "one_out")
    yield from _claim("g-emb is more accurate than ng-emb.", "one neuron out", rows, gaps)


def _largest(rows: Sequence[NeuronRow], ks: Sequence[int]) -> Iterator[Claim]:
    if len(ks) < 2:  # a quick run has one K
        return
    best = NeuronModel("g-emb", max(ks), 50)
    others = [NeuronModel("g-emb", k, c) for k in ks for c in (10, 50)]
    gaps = [g for other in others if other != best for g in _pair(rows, best, other, "one_out")]
    yield from _claim(LARGEST, "one neuron out", rows, gaps)


def _lagged(rows: Sequence[NeuronRow]) -> Iterator[Claim]:
    """Not the same numbers are predicted, so standard errors add up."""
    for raw in (False, True):
        gaps: list[Named] = []
        for row, other in twins(rows):
            if not row.model.k:
                continue
            unit = other.mean("variance") / row.mean("variance") if raw else 1.0
            spread = [one.standard_error("one_out", "frames") for one in (row, other)]
            less = unit * other.error("one_out") - row.error("one_out")
            gap = Gap(less, math.hypot(spread[0], unit * spread[1]), less)
            gaps.append((f"{row.model.name} K={row.model.k}", gap))
        how = "both in units of the variance of the differences" if raw else "each in its own units"
        yield from _claim(LAGGED, how, rows, gaps)


def _harder(rows: Sequence[NeuronRow]) -> Iterator[Claim]:
    """25% out less one out, frame by frame."""
    gaps: list[Named] = []
    for row in rows:
        if row.differenced and row.model.k and not row.model.differences():
            each = [one.arrays["fold_out"] - one.arrays["one_out"] for one in row.outcomes.values()]
            less = np.concatenate(each)
            error = float(less.std() / np.sqrt(len(less)))
            gap = Gap(float(less.mean()), error, float(less.min()))
            gaps.append((f"{row.model.name} K={row.model.k}", gap))
    yield from _claim(HARDER, "25% out less one neuron out", rows, gaps)
