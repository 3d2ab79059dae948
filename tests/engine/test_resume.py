"""An interrupted fit resumes from its checkpoint and ends with the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import efemb
from efemb.engine.callbacks import CHECKPOINT, Progress
from efemb.engine.checkpoint import fingerprint

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class CrashError(RuntimeError):
    """As if the process had been killed: the iteration leaves no trace on disk."""


class Crash:
    """A callback that simulates the end of the process in an iteration."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def __call__(self, progress: Progress) -> None:
        if progress.iteration == self.iteration:
            raise CrashError


def baskets(seed: int = 0) -> Any:
    return np.random.default_rng(seed).poisson(0.7, (90, 9)).astype(float)


def signals() -> Any:
    rng = np.random.default_rng(1)
    common = rng.normal(size=(60, 2))
    return common @ rng.normal(size=(2, 7)) + 0.3 * rng.normal(size=(60, 7))


def sentences() -> list[list[str]]:
    rng = np.random.default_rng(2)
    return [[f"w{i}" for i in rng.zipf(1.6, 12) if i < 9] + ["w1", "w2"] for _ in range(60)]


def options(**changes: Any) -> dict[str, Any]:
    return {"random_state": 0, "max_iter": 9, "n_iter_no_change": 100, **changes}


Poisson, Gaussian = efemb.PoissonEmbedding, efemb.GaussianEmbedding
CASES: dict[str, tuple[Any, Any]] = {
    "all rows": (Poisson(2, **options()), baskets),
    "minibatches": (Poisson(2, batch_size=16, **options()), baskets),
    "adam": (
        Poisson(2, batch_size=16, optimizer=efemb.engine.optimizers.Adam(), **options()),
        baskets,
    ),
    "sgd": (
        Poisson(2, batch_size=16, optimizer=efemb.engine.optimizers.SGD(decay=0.1), **options()),
        baskets,
    ),
    "zeros by row": (
        Poisson(2, batch_size=16, zeros=efemb.Sampled(3, per="row"), **options()),
        baskets,
    ),
    "sampled zeros": (Poisson(2, batch_size=16, zeros=efemb.Sampled(3), **options()), baskets),
    "negative sampling": (
        Poisson(2, batch_size=16, zeros=efemb.NegativeSampling(2), **options()),
        baskets,
    ),
    "positive": (efemb.AdditivePoissonEmbedding(2, batch_size=16, **options()), baskets),
    "positive, sampled": (
        efemb.AdditivePoissonEmbedding(
            2, batch_size=16, zeros=efemb.Sampled(3), prior=efemb.LogNormal(1.0), **options()
        ),
        baskets,
    ),
    "tied": (Poisson(2, batch_size=16, structure="tied", **options()), baskets),
    "softmax": (efemb.CategoricalEmbedding(2, **options()), baskets),
    "no hold-out": (Poisson(2, early_stopping=False, **options()), baskets),
    "lbfgs": (Poisson(2, optimizer="lbfgs", **options()), baskets),
    "moments": (Gaussian(2, context=efemb.Neighbors(3), **options()), signals),
    "learned variance": (Gaussian(2, family=efemb.Gaussian("learned"), **options()), signals),
    "learned variance, adagrad": (
        Gaussian(2, family=efemb.Gaussian("learned"), optimizer="adagrad", **options()),
        signals,
    ),
    "positive moments": (efemb.NonnegativeGaussianEmbedding(2, **options()), signals),
    "text": (
        efemb.BernoulliTextEmbedding(4, context=efemb.Window(2), **options(max_iter=4)),
        sentences,
    ),
    "text, falling steps": (
        efemb.SkipGram(
            4,
            context=efemb.Window(2),
            optimizer=efemb.engine.optimizers.SGD(0.05, "linear"),
            **options(),
        ),
        sentences,
    ),
}


def crashed(model: Any, X: Any, at: int, *callbacks: Any, **fit: Any) -> None:
    model.set_params(callbacks=[*callbacks, Crash(at)])
    with pytest.raises(CrashError):
        model.fit(X, **fit)


