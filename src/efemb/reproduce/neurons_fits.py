"""Fits of the neuron study: one job per model, context and split, scored by both protocols."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from efemb._typing import Floats
from efemb.baselines.factor_analysis import FactorAnalysis
from efemb.baselines.popularity import Popularity
from efemb.engine.optimizers.first_order import Adagrad
from efemb.estimators import GaussianEmbedding
from efemb.evaluation import Predictions, leave_fold_out, leave_one_out
from efemb.evaluation.protocols import draw_folds
from efemb.model.contexts import Graph, Lagged, Neighbors
from efemb.model.families import Gaussian
from efemb.model.priors import HalfNormal, LogNormal, Normal
from efemb.reproduce.jobs import Found, Job, Outcome
from efemb.reproduce.neurons_models import BATCH_FRAMES, NeuronModel
from efemb.reproduce.neurons_recordings import Source

STUDY_NAME = "neurons"
FOLDS = 4
PROTOCOLS = ("one_out", "fold_out")


def make_fit_job(model: NeuronModel, source: Source, n_jobs: int, keep: bool = False) -> Job:
    """Fit a model to a recording; `keep` stores its vectors for the figure."""
    kind = "" if source.differenced else ", not differenced"
    length = f", K={model.k}" if model.k else ""
    step = "" if model.step is None else f", step {model.step:g}"
    label = f"{source.recording}{kind}: {model.name}{length}{step}, seed {source.seed}"
    settings = {"model": model.settings(), "source": source.settings(), "keep": keep}
    if model.step is not None:
        settings["iterations"] = source.plan.iterations
    return Job(STUDY_NAME, label, settings, lambda: _fit(model, source, n_jobs, keep))


def _fit(model: NeuronModel, source: Source, n_jobs: int, keep: bool) -> Found:
    frames = source.frames()
    fitted = make_estimator(model, source, n_jobs, frames.train.n_rows)
    start, cpu = time.perf_counter(), time.process_time()
    fitted.fit(frames.train, validation=frames.validation)
    figures: dict[str, Any] = {
        "fit_seconds": time.perf_counter() - start,
        "fit_cpu_seconds": time.process_time() - cpu,
        "variance": frames.variance,
        **_summarize_fit(fitted),
        "validation": leave_one_out(fitted, frames.validation).mean_squared_error().value,
    }
    judged = {
        "one_out": leave_one_out(fitted, frames.test),
        "fold_out": leave_fold_out(fitted, frames.test, folds=FOLDS, seed=source.seed),
    }
    arrays: dict[str, Any] = {}
    for protocol, predictions in judged.items():
        figures[protocol] = summarize_errors(predictions)
        arrays[protocol] = average_errors(predictions, predictions.row)
    if keep:
        arrays |= {"rho": fitted.rho_, "alpha": fitted.alpha_}
        arrays["positions"] = frames.train.positions
    return figures, arrays


def make_estimator(model: NeuronModel, source: Source, n_jobs: int, n_rows: int) -> Any:
    """The unfitted model."""
    if model.model == "mean":
        return Popularity("gaussian")
    if model.model == "FA":
        return FactorAnalysis(model.k, random_state=source.seed)
    return GaussianEmbedding.paper(
        model.k,
        context=make_context(model, source),
        random_state=source.seed,
        n_jobs=n_jobs,
        **make_ingredients(model),
        **_choose_optimizer(model, source.plan.iterations, n_rows),
    )


def make_context(model: NeuronModel, source: Source) -> Any:
    """The c nearest neurons, or the c nearest neurons of other folds."""
    if not model.outside:
        return Neighbors(model.c, scale=model.scale)
    positions = source.frames().train.positions
    assert positions is not None  # every recording has them
    return Graph(connect_other_folds(positions, model.c, source.seed), scale=model.scale)


def connect_other_folds(positions: Floats, c: int, seed: int) -> Any:
    """Edges from each neuron to the c nearest neurons of other folds (N, N)."""
    n = len(positions)
    members = np.empty((n, c), dtype=np.int64)
    for fold in draw_folds(n, FOLDS, seed):
        others = np.setdiff1d(np.arange(n), fold)
        tree = NearestNeighbors(n_neighbors=c, algorithm="ball_tree").fit(positions[others])
        members[fold] = others[tree.kneighbors(positions[fold], return_distance=False)]
    ones = np.ones(members.size)
    return csr_array((ones, members.ravel(), c * np.arange(n + 1)), shape=(n, n))


def make_ingredients(model: NeuronModel) -> dict[str, Any]:
    """Prior and family as objects."""
    priors = {"normal": Normal, "half-normal": HalfNormal, "log-normal": LogNormal}
    return {"prior": priors[model.prior](model.penalty), "family": Gaussian(model.sigma2)}


def _choose_optimizer(model: NeuronModel, iterations: int, n_rows: int) -> dict[str, Any]:
    """The paper's minibatches for all iterations, or ours until validation stops improving."""
    if model.step is None:
        return {}
    steps_a_pass = max(1, round(n_rows / BATCH_FRAMES))
    passes = max(1, round(iterations / steps_a_pass))
    return {
        "solver": "generic",
        "optimizer": Adagrad(model.step, epsilon=1e-10),
        "batch_size": BATCH_FRAMES,
        "max_iter": passes,
        "n_iter_no_change": passes,
    }


