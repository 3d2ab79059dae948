"""Training: early stopping, divergence, interruption, memory, history."""

from __future__ import annotations

import os
import re
import signal
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import efemb
from efemb.engine import limits as memory
from engine.tasks import PRESETS, Array, held_out
from estimators.samples import baskets, neurons

ignore_unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@ignore_unconverged
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_best_parameters_are_kept(preset: str) -> None:
    train, entries = held_out(baskets())
    seen: dict[int, Any] = {}

    def watch(progress: Any) -> None:
        seen[progress.iteration] = progress.parameters()

    model = PRESETS[preset](
        4,
        prior=None,
        random_state=0,
        optimizer=efemb.engine.optimizers.Adagrad(1.0),
        callbacks=[watch],
        max_iter=400,
    ).fit(train, validation=entries)
    scores = {
        one["iteration"]: one["validation"]
        for one in model.history_
        if one["validation"] is not None
    }
    assert model.best_iter_ == max(scores, key=lambda i: scores[i])
    assert model.best_iter_ < model.n_iter_ < 400, "it overfits, so it stops early"
    assert model.converged_
    for kept, one in zip(model.parameters_.arrays(), seen[model.best_iter_].arrays(), strict=True):
        assert kept.tobytes() == one.tobytes()


@ignore_unconverged
def test_history_has_one_record_an_iteration() -> None:
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=25).fit(baskets())
    assert [one["iteration"] for one in model.history_] == list(range(1, model.n_iter_ + 1))
    assert all(np.isfinite(one["objective"]) for one in model.history_)
    assert any(one["validation"] is not None for one in model.history_)
    seconds = [one["seconds"] for one in model.history_]
    assert (np.diff(seconds) >= 0).all()


@pytest.mark.parametrize("model", [efemb.PoissonEmbedding(2), efemb.GaussianEmbedding(2)])
def test_a_fit_cut_off_by_max_iter_warns(model: Any) -> None:
    X = baskets() if isinstance(model, efemb.PoissonEmbedding) else neurons()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.set_params(max_iter=2, random_state=0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("model", [efemb.PoissonEmbedding(2), efemb.GaussianEmbedding(2)])
def test_default_settings_converge_without_a_warning(model: Any, early_stopping: bool) -> None:
    X = baskets() if isinstance(model, efemb.PoissonEmbedding) else neurons()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(random_state=0, early_stopping=early_stopping, max_iter=None).fit(X)
    assert model.converged_


HUGE: dict[str, tuple[Any, Array]] = {
    "p-emb": (
        efemb.PoissonEmbedding(2, optimizer=efemb.engine.optimizers.Adagrad(1e25)),
        baskets(),
    ),
    "p-emb, one step": (
        efemb.PoissonEmbedding(
            2,
            optimizer=efemb.engine.optimizers.SGD(1e38),
            prior=None,
            early_stopping=False,
            max_iter=1,
        ),
        1000 * baskets(),
    ),
    "ap-emb": (
        efemb.AdditivePoissonEmbedding(2, optimizer=efemb.engine.optimizers.Adagrad(1e3)),
        baskets(),
    ),
    "sampled": (
        efemb.PoissonEmbedding(
            2, optimizer=efemb.engine.optimizers.SGD(1e30), zeros=efemb.Sampled(3)
        ),
        baskets(),
    ),
    "categorical": (
        efemb.CategoricalEmbedding(2, optimizer=efemb.engine.optimizers.SGD(1e30)),
        baskets(),
    ),
    "moments": (efemb.GaussianEmbedding(2, optimizer=efemb.engine.optimizers.SGD(1e20)), neurons()),
    "generic": (
        efemb.GaussianEmbedding(2, optimizer=efemb.engine.optimizers.SGD(1e20), solver="generic"),
        neurons(),
    ),
}


@ignore_unconverged
@pytest.mark.parametrize("case", sorted(HUGE))
def test_divergence_is_an_error_that_names_the_step(case: str) -> None:
    model, X = HUGE[case]
    with pytest.raises(efemb.DivergenceError, match=r"(step|iteration) \d+.*step"):
        model.set_params(random_state=0).fit(X)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@ignore_unconverged
@pytest.mark.parametrize("optimizer", ["adagrad", "lbfgs"])
@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_stops_at_a_step_and_leaves_a_usable_estimator(optimizer: str) -> None:
    def press(progress: Any) -> None:
        if progress.iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # stopping on request is no failure to converge
        model = efemb.PoissonEmbedding(
            2, optimizer=optimizer, random_state=0, callbacks=[press]
        ).fit(baskets())
    assert signal.getsignal(signal.SIGINT) is before
    assert model.n_iter_ <= 4
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.score(baskets()))
    assert not model.converged_
    assert model.report_["interrupted"]
    assert not model.set_params(callbacks=None).fit(baskets()).report_["interrupted"]


