"""One fit of the study of neurons, judged by both protocols."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from efemb.evaluation import Predictions, leave_fold_out, leave_one_out
from efemb.evaluation.protocols import fold_members
from efemb.reproduce.neuron_data import Source
from efemb.reproduce.neuron_settings import BATCH_FRAMES, NeuronModel
from efemb.reproduce.runner import Found, Job
from efemb.types import Floats

STUDY_NAME = "neurons"
FOLDS = 4
PROTOCOLS = ("one_out", "fold_out")


def fit_job(model: NeuronModel, source: Source, n_jobs: int, keep: bool = False) -> Job:
    """Fit a model to a recording; `keep` its vectors for a picture."""
    kind = "" if source.differenced else ", not differenced"
    length = f", K={model.k}" if model.k else ""
    step = "" if model.step is None else f", step {model.step:g}"
    label = f"{source.recording}{kind}: {model.name}{length}{step}, seed {source.seed}"
    settings = {"model": model.settings(), "source": source.settings(), "keep": keep}
    if model.step is not None:
        settings["iterations"] = source.plan.iterations
    return Job(STUDY_NAME, label, settings, lambda: _fitted(model, source, n_jobs, keep))


def _fitted(model: NeuronModel, source: Source, n_jobs: int, keep: bool) -> Found:
    frames = source.frames()
    found = estimator(model, source, n_jobs, frames.train.n_rows)
    start, cpu = time.perf_counter(), time.process_time()
    found.fit(frames.train, validation=frames.validation)
    figures: dict[str, Any] = {
        "fit_seconds": time.perf_counter() - start,
        "fit_cpu_seconds": time.process_time() - cpu,
        "variance": frames.variance,
        **_how(found),
        "validation": leave_one_out(found, frames.validation).mean_squared_error().value,
    }
    judged = {
        "one_out": leave_one_out(found, frames.test),
        "fold_out": leave_fold_out(found, frames.test, folds=FOLDS, seed=source.seed),
    }
    arrays: dict[str, Any] = {}
    for protocol, predictions in judged.items():
        figures[protocol] = errors(predictions)
        arrays[protocol] = errors_by_row(predictions, predictions.row)
    if keep:
        arrays |= {"rho": found.embedding_, "alpha": found.context_}
        arrays["positions"] = frames.train.positions
    return figures, arrays


def estimator(model: NeuronModel, source: Source, n_jobs: int, n_rows: int) -> Any:
    """The model, not yet fitted."""
    if model.model == "mean":
        from efemb.baselines.popularity import Popularity

        return Popularity("gaussian")
    if model.model == "FA":
        from efemb.baselines.factor_analysis import FactorAnalysis

        return FactorAnalysis(model.k, random_state=source.seed)
    from efemb.estimators import GaussianEmbedding

    return GaussianEmbedding.paper(
        model.k,
        context=context(model, source),
        random_state=source.seed,
        n_jobs=n_jobs,
        **ingredients(model),
        **_optimisation(model, source.plan.iterations, n_rows),
    )


def context(model: NeuronModel, source: Source) -> Any:
    """The c nearest neurons, or the c nearest of those in other folds."""
    from efemb.contexts import Graph, Neighbors

    if not model.outside:
        return Neighbors(model.c, scale=model.scale)
    positions = source.frames().train.positions
    assert positions is not None  # every recording has them
    return Graph(other_folds(positions, model.c, source.seed), scale=model.scale)


def other_folds(positions: Floats, c: int, seed: int) -> Any:
    """Edges from each neuron to the c nearest neurons of other folds (N, N)."""
    from scipy.sparse import csr_array
    from sklearn.neighbors import NearestNeighbors

    n = len(positions)
    members = np.empty((n, c), dtype=np.int64)
    for part in fold_members(n, FOLDS, seed):
        others = np.setdiff1d(np.arange(n), part)
        tree = NearestNeighbors(n_neighbors=c, algorithm="ball_tree").fit(positions[others])
        members[part] = others[tree.kneighbors(positions[part], return_distance=False)]
    ones = np.ones(members.size)
    return csr_array((ones, members.ravel(), c * np.arange(n + 1)), shape=(n, n))


def ingredients(model: NeuronModel) -> dict[str, Any]:
    """Prior and family as objects."""
    from efemb.families import Gaussian
    from efemb.priors import HalfNormal, LogNormal, Normal

    priors = {"normal": Normal, "half-normal": HalfNormal, "log-normal": LogNormal}
    return {"prior": priors[model.prior](model.penalty), "family": Gaussian(model.sigma2)}


def _optimisation(model: NeuronModel, iterations: int, n_rows: int) -> dict[str, Any]:
    """The paper's minibatches, all iterations of them; or ours, until validation stops rising."""
    if model.step is None:
        return {}
    from efemb.engine.optimizers import Adagrad

    steps_a_pass = max(1, round(n_rows / BATCH_FRAMES))
    passes = max(1, round(iterations / steps_a_pass))
    return {
        "solver": "generic",
        "optimizer": Adagrad(model.step, epsilon=1e-10),
        "batch_size": BATCH_FRAMES,
        "max_iter": passes,
        "n_iter_no_change": passes,
    }


def _how(found: Any) -> dict[str, Any]:
    """How the fit went, where the model says so."""
    told: dict[str, Any] = {}
    if hasattr(found, "best_iter_"):
        told = {"best_iter": int(found.best_iter_), "n_iter": int(found.n_iter_)}
        told["sigma2"] = float(found.family_.variance)
    return told


def errors(found: Predictions) -> dict[str, Any]:
    """Mean squared error, its standard errors, and what became of the contexts."""
    by_entry, by_frame = found.mean_squared_error(), found.mean_squared_error("row")
    told: dict[str, Any] = {
        "error": by_entry.value,
        "se_entries": by_entry.standard_error,
        "se_frames": by_frame.standard_error,
        "n_entries": len(found),
        "n_frames": int(by_frame.n),
    }
    if found.context_size is not None:
        size, n = np.unique(found.context_size, return_counts=True)
        told["context_sizes"] = {"size": size.tolist(), "n": n.tolist()}
    return told


def errors_by_row(found: Predictions, group: Any) -> Floats:
    """Mean squared error of each group of entries, in the order of the groups."""
    square = (found.x - found.known("mean")) ** 2
    _, place = np.unique(group, return_inverse=True)
    return np.asarray(np.bincount(place, square) / np.bincount(place))
