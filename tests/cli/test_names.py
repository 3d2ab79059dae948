"""Models by the names of the paper."""

from __future__ import annotations

import pytest

from efemb.errors import ParameterError
from efemb.estimators.names import ROW_MODELS, TEXT_MODELS, canonical_name, model_named


@pytest.mark.parametrize("name", [*ROW_MODELS, *TEXT_MODELS])
def test_any_way_to_write_a_name(name: str) -> None:
    for written in (
        name,
        name.upper(),
        name.replace("-", " "),
        name.replace("-", "_"),
        f" {name} ",
    ):
        assert canonical_name(written) == name


def test_names_of_the_paper() -> None:
    assert canonical_name("p-emb (dw)") == "p-emb-dw"
    assert canonical_name("CBOW") == "cbow"
    assert model_named("P-Emb (DW)", 3).zero_weight == 0.1
    assert type(model_named("b-emb", 3)).__name__ == "BernoulliEmbedding"
    assert type(model_named("b-emb", 3, text=True)).__name__ == "BernoulliTextEmbedding"


def test_unknown_names() -> None:
    with pytest.raises(ParameterError, match="did you mean 'p-emb'"):
        model_named("p-emd", 3)
    with pytest.raises(ParameterError, match="not a model of text"):
        model_named("p-emb", 3, text=True)
    with pytest.raises(ParameterError, match="not a model of rows"):
        model_named("cbow", 3)
