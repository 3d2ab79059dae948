"""Entities that share vectors are answered with the vector that the map gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
OF = np.array([2, 0, 1, 1, 2, 0])
TEXT = efemb.Corpus(RNG.integers(0, 6, 120), np.arange(0, 121, 20), list("abcdef"))
SUMS: Any = {"context": efemb.Window(5, scale="none"), "max_iter": 1, "random_state": 0}
MODELS: dict[str, Any] = {
    "alpha": efemb.CBOW(2, structure=efemb.Shared(None, OF), **SUMS),
    "rho": efemb.SkipGram(2, structure=efemb.Shared(OF), **SUMS),
}


@pytest.mark.parametrize("which", MODELS)
def test_documents_are_sums_of_the_vectors_their_words_use(which: str) -> None:
    model = MODELS[which].fit(TEXT)
    vectors = getattr(model.parameters_, which)
    plain = np.zeros((6, 2))
    for place, word in enumerate(TEXT.tokens):
        plain[place // 20] += vectors[OF[word]]
    assert_allclose(model.transform(TEXT), plain, rtol=1e-4)
    assert_allclose(model.fitted().transform(TEXT), plain, rtol=1e-4)


def test_shared_vectors_of_several_offsets_are_not_one_vector_an_entity() -> None:
    model = efemb.Embedding(
        2,
        context=efemb.Lagged((-1, 1)),
        family="gaussian",
        structure=efemb.Shared(None, OF),
        max_iter=1,
        random_state=0,
    ).fit(RNG.normal(size=(30, 6)))
    assert model.context_.shape == (6, 2)  # three vectors for each of two offsets
    with pytest.raises(efemb.ParameterError, match="2 context vectors"):
        model.vectors("alpha")
    with pytest.raises(efemb.ParameterError, match="2 context vectors"):
        model.topics()
