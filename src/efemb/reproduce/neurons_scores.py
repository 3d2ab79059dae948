"""Scores of the neuron study: errors per model and recording, their differences, and claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from efemb.reproduce.claims import Claim, Gap, format_gap, judge_gaps
from efemb.reproduce.jobs import Outcome
from efemb.reproduce.neurons_models import NeuronModel, make_nonnegative
from efemb.reproduce.neurons_recordings import TITLES


@dataclass(frozen=True)
class NeuronRow:
    """A model on a recording; `outcomes` by seed of the split."""

    model: NeuronModel
    recording: str
    differenced: bool
    outcomes: dict[int, Outcome]

    def error(self, protocol: str) -> float:
        """Mean squared error, the mean over splits."""
        return float(np.mean([outcome.figures[protocol]["error"] for outcome in self._all()]))

    def standard_error(self, protocol: str, over: str) -> float:
        """Standard error of the mean over independent splits, `over` frames or entries."""
        each = [outcome.figures[protocol][f"se_{over}"] for outcome in self._all()]
        return float(np.sqrt(np.sum(np.square(each))) / len(each))

    def mean(self, name: str) -> float:
        """Mean over splits of a figure of the fit; NaN if there is none."""
        return float(np.mean([outcome.figures.get(name, np.nan) for outcome in self._all()]))

    def context_sizes(self, protocol: str) -> dict[int, int]:
        """Number of entries by the number of observed members of their context, over all splits."""
        entries_of_size: dict[int, int] = {}
        for outcome in self._all():
            sizes = outcome.figures[protocol].get("context_sizes", {"size": [], "n": []})
            for size, n in zip(sizes["size"], sizes["n"], strict=True):
                entries_of_size[size] = entries_of_size.get(size, 0) + n
        return dict(sorted(entries_of_size.items()))

    def _all(self) -> list[Outcome]:
        return list(self.outcomes.values())


def compare_errors(row: NeuronRow, other: NeuronRow, protocol: str) -> Gap:
    """Error of `other` minus that of `row`, frame by frame, on the splits that both have."""
    seeds = [seed for seed in row.outcomes if seed in other.outcomes]
    each = [
        other.outcomes[seed].arrays[protocol] - row.outcomes[seed].arrays[protocol]
        for seed in seeds
    ]
    means = [float(differences.mean()) for differences in each]
    errors = [float(differences.std() / np.sqrt(len(differences))) for differences in each]
    error = float(np.sqrt(np.sum(np.square(errors))) / len(errors))
    return Gap(float(np.mean(means)), error, min(means))


def collect_neuron_rows(outcomes: Iterable[Outcome]) -> list[NeuronRow]:
    """Outcomes of fits by recording and model, in the order in which they ran."""
    row_of_key: dict[tuple[str, bool, NeuronModel], NeuronRow] = {}
    for outcome in outcomes:
        model = NeuronModel(**outcome.job.settings["model"])
        source = outcome.job.settings["source"]
        key = (source["recording"], source["differenced"], model)
        row = row_of_key.setdefault(key, NeuronRow(model, key[0], key[1], {}))
        row.outcomes[source["seed"]] = outcome
    return list(row_of_key.values())


def choose_steps(rows: Sequence[NeuronRow]) -> list[NeuronRow]:
    """For each model fitted in minibatches, the row with the best validated constant."""
    best_row: dict[tuple[str, NeuronModel], NeuronRow] = {}
    for row in rows:
        if row.model.step is None:
            continue
        key = (row.recording, replace(row.model, step=0.0))
        if key not in best_row or row.mean("validation") < best_row[key].mean("validation"):
            best_row[key] = row
    return list(best_row.values())


def find_neuron_row(
    rows: Iterable[NeuronRow], recording: str, model: NeuronModel, differenced: bool = True
) -> NeuronRow | None:
    """The row of a model on a recording, or None."""
    key = (recording, model, differenced)
    return next((r for r in rows if (r.recording, r.model, r.differenced) == key), None)


def find_main_model(model: NeuronModel) -> NeuronModel:
    """The model of the main table that corresponds to another reading."""
    penalty = model.penalty * (model.c if model.scale == "items" else 1)
    prior = "half-normal" if model.prior == "log-normal" else model.prior
    return NeuronModel(model.model, model.k, model.c, penalty=penalty, prior=prior)


def pair_readings(rows: Sequence[NeuronRow]) -> list[tuple[NeuronRow, NeuronRow]]:
    """Other readings, then the paper's optimizer, each with the row of the main table."""
    tried = [row for row in rows if row.model.differences() and row.model.step is None]
    tried += choose_steps(rows)
    pairs = (
        (row, find_neuron_row(rows, row.recording, find_main_model(row.model))) for row in tried
    )
    return [(row, base) for row, base in pairs if base is not None]


def pair_undifferenced(rows: Sequence[NeuronRow]) -> list[tuple[NeuronRow, NeuronRow]]:
    """(differenced, not differenced) of each model, on the splits that both have."""
    pairs = []
    for row in rows:
        other = find_neuron_row(rows, row.recording, row.model, differenced=False)
        if row.differenced and other is not None:
            seeds = {seed: row.outcomes[seed] for seed in other.outcomes if seed in row.outcomes}
            pairs.append((replace(row, outcomes=seeds), other))
    return pairs


# -- the paper's claims ---------------------------------------------------------------------------


