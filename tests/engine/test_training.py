"""Training: masks, early stopping, divergence, interruption, memory, history."""

from __future__ import annotations

import os
import signal
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import efemb
from efemb.engine import memory

ignore_unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Array = Any


def baskets(n_rows: int = 60, n_entities: int = 8, seed: int = 0) -> Array:
    X = np.random.default_rng(seed).poisson(0.7, (n_rows, n_entities)).astype(float)
    X[:, 0] += 1
    X[:, 1] += 1
    return X


def neurons(n_rows: int = 60, n_entities: int = 6, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_entities)) + rng.normal(size=(n_rows, 1))


def held_out(X: Array, seed: int = 0) -> tuple[Array, Array]:
    """Training rows, and entries of the same rows taken from them."""
    cells = (X > 0) & (np.random.default_rng(seed).random(X.shape) < 0.15)
    cells[:, :2] = False  # every row keeps a context
    return np.where(cells, 0.0, X), np.where(cells, X, 0.0)


PRESETS: dict[str, Any] = {
    "p-emb": efemb.PoissonEmbedding,
    "ap-emb": efemb.AdditivePoissonEmbedding,
    "categorical": efemb.CategoricalEmbedding,
}


@ignore_unconverged
@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_value_of_a_held_out_entry_does_not_touch_training(preset: str, make: Any) -> None:
    train, entries = held_out(baskets())
    # The scores' order decides which iteration is kept, so only the last one is compared.
    kept: list[list[Any]] = []
    for values in (entries, np.where(entries > 0, entries + 7, 0.0)):
        seen: list[Any] = []
        model = PRESETS[preset](
            2,
            random_state=0,
            max_iter=15,
            n_iter_no_change=100,
            callbacks=[lambda progress, seen=seen: seen.append(progress.parameters())],
        )
        model.fit(make(train), validation=make(values))
        kept.append(seen)
    for one, two in zip(*kept, strict=True):
        for first, second in zip(one.arrays(), two.arrays(), strict=True):
            assert first.tobytes() == second.tobytes()


@ignore_unconverged
def test_a_masked_entry_is_not_a_zero_either() -> None:
    train, entries = held_out(baskets())
    options: dict[str, Any] = {"random_state": 0, "max_iter": 15, "n_iter_no_change": 100}
    masked = efemb.PoissonEmbedding(2, **options).fit(train, validation=entries)
    zeros = efemb.PoissonEmbedding(2, **options).fit(train, validation=baskets(seed=5))
    assert np.abs(masked.embedding_ - zeros.embedding_).max() > 1e-4


@ignore_unconverged
def test_an_emptied_training_row_keeps_its_entries_masked() -> None:
    """A row whose entries are all held out is dropped from both."""
    train, entries = held_out(baskets())
    entries[3] = train[3] + entries[3]
    train[3] = 0.0
    options: dict[str, Any] = {"random_state": 0, "max_iter": 10, "dtype": "float64"}
    whole = efemb.PoissonEmbedding(2, **options).fit(train, validation=entries)
    without = efemb.PoissonEmbedding(2, **options)
    without.fit(np.delete(train, 3, axis=0), validation=np.delete(entries, 3, axis=0))
    assert_allclose(whole.embedding_, without.embedding_, rtol=1e-10)


@ignore_unconverged
def test_entries_of_fixed_contexts_are_predicted_from_the_training_rows() -> None:
    X = neurons()
    cells = np.random.default_rng(1).random(X.shape) < 0.1
    train, entries = np.where(cells, np.nan, X), np.where(cells, X, np.nan)
    model = efemb.GaussianEmbedding(
        2, context=efemb.Graph(1 - np.eye(6)), random_state=0, dtype="float64", max_iter=10
    ).fit(train, validation=entries)
    total, count = 0.0, 0
    for t, n in np.argwhere(cells):
        s = sum(train[t, m] * model.context_[m] for m in range(6) if m != n and not cells[t, m])
        u = model.embedding_[n] @ (s + np.zeros(2)) + model.intercept_[n]
        total += -0.5 * (X[t, n] - u) ** 2 - 0.5 * np.log(2 * np.pi)
        count += 1
    best = max(one["validation"] for one in model.history_ if one["validation"] is not None)
    assert best == pytest.approx(total / count, rel=1e-9)


@ignore_unconverged
@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_held_out_rows_are_no_context_of_training_rows(make: Any) -> None:
    """With lags a row is context of the next: blank it, and nothing of it may remain."""
    X = np.abs(neurons(40, 4)).round()
    fits = []
    for scale in (1.0, 3.0):
        values, seen = X.copy(), []
        # Which rows are held out follows from the seed alone, so find them by a first fit.
        rows = _held_rows(X, make)
        values[rows] *= scale
        model = _lagged(seen)
        model.fit(efemb.Dataset(make(values)))
        fits.append(seen[-1])
    for one, two in zip(fits[0].arrays(), fits[1].arrays(), strict=True):
        assert_allclose(one, two, rtol=1e-12)


