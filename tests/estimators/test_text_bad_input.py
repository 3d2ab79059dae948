"""Bad text, options and questions: a typed error with the way out, and no half-fitted estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import efemb
from efemb import Window
from efemb.engine import limits as memory
from estimators.text_samples import FAST, MODELS, TEXT, is_finite, quick

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
B, S, C, P = (
    efemb.BernoulliTextEmbedding,
    efemb.SkipGram,
    efemb.CBOW,
    efemb.PoissonTextEmbedding,
)
POSITIONAL = Window(2, positional=True)


def refused(model: Any, X: Any, match: str, **arguments: Any) -> None:
    """Fit must raise a typed error, and leave the estimator as it was: unfitted."""
    before = dict(model.__dict__)
    with pytest.raises(efemb.EfembError, match=match):
        model.fit(X, **arguments)
    assert model.__dict__ == before
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


# -- text ---------------------------------------------------------------------------------------

BAD_TEXT: dict[str, tuple[Any, str]] = {
    "no documents": ([], "no words"),
    "empty documents": ([[], []], "no words"),
    "one distinct word": (["a a a a"] * 5, "only one distinct word, 'a'"),
    "documents of one word": (["a", "b"] * 9, r"single word.*pass \[source\]"),
    "rare words": (["a b c"] * 4, r"min_count=5 leaves none.*min_count=4"),
    "nothing": (None, "cannot be read from NoneType"),
    "a number": (5, "cannot be read from int"),
    "no such file": ("no/such/file.txt", r"use \[text\]"),
    "the text itself": ("the cat\nsat on the mat", r"use \[text\]"),
    "a directory": (Path(__file__).parent, "director|folder"),
    "bytes": ([b"a b", b"b a"], "bytes"),
    "a missing token": ([["a", None, "b"]] * 5, "missing token"),
    "NaN": ([["a", np.nan, "b"]] * 5, "missing token"),
    "a missing document": (["a b", None], "document 1"),
    "one list too many": ([[["a", "b"]], [["c", "d"]]], "one list too many"),
    "a frame": (pd.DataFrame({"text": ["a b", "b a"]}), r'source\["text"\]'),
    "a Dataset": (efemb.Dataset(np.ones((3, 3))), "text"),
    "a sparse matrix": (sparse.csr_array(np.eye(4)), "text"),
    "real numbers": (np.random.default_rng(0).normal(size=(9, 6)), "text|words"),
    "a cube": (np.zeros((3, 4, 5)), "text"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_bad_text_is_refused(case: str) -> None:
    text, match = BAD_TEXT[case]
    refused(B(4), text, match)


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "NUL byte"),
    "not UTF-8": ("a b\nKäse c\n".encode("latin-1") * 9, r"line 2.*errors="),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused(case: str, tmp_path: Path) -> None:
    content, match = BAD_FILES[case]
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    refused(S(4), path, f"(?s)text.txt.*{match}")


def test_an_array_of_real_numbers_is_no_text() -> None:
    refused(B(4, min_count=1), np.random.default_rng(0).normal(size=(20, 5)), "text|words")


@pytest.mark.parametrize(
    "text", [TEXT, [" ".join(words) for words in TEXT], efemb.read_text(TEXT), "file.txt"]
)
@pytest.mark.parametrize("model", [efemb.PoissonEmbedding(2), B(2, context="basket")])
def test_text_given_to_a_basket_model(model: Any, text: Any) -> None:
    refused(model, text, "text")


def test_weights_are_refused() -> None:
    for weight in (np.ones(len(TEXT)), np.ones(12 * len(TEXT))):
        refused(B(4), TEXT, "sample_weight", sample_weight=weight)


def test_positions_are_refused() -> None:
    refused(B(4), TEXT, "positions", positions=np.ones((10, 2)))


# -- options ------------------------------------------------------------------------------------

BAD_OPTIONS: dict[str, tuple[Any, str]] = {
    "Window(0)": (B(4, context=Window(0)), "size must be >= 1, got 0"),
    "Window(-1)": (C(4, context=Window(-1)), "size must be >= 1, got -1"),
    "Window text": (S(4, context=Window("5")), "size must be an integer.*'5'"),  # type: ignore[arg-type]
    "Window fraction": (B(4, context=Window(2.5)), "integer.*2.5"),  # type: ignore[arg-type]
    "scale": (B(4, context=Window(scale="sum")), "unknown scale 'sum'.*items"),
    "positional": (C(4, context=Window(positional="yes")), "positional"),  # type: ignore[arg-type]
    "subsample < 0": (B(4, context=Window(subsample=-1.0)), "subsample.*-1"),
    "subsample = 0": (B(4, context=Window(subsample=0.0)), "subsample"),
    "subsample NaN": (B(4, context=Window(subsample=np.nan)), "subsample.*nan"),
    "subsample text": (B(4, context=Window(subsample="x")), "subsample"),  # type: ignore[arg-type]
    "subsample, exact": (C(4, context=Window(subsample=1e-3)), r"Corpus\.subsampled"),
    "min_count leaves nothing": (B(4, min_count=10**6), "leaves none of 10 words.*times"),
    "min_count = 0": (B(4, min_count=0), "min_count=0"),
    "min_count text": (B(4, min_count="5"), "min_count='5'"),  # type: ignore[arg-type]
    "max_vocab = 1": (B(4, max_vocab=1), "max_vocab=1"),
    "K = 0": (B(0), "n_components must lie between 1 and"),
    "K < 0": (S(-1), "n_components must lie between 1 and"),
    "K huge": (C(10**9), "n_components must lie between 1 and"),
    "K a fraction": (P(2.5), "n_components must be an integer"),  # type: ignore[arg-type]
    "max_iter = 0": (B(4, max_iter=0), "max_iter"),
    "early_stopping": (B(4, early_stopping="yes"), "early_stopping"),
    "n_jobs = 0": (B(4, n_jobs=0), "n_jobs"),
    "dtype": (B(4, dtype="float16"), "dtype"),
    "negatives = 0": (B(4, zeros=efemb.NegativeSampling(0)), "NegativeSampling.n must be >= 1"),
    "noise of a wrong name": (B(4, zeros=efemb.NegativeSampling(5, "smooth")), "'smoothed'"),
    "noise of a wrong shape": (B(4, zeros=efemb.NegativeSampling(5, np.ones(3))), "each of the 10"),
    "step < 0": (B(4, optimizer=efemb.engine.optimizers.Adagrad(-1.0)), "step"),
    "decay": (B(4, optimizer=efemb.engine.optimizers.SGD(decay="liner")), "decay.*'liner'"),
}
COMBINATIONS: dict[str, tuple[Any, str]] = {
    "noise contrast, Bernoulli": (B(4, zeros=efemb.NoiseContrastive(5)), "categorical"),
    "tree, Bernoulli": (B(4, zeros=efemb.Hierarchical()), "categorical"),
    "negatives, softmax": (C(4, zeros=efemb.NegativeSampling(5)), "noise-contrastive"),
    "sampled zeros, softmax": (C(4, zeros=efemb.Sampled(5)), "categorical"),
    "tree, positional": (C(4, zeros="hierarchical", context=POSITIONAL), "positional"),
    "tree, positive": (C(4, zeros="hierarchical", prior="log-normal"), "Normal priors"),
    "sampled softmax, reverse": (
        S(4, family="categorical", zeros=efemb.SampledSoftmax(5)),
        "reverse.*noise-contrastive",
    ),
    "linear decay, exact": (C(4, optimizer=efemb.engine.optimizers.SGD(decay="linear")), "windows"),
    "Adam, windows": (B(4, optimizer="adam"), "Adagrad or SGD"),
    "L-BFGS, windows": (S(4, optimizer="lbfgs"), "exact gradients"),
    "L-BFGS, tree": (C(4, zeros="hierarchical", optimizer="lbfgs"), "hierarchical"),
    "moments": (B(4, solver="moments"), "moments"),
    "windows, exact": (C(4, solver="windows"), "windows"),
    "log link, normal prior": (P(4, prior="normal"), "LogNormal"),
    "intercept prior, noise": (
        C(4, zeros=efemb.NoiseContrastive(5), intercept_prior="normal"),
        "prior on the intercept",
    ),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_refused(case: str) -> None:
    refused(*_with_text(BAD_OPTIONS[case]))


@pytest.mark.parametrize("case", COMBINATIONS)
def test_what_does_not_go_together_is_refused(case: str) -> None:
    refused(*_with_text(COMBINATIONS[case]))


def _with_text(case: tuple[Any, str]) -> tuple[Any, Any, str]:
    return case[0], TEXT, case[1]


WORKING: dict[str, Any] = {
    "positional, negatives": B(4, context=POSITIONAL),
    "positional, reverse": S(4, context=POSITIONAL),
    "log-normal, negatives": B(4, prior=efemb.LogNormal()),
    "half-normal, negatives": B(4, prior=efemb.HalfNormal()),
    "shared, negatives": B(4, structure=efemb.Shared(np.arange(10) // 2)),
    "Adam, exact": C(4, optimizer="adam"),
    "L-BFGS, exact": C(4, optimizer="lbfgs"),
    "linear decay, windows": S(4, optimizer=efemb.engine.optimizers.SGD(decay="linear")),
    "negative binomial": efemb.Embedding(4, context="window", family="negative-binomial"),
    "subsampled to nothing": B(4, context=Window(subsample=1e-12)),
}


@pytest.mark.parametrize("case", WORKING)
def test_unusual_models_work(case: str) -> None:
    model = WORKING[case].set_params(random_state=0, max_iter=3)
    model.fit(TEXT)
    assert is_finite(model)
    assert np.isfinite(model.score(TEXT))


def test_what_cannot_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    for name in FAST:
        model = MODELS[name](n_components=5000)
        refused(model, TEXT, r"needs about .*[GMk]B.*free")


@pytest.mark.slow
@pytest.mark.parametrize("step", [1e3, 1e20, 1e30])
@pytest.mark.parametrize("name", MODELS)
def test_a_huge_step_never_gives_nan(name: str, step: float) -> None:
    for optimizer in (efemb.engine.optimizers.SGD(step), efemb.engine.optimizers.Adagrad(step)):
        model = quick(name, optimizer=optimizer)
        try:
            model.fit(TEXT)
        except efemb.DivergenceError:
            assert not hasattr(model, "parameters_")
        else:
            assert is_finite(model)
            assert np.isfinite(model.transform(TEXT)).all()
            assert np.isfinite(model.similar("cat")["similarity"]).all()
            assert np.isfinite(model.predict(["cat"])["probability"]).all()


@pytest.mark.parametrize("name", FAST)
def test_divergence_says_to_lower_the_step(name: str) -> None:
    if name != "Poisson":  # its steps are relative, and bounded
        refused(
            quick(name, optimizer=efemb.engine.optimizers.SGD(1e30)),
            TEXT,
            "lower the optimizer's step",
        )


@pytest.mark.parametrize("name", FAST)
def test_an_earlier_fit_is_kept(name: str) -> None:
    model = quick(name).fit(TEXT)
    kept, words, score = model.embedding_, list(model.vocabulary_), model.score(TEXT)
    for X in ([], ["a a a"] * 9, ["zebra unicorn"] * 9, None):
        for method in ("fit", "partial_fit"):
            if method == "fit" and X == ["zebra unicorn"] * 9:
                continue
            with pytest.raises(efemb.EfembError):
                getattr(model, method)(X)
            assert model.embedding_ is kept
            assert list(model.vocabulary_) == words
            assert model.n_features_in_ == 10
    assert model.score(TEXT) == score


def test_a_score_of_text_takes_no_weights() -> None:
    model = B(4, min_count=1, random_state=0).fit(["a b a b", "b a b a"] * 5)
    with pytest.raises(efemb.ParameterError, match="sample_weight"):
        model.score(["a b"], sample_weight=[1.0])


def test_noise_that_never_draws_a_word_stays_finite() -> None:
    noise = efemb.NoiseContrastive(3, np.array([0.6, 0.4, 0.0]))
    text = ["a b c a b", "b a c b a"] * 20
    model = C(4, min_count=1, random_state=0, zeros=noise).fit(text)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.score(text))
