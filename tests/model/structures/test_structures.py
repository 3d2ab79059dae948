"""Laws of every structure, and of those with groups of rows through fits, files and questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import efemb
from efemb import checks
from efemb.engine.callbacks import Checkpoint
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.fitted.group_models import of_group
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.structures import Structure
from efemb.storage import register
from model.structures.samples import STRUCTURES, OwnIntercepts, features_of, rows_of

K, N, T = 2, 5, 24
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, (T, N)).astype(float)
COUNTS[3] = 0.0  # an empty row
COUNTS[4] = [0.0, 2.0, 0.0, 0.0, 0.0]  # a row of one item
DATA = efemb.Dataset(csr_array(COUNTS), rows=rows_of(T), features=features_of(N))
GROUPED = [name for name, make in STRUCTURES.items() if make().grouped]
FAMILIES = {
    "poisson": COUNTS,
    "bernoulli": (COUNTS > 0).astype(float),
    "gaussian": COUNTS,
    "categorical": COUNTS,
}


def test_every_shipped_structure_is_tested() -> None:
    shipped = {name.split(",")[0] for name in STRUCTURES if name != "a user's"}
    assert shipped == set(Structure.choices())


@pytest.mark.parametrize("name", STRUCTURES)
def test_maps_transposes_and_gradients(name: str) -> None:
    checks.check_structure(STRUCTURES[name](), N, DATA)


def test_a_wrong_transpose_is_found() -> None:
    class Wrong(OwnIntercepts):
        def collect_groups(self, *given: Any) -> Any:
            own, target, intercept = super().collect_groups(*given)
            return {"shift": 2.0 * own["shift"]}, target, intercept

    with pytest.raises(AssertionError, match="not the transpose of the derivative"):
        checks.check_structure(Wrong(), N, DATA)


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize("rows", [None, np.array([0, 4, 3, 9, 20])], ids=["all", "some"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", GROUPED)
def test_gradients_by_finite_differences(name: str, family: str, rows: Any) -> None:
    """With an empty row, a row of one item, a masked cell and rows of no group."""
    data = efemb.Dataset(csr_array(FAMILIES[family]), rows=rows_of(T))
    masked = csr_array((np.ones(1), ([0], [int(np.flatnonzero(COUNTS[0])[0])])), shape=(T, N))
    spec = Spec.resolve(context="basket", family=family, structure=STRUCTURES[name]())
    spec = spec.freeze_terms(data)
    bound, space = spec.context.bind(data).without(masked), ParameterSpace(spec, N, 1, 1, K)
    rng = np.random.default_rng(1)
    at = Parameters.from_named({a.name: rng.normal(0.0, 0.4, a.shape) for a in space.layout})

    def evaluate(point: Parameters) -> tuple[float, Parameters]:
        with workers(1) as pool:
            solver = make_solver("rows", bound, spec, pool, dtype=np.float64)
            value, gradient = solver.value_and_gradient(space.vectors(point), rows)
        return value, space.pull_back(point, gradient)

    _, gradient = evaluate(at)
    for key, array in at.named().items():
        for index in list(np.ndindex(array.shape))[:: max(1, array.size // 4)]:
            ends = []
            for step in (1e-6, -1e-6):
                moved = at.copy()
                moved.named()[key][index] += step
                ends.append(evaluate(moved)[0])
            slope = (ends[0] - ends[1]) / 2e-6
            assert gradient.named()[key][index] == pytest.approx(slope, rel=1e-5, abs=1e-6), key


@pytest.mark.parametrize("name", GROUPED)
def test_one_gram_set_per_group_is_the_sum_over_observations(name: str) -> None:
    signals = np.random.default_rng(2).normal(size=(T, N))
    data = efemb.Dataset(signals, rows=rows_of(T))
    graph = np.roll(np.eye(N), 1, axis=1) + np.roll(np.eye(N), 2, axis=1)
    spec = Spec.resolve(context=efemb.Graph(graph), family="gaussian", structure=STRUCTURES[name]())
    spec = spec.freeze_terms(data)
    bound, space = spec.context.bind(data), ParameterSpace(spec, N, 1, 1, K)
    at = Parameters.from_named({a.name: RNG.normal(0.0, 0.4, a.shape) for a in space.layout})
    weight, results = np.random.default_rng(3).random(T), []
    for kind in ("moments", "generic"):
        with workers(1) as pool:
            made = make_solver(kind, bound, spec, pool, dtype=np.float64, row_weight=weight)
            value, gradient = made.value_and_gradient(space.vectors(at))
            results.append((value, space.pull_back(at, gradient), made.total_weight))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-10)
    assert results[0][2] == pytest.approx(results[1][2])
    for key, array in results[0][1].named().items():
        assert_allclose(array, results[1][1].named()[key], rtol=1e-8, atol=1e-9, err_msg=key)


def shops(n_rows: int = 240) -> efemb.Dataset:
    """Each shop sells other items."""
    columns = rows_of(n_rows)
    codes = np.array([{"east": 0, "west": 1}.get(shop, 2) for shop in columns["shop"]])
    rate = np.where(codes[:, None] == np.arange(N) % 3, 1.0, 0.2)
    counts = np.random.default_rng(5).poisson(rate).astype(float)
    return efemb.Dataset(counts, entities=[f"i{n}" for n in range(N)], rows=columns)


def fit(name: str, data: Any = None, make: Any = efemb.PoissonEmbedding, **options: Any) -> Any:
    settings = {"random_state": 0, "max_iter": 6, "early_stopping": False, **options}
    model = make(K, structure=STRUCTURES[name](), **settings)
    with pytest.warns(Warning, match="max_iter"):
        return model.fit(shops() if data is None else data)


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding])
def test_predictions_scores_and_models_of_one_group_agree(name: str, make: Any) -> None:
    data = shops()
    model = fit(name, data, make, dtype="float64")
    structure = model.fitted().spec.structure
    codes, means = structure.codes(data), model.conditional(data)
    for code, label in enumerate(structure.labels):
        rows = data.take_rows(codes == code)
        single = of_group(model.fitted(), label)
        assert_array_equal(single.conditional(rows), means[codes == code])
        assert single.score(rows) == pytest.approx(model.score(rows), rel=1e-12)
    stranger = efemb.Dataset(data.values, rows={key: [None] * data.n_rows for key in data.rows})
    p = model.parameters_
    shared = efemb.PoissonEmbedding(K) if make is efemb.PoissonEmbedding else None
    if shared is not None:
        t, n = 7, int(np.flatnonzero(data.values[7] == 0)[0])
        bag = data.values[t] @ p.alpha / data.values[t].sum()
        u = p.rho[n] @ bag + p.intercept[n]
        assert model.conditional(stranger)[t, n] == pytest.approx(np.exp(u), rel=1e-9)


def test_context_vectors_of_groups_are_summed() -> None:
    """Context sums, transformed rows and predictions by their definition."""
    data = shops()
    model = fit("grouped, contexts", data, dtype="float64")
    p, structure = model.parameters_, model.fitted().spec.structure
    moved = p.terms["grouped.contexts"] / 2.0  # the root of the precision
    assert np.abs(moved).max() > 1e-3
    codes = structure.codes(data)
    asked = np.flatnonzero((data.values > 0).any(axis=1) & (data.values == 0).any(axis=1))[:12]
    assert set(codes[asked]) == {-1, 0, 1, 2}
    for t in asked:
        alpha = p.alpha + (moved[codes[t]] if codes[t] >= 0 else 0.0)
        x = data.values[t]
        assert_allclose(model.transform(data)[t], x @ alpha / x.sum(), rtol=1e-10)
        n = int(np.flatnonzero(x == 0)[0])
        s = model.context_sums(data, ([t], [n]))[0]
        assert_allclose(s, x @ alpha / x.sum(), rtol=1e-10)
        rho = p.rho[n] + (p.terms["grouped.vectors"][codes[t], n] / 2.0 if codes[t] >= 0 else 0.0)
        b = p.intercept[n] + (p.terms["grouped.intercepts"][codes[t], n] if codes[t] >= 0 else 0.0)
        assert model.conditional(data)[t, n] == pytest.approx(np.exp(rho @ s + b), rel=1e-9)


def test_signed_context_vectors_of_groups_need_a_signed_alpha() -> None:
    structure = STRUCTURES["grouped, contexts"]()
    lagged = efemb.Lagged([-1, -2])
    data = efemb.Dataset(np.random.default_rng(0).normal(size=(T, N)), rows=rows_of(T))
    with pytest.raises(efemb.ParameterError, match="leave out contexts=True"):
        efemb.GaussianEmbedding(K, context=lagged, structure=structure).fit(data)
    prior = ("normal", "half-normal")
    with pytest.raises(efemb.ParameterError, match="either sign to alpha"):
        Spec.resolve(context="basket", family="poisson", structure=structure, prior=prior)


@pytest.mark.parametrize("name", GROUPED)
def test_arrays_at_zero_give_the_bits_of_the_model_without_groups(name: str) -> None:
    data = shops()
    plain = fit("per-entity", data)
    spec = Spec.resolve(context="basket", family="poisson", structure=STRUCTURES[name]())
    space = ParameterSpace(spec.freeze_terms(data), N, 1, 1, K)
    zero = {a.name: np.zeros(a.shape, np.float32) for a in space.layout if a.name in space.of_terms}
    model = fit(name, data)
    p = plain.parameters_
    for key, array in zero.items():
        model.parameters_.terms[key][...] = array
    for key in ("rho", "alpha", "intercept"):
        getattr(model.parameters_, key)[...] = getattr(p, key)
    assert_array_equal(model.conditional(data), plain.conditional(data))
    assert model.score(data) == pytest.approx(plain.score(data), rel=1e-12)


@pytest.mark.parametrize("name", GROUPED)
def test_saved_and_loaded_models_agree(tmp_path: Path, name: str) -> None:
    register(OwnIntercepts)
    model = fit(name)
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.spec.structure == model.fitted().spec.structure
    assert_array_equal(loaded.conditional(shops()), model.conditional(shops()))


@pytest.mark.parametrize("name", GROUPED)
def test_an_interrupted_fit_resumes_with_the_same_bits(tmp_path: Path, name: str) -> None:
    register(OwnIntercepts)
    options = {"batch_size": 32, "early_stopping": True, "n_iter_no_change": 50}
    whole = fit(name, **options)
    fit(name, **options | {"max_iter": 3, "callbacks": [Checkpoint(tmp_path / "state")]})
    resumed = fit(name, **options | {"callbacks": [Checkpoint(tmp_path / "state")]})
    for key, array in whole.parameters_.named().items():
        assert_array_equal(array, resumed.parameters_.named()[key], err_msg=key)


@pytest.mark.parametrize("name", GROUPED)
def test_the_same_bits_for_any_number_of_threads(name: str) -> None:
    fits = [fit(name, batch_size=32, n_jobs=n_jobs).parameters_.named() for n_jobs in (1, 2)]
    for key, array in fits[0].items():
        assert_array_equal(array, fits[1][key], err_msg=key)


@pytest.mark.parametrize("name", GROUPED)
def test_rows_of_weight_0_change_nothing(name: str) -> None:
    data = shops()
    columns = {key: np.concatenate([column, column]) for key, column in data.rows.items()}
    doubled = efemb.Dataset(np.concatenate([data.values, 9.0 + data.values]), rows=columns)
    weight = np.repeat([1.0, 0.0], data.n_rows)
    fits = []
    for rows, sample_weight in ((data, None), (doubled, weight)):
        model = efemb.PoissonEmbedding(
            K,
            structure=STRUCTURES[name](),
            random_state=0,
            dtype="float64",
            max_iter=4,
            early_stopping=False,
            batch_size=None,
        )
        with pytest.warns(Warning, match="max_iter"):
            model.fit(rows, sample_weight=sample_weight)
        fits.append(model.parameters_.named())
    for key, array in fits[0].items():
        assert_allclose(array, fits[1][key], rtol=1e-8, atol=1e-10, err_msg=key)


@pytest.mark.parametrize("name", GROUPED)
def test_questions_name_the_group(name: str) -> None:
    model = fit(name, dtype="float64")
    structure = model.fitted().spec.structure
    (column,), label = structure.columns, structure.labels[0]
    answer = model.predict({"i1": 2}, n=N, **{column: label})
    share = dict(zip(answer["label"], answer["probability"], strict=True))
    u = [
        model.explain({"i1": 2}, item, **{column: label})["contribution"].sum()
        for item in ("i2", "i3")
    ]
    assert np.log(share["i2"] / share["i3"]) == pytest.approx(u[0] - u[1], rel=1e-8)
    assert model.similar("i1", group=label) == model.of_group(label).similar("i1")
    assert model.complements("i1", group=label) == model.of_group(label).complements("i1")
    assert len(model.similar_groups(20)) == len(structure.labels) * (len(structure.labels) - 1) // 2
    with pytest.raises(efemb.ParameterError, match="'Atlantis'"):
        model.similar("i1", group="Atlantis")


@pytest.mark.parametrize("name", GROUPED)
def test_a_pass_visits_every_row_once(name: str) -> None:
    data = shops(700)
    spec = Spec.resolve(context="basket", family="poisson", structure=STRUCTURES[name]())
    spec = spec.freeze_terms(data)
    with workers(1) as pool:
        solver = make_solver("rows", spec.context.bind(data), spec, pool)
        order = solver.shuffle(np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(700))
    codes = spec.structure.codes(data)[order]
    assert (np.diff(codes) != 0).sum() < 20, "rows of a group come in stretches"


@pytest.mark.parametrize("name", GROUPED)
def test_partial_fit_keeps_the_groups(name: str) -> None:
    data = shops()
    model = fit(name, data)
    labels = model.fitted().spec.structure.labels
    model.partial_fit(data.take_rows(np.arange(100)))
    assert model.fitted().spec.structure.labels == labels
    grown = efemb.Dataset(np.ones((6, 1)), entities=["new"], rows=rows_of(6))
    with pytest.raises(efemb.DataError, match="fit again"):
        model.partial_fit(grown)


@pytest.mark.parametrize("name", GROUPED)
def test_what_does_not_know_groups_names_the_way_out(name: str) -> None:
    data = shops()
    model = fit(name, data)
    label = model.fitted().spec.structure.labels[0]
    for ask in (model.laplace, model.fold_in):
        with pytest.raises(efemb.ParameterError, match="of_group"):
            ask(data)
    assert of_group(model.fitted(), label).laplace(data).standard_error("i1", "i2") > 0
    with pytest.raises(efemb.ParameterError, match="once per group"):
        efemb.simulation.simulate(
            Spec.resolve(context="basket", family="poisson", structure=STRUCTURES[name]()),
            n_rows=5,
            n_entities=4,
            n_components=2,
        )
    for bad, match in (
        ({"family": "poisson", "link": "log", "prior": "log-normal"}, "either sign"),
        ({"family": "poisson", "combine": "reverse"}, "no groups"),
        ({"family": "categorical", "context": "window", "zeros": "hierarchical"}, "text"),
    ):
        options: dict[str, Any] = {"context": "basket", **bad}
        with pytest.raises(efemb.ParameterError, match=match):
            Spec.resolve(structure=STRUCTURES[name](), **options)
    with pytest.raises(efemb.ParameterError, match="no groups of rows"):
        of_group(fit("per-entity", data).fitted(), label)
    with pytest.raises(efemb.DataError, match=r"lack|shop"):
        model.score(efemb.Dataset(data.values))
