"""Rows of the neuron tables: a model on a recording, over the splits of its frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from efemb.reproduce.neuron_settings import NeuronModel
from efemb.reproduce.runner import Outcome
from efemb.reproduce.tables import Gap


@dataclass(frozen=True)
class NeuronRow:
    """A model on a recording; `outcomes` by the seed of the split."""

    model: NeuronModel
    recording: str
    differenced: bool
    outcomes: dict[int, Outcome]

    def error(self, protocol: str) -> float:
        """Mean squared error, the mean over splits."""
        return float(np.mean([one.figures[protocol]["error"] for one in self._all()]))

    def standard_error(self, protocol: str, over: str) -> float:
        """Of the mean over splits, which count as independent; `over` frames or entries."""
        each = [one.figures[protocol][f"se_{over}"] for one in self._all()]
        return float(np.sqrt(np.sum(np.square(each))) / len(each))

    def mean(self, name: str) -> float:
        """Mean over splits of a figure of the fit; NaN where there is none."""
        return float(np.mean([one.figures.get(name, np.nan) for one in self._all()]))

    def context_sizes(self, protocol: str) -> dict[int, int]:
        """Entries by the number of observed members of their context, all splits together."""
        found: dict[int, int] = {}
        for one in self._all():
            told = one.figures[protocol].get("context_sizes", {"size": [], "n": []})
            for size, n in zip(told["size"], told["n"], strict=True):
                found[size] = found.get(size, 0) + n
        return dict(sorted(found.items()))

    def _all(self) -> list[Outcome]:
        return list(self.outcomes.values())


def gain(row: NeuronRow, other: NeuronRow, protocol: str) -> Gap:
    """Error of `other` less that of `row`, frame by frame, on the splits that both have."""
    seeds = [seed for seed in row.outcomes if seed in other.outcomes]
    each = [
        other.outcomes[seed].arrays[protocol] - row.outcomes[seed].arrays[protocol]
        for seed in seeds
    ]
    means = [float(one.mean()) for one in each]
    errors = [float(one.std() / np.sqrt(len(one))) for one in each]
    error = float(np.sqrt(np.sum(np.square(errors))) / len(errors))
    return Gap(float(np.mean(means)), error, min(means))


def rows_of(outcomes: Iterable[Outcome]) -> list[NeuronRow]:
    """Outcomes of fits by recording and model, in the order in which they ran."""
    found: dict[tuple[str, bool, NeuronModel], NeuronRow] = {}
    for outcome in outcomes:
        model = NeuronModel(**outcome.job.settings["model"])
        source = outcome.job.settings["source"]
        key = (source["recording"], source["differenced"], model)
        row = found.setdefault(key, NeuronRow(model, key[0], key[1], {}))
        row.outcomes[source["seed"]] = outcome
    return list(found.values())


def best_steps(rows: Sequence[NeuronRow]) -> list[NeuronRow]:
    """Of the rows by minibatches, for each model the one whose constant validates best."""
    found: dict[tuple[str, NeuronModel], NeuronRow] = {}
    for row in rows:
        if row.model.step is None:
            continue
        key = (row.recording, replace(row.model, step=0.0))
        if key not in found or row.mean("validation") < found[key].mean("validation"):
            found[key] = row
    return list(found.values())


def row_of(
    rows: Iterable[NeuronRow], recording: str, model: NeuronModel, differenced: bool = True
) -> NeuronRow | None:
    """The row of a model on a recording, if it was run."""
    wanted = (recording, model, differenced)
    return next((r for r in rows if (r.recording, r.model, r.differenced) == wanted), None)


def plain(model: NeuronModel) -> NeuronModel:
    """The model of the main table that another reading belongs to."""
    penalty = model.penalty * (model.c if model.scale == "items" else 1)
    prior = "half-normal" if model.prior == "log-normal" else model.prior
    return NeuronModel(model.model, model.k, model.c, penalty=penalty, prior=prior)


def readings(rows: Sequence[NeuronRow]) -> list[tuple[NeuronRow, NeuronRow]]:
    """Other readings, then the paper's optimiser, each with the row of the main table."""
    tried = [row for row in rows if row.model.differences() and row.model.step is None]
    tried += best_steps(rows)
    pairs = ((row, row_of(rows, row.recording, plain(row.model))) for row in tried)
    return [(row, base) for row, base in pairs if base is not None]


def twins(rows: Sequence[NeuronRow]) -> list[tuple[NeuronRow, NeuronRow]]:
    """(differenced, not differenced) of each model, on the splits that both have."""
    found = []
    for row in rows:
        other = row_of(rows, row.recording, row.model, differenced=False)
        if row.differenced and other is not None:
            seeds = {seed: row.outcomes[seed] for seed in other.outcomes if seed in row.outcomes}
            found.append((replace(row, outcomes=seeds), other))
    return found