def _lagged(seen: list[Any]) -> efemb.Embedding:
    return efemb.Embedding(
        2,
        context=efemb.Lagged((-1, 1)),
        random_state=0,
        dtype="float64",
        max_iter=5,
        n_iter_no_change=100,
        validation_fraction=0.2,
        callbacks=[lambda progress: seen.append(progress.parameters())],
    )


def _held_rows(X: Array, make: Any) -> Array:
    from efemb.engine import holdout

    found = []
    inner = holdout._without_rows

    def watching(bound: Any, rows: Array, *rest: Any) -> Any:
        found.append(rows)
        return inner(bound, rows, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holdout, "_without_rows", watching)
        _lagged([]).fit(efemb.Dataset(make(X)))
    assert len(found[0]) == 8
    return found[0]


@ignore_unconverged
def test_lists_chosen_before_the_hold_out_are_those_of_training() -> None:
    X = np.random.default_rng(3).normal(size=(40, 8))
    near = efemb.Neighbors(2)
    model = efemb.GaussianEmbedding(
        2, context=near + efemb.Lagged((-1,), of=near), random_state=0, dtype="float64", max_iter=4
    ).fit(X)
    best = max(one["validation"] for one in model.history_ if one["validation"] is not None)
    fixed = efemb.GaussianEmbedding(
        2,
        context=_graph(X) + efemb.Lagged((-1,), of=_graph(X)),
        random_state=0,
        dtype="float64",
        max_iter=4,
    ).fit(X)
    other = max(one["validation"] for one in fixed.history_ if one["validation"] is not None)
    assert best == pytest.approx(other, rel=1e-10)


def _graph(X: Array) -> efemb.Graph:
    """The two most correlated others of every column."""
    strength = np.abs(np.corrcoef(X.T)) - 2 * np.eye(X.shape[1])
    adjacency = np.zeros(strength.shape)
    for n, row in enumerate(strength):
        adjacency[n, np.argsort(-row)[:2]] = 1
    return efemb.Graph(adjacency)


@ignore_unconverged
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_best_parameters_are_kept(preset: str) -> None:
    train, entries = held_out(baskets())
    seen: dict[int, Any] = {}

    def watch(progress: Any) -> None:
        seen[progress.iteration] = progress.parameters()

    model = PRESETS[preset](
        4, prior=None, random_state=0, optimizer=efemb.Adagrad(1.0), callbacks=[watch], max_iter=400
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
    "p-emb": (efemb.PoissonEmbedding(2, optimizer=efemb.Adagrad(1e25)), baskets()),
    "p-emb, one step": (
        efemb.PoissonEmbedding(
            2, optimizer=efemb.SGD(1e38), prior=None, early_stopping=False, max_iter=1
        ),
        1000 * baskets(),
    ),
    "ap-emb": (efemb.AdditivePoissonEmbedding(2, optimizer=efemb.Adagrad(1e3)), baskets()),
    "sampled": (
        efemb.PoissonEmbedding(2, optimizer=efemb.SGD(1e30), zeros=efemb.Sampled(3)),
        baskets(),
    ),
    "categorical": (efemb.CategoricalEmbedding(2, optimizer=efemb.SGD(1e30)), baskets()),
    "moments": (efemb.GaussianEmbedding(2, optimizer=efemb.SGD(1e20)), neurons()),
    "generic": (
        efemb.GaussianEmbedding(2, optimizer=efemb.SGD(1e20), solver="generic"),
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


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    def press_twice(progress: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    model = efemb.PoissonEmbedding(2, random_state=0, callbacks=[press_twice])
    with pytest.raises(KeyboardInterrupt):
        model.fit(baskets())
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("solver", ["rows", "moments", "generic"])
def test_what_cannot_fit_into_memory_is_refused_with_the_figure(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    context = "basket" if solver == "rows" else "neighbors"
    model = efemb.Embedding(5000, context=context, family="gaussian", solver=solver)
    model.set_params(context=efemb.Basket("none") if solver == "rows" else efemb.Neighbors())
    # Two arrays of 6 x 5000 float32 alone are 0.24 MB.
    with pytest.raises(efemb.MemoryEstimateError, match=r"needs about .*[GMk]B.*free") as caught:
        model.fit(neurons())
    figure = float(str(caught.value).partition("about ")[2].split()[0])
    assert figure > 0, "the figure says how much"
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_the_memory_of_this_machine_is_known() -> None:
    free = memory.available_memory()
    assert free is None or free > 1_000_000
