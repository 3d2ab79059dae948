"""Families whose entities have parameters of their own: variances and exposures."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.errors import InputTypeError, ParameterError
from efemb.model.factors import Factors
from efemb.model.predictor import Predictor
from efemb.model.spec import Spec

Array = Any
N, T = 6, 24
RNG = np.random.default_rng(3)
COUNTS = RNG.poisson(0.9, (T, N)).astype(float)
COUNTS[0], COUNTS[1, 1:] = 0, 0  # an empty row, and one with a single entity
SIGNALS = RNG.normal(size=(T, N))
EXPOSURE = np.array([0.9, 0.3, 0.5, 0.7, 1.0, 0.2])
VARIANCE = np.array([0.5, 2.0, 1.0, 0.1, 3.0, 0.7])
NEIGHBORS = efemb.Neighbors(3)
CASES = {
    "zero-inflated": (efemb.ZeroInflated("poisson", EXPOSURE), efemb.Basket("items"), COUNTS),
    "zero-inflated nb": (
        efemb.ZeroInflated(efemb.NegativeBinomial(2.0), EXPOSURE),
        efemb.Basket("total"),
        COUNTS,
    ),
    "gaussian": (efemb.Gaussian(VARIANCE), NEIGHBORS, SIGNALS),
    "gaussian basket": (efemb.Gaussian(VARIANCE), efemb.Basket("items"), COUNTS),
}
SOLVERS = {
    "zero-inflated": ("rows", "generic"),
    "zero-inflated nb": ("rows", "generic"),
    "gaussian": ("moments", "generic"),
    "gaussian basket": ("rows", "generic"),
}


def factors_of(rng: np.random.Generator) -> Factors:
    return Factors(*(rng.normal(0, 0.4, (N, 3)) for _ in range(2)), rng.normal(0, 0.4, N))


def plain_densities(name: str, u: Array) -> Array:
    """log p(x | u) of every cell by scipy.stats."""
    if name.startswith("gaussian"):
        return stats.norm(u, np.sqrt(VARIANCE)).logpdf(CASES[name][2])
    mean = np.exp(u)
    counts = stats.poisson(mean) if name == "zero-inflated" else stats.nbinom(2.0, 2 / (2 + mean))
    return np.log(EXPOSURE * counts.pmf(COUNTS) + (1 - EXPOSURE) * (COUNTS == 0))


def solve(name: str, solver: str, factors: Factors, **options: Any) -> tuple[float, Factors]:
    family, context, values = CASES[name]
    spec = Spec.resolve(context=context, family=family)
    bound = context.bind(efemb.Dataset(values))
    with workers(1) as pool:
        made = make_solver(solver, bound, spec, pool, dtype=np.float64, **options)
        return made.value_and_gradient(factors)


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_that_of_scipy_and_solvers_agree(name: str) -> None:
    factors = factors_of(np.random.default_rng(0))
    family, context, values = CASES[name]
    bound = context.bind(efemb.Dataset(values))
    spec = Spec.resolve(context=context, family=family)
    u = Predictor(factors).cells(spec, bound, np.arange(T))
    expected = plain_densities(name, u).sum()
    for solver in SOLVERS[name]:
        value, gradient = solve(name, solver, factors)
        assert value == pytest.approx(expected, rel=1e-9)
        step = 1e-6
        for array, slope in ((factors.target, gradient.target), (factors.bag, gradient.bag)):
            array[2, 1] += step
            up, _ = solve(name, solver, factors)
            array[2, 1] -= 2 * step
            down, _ = solve(name, solver, factors)
            array[2, 1] += step
            assert slope[2, 1] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_evidence_is_added_up_by_entity(name: str) -> None:
    family, context, values = CASES[name]
    spec, factors = Spec.resolve(context=context, family=family), factors_of(RNG)
    bound, weight = context.bind(efemb.Dataset(values)), RNG.uniform(0.5, 2.0, T)
    u = Predictor(factors).cells(spec, bound, np.arange(T))
    expected = (weight[:, None] * family.evidence(values, u)).sum(axis=0)
    for solver in SOLVERS[name]:
        with workers(1) as pool:
            made = make_solver(solver, bound, spec, pool, dtype=np.float64, row_weight=weight)
            total, mass = made.evidence(factors)
            assert made.family is family
        assert_allclose(total, expected, rtol=1e-8)
        assert_allclose(mass, weight.sum(), rtol=1e-9)


def test_responsibilities_are_bayes_rule() -> None:
    u = np.linspace(-1.0, 1.0, N)
    family, zero = CASES["zero-inflated"][0], np.zeros(N)
    none = EXPOSURE * stats.poisson(np.exp(u)).pmf(0)
    assert_allclose(family.evidence(zero, u), none / (none + 1 - EXPOSURE), rtol=1e-12)
    assert_allclose(family.evidence(zero + 2.0, u), 1.0)


def test_exposures_maximize_the_expected_log_posterior() -> None:
    family = efemb.ZeroInflated("poisson", prior_mean=1.0, prior_sd=0.5)
    total, weight = np.array([3.0, 0.0, 40.0, 9.5]), np.array([10.0, 50.0, 40.0, 10.0])
    p = family.adapt_entities(total, weight).exposure
    z = np.log(p / (1 - p))
    assert_allclose(total - weight * p, (z - 1.0) / 0.5**2, atol=1e-8)


@pytest.mark.slow
def test_exposures_and_variances_are_recovered() -> None:
    rng = np.random.default_rng(0)
    p = np.array([0.95, 0.3, 0.6, 0.8, 0.5])
    counts = rng.poisson(3.0, (800, 5)) * (rng.random((800, 5)) < p)
    model = efemb.Embedding(1, family=efemb.ZeroInflated(), context="basket", random_state=0)
    model.fit(counts)
    assert_allclose(model.family_.exposure, p, atol=0.06)
    assert model.report_["held_out"]
    plain = efemb.Embedding(1, family="poisson", context="basket", random_state=0).fit(counts)
    means = plain.conditional(counts)
    assert model.score(counts) > stats.poisson(means).logpmf(counts).mean() + 0.1
    noise = np.array([0.5, 1.0, 2.0, 0.2, 3.0])
    signals = rng.normal(size=(800, 5)) * noise
    model = efemb.GaussianEmbedding(
        1, family=efemb.Gaussian("per-entity"), context=efemb.Neighbors(2), random_state=0
    ).fit(signals)
    assert model.solver_ == "moments"
    assert_allclose(np.sqrt(model.family_.sigma2), noise, rtol=0.1)


def fit(name: str, **options: Any) -> efemb.Embedding:
    _, context, values = CASES[name]
    names = {"zero-inflated": efemb.ZeroInflated(), "gaussian": efemb.Gaussian("per-entity")}
    defaults: dict[str, Any] = {"random_state": 0, "max_iter": 25, "early_stopping": False}
    labels = [f"e{i}" for i in range(N)]
    data = efemb.Dataset(values, entities=labels)
    model = efemb.Embedding(2, family=names[name], context=context, **{**defaults, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data)


@pytest.mark.parametrize("name", ["zero-inflated", "gaussian"])
def test_a_saved_model_answers_alike(name: str, tmp_path: Any) -> None:
    model, values = fit(name), CASES[name][2]
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.spec.family == model.family_
    assert loaded.score(values) == model.score(values)


@pytest.mark.parametrize("name", ["zero-inflated", "gaussian"])
def test_same_bits_for_any_number_of_threads(name: str) -> None:
    one, two = fit(name, n_jobs=1), fit(name, n_jobs=2)
    assert one.parameters_.rho.tobytes() == two.parameters_.rho.tobytes()
    option = "exposure" if name == "zero-inflated" else "sigma2"
    arrays = [getattr(model.family_, option).tobytes() for model in (one, two)]
    assert arrays[0] == arrays[1]


def test_questions_and_inference_know_the_entity() -> None:
    model = fit("zero-inflated", dtype="float64")
    data = efemb.Dataset(COUNTS, entities=model.vocabulary_)
    family = model.family_
    p, mean = family.exposure, model.conditional(data)
    rate = mean / p
    at_least = model.probability_at_least(data, 2)
    assert_allclose(at_least, p * stats.poisson(rate).sf(1), rtol=1e-6)
    median = model.quantile(data, 0.9)
    cdf = 1 - p + p * stats.poisson(rate).cdf(median)
    below = np.where(median > 0, 1 - p + p * stats.poisson(rate).cdf(median - 1), 0.0)
    assert (cdf >= 0.9 - 1e-12).all()
    assert (below < 0.9).all()
    expected = np.log(p * stats.poisson(rate).pmf(COUNTS) + (1 - p) * (COUNTS == 0))
    assert model.score(data) == pytest.approx(expected.mean(), rel=1e-6)


@pytest.mark.parametrize("name", ["zero-inflated", "gaussian"])
def test_reports_and_new_entities_know_the_family(name: str) -> None:
    model, values = fit(name, dtype="float64"), CASES[name][2]
    data = efemb.Dataset(values, entities=model.vocabulary_)
    findings = {finding.topic for finding in model.report(data).findings}
    assert "dispersion" in findings or "spread" in findings
    variance = model.laplace(data).covariance("e1")
    assert (np.linalg.eigvalsh(variance) > 0).all()
    more = efemb.Dataset(np.c_[values, values[:, 0]], entities=[*model.vocabulary_, "new"])
    assert model.fold_in(more).spec.family.n_entities == N + 1


@pytest.mark.parametrize(
    ("family", "kind", "match"),
    [
        (efemb.ZeroInflated("gaussian"), ParameterError, "families of counts"),
        (efemb.ZeroInflated(exposure=1.5), ParameterError, "<= 1"),
        (efemb.ZeroInflated(exposure="each"), ParameterError, "per-entity"),
        (efemb.ZeroInflated(prior_sd=0), ParameterError, "prior_sd"),
        (efemb.ZeroInflated(prior_mean="2"), InputTypeError, "prior_mean"),
        (efemb.ZeroInflated(exposure=np.array([0.5, -1.0])), ParameterError, "entity 1"),
        (efemb.Gaussian(np.array([[1.0]])), InputTypeError, "one number per entity"),
        (efemb.Gaussian("each"), ParameterError, "per-entity"),
    ],
)
def test_bad_options_are_refused(family: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        family.check()


def test_bad_combinations_are_refused() -> None:
    short = efemb.Embedding(1, family=efemb.ZeroInflated(exposure=EXPOSURE[:3]), context="basket")
    with pytest.raises(ParameterError, match="3 entities, but there are 6"):
        short.fit(COUNTS)
    soft = efemb.Embedding(
        1, family=efemb.Gaussian("per-entity"), link="softplus", context=NEIGHBORS
    )
    with pytest.raises(ParameterError, match="identity link only"):
        soft.fit(SIGNALS)
    vectors = efemb.Embedding(1, family=efemb.Gaussian("per-entity"), context=NEIGHBORS)
    with pytest.raises(ParameterError, match="one number per observation"):
        vectors.fit(np.stack([SIGNALS, SIGNALS], axis=2))


def test_distributions_of_counts_are_refused_where_there_are_none() -> None:
    trips = efemb.PoissonEmbedding(1, random_state=0, max_iter=2, zero_weight=0.1)
    with pytest.warns(ConvergenceWarning):
        trips.fit(COUNTS)
    with pytest.raises(ParameterError, match="weights zeros differently"):
        trips.quantile(COUNTS, 0.5)
    model = fit("gaussian")
    with pytest.raises(ParameterError, match="family of counts"):
        model.probability_at_least(SIGNALS, 1)
    counts = fit("zero-inflated")
    for bad, kind in ((1.5, ParameterError), ("a", InputTypeError), (True, InputTypeError)):
        with pytest.raises(kind):
            counts.quantile(COUNTS, bad)
    with pytest.raises(InputTypeError):
        counts.probability_at_least(COUNTS, 1.5)


# -- exposures as a question ----------------------------------------------------------------------


def test_exposures_are_told_by_label_and_the_lowest_first() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([0.9, 0.2, 0.6])
    counts = rng.poisson(3.0, (400, 3)) * (rng.random((400, 3)) < truth)
    trips = efemb.Dataset(counts, entities=["milk", "turkey", "tea"])
    family = efemb.ZeroInflated("poisson")
    model = efemb.Embedding(1, family=family, context="basket", random_state=0).fit(trips)
    table = model.exposure()
    assert table["label"].tolist() == ["turkey", "tea", "milk"]
    assert_allclose(table["exposure"], np.sort(truth), atol=0.1)
    assert model.exposure(["tea", "milk"])["label"].tolist() == ["tea", "milk"]
    assert_allclose(model.fitted().exposure("tea")["exposure"], table["exposure"][1])


def test_known_exposures_are_told_as_they_are() -> None:
    counts = np.random.default_rng(0).poisson(1.0, (60, 3))
    family = efemb.ZeroInflated("poisson", exposure=0.7)
    model = efemb.Embedding(1, family=family, context="basket", random_state=0).fit(counts)
    assert model.exposure()["exposure"].tolist() == [0.7] * 3


def test_other_families_have_no_exposures() -> None:
    counts = np.random.default_rng(0).poisson(1.0, (60, 3))
    model = efemb.PoissonEmbedding(1, random_state=0).fit(counts)
    with pytest.raises(efemb.ParameterError, match="ZeroInflated"):
        model.exposure(0)
