"""Tree and Featured: vectors of features, of categories and of entities never observed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.engine.callbacks import Checkpoint
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from model.structures.samples import STRUCTURES, features_of

N, T, K = 6, 40, 2
COUNTS = np.random.default_rng(0).poisson(0.7, (T, N)).astype(float)
COUNTS[3] = 0.0
COUNTS[4] = np.eye(N)[1]
FAMILIES = {"poisson": COUNTS, "bernoulli": (COUNTS > 0).astype(float), "categorical": COUNTS}
DESCRIBED = ("featured", "tree")


def data_of(values: Any = COUNTS, **features: Any) -> efemb.Dataset:
    labels = [f"i{n}" for n in range(N)]
    columns = {**features_of(N), **features}
    return efemb.Dataset(csr_array(values), entities=labels, features=columns)


@pytest.mark.parametrize("name", DESCRIBED)
def test_vectors_are_sums_of_own_and_of_features(name: str) -> None:
    """By the plain loop over features."""
    structure: Any = STRUCTURES[name]().freeze(data_of())
    size = structure.sizes(N)[0]
    rng = np.random.default_rng(1)
    rho, alpha = rng.normal(size=(size, K)), rng.normal(size=(2 * size, K))  # alpha of two slots
    target, bag = structure.spread(rho, alpha, N)
    features, scale = features_of(N), np.sqrt(structure.precision)
    labels = [tuple(label) for label in structure.frozen["labels"]]
    seen = features["size"][~np.isnan(features["size"])]
    for n in range(N):
        part, kind, number = (features[key][n] for key in ("part", "kind", "size"))
        if name == "tree":
            shared = [(part,)] + ([] if kind is None else [(part, kind)])
            weights = {labels.index(path): 1.0 for path in shared}
        else:
            weights = {} if kind is None else {labels.index(("kind", kind)): 1.0}
            if not np.isnan(number):
                weights[labels.index(("size", None))] = (number - seen.mean()) / seen.std()
        for vectors, array, slots in ((target, rho, 1), (bag, alpha, 2)):
            for slot in range(slots):
                rows = array[slot * size : (slot + 1) * size]
                total = sum((w * rows[N + code] for code, w in weights.items()), np.zeros(K))
                assert_allclose(vectors[slot * N + n], rows[n] / scale + total / np.sqrt(2))


@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", DESCRIBED)
def test_gradients_by_finite_differences(name: str, family: str, scale: str) -> None:
    """With an empty row, a row of one item and a masked cell."""
    data = data_of(FAMILIES[family])
    masked = csr_array((np.ones(1), ([0], [int(np.flatnonzero(COUNTS[0])[0])])), shape=(T, N))
    spec = Spec.resolve(context=efemb.Basket(scale), family=family, structure=STRUCTURES[name]())
    spec = spec.freeze_terms(data)
    bound, space = spec.context.bind(data).without(masked), ParameterSpace(spec, N, 1, 1, K)
    rng = np.random.default_rng(1)
    at = Parameters.from_named({a.name: rng.normal(0.0, 0.4, a.shape) for a in space.layout})

    def evaluate(point: Parameters) -> tuple[float, Parameters]:
        with workers(1) as pool:
            solver = make_solver("rows", bound, spec, pool, dtype=np.float64)
            value, gradient = solver.value_and_gradient(space.vectors(point))
        return value, space.pull_back(point, gradient)

    _, gradient = evaluate(at)
    for key, array in at.named().items():
        for index in list(np.ndindex(array.shape))[:: max(1, array.size // 6)]:
            ends = []
            for step in (1e-6, -1e-6):
                moved = at.copy()
                moved.named()[key][index] += step
                ends.append(evaluate(moved)[0])
            slope = (ends[0] - ends[1]) / 2e-6
            assert gradient.named()[key][index] == pytest.approx(slope, rel=1e-5, abs=1e-6), key


@pytest.mark.parametrize("name", DESCRIBED)
def test_features_at_zero_give_the_numbers_of_the_model_without_them(name: str) -> None:
    data = data_of()
    spec = Spec.resolve(context="basket", family="poisson", structure=STRUCTURES[name]())
    spec, plain = spec.freeze_terms(data), Spec.resolve(context="basket", family="poisson")
    at = ParameterSpace(plain, N, 1, 1, K)
    rng = np.random.default_rng(1)
    point = Parameters.from_named({a.name: rng.normal(0.0, 0.4, a.shape) for a in at.layout})
    space = ParameterSpace(spec, N, 1, 1, K)
    zeros = np.zeros((space.n_rho - N, K))
    s = np.sqrt(spec.structure.precision)
    rho, alpha = (np.concatenate([s * array, zeros]) for array in (point.rho, point.alpha))
    wider = Parameters(rho, alpha, point.intercept)
    assert_allclose(space.vectors(wider).target, at.vectors(point).target, rtol=1e-15)
    assert_allclose(space.vectors(wider).bag, at.vectors(point).bag, rtol=1e-15)


def shop(n_rows: int = 1500, n_entities: int = 24) -> efemb.Dataset:
    """Items of one kind are bought together; a quarter of them is rare."""
    rng = np.random.default_rng(4)
    kind = np.arange(n_entities) % 4
    theme = rng.integers(0, 4, n_rows)
    rate = np.where(theme[:, None] == kind, 0.8, 0.05) * np.where(np.arange(n_entities) < 6, 0.1, 1)
    features = {"kind": np.array(list("abcd"), dtype=object)[kind], "half": kind // 2}
    labels = [f"i{n}" for n in range(n_entities)]
    counts = csr_array(rng.poisson(rate).astype(float))
    return efemb.Dataset(counts, entities=labels, features=features)


@pytest.mark.parametrize(
    "structure", [efemb.Tree(["half", "kind"]), efemb.Featured(["kind"])], ids=DESCRIBED[::-1]
)
@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding])
def test_items_that_were_never_sold(structure: Any, make: Any, tmp_path: Path) -> None:
    data = shop()
    known = data.take_entities(slice(8, 24))
    known = known.take_rows(known.filled_rows())
    model = make(4, structure=structure, random_state=0, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(known)
    table = {name: column[:8] for name, column in data.features.items()}
    new = model.add_items({"item": data.entities.labels[:8], **table})
    assert_array_equal(new.vectors().vectors[:16], model.vectors().vectors)
    assert new.n_entities == 24
    kinds = dict(zip(data.entities, data.features["kind"], strict=True))
    assert {kinds[label] for label in new.similar("i0", n=3)["label"]} == {"a"}
    assert {kinds[label] for label in new.complements("i1", n=3)["label"]} == {"b"}
    categories = model.categories("kind")
    for label in ("i0", "i1"):
        assert_allclose(new.vectors()[label], categories[kinds[label]], rtol=1e-5)
    # In baskets, an item that was never sold says what those of its kind say.
    listed = new.complete(["i2"], n=4, where=lambda label: label not in ("i0", "i1", "i3"))
    assert sum(kinds[label] == "c" for label in listed["label"]) >= 3
    new.save(tmp_path / "model")
    assert efemb.load(tmp_path / "model").similar("i0") == new.similar("i0")


@pytest.mark.slow
def test_intercepts_of_new_items_are_those_of_their_kind() -> None:
    data = shop(4000)
    model = efemb.PoissonEmbedding(1, structure=efemb.Tree(["kind"]), random_state=0).fit(data)
    new = model.add_items({"item": ["x", "y"], "kind": ["a", None]})
    means = np.exp(model.intercept_.astype(float))
    of_kind = means[data.features["kind"] == "a"].mean()
    assert np.exp(new.parameters.intercept[-2]) == pytest.approx(of_kind, rel=0.25)
    assert np.exp(new.parameters.intercept[-1]) == pytest.approx(means.mean(), rel=0.35)


@pytest.mark.slow
def test_terms_of_new_items() -> None:
    data = shop(600)
    homes = [f"h{i}" for i in np.arange(600) % 30]
    data = data._replace(data.values, rows={"home": homes})
    terms = [efemb.RowVectors("home", 2), efemb.History("home")]
    model = efemb.PoissonEmbedding(
        1, structure=efemb.Tree(["kind"]), terms=terms, random_state=0
    ).fit(data)
    new = model.add_items({"item": ["x"], "kind": ["a"]})
    assert new.parameters.terms["home.entities"].shape == (25, 2)
    assert len(new.complete(["i3"], home="h3", n=30)) == 24


@pytest.mark.parametrize("name", DESCRIBED)
def test_files_checkpoints_and_partial_fits(name: str, tmp_path: Path) -> None:
    data, settings = data_of(), {"random_state": 0, "early_stopping": False}
    structure = STRUCTURES[name]()
    whole = efemb.PoissonEmbedding(K, structure=structure, max_iter=6, **settings)
    with pytest.warns(Warning, match="max_iter"):
        whole.fit(data)
    whole.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert_array_equal(loaded.conditional(data), whole.fitted().conditional(data))
    assert loaded.spec.structure == whole.fitted().spec.structure
    state = [Checkpoint(tmp_path / "state")]
    first = efemb.PoissonEmbedding(K, structure=structure, max_iter=3, callbacks=state, **settings)
    rest = efemb.PoissonEmbedding(K, structure=structure, max_iter=6, callbacks=state, **settings)
    for model in (first, rest):
        with pytest.warns(Warning, match="max_iter"):
            model.fit(data)
    assert_array_equal(rest.parameters_.rho, whole.parameters_.rho)
    before = whole.score(data)
    whole.partial_fit(data)
    assert whole.score(data) != before
    more = efemb.Dataset(np.ones((4, 1)), entities=["new"])
    with pytest.raises(efemb.DataError, match="one pair of vectors per entity"):
        whole.partial_fit(more)
    sampled = efemb.PoissonEmbedding(K, structure=structure, zeros=efemb.Sampled(3), **settings)
    with pytest.warns(Warning, match="max_iter"):
        sampled.set_params(max_iter=3).fit(data)


def test_levels_that_hold_one_another_are_no_cycle() -> None:
    """A node is a path from the top: what is above p in one place may be below it in another."""
    above, below = ["p", "q"] * N, ["q", "p"] * N
    data = data_of(above=above[:N], below=below[:N])
    model = efemb.PoissonEmbedding(K, structure=efemb.Tree(["above", "below"]), random_state=0)
    model.fit(data)
    assert list(model.categories("above")) == ["p", "q"]
    assert list(model.categories("below")) == ["q", "p"]


def test_bad_features_are_refused() -> None:
    data = data_of()

    def fit(structure: Any, on: Any = data, **options: Any) -> Any:
        return efemb.PoissonEmbedding(K, structure=structure, **options).fit(on)

    with pytest.raises(efemb.DataError, match="entity feature 'brand', which the data lack"):
        fit(efemb.Tree(["brand"]))
    for described in (efemb.Featured(["same"]), efemb.Tree(["same", "kind"])):
        with pytest.raises(efemb.DataError, match="'same' has the same value for all entities"):
            fit(described, data_of(same=["x"] * N))
    with pytest.raises(efemb.ParameterError, match="contains 'kind' twice"):
        fit(efemb.Tree(["kind", "part", "kind"]))
    with pytest.raises(efemb.InputTypeError, match="a list of names"):
        fit(efemb.Tree("kind"))
    with pytest.raises(efemb.ParameterError, match="precision"):
        fit(efemb.Tree(["kind"], precision=0.0))
    with pytest.raises(efemb.ParameterError, match="vectors of either sign"):
        efemb.AdditivePoissonEmbedding(K, structure=efemb.Tree(["kind"])).fit(data)
    model = fit(efemb.Tree(["part", "kind"]), random_state=0)
    with pytest.raises(efemb.DataError, match="'i0' is an item of the model already"):
        model.add_items({"item": ["i0"], "part": [True], "kind": ["a"]})
    with pytest.raises(efemb.DataError, match="lacks the feature 'kind'"):
        model.add_items({"item": ["x"], "part": [True]})
    with pytest.raises(efemb.DataError, match="no column 'item'"):
        model.add_items({"label": ["x"]})
    with pytest.raises(efemb.DataError, match="different lengths"):
        model.add_items({"item": ["x", "y"], "part": [True], "kind": ["a"]})
    with pytest.raises(efemb.ParameterError, match="knows no features"):
        fit("per-entity", random_state=0).add_items({"item": ["x"]})
    with pytest.raises(efemb.ParameterError, match="no feature 'brand'"):
        model.categories("brand")
    unknown = model.add_items({"item": ["x"], "part": [True], "kind": ["never seen"]})
    assert_allclose(unknown.vectors()["x"], model.categories("part")[True], rtol=1e-6)