SAID = {"one_out": "one neuron out", "fold_out": "25% out"}
OUTPERFORM = "Both ef-emb models significantly outperform FA."
LARGEST = "g-emb obtains the best results with 100 components and a context size of 50."
LAGGED = "all methods resulted in better reconstruction on the lagged data."
HARDER = "This is a more difficult task."
Named = tuple[str, Gap]


def judge_errors(rows: Sequence[NeuronRow], ks: Sequence[int]) -> list[Claim]:
    """One for each sentence and recording; differences are positive where the sentence holds."""
    claims = []
    for recording in dict.fromkeys(row.recording for row in rows):
        recording_rows = [row for row in rows if row.recording == recording]
        for protocol in SAID:
            claims += list(_judge_factors(recording_rows, ks, protocol))
        claims += list(_judge_factors_outside(recording_rows, ks))
        claims += [
            *_judge_signs(recording_rows, ks),
            *_judge_largest(recording_rows, ks),
            *_judge_lagged(recording_rows),
            *_judge_harder(recording_rows),
        ]
    return claims


def _make_claim(
    sentence: str, how: str, rows: Sequence[NeuronRow], gaps: Sequence[Named]
) -> Iterator[Claim]:
    if gaps:
        figure = "; ".join(f"{name} {format_gap(gap)}" for name, gap in gaps)
        where = f"{TITLES[rows[0].recording]}, {how}"
        yield Claim(sentence, judge_gaps([gap for _, gap in gaps]), f"{where}: {figure}.")


def _compare_pair(
    rows: Sequence[NeuronRow], better: NeuronModel, worse: NeuronModel, protocol: str
) -> Iterator[Named]:
    better_row, worse_row = (
        find_neuron_row(rows, rows[0].recording, model) for model in (better, worse)
    )
    if better_row is not None and worse_row is not None:
        yield (
            f"{better.name} K={better.k} below {worse.name} K={worse.k} by",
            compare_errors(better_row, worse_row, protocol),
        )


def _judge_factors(rows: Sequence[NeuronRow], ks: Sequence[int], protocol: str) -> Iterator[Claim]:
    gaps: list[Named] = []
    for k in ks:
        for model in (
            NeuronModel("g-emb", k, 10),
            NeuronModel("g-emb", k, 50),
            make_nonnegative(k),
        ):
            gaps += _compare_pair(rows, model, NeuronModel("FA", k), protocol)
    yield from _make_claim(OUTPERFORM, SAID[protocol], rows, gaps)


def _judge_factors_outside(rows: Sequence[NeuronRow], ks: Sequence[int]) -> Iterator[Claim]:
    """If contexts consist of other folds, hiding a fold removes no neighbor."""
    gaps: list[Named] = []
    for k in ks:
        for c in (10, 50):
            model = NeuronModel("g-emb", k, c, outside=True)
            gaps += _compare_pair(rows, model, NeuronModel("FA", k), "fold_out")
    how = "25% out, the nearest neurons of the other folds as contexts"
    yield from _make_claim(OUTPERFORM, how, rows, gaps)


def _judge_signs(rows: Sequence[NeuronRow], ks: Sequence[int]) -> Iterator[Claim]:
    gaps: list[Named] = []
    for k in ks:
        gaps += _compare_pair(rows, NeuronModel("g-emb", k, 10), make_nonnegative(k), "one_out")
    yield from _make_claim("g-emb is more accurate than ng-emb.", "one neuron out", rows, gaps)


def _judge_largest(rows: Sequence[NeuronRow], ks: Sequence[int]) -> Iterator[Claim]:
    if len(ks) < 2:  # a quick run has one K
        return
    best = NeuronModel("g-emb", max(ks), 50)
    rivals = [NeuronModel("g-emb", k, c) for k in ks for c in (10, 50)]
    gaps = [
        g for other in rivals if other != best for g in _compare_pair(rows, best, other, "one_out")
    ]
    yield from _make_claim(LARGEST, "one neuron out", rows, gaps)


def _judge_lagged(rows: Sequence[NeuronRow]) -> Iterator[Claim]:
    """The predicted numbers differ, so the variances of both errors add up."""
    for raw in (False, True):
        gaps: list[Named] = []
        for row, other in pair_undifferenced(rows):
            if not row.model.k:
                continue
            unit = other.mean("variance") / row.mean("variance") if raw else 1.0
            spread = [tested.standard_error("one_out", "frames") for tested in (row, other)]
            difference = unit * other.error("one_out") - row.error("one_out")
            gap = Gap(difference, math.hypot(spread[0], unit * spread[1]), difference)
            gaps.append((f"{row.model.name} K={row.model.k}", gap))
        how = "both in units of the variance of the differences" if raw else "each in its own units"
        yield from _make_claim(LAGGED, how, rows, gaps)


def _judge_harder(rows: Sequence[NeuronRow]) -> Iterator[Claim]:
    """25% out minus one out, frame by frame."""
    gaps: list[Named] = []
    for row in rows:
        if row.differenced and row.model.k and not row.model.differences():
            each = [
                outcome.arrays["fold_out"] - outcome.arrays["one_out"]
                for outcome in row.outcomes.values()
            ]
            differences = np.concatenate(each)
            error = float(differences.std() / np.sqrt(len(differences)))
            gap = Gap(float(differences.mean()), error, float(differences.min()))
            gaps.append((f"{row.model.name} K={row.model.k}", gap))
    yield from _make_claim(HARDER, "25% out minus one neuron out", rows, gaps)