@pytest.mark.usefixtures("ctrl_c_works")
def test_a_second_ctrl_c_interrupts_at_once() -> None:
    def press_twice(progress: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[press_twice])
    with pytest.raises(KeyboardInterrupt):
        model.fit(baskets())
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert signal.getsignal(signal.SIGINT) is before


@ignore_unconverged
def test_an_ignored_ctrl_c_stays_ignored() -> None:
    """Ctrl-C elsewhere does not end a fit that nohup or a script started in the background."""
    handlers = []

    def press(progress: Any) -> None:
        handlers.append(signal.getsignal(signal.SIGINT))
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        model = efemb.PoissonEmbedding(2, max_iter=5, random_state=0, callbacks=[press])
        model.fit(baskets())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [signal.SIG_IGN] * 5
    assert not model.report_["interrupted"]


@pytest.mark.parametrize("solver", ["rows", "moments", "generic"])
def test_what_cannot_fit_into_memory_is_refused_with_the_figure(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    context = "basket" if solver == "rows" else "neighbors"
    model = efemb.Embedding(5000, context=context, family="gaussian", solver=solver)
    model.set_params(context=efemb.Basket("none") if solver == "rows" else efemb.Neighbors())
    # Two arrays of 6 x 5000 float32 alone are 0.24 MB.
    needs = r"needs (?:about|at least) ([\d.]+) [GMk]B.*free"
    with pytest.raises(efemb.MemoryEstimateError, match=needs) as caught:
        model.fit(neurons())
    figure = float(re.findall(r"(?:about|at least) ([\d.]+) ", str(caught.value))[0])
    assert figure > 0, "the figure says how much"
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_the_memory_of_this_machine_is_known() -> None:
    free = memory.available_memory()
    assert free is None or free > 1_000_000


@pytest.mark.parametrize("step", [1e8, 1e3])
@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("name", ["GaussianEmbedding", "PoissonEmbedding", "BernoulliEmbedding"])
def test_a_finite_result_that_is_worse_than_the_start_is_refused(name, early_stopping, step):
    """It used to end at -6e17 with the remark that it was still improving."""
    X = np.random.default_rng(0).integers(0, 2, (200, 10))
    options = {"early_stopping": early_stopping, "max_iter": 20, "random_state": 0}
    model = getattr(efemb, name)(3, optimizer=efemb.engine.optimizers.Adagrad(step), **options)
    with pytest.raises(efemb.DivergenceError, match="lower the optimizer's step"):
        model.fit(X)


@pytest.mark.parametrize("sigma2", ["learned", "per-entity"])
def test_a_variance_that_grew_with_the_errors_hides_no_divergence(sigma2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 10)) + rng.normal(size=(200, 10))

    def fit(step: float) -> efemb.GaussianEmbedding:
        optimizer = efemb.engine.optimizers.Adagrad(step)
        options = {"family": efemb.Gaussian(sigma2), "max_iter": 100, "random_state": 0}
        return efemb.GaussianEmbedding(3, optimizer=optimizer, **options).fit(X)

    with pytest.raises(efemb.DivergenceError, match="lower the optimizer's step"):
        fit(1e4)
    with pytest.warns(ConvergenceWarning):
        assert fit(0.05).family_.variance < X.var()


def test_data_of_any_scale_are_not_taken_for_divergence():
    """Their log-densities are far below 0 from the start to the end."""
    X = 1e4 * np.random.default_rng(0).normal(size=(100, 6))
    optimizer = efemb.engine.optimizers.Adagrad(1e-4)
    options = {"family": efemb.Gaussian(1.0), "max_iter": 3, "random_state": 0}
    model = efemb.GaussianEmbedding(2, optimizer=optimizer, **options)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert model.history_[-1]["objective"] < -1e6


@pytest.mark.parametrize(
    "preset", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding, efemb.AdditivePoissonEmbedding]
)
@ignore_unconverged
def test_few_rows_are_not_fitted_below_popularity(preset: Any) -> None:
    """Rows without structure, most of whose entities occur once: only popularity predicts."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, 401)
    counts = rng.poisson(10.0 * share / share.sum(), size=(250, 400)).astype(float)
    train, test = counts[:50], counts[50:]
    model = preset(5, random_state=0).fit(train)
    popularity = float(efemb.baselines.Popularity().fit(train).score(test))
    assert float(model.score(test)) > popularity - 0.15
    assert model.best_iter_ < 20
