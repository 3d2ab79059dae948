"""Neighbours and the past: contexts that reach back in time, judged on whole stretches of frames.

The recording is cut into blocks, whole blocks are held out, and each block counts as a recording
of its own, so that no context reaches from a test block into a training block.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from efemb.evaluation import leave_one_out
from efemb.reproduce.neuron_data import Source
from efemb.reproduce.neuron_fits import STUDY_NAME, errors, errors_by_row
from efemb.reproduce.neuron_tables import table_of
from efemb.reproduce.runner import Found, Job, Outcome
from efemb.table import Table

NEIGHBOURS = 50
# Name -> frames back, and neighbours that are seen there too.
CONTEXTS: dict[str, tuple[tuple[int, ...], int]] = {
    "neighbours": ((), 0),
    "neighbours + own last frame": ((-1,), 0),
    "neighbours + own last two frames": ((-2, -1), 0),
    "neighbours + last frame of itself and 10 neighbours": ((-1,), 10),
}


def lag_jobs(sources: Sequence[Source], k: int, n_jobs: int) -> list[Job]:
    """Every context on every split."""
    found = []
    for source in sources:
        for name, lags in CONTEXTS.items():
            settings = {"context": name, "lags": lags, "source": source.settings()}
            label = f"{source.recording}: {name}, K={k}, seed {source.seed}"
            work = _Work(name, source, k, n_jobs)
            found.append(Job(STUDY_NAME, label, {**settings, "k": k}, work))
    return found


def is_lag_job(outcome: Outcome) -> bool:
    """Whether an outcome belongs here."""
    return "lags" in outcome.job.settings


class _Work:
    """Fit one context and judge it, leaving one neuron out."""

    def __init__(self, name: str, source: Source, k: int, n_jobs: int) -> None:
        self.name, self.source, self.k, self.n_jobs = name, source, k, n_jobs

    def __call__(self) -> Found:
        from efemb.estimators import GaussianEmbedding

        frames = self.source.frames()
        options = {"random_state": self.source.seed, "n_jobs": self.n_jobs}
        model = GaussianEmbedding.paper(self.k, context=context(self.name), **options)
        start = time.perf_counter()
        model.fit(frames.train, validation=frames.validation)
        seconds = time.perf_counter() - start
        found = leave_one_out(model, frames.test)
        block = frames.test.recordings
        assert block is not None  # the source cuts into blocks
        by_block = errors_by_row(found, block[found.row])
        return {"fit_seconds": seconds, "one_out": errors(found)}, {"one_out": by_block}


def context(name: str) -> Any:
    """The context of a name."""
    from efemb.contexts import Lagged, Neighbors

    lags, near = CONTEXTS[name]
    here = Neighbors(NEIGHBOURS)
    if not lags:
        return here
    return here + Lagged(lags, of=Neighbors(near) if near else None)


def lag_table(outcomes: Sequence[Outcome]) -> Table | None:
    """Errors, and paired differences to neighbours alone (standard errors over blocks)."""
    by_name: dict[str, list[Outcome]] = {}
    for outcome in filter(is_lag_job, outcomes):
        by_name.setdefault(outcome.job.settings["context"], []).append(outcome)
    found = []
    for name, mine in by_name.items():
        pairs = zip(mine, by_name["neighbours"], strict=True)
        gaps = np.concatenate([one.arrays["one_out"] - two.arrays["one_out"] for one, two in pairs])
        found.append(
            {
                "context": name,
                "error": float(np.mean([one.figures["one_out"]["error"] for one in mine])),
                "difference": float(gaps.mean()),
                "se_difference": float(gaps.std() / np.sqrt(len(gaps))),
                "fit_seconds": round(float(np.mean([o.figures["fit_seconds"] for o in mine])), 2),
                "splits": len(mine),
            }
        )
    return table_of(found)
