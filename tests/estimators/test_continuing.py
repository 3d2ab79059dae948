"""Fits that continue earlier ones start from the parameters that these left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import efemb
import efemb.fitted.disk
from efemb._typing import Floats

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def counts(n_rows: int, n_items: int, mean: float = 1.0) -> Floats:
    return np.random.default_rng(0).poisson(mean, (n_rows, n_items)).astype(float)


def silent(seed: int) -> Floats:
    """Six neurons, of which three go together and the last one never varies."""
    X = np.random.default_rng(seed).normal(size=(300, 6))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 0]
    X[:, 5] = 0.0
    return X


def test_positive_vectors_of_constant_entities_stay_positive() -> None:
    X = np.abs(silent(1))
    model = efemb.NonnegativeGaussianEmbedding(
        2,
        context=efemb.Neighbors(3),
        random_state=1,
        tol=1e-9,
        warm_start=True,
        max_iter=2000,
        early_stopping=False,
    ).fit(X)
    assert (model.embedding_ > 0).all()
    model.fit(X)
    model.partial_fit(X)


@pytest.mark.slow
def test_tied_vectors_of_constant_entities_stay_tied() -> None:
    X = silent(10)
    model = efemb.Embedding(
        2,
        family="gaussian",
        context=efemb.Neighbors(3),
        structure="tied",
        prior=efemb.Normal(1.0),
        random_state=10,
        warm_start=True,
        max_iter=1000,
        tol=1e-9,
        n_iter_no_change=100,
        dtype="float64",
    ).fit(X, validation=X)
    assert_array_equal(model.embedding_, model.context_)
    model.fit(X, validation=X)


class Doubled(efemb.Gaussian):
    """A user's own variant of a family, with mean 2 eta."""

    def statistic(self, x: Floats) -> Floats:
        return 2 * x / self.variance

    def log_normalizer(self, eta: Floats) -> Floats:
        return 2 * eta * eta / self.variance

    def mean(self, eta: Floats) -> Floats:
        return 2 * eta


class StoppedError(Exception):
    """Raised during a fit."""


def stop(progress: Any) -> None:
    if progress.iteration == 5:
        raise StoppedError


@pytest.mark.slow
@pytest.mark.parametrize("sigma2", [1.0, "learned"])
def test_a_resumed_fit_keeps_the_class_of_its_family(tmp_path: Path, sigma2: Any) -> None:
    efemb.storage.register(Doubled)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 6))

    def model(*callbacks: Any) -> efemb.Embedding:
        return efemb.Embedding(
            2,
            family=Doubled(sigma2),
            context=efemb.Neighbors(3),
            prior="normal",
            random_state=0,
            max_iter=30,
            early_stopping=False,
            callbacks=list(callbacks),
        )

    whole, saved = model().fit(X), efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    with pytest.raises(StoppedError):
        model(saved, stop).fit(X)
    again = model(saved).fit(X)
    assert type(again.family_) is type(whole.family_) is Doubled
    assert_array_equal(again.embedding_, whole.embedding_)


def test_parameters_of_a_checkpoint_start_a_fit(tmp_path: Path) -> None:
    X, saved = counts(200, 8), efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    efemb.PoissonEmbedding(2, random_state=0, max_iter=3, callbacks=[saved]).fit(X)
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=3, warm_start=True)
    model.parameters_ = saved.load()
    start = model.parameters_.copy()
    model.set_params(max_iter=1, early_stopping=False).fit(X)
    fresh = efemb.PoissonEmbedding(2, random_state=0, max_iter=1, early_stopping=False).fit(X)
    moved = [np.abs(one.embedding_ - start.rho).max() for one in (model, fresh)]
    assert moved[0] < moved[1], "it goes on from there"


def test_warm_start_takes_a_number_and_its_text_as_one_label() -> None:
    X = counts(60, 3)
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=3, warm_start=True)
    model.fit(efemb.Dataset(X, entities=["10", "20", "30"]))
    model.fit(efemb.Dataset(X, entities=[10, 20, 30]))
    with pytest.raises(efemb.DataError):
        model.fit(efemb.Dataset(X, entities=[10, 30, 20]))
    with pytest.raises(efemb.DataError):
        model.fit(efemb.Dataset(X[:, :2], entities=[10, 20]))


