"""Callbacks: the protocol, and those of the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.engine.callbacks import Progress
from efemb.engine.progress import ProgressBar
from efemb.model.parameters import Parameters

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def baskets() -> Any:
    return np.random.default_rng(0).poisson(0.9, (50, 7)).astype(float)


def progress(iteration: int, validation: float | None) -> Progress:
    vectors = np.full((2, 1), float(iteration))
    return Progress(iteration, -1.0, validation, 0.5, lambda: Parameters(vectors, vectors))


@pytest.mark.parametrize("optimizer", ["adagrad", "lbfgs"])
def test_a_callback_sees_every_iteration_and_may_stop_the_fit(optimizer: str) -> None:
    seen: list[Progress] = []

    def watch(found: Progress) -> bool:
        seen.append(found)
        return found.iteration == 4

    model = efemb.PoissonEmbedding(2, optimizer=optimizer, callbacks=[watch], random_state=0)
    model.fit(baskets())
    assert [one.iteration for one in seen] == [1, 2, 3, 4]
    assert model.n_iter_ == 4
    assert [one.record() for one in seen] == model.history_


def test_parameters_handed_to_a_callback_are_a_copy() -> None:
    def spoil(found: Progress) -> None:
        found.parameters().rho[:] = np.nan

    model = efemb.PoissonEmbedding(2, callbacks=[spoil], max_iter=3, random_state=0)
    assert np.isfinite(model.fit(baskets()).embedding_).all()


def test_only_true_stops() -> None:
    model = efemb.PoissonEmbedding(2, callbacks=[lambda found: 1], max_iter=3, random_state=0)
    assert model.fit(baskets()).n_iter_ == 3


def test_early_stopping_counts_scores_without_a_gain() -> None:
    stop = efemb.engine.callbacks.EarlyStopping(patience=2, tol=0.1)
    scores = [0.0, 1.0, None, 1.05, None, 1.2, 1.25, 1.3]
    wishes = [stop(progress(i, score)) for i, score in enumerate(scores)]
    #           first  gain   none   small  none   gain   small  second small
    assert wishes == [False, False, False, False, False, False, False, True]


def test_early_stopping_as_a_callback_is_stricter_than_the_fit() -> None:
    options: dict[str, Any] = {"random_state": 0, "max_iter": 200, "n_iter_no_change": 1000}
    free = efemb.PoissonEmbedding(4, **options).fit(baskets())
    strict = efemb.PoissonEmbedding(
        4, callbacks=[efemb.engine.callbacks.EarlyStopping(1, tol=10.0)], **options
    )
    assert strict.fit(baskets()).n_iter_ < free.n_iter_ == 200
    assert strict.converged_


def test_early_stopping_serves_several_fits() -> None:
    """A callback is an argument, so it must not remember an earlier fit."""
    model = efemb.PoissonEmbedding(
        2,
        random_state=0,
        max_iter=100,
        callbacks=[efemb.engine.callbacks.EarlyStopping(2)],
        n_iter_no_change=1000,
    )
    first = model.fit(baskets()).n_iter_
    assert model.fit(baskets()).n_iter_ == first


def test_json_lines_are_the_history(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    model = efemb.PoissonEmbedding(
        2, callbacks=[efemb.engine.callbacks.JsonLinesLog(path)], max_iter=5, random_state=0
    ).fit(baskets())
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == model.history_


def test_a_checkpoint_holds_the_parameters_of_its_iteration(tmp_path: Path) -> None:
    seen = {}

    def watch(found: Progress) -> None:
        seen[found.iteration] = found.parameters()

    saved, kept = efemb.engine.callbacks.Checkpoint(tmp_path / "point", every=3), {}

    def look(found: Progress) -> None:
        state = saved.read()
        if state is not None:
            kept[state["iteration"]] = saved.load()

    model = efemb.PoissonEmbedding(
        2, callbacks=[watch, saved, look], max_iter=8, n_iter_no_change=100, random_state=0
    )
    model.fit(baskets())
    kept[8] = saved.load()  # the last one of a fit that has ended
    assert list(kept) == [3, 6, 8]
    for iteration, found in kept.items():
        for one, live in zip(found.arrays(), seen[iteration].arrays(), strict=True):
            assert one.tobytes() == live.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["point"]


def test_a_checkpoint_without_intercept_has_none(tmp_path: Path) -> None:
    saved = efemb.engine.callbacks.Checkpoint(tmp_path / "point")
    efemb.PoissonEmbedding(2, intercept=False, callbacks=[saved], max_iter=2).fit(baskets())
    assert saved.load().intercept is None


def test_fit_is_silent_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    efemb.PoissonEmbedding(2, max_iter=3, random_state=0).fit(baskets())
    assert capfd.readouterr() == ("", "")


def test_verbose_shows_objective_and_validation(capsys: pytest.CaptureFixture[str]) -> None:
    efemb.PoissonEmbedding(2, max_iter=25, random_state=0, verbose=1).fit(baskets())
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "objective" in shown.err
    assert "validation" in shown.err
    assert "━" not in shown.err, "no bar where there is no terminal"


def test_a_progress_bar_that_never_began_can_be_closed() -> None:
    bar = ProgressBar()
    bar.close()
    assert bar._bar is None


def test_an_error_in_a_callback_reaches_the_caller_and_closes_the_others() -> None:
    class Closing:
        closed = False

        def __call__(self, found: Progress) -> None:
            raise RuntimeError("from the callback")

        def close(self) -> None:
            self.closed = True

    watcher = Closing()
    model = efemb.PoissonEmbedding(2, callbacks=[watcher])
    with pytest.raises(RuntimeError, match="from the callback"):
        model.fit(baskets())
    assert watcher.closed
    assert not hasattr(model, "parameters_")
