"""Text models saved, loaded, continued, interrupted: nothing is lost on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb import Window
from estimators.text_samples import FAST, MODELS, TEXT, is_finite, quick, topics

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def answers(model: Any) -> list[Any]:
    """The answers of a model to every kind of question."""
    return [
        model.similar("cat"),
        model.similar(["cat", "red"], n=3),
        model.analogy(["cat", "red"], ["dog"], method="mul"),
        model.doesnt_match(["cat", "dog", "red"]),
        model.predict(["cat", "dog"]),
        model.predict("cat dog red", 3),
    ]


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_answers_the_same(name: str, tmp_path: Path) -> None:
    model = quick(name).fit(TEXT)
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert answers(loaded) == answers(model) == answers(model.fitted())
    assert loaded.spec == model.fitted().spec
    assert loaded.vocabulary == model.vocabulary_
    assert_array_equal(loaded.vocabulary.counts, model.vocabulary_.counts)
    assert_array_equal(loaded.parameters.rho, model.embedding_)
    new = topics(20, seed=1)
    assert_allclose(loaded.score(new), model.score(new), rtol=1e-6)
    assert loaded.history == model.history_


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_loading_and_asking_import_nothing_heavy(name: str, tmp_path: Path) -> None:
    quick(name).fit(TEXT).save(tmp_path / "model")
    code = (
        "import sys, efemb; model = efemb.load(sys.argv[1]);"
        "print(model.similar('cat'), file=sys.stderr);"
        "model.analogy(['cat', 'red'], ['dog']); model.doesnt_match(['cat', 'dog', 'red']);"
        "model.predict(['cat', 'dog']);"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"numba", "sklearn", "scipy", "pandas"}.isdisjoint(done.stdout.split())


def test_vectors_survive_a_word2vec_file(tmp_path: Path) -> None:
    model = quick("skip-gram").fit(TEXT)
    efemb.export.write_word2vec(model.vectors(), tmp_path / "vectors.bin")
    found = efemb.export.read_word2vec(tmp_path / "vectors.bin")
    assert list(found) == list(model.vocabulary_)
    assert_array_equal(found.vectors, model.embedding_)


def test_evaluation_takes_the_vectors_of_a_model() -> None:
    model = MODELS["skip-gram"]().fit(TEXT)
    pairs = [("cat", "dog", 9.0), ("cat", "red", 1.0), ("blue", "red", 8.0), ("hen", "zebra", 5.0)]
    found = efemb.evaluation.word_similarity(model.vectors(), pairs)
    assert (found.n_pairs, found.n_missing) == (3, 1)
    assert found.spearman > 0


# -- going on -----------------------------------------------------------------------------------


def options_of(model: Any) -> dict[str, Any]:
    params: dict[str, Any] = model.get_params(deep=False)
    return {key: params[key] for key in params if key not in ("n_components", "warm_start")}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_from_fitted_is_the_model_and_goes_on(name: str, tmp_path: Path) -> None:
    model = MODELS[name]().fit(TEXT)
    model.save(tmp_path / "model")
    again = type(model).from_fitted(efemb.load(tmp_path / "model"), **options_of(model))
    assert answers(again) == answers(model)
    assert_allclose(again.score(TEXT), model.score(TEXT), rtol=1e-6)
    assert_allclose(again.transform(TEXT), model.transform(TEXT), rtol=1e-6)
    # The optimizer's sums of squares are not on disk, so a pass starts with full-size steps.
    again.set_params(optimizer=efemb.engine.optimizers.Adagrad(0.01, epsilon=1e-4))
    assert again.partial_fit(TEXT).score(TEXT) > model.score(TEXT) - 0.2
    assert is_finite(again.fit(TEXT))


@pytest.mark.parametrize("name", MODELS)
def test_from_fitted_remembers_the_ingredients(name: str) -> None:
    model = quick(name).fit(TEXT)
    again = type(model).from_fitted(model.fitted())
    assert_allclose(again.score(TEXT), model.score(TEXT), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_warm_start_goes_on(name: str) -> None:
    model = MODELS[name](warm_start=True).fit(TEXT)
    first = model.score(TEXT)
    assert model.fit(TEXT).score(TEXT) > first - 0.05
    assert is_finite(model)


@pytest.mark.parametrize("name", FAST)
def test_warm_start_keeps_vectors_with_their_words(name: str) -> None:
    model = quick(name, warm_start=True).fit(TEXT)
    before = {word: model.vectors()[word].copy() for word in ("cat", "hen", "gold", "red")}
    other = [["cat"] * 3 + words + ["gold"] * 4 for words in TEXT[:20]]  # other frequencies
    model.set_params(optimizer=efemb.engine.optimizers.SGD(1e-9)).fit(other)
    for word, vector in before.items():
        assert_allclose(model.vectors()[word], vector, atol=1e-4)


def test_warm_start_keeps_the_words_of_the_model() -> None:
    model = quick("skip-gram", warm_start=True).fit(TEXT)
    words = list(model.vocabulary_)
    model.fit([*TEXT, *[["new", "words", "here"]] * 9])
    assert list(model.vocabulary_) == words
    assert model.report_["tokens_dropped"] == 27


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_partial_fit_is_one_pass_at_a_time(name: str) -> None:
    model = MODELS[name]().partial_fit(TEXT)
    first = model.score(TEXT)
    for _ in range(3):
        assert model.partial_fit(TEXT) is model
    # Noise is drawn: on so short a text a good first pass may be followed by a slightly worse one.
    assert model.score(TEXT) > first - 0.2
    assert is_finite(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_partial_fit_on_new_text(name: str) -> None:
    model = MODELS[name]().fit(TEXT)
    words, before = list(model.vocabulary_), model.score(TEXT)
    model.partial_fit([["cat", "dog", "zebra", "pig"], *topics(400, seed=3)])
    assert list(model.vocabulary_) == words, "text brings no new words into a fitted model"
    assert is_finite(model)
    # A pass begins with the full step again: over a text much shorter than this, skip-gram would
    # end where the noise of its last steps left it, with shared negatives as with own ones.
    assert model.score(TEXT) > before - 0.2
    assert "cat" in set(model.similar("dog")["label"])


def test_validation_text_is_read_in_the_words_of_the_model() -> None:
    held = [["gold", "gold", "red", "blue", "zebra", "hen"] * 3] * 10
    corpus = efemb.read_text(TEXT)
    recoded = efemb.read_text(held, vocabulary=corpus.vocabulary)
    plain = quick("Bernoulli").fit(corpus, validation=recoded)
    model = quick("Bernoulli").fit(TEXT, validation=held)
    scores = [one["validation"] for one in model.history_]
    assert scores == [one["validation"] for one in plain.history_]
    assert_allclose(max(scores), model.score(held), rtol=1e-4)
    other = quick("Bernoulli").fit([["x", "y", "z"] * 5] * 5)  # an earlier fit leaves no trace
    again = [one["validation"] for one in other.fit(TEXT, validation=held).history_]
    assert again == scores


# -- Ctrl-C -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_leaves_a_usable_estimator(name: str) -> None:
    def press(progress: Any) -> None:
        if progress.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    model = quick(name, max_iter=50, callbacks=[press])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # stopping on request is no failure to converge
        model.fit(TEXT)
    assert signal.getsignal(signal.SIGINT) is before
    assert model.n_iter_ <= 3
    assert not model.converged_
    assert is_finite(model)
    assert len(answers(model)) == 6
    stopped = model.score(TEXT)
    model.set_params(warm_start=True, callbacks=None, max_iter=3).fit(TEXT)
    assert model.score(TEXT) > stopped - 0.2


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", ["Bernoulli", "skip-gram", "CBOW"])
@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_in_the_middle_of_a_pass(name: str, n_jobs: int) -> None:
    class Press:
        """From another thread, while the kernels of the first pass run."""

        pressed = False

        def __call__(self, progress: Any) -> None:
            """Nothing to see."""

        def step(self, done: float) -> None:
            """A part of the pass is done."""
            if not self.pressed:
                self.pressed = True
                thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
                thread.start()
                thread.join()

    model = quick(name, max_iter=1000, callbacks=[Press()], n_jobs=n_jobs, context=Window(2))
    model.fit(topics(1000))
    assert model.n_iter_ < 1000
    assert not model.converged_
    assert is_finite(model)
    assert np.isfinite(model.score(TEXT))
    assert len(model.similar("cat")) == 9


@pytest.mark.parametrize(
    ("name", "other"),
    [("BernoulliTextEmbedding", {"solver": "rows"}), ("CBOW", {"zeros": efemb.SampledSoftmax(5)})],
)
def test_partial_fit_by_another_solver_starts_its_sums_anew(name: str, other: Any) -> None:
    model = getattr(efemb, name)(4, min_count=1, random_state=0, max_iter=2).fit(TEXT)
    assert is_finite(model.set_params(**other).partial_fit(TEXT))


def test_every_further_pass_draws_anew() -> None:
    """With the same noise a second pass from the same vectors would end at the same place."""
    model = efemb.BernoulliTextEmbedding(
        4, min_count=1, random_state=0, optimizer=efemb.engine.optimizers.SGD(1e-3)
    )
    model.fit(TEXT)
    start, moves = model.parameters_.copy(), []
    for _ in range(2):
        model.parameters_ = start.copy()
        moves.append(model.partial_fit(TEXT).embedding_ - start.rho)
    assert not np.allclose(*moves, rtol=1e-3)
    again = efemb.BernoulliTextEmbedding(
        4, min_count=1, random_state=0, optimizer=efemb.engine.optimizers.SGD(1e-3)
    ).fit(TEXT)
    again.partial_fit(TEXT)
    assert_array_equal(again.embedding_ - start.rho, moves[0], "the seed decides all passes")


@pytest.mark.slow
def test_a_subclass_of_bernoulli_is_fitted_by_its_own_mathematics() -> None:
    class Halved(efemb.Bernoulli):
        """Its log-odds are half of the inner products."""

        def natural(self, eta: Any) -> Any:
            return super().natural(0.5 * eta)

    model = efemb.BernoulliTextEmbedding(2, family=Halved(), min_count=1, random_state=0)
    assert model.fit(TEXT).solver_ != "windows"
