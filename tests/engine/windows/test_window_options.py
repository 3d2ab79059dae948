"""Options of text models have an effect or raise an error, and are never ignored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from engine.windows import samples

BAD_WINDOWS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "size-0": ({"size": 0}, efemb.ParameterError),
    "size-negative": ({"size": -2}, efemb.ParameterError),
    "size-true": ({"size": True}, efemb.InputTypeError),
    "size-real": ({"size": 2.0}, efemb.InputTypeError),
    "subsample-0": ({"subsample": 0.0}, efemb.ParameterError),
    "subsample-negative": ({"subsample": -1.0}, efemb.ParameterError),
    "subsample-infinite": ({"subsample": np.inf}, efemb.ParameterError),
    "scale-unknown": ({"scale": "sqrt"}, efemb.ParameterError),
}


@pytest.mark.parametrize("name", BAD_WINDOWS)
def test_bad_windows(name: str) -> None:
    options, error = BAD_WINDOWS[name]
    with pytest.raises(error, match=next(iter(options))):
        efemb.BernoulliTextEmbedding(2, context=efemb.Window(**options)).fit(samples.corpus())


def with_subsample(subsample: float | None, **options: Any) -> Any:
    """A model with negative sampling; options of the window are in `window`."""
    context = efemb.Window(2, subsample=subsample, **options.pop("window", {}))
    settings = {"max_iter": 2, "early_stopping": False, "random_state": 0, "prior": None}
    noise = efemb.NegativeSampling(3)
    return efemb.Embedding(3, context=context, zeros=noise, **{**settings, **options})


@pytest.mark.parametrize(
    "options",
    [
        {"family": "bernoulli", "window": {"positional": True}},
        {"family": "poisson"},
        {"family": "bernoulli", "solver": "rows"},
        {"family": "bernoulli", "intercept_prior": "normal"},
    ],
    ids=["positional", "poisson", "rows", "intercept-prior"],
)
@pytest.mark.filterwarnings("ignore:.*max_iter")
def test_subsample_is_refused_where_passes_do_not_draw_anew(options: dict[str, Any]) -> None:
    text = samples.corpus((60,) * 10)
    with pytest.raises(efemb.ParameterError, match="subsample"):
        with_subsample(0.02, **options).fit(text)
    assert with_subsample(None, **options).fit(text).solver_ == "rows"


@pytest.mark.parametrize("options", [{"intercept": False}, {"combine": "reverse"}], ids=str)
def test_subsample_is_heeded_where_passes_draw_anew(options: dict[str, Any]) -> None:
    text = samples.corpus((60,) * 10)
    thinned, whole = (
        with_subsample(subsample, family="bernoulli", **options).fit(text)
        for subsample in (0.02, None)
    )
    assert (thinned.solver_, whole.solver_) == ("windows", "windows")
    assert np.abs(thinned.embedding_ - whole.embedding_).max() > 0


@pytest.mark.parametrize("zeros", ["all", "sampled"])
def test_exact_zeros_refuse_subsampling(zeros: str) -> None:
    model = efemb.BernoulliTextEmbedding(2, context=efemb.Window(subsample=1e-3), zeros=zeros)
    with pytest.raises(efemb.ParameterError, match="subsample"):
        model.fit(samples.corpus())


def test_a_tree_cannot_be_tied() -> None:
    """Its predicting vectors belong to nodes, the summed ones to words."""
    model = efemb.CBOW(2, zeros=efemb.Hierarchical(), structure="tied")
    with pytest.raises(efemb.ParameterError):
        model.fit(samples.corpus())


REFUSED: dict[str, dict[str, Any]] = {
    "bernoulli-nce": {"family": "bernoulli", "zeros": efemb.NoiseContrastive(2)},
    "bernoulli-tree": {"family": "bernoulli", "zeros": efemb.Hierarchical()},
    "categorical-negatives": {"family": "categorical", "zeros": efemb.NegativeSampling(2)},
    "categorical-sampled": {"family": "categorical", "zeros": efemb.Sampled(2)},
    "reverse-sampled-softmax": {
        "family": "categorical",
        "zeros": efemb.SampledSoftmax(2),
        "combine": "reverse",
    },
    "positional-tree": {
        "family": "categorical",
        "zeros": efemb.Hierarchical(),
        "context": efemb.Window(2, positional=True),
    },
    "positive-prior-nce": {
        "family": "categorical",
        "zeros": efemb.NoiseContrastive(2),
        "prior": "half-normal",
    },
    "adam": {"family": "categorical", "zeros": efemb.Hierarchical(), "optimizer": "adam"},
    "lbfgs": {"family": "categorical", "zeros": efemb.Hierarchical(), "optimizer": "lbfgs"},
    "lbfgs-noise": {
        "family": "bernoulli",
        "zeros": efemb.NegativeSampling(2),
        "optimizer": "lbfgs",
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_combinations_that_make_no_model(name: str) -> None:
    options = {"context": efemb.Window(2), "prior": None, **REFUSED[name]}
    with pytest.raises(efemb.ParameterError):
        efemb.Embedding(2, **options).fit(samples.corpus((30, 30)))
