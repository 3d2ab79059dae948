"""A saved model comes back the same, for every preset and every kind of ingredient."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.fitted import disk as storage

PRESETS: dict[str, Any] = {
    "g-emb": efemb.GaussianEmbedding,
    "ng-emb": efemb.NonnegativeGaussianEmbedding,
    "p-emb": efemb.PoissonEmbedding,
    "ap-emb": efemb.AdditivePoissonEmbedding,
    "b-emb": efemb.BernoulliEmbedding,
    "categorical": efemb.CategoricalEmbedding,
}
RING = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
LABELS = ["milk", "17", 18, 2.5, float("inf"), "größer \udcff"]


def fit(estimator: Any, data: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(data)


def labeled(data: efemb.Dataset) -> efemb.Dataset:
    words = efemb.Vocabulary(LABELS, counts=np.arange(6.0))
    return efemb.Dataset(data.values, entities=words, positions=data.positions)


def same(
    one: efemb.fitted.FittedEmbedding, two: efemb.fitted.FittedEmbedding, data: efemb.Dataset
) -> None:
    assert two.spec == one.spec
    assert two.model == one.model
    assert two.history == one.history
    for left, right in zip(one.parameters.arrays(), two.parameters.arrays(), strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(one.conditional(data), two.conditional(data))
    assert one.score(data) == two.score(data)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_presets(name: str, dtype: str, tmp_path: Path) -> None:
    data = labeled(efemb.simulation.simulate(name, n_rows=80, n_entities=6, n_components=2).data)
    model = fit(PRESETS[name](2, max_iter=3, random_state=0, dtype=dtype), data)
    model.save(tmp_path / "model")
    found = efemb.load(tmp_path / "model")
    same(model.fitted(), found, data)
    assert found.model == PRESETS[name].__name__
    assert found.score(data) == pytest.approx(model.score(data))
    assert found.vocabulary == data.entities
    assert [type(label) for label in found.vocabulary] == [type(label) for label in data.entities]
    np.testing.assert_array_equal(found.vocabulary.counts, np.arange(6.0))
    again = PRESETS[name].from_fitted(found)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)


@pytest.mark.parametrize(
    "options",
    [
        {"family": "gaussian", "context": efemb.Graph(RING)},
        {"family": efemb.Gaussian("learned"), "context": efemb.Neighbors(2, np.eye(6))},
        {"family": "gaussian", "context": efemb.Neighbors(2, np.eye(6)) + efemb.Lagged((-1, 1))},
        {"family": "gaussian", "context": efemb.Lagged([-1], of=efemb.Graph(RING))},
        {"context": efemb.Basket("items"), "structure": "tied", "intercept": False},
        {"structure": efemb.Shared(rho_of=np.array([0, 0, 1, 1, 2, 2]))},
        {"zeros": efemb.Sampled(3, distribution=np.arange(1.0, 7.0)), "prior": None},
        {"prior": (efemb.Normal(2.0), efemb.Normal(3)), "intercept_prior": efemb.Normal(0.1)},
        {"family": efemb.NegativeBinomial(2.0)},
    ],
    ids=str,
)
def test_ingredients(options: dict[str, Any], tmp_path: Path) -> None:
    kind = "g-emb" if "gaussian" in str(options.get("family")).lower() else "p-emb"
    data = efemb.simulation.simulate(kind, n_rows=40, n_entities=6, n_components=2).data
    model = fit(efemb.Embedding(2, max_iter=2, random_state=0, **options), data)
    model.save(tmp_path / "model")
    same(model.fitted(), efemb.load(tmp_path / "model"), data)


def test_sparse_graph_and_odd_history(tmp_path: Path) -> None:
    from scipy.sparse import csr_array

    truth = efemb.simulation.simulate(
        "g-emb", n_rows=9, n_entities=6, n_components=2, context=efemb.Graph(RING)
    )
    spec = truth.spec
    spec.context.set_params(adjacency=csr_array(RING))
    history = [{"objective": np.float32(2.5), "validation": float("nan"), "iteration": np.int64(3)}]
    efemb.fitted.FittedEmbedding(truth.parameters, spec, history=history).save(tmp_path / "m")
    found = efemb.load(tmp_path / "m")
    np.testing.assert_array_equal(found.spec.context.adjacency.toarray(), RING)
    assert found.history[0]["objective"] == 2.5
    assert np.isnan(found.history[0]["validation"])
    assert found.vocabulary is None


class Halved(efemb.Poisson):
    """A family of the user's own."""

    def __init__(self, share: float = 0.5) -> None:
        self.share = share


def test_own_classes_need_to_be_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.storage.encoding._registered", {})
    truth = efemb.simulation.simulate(
        "p-emb", n_rows=9, n_entities=4, n_components=2, family=Halved(0.25)
    )
    model = efemb.fitted.FittedEmbedding(truth.parameters, truth.spec)
    with pytest.raises(efemb.ParameterError, match=r"Halved.*efemb.storage.register"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    assert storage.register(Halved) is Halved
    model.save(tmp_path / "m")
    assert efemb.load(tmp_path / "m").spec.family == Halved(0.25)
    monkeypatch.setattr("efemb.storage.encoding._registered", {})
    with pytest.raises(efemb.DataError, match=r"Halved.*register"):
        efemb.load(tmp_path / "m")
    with pytest.raises(efemb.InputTypeError, match="an ingredient class"):
        storage.register(dict)  # type: ignore[type-var]


def test_loading_is_light(tmp_path: Path) -> None:
    data = efemb.simulation.simulate("g-emb", n_rows=40, n_entities=6, n_components=2).data
    fit(efemb.GaussianEmbedding(2, max_iter=2), data).save(tmp_path / "m")
    code = (
        "import sys, efemb; model = efemb.load(sys.argv[1]); assert model.n_components == 2;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"numba", "sklearn", "scipy", "pandas", "pickle"} & set(done.stdout.split()) <= {
        "pickle"
    }


def test_a_model_says_what_it_is_in_one_line() -> None:
    data = efemb.simulation.simulate("p-emb", n_rows=30, n_entities=6, n_components=2, seed=0).data
    shown = repr(fit(efemb.PoissonEmbedding(2, max_iter=1), data).fitted())
    assert shown == (
        "<PoissonEmbedding of 6 entities in 2 dimensions: Basket(), Poisson(), Identity()>"
    )


@pytest.mark.parametrize("length", [640, 896, 1152, 1408])
def test_tensors_that_begin_like_a_pickle(length: int, tmp_path: Path) -> None:
    """They begin with the length of their header, as pickles do with 0x80 and their protocol."""
    rest = len('{"":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}')
    name = "x" * (length - rest)
    storage.MODEL.write(tmp_path / "m", {}, {name: np.arange(2.0)})
    content = (tmp_path / "m" / storage.MODEL.tensors).read_bytes()
    assert content[:8] == length.to_bytes(8, "little")
    assert storage.MODEL.read(tmp_path / "m").arrays[name].tolist() == [0.0, 1.0]