def same(one: Any, two: Any) -> None:
    """The same bits, and the same history."""
    for left, right in zip(one.parameters_.arrays(), two.parameters_.arrays(), strict=True):
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes()
    assert one.family_ == two.family_
    assert (one.n_iter_, one.best_iter_, one.converged_) == (
        two.n_iter_,
        two.best_iter_,
        two.converged_,
    )
    for left, right in zip(one.history_, two.history_, strict=True):
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_any_fit_goes_on_as_if_nothing_had_happened(case: str, tmp_path: Path) -> None:
    model, make = CASES[case]
    X, state = make(), efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    whole = clone(model).fit(X)
    crashed(clone(model), X, 3, state)
    late = clone(model)
    crashed(late, X, late.max_iter, state)
    same(clone(model).set_params(callbacks=[state]).fit(X), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_states_may_be_rare(tmp_path: Path) -> None:
    model, X = Poisson(2, batch_size=16, **options()), baskets()
    whole = clone(model).fit(X)
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state", every=3)
    crashed(clone(model), X, 8, state)
    assert state.read()["iteration"] == 6
    seen: list[int] = []
    watch = [state, lambda progress: seen.append(progress.iteration)]
    same(clone(model).set_params(callbacks=watch).fit(X), whole)
    assert seen == [7, 8, 9]


@pytest.mark.slow
def test_early_stopping_counts_on(tmp_path: Path) -> None:
    """The count of patience is restored, in the fit and in a callback."""
    model, X = Poisson(4, **options(max_iter=400, n_iter_no_change=3)), baskets()
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state", every=20)
    whole = clone(model).fit(X)
    assert 3 < whole.n_iter_ < 400
    crashed(clone(model), X, whole.n_iter_, state)
    same(clone(model).set_params(callbacks=[state]).fit(X), whole)
    model.set_params(n_iter_no_change=1000, callbacks=[efemb.engine.callbacks.EarlyStopping(3)])
    whole = model.fit(X)
    again = efemb.engine.callbacks.Checkpoint(tmp_path / "again", every=20)
    crashed(clone(model), X, whole.n_iter_, again, efemb.engine.callbacks.EarlyStopping(3))
    resumed = (
        clone(model).set_params(callbacks=[again, efemb.engine.callbacks.EarlyStopping(3)]).fit(X)
    )
    same(resumed, whole)


def test_own_validation_weights_and_warm_starts_are_part_of_the_fit(tmp_path: Path) -> None:
    X, weight = baskets(), np.linspace(0.5, 2.0, 90)
    extra = {"validation": baskets(seed=5), "sample_weight": weight}
    first = Poisson(2, **options(warm_start=True, max_iter=2)).fit(X)
    start = first.parameters_.copy()
    whole = first.set_params(max_iter=6).fit(X, **extra)

    def again() -> Any:
        model = Poisson.from_fitted(first.fitted(), **options(max_iter=6))
        model.parameters_ = start.copy()
        return model

    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    crashed(again(), X, 4, state, **extra)
    same(again().set_params(callbacks=[state]).fit(X, **extra), whole)


def test_without_a_seed_the_first_attempt_decides(tmp_path: Path) -> None:
    state, X = efemb.engine.callbacks.Checkpoint(tmp_path / "state"), baskets()
    model = Poisson(2, **options(random_state=None))
    crashed(clone(model), X, 5, state)
    before = state.read()["history"]
    found = clone(model).set_params(callbacks=[state]).fit(X)
    assert found.history_[:4] == before
    assert found.n_iter_ == 9


def test_a_given_generator_ends_where_it_would_have(tmp_path: Path) -> None:
    ends = []
    for crash in (False, True):
        state = efemb.engine.callbacks.Checkpoint(tmp_path / f"state {crash}")
        if crash:
            model = Poisson(2, **options(random_state=np.random.default_rng(7)))
            crashed(model, baskets(), 5, state)
        rng = np.random.Generator(np.random.PCG64(7))
        Poisson(2, callbacks=[state], **options(random_state=rng)).fit(baskets())
        ends.append(rng.random())
    assert ends[0] == ends[1]


def test_a_finished_fit_gives_its_result_at_once(tmp_path: Path) -> None:
    state, X = efemb.engine.callbacks.Checkpoint(tmp_path / "state", every=100), baskets()
    model = Poisson(2, **options(max_iter=400, n_iter_no_change=3))
    whole = clone(model).set_params(callbacks=[state]).fit(X)

    def never(progress: Progress) -> None:
        raise AssertionError("an iteration was made")

    same(clone(model).set_params(callbacks=[state, never]).fit(X), whole)
    for left, right in zip(state.load().arrays(), state.read()["parameters"].values(), strict=True):
        assert left.tobytes() == right.tobytes()


def test_more_iterations_go_on_from_fewer(tmp_path: Path) -> None:
    state, X = efemb.engine.callbacks.Checkpoint(tmp_path / "state"), baskets()
    plain = {"early_stopping": False, "callbacks": [state]}
    Poisson(2, **options(max_iter=4, **plain)).fit(X)
    seen: list[int] = []
    plain["callbacks"] = [state, lambda progress: seen.append(progress.iteration)]
    more = Poisson(2, **options(max_iter=7, **plain)).fit(X)
    assert seen == [5, 6, 7]
    same(more, Poisson(2, **options(max_iter=7, early_stopping=False)).fit(X))
    fewer = Poisson(2, **options(max_iter=3, **plain)).fit(X)
    assert fewer.n_iter_ == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tol": 0.1}, "settings"),
        ({"prior": efemb.Normal(2.0)}, "settings"),
        ({"random_state": 1}, "random_state"),
        ({}, "data"),
    ],
)
def test_the_state_of_another_fit_is_not_lost(
    change: dict[str, Any], named: str, tmp_path: Path
) -> None:
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    crashed(Poisson(2, **options()), baskets(), 4, state)
    other = Poisson(2, **{**options(), **change, "callbacks": [state]})
    X = baskets(seed=3) if named == "data" else baskets()
    with pytest.raises(efemb.ParameterError, match=rf"different: {named}\)"):
        other.fit(X)
    assert state.read()["iteration"] == 3
    anew = efemb.engine.callbacks.Checkpoint(tmp_path / "state", resume=False)
    other.set_params(callbacks=[anew]).fit(X)
    plain = Poisson(2, **{**options(), **change}).fit(X)
    same(other, plain)
    # That one has ended: nothing of it is lost by another fit in its place.
    Poisson(3, **options(callbacks=[state])).fit(baskets())


