"""Laws of every term: transposes, gradients, both solvers, files, unknown groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import efemb
from efemb.engine.callbacks import Checkpoint
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.model.factors import Factors
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.terms import History, RowVectors, Term
from model.terms.samples import TERMS, cells_of, rows_of

K, N, T = 3, 7, 23
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.6, (T, N)).astype(float)
COUNTS[3] = 0.0  # an empty row
COUNTS[4] = 0.0
COUNTS[4, 2] = 2.0  # a row of one item
FAMILIES = {
    "poisson": ("poisson", COUNTS),
    "bernoulli": ("bernoulli", (COUNTS > 0).astype(float)),
    "negative-binomial": (efemb.NegativeBinomial(2.0), COUNTS),
    "gaussian": ("gaussian", COUNTS),
    "categorical": ("categorical", COUNTS),
}

# A Gaussian mean is never 0 for certain, so nothing is unavailable.
PAIRS = [(f, t) for f in FAMILIES for t in TERMS if (f, t) != ("gaussian", "available")]


def test_every_shipped_term_is_tested() -> None:
    assert set(TERMS) == set(Term.choices())


def data_of(values: Any) -> efemb.Dataset:
    return efemb.Dataset(values, rows=rows_of(T), cells=cells_of(N))


def model_of(family: Any, scale: str, term: Term, data: efemb.Dataset, **options: Any) -> Spec:
    spec = Spec.resolve(context=efemb.Basket(scale), family=family, terms=[term], **options)
    return spec.freeze_terms(data)


def point_of(space: ParameterSpace, seed: int = 1) -> Parameters:
    rng = np.random.default_rng(seed)
    arrays = {array.name: rng.normal(0.0, 0.4, array.shape) for array in space.layout}
    return Parameters.from_named(arrays)


def value_and_gradient(
    spec: Spec, bound: Any, name: str, at: Parameters, rows: Any = None
) -> tuple[float, Parameters]:
    space = ParameterSpace(spec, N, 1, 1, K)
    with workers(1) as pool:
        solver = make_solver(name, bound, spec, pool, dtype=np.float64)
        value, gradient = solver.value_and_gradient(space.vectors(at), rows)
    return value, space.pull_back(at, gradient)


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize(("family", "term"), PAIRS)
@pytest.mark.parametrize("scale", ["none", "items", "total"])
@pytest.mark.parametrize("rows", [None, np.array([0, 4, 3, 9, 20])], ids=["all", "some"])
def test_gradients_by_finite_differences(family: str, scale: str, term: str, rows: Any) -> None:
    """With an empty row, a row of one item and a masked cell."""
    kind, values = FAMILIES[family]
    data = data_of(csr_array(values))
    masked = csr_array((np.ones(1), ([0], [int(np.flatnonzero(values[0])[0])])), shape=(T, N))
    spec = model_of(kind, scale, TERMS[term](), data)
    bound = spec.context.bind(data).without(masked)
    space = ParameterSpace(spec, N, 1, 1, K)
    at = point_of(space)
    _, gradient = value_and_gradient(spec, bound, "rows", at, rows)
    h = 1e-6
    for name, array in at.named().items():
        for index in list(np.ndindex(array.shape))[:: max(1, array.size // 5)]:
            ends = []
            for step in (h, -h):
                moved = at.copy()
                moved.named()[name][index] += step
                ends.append(value_and_gradient(spec, bound, "rows", moved, rows)[0])
            slope = (ends[0] - ends[1]) / (2 * h)
            assert gradient.named()[name][index] == pytest.approx(slope, rel=1e-5, abs=1e-6), name


@pytest.mark.quick_one_in(5)
@pytest.mark.parametrize(("family", "term"), [pair for pair in PAIRS if pair[0] != "categorical"])
@pytest.mark.parametrize("scale", ["none", "items", "total"])
def test_solver_rows_is_solver_generic(family: str, scale: str, term: str) -> None:
    kind, values = FAMILIES[family]
    data = data_of(csr_array(values))
    spec = model_of(kind, scale, TERMS[term](), data)
    bound = spec.context.bind(data)
    at = point_of(ParameterSpace(spec, N, 1, 1, K))
    value, gradient = value_and_gradient(spec, bound, "rows", at)
    other, same = value_and_gradient(spec, bound, "generic", at)
    assert value == pytest.approx(other, rel=1e-10)
    for name, array in gradient.named().items():
        assert_allclose(array, same.named()[name], rtol=1e-8, atol=1e-9, err_msg=name)


def planted(n_rows: int = 600) -> efemb.Dataset:
    """Households that buy one half of the items, or the other."""
    rng = np.random.default_rng(5)
    household = rng.integers(0, 30, n_rows)
    rate = np.where((household[:, None] % 2) == (np.arange(12) % 2), 0.6, 0.05)
    return efemb.Dataset(rng.poisson(rate).astype(float), users=[f"h{i}" for i in household])


def with_columns(data: efemb.Dataset) -> efemb.Dataset:
    """The same with all row columns and tables that the sample terms read."""
    rows = {**rows_of(data.n_rows), "user": data.users}
    tables = cells_of(data.n_entities)
    labels = [f"i{n}" for n in range(data.n_entities)]
    return efemb.Dataset(data.values, entities=labels, rows=rows, cells=tables)


@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding])
def test_a_fit_learns_who_shops(make: Any) -> None:
    train, test = planted().split(test=0.3, seed=0)
    plain = make(2, random_state=0).fit(train)
    known = make(2, random_state=0, terms=[RowVectors("user", 2)]).fit(train)
    assert known.score(test) > plain.score(test) + 0.02
    strangers = efemb.Dataset(test.values, users=["stranger"] * test.n_rows)
    assert known.score(strangers) < known.score(test)


@pytest.mark.parametrize("term", TERMS)
def test_saved_and_loaded_models_agree(tmp_path: Path, term: str) -> None:
    data = with_columns(planted(200))
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=5, early_stopping=False)
    model.set_params(terms=[TERMS[term]()])
    with pytest.warns(Warning, match="max_iter"):
        model.fit(data)
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.spec.terms == model.fitted().spec.terms
    assert_array_equal(loaded.conditional(data), model.conditional(data))
    assert loaded.score(data) == model.score(data)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.CategoricalEmbedding])
def test_explanations_add_up_to_the_predictor(term: str, make: Any) -> None:
    data = with_columns(planted(120))
    model = make(2, random_state=0, max_iter=3, dtype="float64", terms=[TERMS[term]()])
    with pytest.warns(Warning, match="max_iter"):
        model.fit(data)
    fitted = model.fitted()
    basket = {"i1": 2, "i4": 1}
    row = {name: data.rows[name][7].item() for name in fitted.spec.terms[0].columns}
    table = model.explain(basket, "i2", **row)
    label = fitted.spec.terms[0].label
    named = [str(name) for name in table["term"]]
    assert named.count(label) == 1 or any(name.startswith("through the pair") for name in named)
    one = model.explain(basket, ["i2", "i4"], **row)
    assert len(set(one["item"])) == 2
    u = {}
    for item in ("i2", "i3"):
        u[item] = model.explain(basket, item, **row)["contribution"].sum()
    answer = model.predict(basket, n=12, **row)
    share = dict(zip(answer["label"], answer["probability"], strict=True))
    assert np.log(share["i2"] / share["i3"]) == pytest.approx(u["i2"] - u["i3"], rel=1e-8)


def test_conditional_means_add_the_term_to_the_predictor() -> None:
    """u of a stored entry, by the loop definition."""
    data = planted(40)
    model = efemb.PoissonEmbedding(2, random_state=0, max_iter=3, dtype="float64")
    with pytest.warns(Warning, match="max_iter"):
        model.set_params(terms=[RowVectors("user", 2)]).fit(data)
    p, means = model.parameters_, model.conditional(data)
    theta, gamma = p.terms["user.rows"], p.terms["user.entities"]
    groups = list(model.fitted().spec.terms[0].groups)
    for t in (0, 7, 21):
        x = data.values[t]
        for n in range(12):
            others = [m for m in range(12) if m != n and x[m]]
            total = sum(x[m] for m in others) or 1.0
            context = sum((x[m] * p.alpha[m] for m in others), np.zeros(2)) / total
            u = p.rho[n] @ context + p.intercept[n]
            u += theta[groups.index(data.users[t])] @ gamma[n]
            assert means[t, n] == pytest.approx(np.exp(u), rel=1e-9)


def test_bad_terms_are_refused() -> None:
    data = efemb.Dataset(COUNTS)
    with pytest.raises(efemb.DataError, match=r"row column 'user', which the data lack"):
        efemb.PoissonEmbedding(2, terms=[RowVectors("user")]).fit(data)
    with pytest.raises(efemb.ParameterError, match="two terms are called 'user'"):
        efemb.PoissonEmbedding(2, terms=[RowVectors("user"), RowVectors("user", 3)]).fit(data)
    with pytest.raises(efemb.InputTypeError, match="list of Term objects"):
        efemb.PoissonEmbedding(2, terms=["user"]).fit(data)
    with pytest.raises(efemb.ParameterError, match="n_components must be >= 1"):
        efemb.PoissonEmbedding(2, terms=[RowVectors("user", 0)]).fit(data)
    rule = r"Covariate\('size'\) adds .* needs a positive predictor, .*: use PoissonEmbedding"
    with pytest.raises(efemb.ParameterError, match=rule):
        efemb.AdditivePoissonEmbedding(2, terms=[efemb.Covariate("size")]).fit(data)
    rule = "a prior of signed numbers under link 'identity', got 'half-normal': use prior='normal'"
    for term in (RowVectors("user", prior="half-normal"), History("user", prior="half-normal")):
        with pytest.raises(efemb.ParameterError, match=rule):
            efemb.PoissonEmbedding(2, terms=[term]).fit(data)
    with pytest.raises(efemb.ParameterError, match="reverse model has none"):
        efemb.PoissonEmbedding(2, combine="reverse", terms=[RowVectors("user")]).fit(data)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("family", ["poisson", "bernoulli"])
def test_the_fused_kernel_of_sparse_rows_agrees_in_single_precision(family: str, term: str) -> None:
    """Few stored cells take another way through the tiles than many."""
    rng = np.random.default_rng(3)
    values = csr_array((rng.random((60, 300)) < 0.02).astype(float))
    data = efemb.Dataset(values, rows=rows_of(60), cells=cells_of(300))
    spec = model_of(family, "total", TERMS[term](), data)
    space, bound = ParameterSpace(spec, 300, 1, 1, K), spec.context.bind(data)
    at = point_of(space)
    results = []
    with workers(1) as pool:
        for name, dtype in (("rows", np.float32), ("generic", np.float64)):
            solver = make_solver(name, bound, spec, pool, dtype=dtype)
            value, gradient = solver.value_and_gradient(space.vectors(at.astype(dtype)))
            results.append((value, space.pull_back(at, gradient)))
    (value, single), (exact, double) = results
    assert value == pytest.approx(exact, rel=1e-5)
    for name, array in double.named().items():
        size = np.abs(array).max()
        assert_allclose(single.named()[name], array, rtol=1e-3, atol=1e-4 * size, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("per", ["batch", "row"])
def test_the_expectation_of_sampled_zeros_is_the_exact_gradient(term: str, per: str) -> None:
    """The draws of many batches, whose zeros weigh 1 / chance."""
    data = data_of(csr_array(COUNTS))
    spec = model_of("poisson", "total", TERMS[term](), data, zeros=efemb.Sampled(4, per=per))
    bound, space = spec.context.bind(data), ParameterSpace(spec, N, 1, 1, K)
    at = point_of(space)
    with workers(1) as pool:
        solver = make_solver("rows", bound, spec, pool, dtype=np.float64)
        vectors = space.vectors(at)
        exact, gradient = solver.value_and_gradient(vectors, exact=True)
        exact_gradient = space.pull_back(at, gradient)
        n, values, sums = 1000, [], None
        for _ in range(n):
            value, drawn = solver.value_and_gradient(vectors)
            full = Factors.zeros_like(vectors)
            for name in ("target", "bag", "intercept"):
                getattr(full, name)[drawn.rows] = getattr(drawn, name)
            full.add_terms(drawn.terms)
            values.append(value)
            if sums is None:
                sums = full
            else:
                sums.add(full)
    assert sums is not None
    sums.scale(1.0 / n)
    mean = space.pull_back(at, sums)
    assert np.mean(values) == pytest.approx(exact, rel=5e-3)
    for name, array in exact_gradient.named().items():
        size = max(float(np.abs(array).max()), 1.0)
        assert_allclose(mean.named()[name], array, atol=0.08 * size, err_msg=name)


@pytest.mark.parametrize("per", ["batch", "row"])
def test_sampled_zeros_take_terms(per: str) -> None:
    train, test = planted().split(test=0.3, seed=0)
    zeros = efemb.Sampled(6, per=per)
    options: dict[str, Any] = {"random_state": 0, "zeros": zeros, "batch_size": 64}
    plain = efemb.PoissonEmbedding(2, **options).fit(train)
    known = efemb.PoissonEmbedding(2, terms=[RowVectors("user", 2)], **options).fit(train)
    assert known.score(test) > plain.score(test) + 0.02


@pytest.mark.parametrize("term", TERMS)
def test_rows_of_weight_0_change_nothing(term: str) -> None:
    data = with_columns(planted(300))
    columns = {name: np.concatenate([column, column]) for name, column in data.rows.items()}
    columns["temperature"][data.n_rows :] += 30.0
    doubled = efemb.Dataset(
        np.concatenate([data.values, 9.0 + data.values]), rows=columns, cells=data.cells
    )
    weight = np.repeat([1.0, 0.0], data.n_rows)
    options: dict[str, Any] = {"max_iter": 4, "early_stopping": False, "batch_size": None}
    fits = []
    for rows, sample_weight in ((data, None), (doubled, weight)):
        model = efemb.PoissonEmbedding(2, random_state=0, dtype="float64", **options)
        with pytest.warns(Warning, match="max_iter"):
            model.set_params(terms=[TERMS[term]()]).fit(rows, sample_weight=sample_weight)
        fits.append(model.parameters_.named())
    for name, array in fits[0].items():
        assert_allclose(array, fits[1][name], rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("term", TERMS)
def test_an_interrupted_fit_resumes_with_the_same_bits(tmp_path: Path, term: str) -> None:
    data = with_columns(planted(300))

    def fit(max_iter: int, callbacks: Any) -> efemb.PoissonEmbedding:
        model = efemb.PoissonEmbedding(2, random_state=0, max_iter=max_iter, callbacks=callbacks)
        model.set_params(terms=[TERMS[term]()], batch_size=64, n_iter_no_change=50)
        with pytest.warns(Warning, match="max_iter"):
            return model.fit(data)

    whole = fit(6, None)
    checkpoint = Checkpoint(tmp_path / "state")
    fit(3, [checkpoint])
    resumed = fit(6, [checkpoint])
    for name, array in whole.parameters_.named().items():
        assert_array_equal(array, resumed.parameters_.named()[name], err_msg=name)