def _summarize_fit(fitted: Any) -> dict[str, Any]:
    """Passes and variance of the fit, if the model has them."""
    summary: dict[str, Any] = {}
    if hasattr(fitted, "best_iter_"):
        summary = {"best_iter": int(fitted.best_iter_), "n_iter": int(fitted.n_iter_)}
        summary["sigma2"] = float(fitted.family_.variance)
    return summary


def summarize_errors(predictions: Predictions) -> dict[str, Any]:
    """Mean squared error, its standard errors, and the sizes of the contexts."""
    by_entry, by_frame = predictions.mean_squared_error(), predictions.mean_squared_error("row")
    summary: dict[str, Any] = {
        "error": by_entry.value,
        "se_entries": by_entry.standard_error,
        "se_frames": by_frame.standard_error,
        "n_entries": len(predictions),
        "n_frames": int(by_frame.n),
    }
    if predictions.context_size is not None:
        size, n = np.unique(predictions.context_size, return_counts=True)
        summary["context_sizes"] = {"size": size.tolist(), "n": n.tolist()}
    return summary


def average_errors(predictions: Predictions, group: Any) -> Floats:
    """Mean squared error of each group of entries, in the order of the groups."""
    square = (predictions.x - predictions.known("mean")) ** 2
    _, index = np.unique(group, return_inverse=True)
    return np.asarray(np.bincount(index, square) / np.bincount(index))


# -- contexts that reach back in time -------------------------------------------------------------


PAST_NEIGHBORS = 50
# Name -> lags in frames, and the number of neighbors at those lags.
PAST_CONTEXTS: dict[str, tuple[tuple[int, ...], int]] = {
    "neighbors": ((), 0),
    "neighbors + own last frame": ((-1,), 0),
    "neighbors + own last two frames": ((-2, -1), 0),
    "neighbors + last frame of itself and 10 neighbors": ((-1,), 10),
}


def make_lag_jobs(sources: Sequence[Source], k: int, n_jobs: int) -> list[Job]:
    """Every context on every split."""
    jobs = []
    for source in sources:
        for name, lags in PAST_CONTEXTS.items():
            settings = {"context": name, "lags": lags, "source": source.settings()}
            label = f"{source.recording}: {name}, K={k}, seed {source.seed}"
            work = _Work(name, source, k, n_jobs)
            jobs.append(Job(STUDY_NAME, label, {**settings, "k": k}, work))
    return jobs


def is_lag_job(outcome: Outcome) -> bool:
    """Whether an outcome belongs to a context with a past."""
    return "lags" in outcome.job.settings


class _Work:
    """Fit a model with one context and score it, leaving one neuron out."""

    def __init__(self, name: str, source: Source, k: int, n_jobs: int) -> None:
        self.name, self.source, self.k, self.n_jobs = name, source, k, n_jobs

    def __call__(self) -> Found:
        frames = self.source.frames()
        options = {"random_state": self.source.seed, "n_jobs": self.n_jobs}
        model = GaussianEmbedding.paper(self.k, context=make_past_context(self.name), **options)
        start = time.perf_counter()
        model.fit(frames.train, validation=frames.validation)
        seconds = time.perf_counter() - start
        predictions = leave_one_out(model, frames.test)
        block = frames.test.recordings
        assert block is not None  # the source is cut into blocks
        by_block = average_errors(predictions, block[predictions.row])
        return {"fit_seconds": seconds, "one_out": summarize_errors(predictions)}, {
            "one_out": by_block
        }


def make_past_context(name: str) -> Any:
    """The context with a name."""
    lags, near = PAST_CONTEXTS[name]
    neighbors = Neighbors(PAST_NEIGHBORS)
    if not lags:
        return neighbors
    return neighbors + Lagged(lags, of=Neighbors(near) if near else None)