def test_another_version_is_another_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    crashed(Poisson(2, **options()), baskets(), 4, state)
    monkeypatch.setattr("efemb.engine.checkpoint.__version__", "99")
    with pytest.raises(efemb.ParameterError, match=r"different: software\)"):
        Poisson(2, **options(callbacks=[state])).fit(baskets())


@pytest.mark.usefixtures("ctrl_c_works")
def test_an_interrupted_pass_is_not_a_place_to_go_on_from(tmp_path: Path) -> None:
    """Ctrl-C ends a pass in the middle; the state before it is kept, and gives the same bits."""
    model, X = Poisson(2, batch_size=16, **options()), baskets()
    whole = clone(model).fit(X)
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state")

    class Interrupt:
        def step(self, done: float) -> None:
            self.steps = getattr(self, "steps", 0) + 1
            if self.steps == 14:
                os.kill(os.getpid(), signal.SIGINT)

        def __call__(self, progress: Progress) -> None: ...

    stopped = clone(model).set_params(callbacks=[state, Interrupt()]).fit(X)
    assert stopped.n_iter_ < 9
    assert state.read()["iteration"] == stopped.n_iter_ - 1
    same(clone(model).set_params(callbacks=[state]).fit(X), whole)


def test_bad_checkpoints(tmp_path: Path) -> None:
    for every, kind in ((0, efemb.ParameterError), (1.5, efemb.InputTypeError)):
        with pytest.raises(kind, match="every"):
            efemb.engine.callbacks.Checkpoint(tmp_path / "state", every=every)
    with pytest.raises(efemb.InputTypeError, match="path"):
        efemb.engine.callbacks.Checkpoint("")
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    with pytest.raises(efemb.DataError, match="no state"):
        state.load()
    two = [state, efemb.engine.callbacks.Checkpoint(tmp_path / "other")]
    with pytest.raises(efemb.ParameterError, match="one Checkpoint"):
        Poisson(2, callbacks=two).fit(baskets())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(efemb.DataError, match=r"notes\.txt"):
        Poisson(2, callbacks=[efemb.engine.callbacks.Checkpoint(tmp_path / "mine")]).fit(baskets())