def test_numbers_as_column_names_are_labels() -> None:
    frame = pd.DataFrame(counts(100, 6), columns=[100, 7, 33, 4, 5, 9])
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=3).fit(frame)
    with pytest.raises(efemb.DataError):
        model.transform(frame[frame.columns[::-1]])


def test_a_third_axis_of_length_one_changes_nothing() -> None:
    X = counts(50, 5, 2.0)
    options: dict[str, Any] = {"family": "poisson", "context": "basket", "random_state": 0}
    flat, deep = (efemb.Embedding(2, max_iter=3, **options).fit(v) for v in (X, X[:, :, None]))
    assert_array_equal(flat.embedding_, deep.embedding_.reshape(flat.embedding_.shape))


def test_rows_without_weight_do_not_set_the_scale_of_a_learned_variance() -> None:
    rng = np.random.default_rng(0)
    X = 1e-2 * (rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 6)))
    more, weight = np.vstack([1e6 * rng.normal(size=(1, 6)), X]), np.r_[0.0, np.ones(300)]
    options: dict[str, Any] = {
        "family": efemb.Gaussian("learned"),
        "context": efemb.Neighbors(3, positions=np.arange(6.0)[:, None]),
        "prior": "normal",
        "random_state": 0,
        "early_stopping": False,
        "max_iter": 200,
    }
    without = efemb.Embedding(2, **options).fit(X)
    ignored = efemb.Embedding(2, **options).fit(more, sample_weight=weight)
    assert ignored.family_.sigma2 == pytest.approx(without.family_.sigma2, rel=1e-3)


@pytest.mark.slow
def test_every_pass_draws_its_own_zeros() -> None:
    """With the same three columns each time, the others would never count as zeros."""
    X = counts(40, 30, 0.1)
    X[:, :2] += 1
    model = efemb.PoissonEmbedding(2, zeros=efemb.Sampled(3, "uniform"), random_state=0)
    for _ in range(150):
        model.partial_fit(X)
    rare = X.mean(axis=0) < 1
    means = np.exp(np.concatenate([block for _, block in model.log_means(X, *np.nonzero(X))]))
    assert np.median(means[:, rare]) < 3 * X[:, rare].mean()


def test_misspelt_options_are_refused() -> None:
    fitted = efemb.PoissonEmbedding(2, random_state=0).fit(counts(40, 5)).fitted()
    with pytest.raises(efemb.ParameterError, match=r"no option 'n_job'.*n_jobs"):
        efemb.PoissonEmbedding.from_fitted(fitted, n_job=4)


@pytest.mark.parametrize("option", ["zeros__n", "optimizer__step", "prior__precision"])
def test_options_of_nothing_cannot_be_set(option: str) -> None:
    with pytest.raises(efemb.ParameterError, match=f"{option} cannot be set"):
        efemb.BernoulliTextEmbedding().set_params(**{option: 10})


def test_the_memory_of_lbfgs_is_a_whole_number() -> None:
    model = efemb.GaussianEmbedding(2, optimizer=efemb.engine.optimizers.LBFGS(memory=10.0))
    with pytest.raises(efemb.InputTypeError, match=r"LBFGS.memory must be an integer"):
        model.fit(silent(0))


def test_lists_of_different_lengths_are_no_tokens() -> None:
    with pytest.raises(efemb.DataError, match="tokens must be one list of whole numbers"):
        efemb.Corpus([[0, 1], [2]], [0, 2, 3], ["a", "b", "c"])


def test_a_handler_that_is_not_pythons_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program in which Python is embedded."""
    monkeypatch.setattr("signal.getsignal", lambda number: None)
    monkeypatch.setattr("signal.signal", lambda *_: pytest.fail("touched"))
    assert efemb.PoissonEmbedding(2, random_state=0).fit(counts(40, 5)).n_iter_ > 0