def test_the_state_of_an_older_version_is_refused(tmp_path: Path) -> None:
    older = replace(CHECKPOINT, version=1)
    older.write(tmp_path / "state", {"state": {}}, {"rho": np.zeros(3)})
    state = efemb.engine.callbacks.Checkpoint(tmp_path / "state")
    with pytest.raises(efemb.DataError, match=r"format 1.*format 2 only.*resume=False"):
        Poisson(2, **options(callbacks=[state])).fit(baskets())
    anew = efemb.engine.callbacks.Checkpoint(tmp_path / "state", resume=False)
    Poisson(2, **options(callbacks=[anew])).fit(baskets())
    assert state.read()["iteration"] == 9


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    state, X = efemb.engine.callbacks.Checkpoint(tmp_path / "state"), baskets()
    crashed(Poisson(2, **options()), X, 4, state)
    path = tmp_path / "state" / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(efemb.DataError, match="damaged"):
        Poisson(2, **options(callbacks=[state])).fit(X)


def test_fingerprints_tell_values_apart() -> None:
    values = [
        1,
        1.0,
        True,
        "1",
        [1],
        np.array([1]),
        np.array([1.0]),
        np.array([[1]]),
        {"a": 1},
        efemb.Normal(1.0),
        efemb.HalfNormal(1.0),
        None,
    ]
    marks = [fingerprint(value) for value in values]
    assert len(set(marks)) == len(marks)
    assert [fingerprint(value) for value in values] == marks


PROGRAM = """
import sys, warnings
import numpy as np
import efemb
from efemb.engine.callbacks import Checkpoint

warnings.simplefilter("ignore")
X = np.random.default_rng(0).poisson(0.7, (90, 9)).astype(float)
model = efemb.PoissonEmbedding(
    2, random_state=0, batch_size=16, max_iter=40, n_iter_no_change=1000,
    callbacks=[Checkpoint(sys.argv[1]), lambda p: print(p.iteration, flush=True)],
).fit(X)
print("done", *(float(x).hex() for a in model.parameters_.arrays() for x in a.ravel()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_9_changes_nothing(tmp_path: Path) -> None:
    whole = Poisson(2, random_state=0, batch_size=16, max_iter=40, n_iter_no_change=1000).fit(
        baskets()
    )
    wanted = [float(x).hex() for a in whole.parameters_.arrays() for x in a.ravel()]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "state")]
    rng = np.random.default_rng()
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
            child.kill()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *_, last = done.stdout.splitlines()
    assert last.split()[0] == "done"
    assert json.dumps(last.split()[1:]) == json.dumps(wanted)


def test_a_pass_more_leaves_the_whole_fit_where_it_is(tmp_path: Path) -> None:
    state, X = efemb.engine.callbacks.Checkpoint(tmp_path / "state", every=100), baskets()
    model = Poisson(2, callbacks=[state], **options(max_iter=400, n_iter_no_change=3)).fit(X)
    kept = (tmp_path / "state").stat().st_mtime_ns, state.load().rho.tobytes()
    model.partial_fit(X)
    assert kept == ((tmp_path / "state").stat().st_mtime_ns, state.load().rho.tobytes())
