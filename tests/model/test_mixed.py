"""Mixed and Nominal: each entity by its own family, and one of several states per observation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.factors import Factors
from efemb.model.predictor import Predictor
from efemb.model.spec import Spec

T, N, K, D = 12, 5, 2, 3
RNG = np.random.default_rng(0)
LABELS = ["age", "visits", "smoker", "pulse", "falls"]
KINDS = {"age": "gaussian", "visits": "poisson", "smoker": "bernoulli"}
KINDS |= {"pulse": "gaussian", "falls": "negative-binomial"}
TABLE = np.c_[
    RNG.normal(size=T), RNG.poisson(1.0, T), RNG.integers(0, 2, T), RNG.normal(0, 2, T),
    RNG.poisson(0.5, T),
]  # fmt: skip
TABLE[2, 0] = TABLE[3, 1] = np.nan
DATA = efemb.Dataset(TABLE, entities=LABELS)
OTHERS = efemb.Graph(1 - np.eye(N))
CONTEXTS = {"graph": OTHERS, "basket": efemb.Basket("items"), "neighbors": efemb.Neighbors(2)}
SOLVERS = {"graph": ["generic"], "basket": ["rows", "generic"], "neighbors": ["generic"]}


def random_factors(n: int = N) -> Factors:
    rng = np.random.default_rng(1)
    return Factors(*(rng.normal(0, 0.4, (n, K)) for _ in range(2)), rng.normal(0, 0.4, n))


def check_solver(spec: Spec, data: efemb.Dataset, solver: str, factors: Factors) -> float:
    """The value of a solver, whose gradient is that of finite differences."""
    bound = spec.context.bind(data)
    with workers(1) as pool:
        made = make_solver(solver, bound, spec, pool, dtype=np.float64)
        value, gradient = made.value_and_gradient(factors)
        for array, slope in (
            (factors.target, gradient.target),
            (factors.bag, gradient.bag),
            (factors.intercept[:, None], gradient.intercept[:, None]),
        ):
            for place in [(0, 0), (2, -1), (len(array) - 1, 0)]:
                ends = []
                for step in (1e-6, -1e-6):
                    array[place] += step
                    ends.append(made.value_and_gradient(factors)[0])
                    array[place] -= step
                numeric = (ends[0] - ends[1]) / 2e-6
                assert slope[place] == pytest.approx(numeric, rel=1e-5, abs=1e-6)
    return value


@pytest.mark.parametrize("name", CONTEXTS)
def test_every_entity_has_the_density_of_its_family(name: str) -> None:
    spec = Spec.resolve(context=CONTEXTS[name], family=efemb.Mixed(KINDS).freeze(DATA))
    factors, bound = random_factors(), spec.context.bind(DATA)
    u = Predictor(factors).cells(spec, bound, np.arange(T))
    plain = np.stack(
        [
            stats.norm(u[:, 0], 1).logpdf(TABLE[:, 0]),
            stats.poisson(np.exp(u[:, 1])).logpmf(TABLE[:, 1]),
            stats.bernoulli(1 / (1 + np.exp(-u[:, 2]))).logpmf(TABLE[:, 2]),
            stats.norm(u[:, 3], 1).logpdf(TABLE[:, 3]),
            stats.nbinom(1.0, 1 / (1 + np.exp(u[:, 4]))).logpmf(TABLE[:, 4]),
        ],
        axis=1,
    )
    for solver in SOLVERS[name]:
        value = check_solver(spec, DATA, solver, factors)
        assert value == pytest.approx(np.nansum(plain), rel=1e-9)


def fit(family: Any, data: Any, context: Any = OTHERS, **options: Any) -> efemb.Embedding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = efemb.Embedding(2, family=family, context=context, random_state=0, max_iter=20)
        return model.set_params(**options).fit(data)


def test_learned_variances_are_those_of_their_group() -> None:
    kinds = {**KINDS, "age": efemb.Gaussian("learned"), "pulse": efemb.Gaussian(4.0)}
    model = fit(efemb.Mixed(kinds), DATA, dtype="float64", early_stopping=False)
    mean = model.conditional(DATA)
    fitted = dict(zip(kinds, model.family_.fitted, strict=True))
    assert fitted["age"].variance == pytest.approx(np.nanmean((TABLE - mean)[:, 0] ** 2), rel=1e-6)
    assert fitted["pulse"].variance == 4.0


def test_groups_by_a_feature_are_the_same_model_as_labels(tmp_path: Any) -> None:
    grouped = efemb.Dataset(TABLE, entities=LABELS, features={"kind": list(KINDS.values())})
    by_kind = efemb.Mixed({kind: kind for kind in set(KINDS.values())}, by="kind")
    one, two = fit(by_kind, grouped), fit(efemb.Mixed(KINDS), DATA)
    assert_allclose(one.rho_, two.rho_, rtol=1e-5, atol=1e-6)
    two.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.score(DATA) == two.score(DATA)
    assert_allclose(loaded.conditional(TABLE), two.conditional(TABLE))


@pytest.mark.parametrize(
    ("family", "values", "kind", "match"),
    [
        (efemb.Mixed({"age": "gaussian"}), TABLE, DataError, "no family for 'visits'"),
        (
            efemb.Mixed({**KINDS, "size": "poisson"}),
            TABLE,
            DataError,
            "'size', but the data have no such",
        ),
        (efemb.Mixed({}), TABLE, InputTypeError, "mapping"),
        (efemb.Mixed(KINDS, by="kind"), TABLE, DataError, "feature"),
        (efemb.Mixed({**KINDS, "age": "categorical"}), TABLE, ParameterError, "single numbers"),
        (efemb.Mixed({**KINDS, "age": "bernoulli"}), TABLE, DataError, "column 'age'"),
        (efemb.Mixed({**KINDS, "age": "poison"}), TABLE, ParameterError, "unknown family"),
    ],
)
def test_bad_families_are_refused(
    family: Any, values: Any, kind: type[Exception], match: str
) -> None:
    with pytest.raises(kind, match=match):
        fit(family, efemb.Dataset(values, entities=LABELS))


def test_labels_are_needed() -> None:
    with pytest.raises(DataError, match="labels of entities"):
        fit(efemb.Mixed(KINDS), TABLE)


# -- states ------------------------------------------------------------------------------------

ANSWERS = RNG.choice(["a", "b", "c"], (T, N)).astype(object)
ANSWERS[1, 2] = None
STATES = efemb.data.indicators(ANSWERS, entities=LABELS)


def test_states_have_softmax_probabilities() -> None:
    spec = Spec.resolve(context=OTHERS, family=efemb.Nominal(D))
    factors = random_factors(N * D)
    bound = spec.context.bind(STATES)
    u = Predictor(factors).cells(spec, bound, np.arange(T)).reshape(T, N, D)
    expected = np.nansum(STATES.values * log_softmax(u, axis=2))
    assert check_solver(spec, STATES, "generic", factors) == pytest.approx(expected, rel=1e-9)
    p = spec.family.expected_value(u.reshape(T, -1)).reshape(u.shape)
    assert_allclose(p, np.exp(log_softmax(u, axis=2)), rtol=1e-12)


def test_a_fit_to_states_gives_probabilities_and_a_score_per_observation(tmp_path: Any) -> None:
    model = fit(efemb.Nominal(D), STATES, dtype="float64")
    p = model.conditional(STATES)
    assert_allclose(p.sum(axis=2), 1.0, rtol=1e-12)
    seen = ~np.isnan(STATES.values).any(axis=2)
    log_p = np.log((p * np.nan_to_num(STATES.values)).sum(axis=2)[seen])
    assert model.score(STATES) == pytest.approx(log_p.mean(), rel=1e-9)
    model.save(tmp_path / "model")
    assert efemb.load(tmp_path / "model").score(STATES) == model.score(STATES)


def test_an_answer_that_copies_another_is_found() -> None:
    rng = np.random.default_rng(2)
    first, other = rng.choice(list("abc"), (2, 300))
    data = efemb.data.indicators(np.c_[first, first, other])
    model = fit(efemb.Nominal(3), data, efemb.Graph(1 - np.eye(3)), max_iter=200)
    p = np.nansum(model.conditional(data) * data.values, axis=2).mean(axis=0)
    assert p[0] > 0.8
    assert p[1] > 0.8
    assert p[2] < 0.5


def test_draws_follow_the_probabilities() -> None:
    family, eta = efemb.Nominal(3), np.tile([0.5, -1.0, 0.2], 4000)
    drawn = family.sample(eta, np.random.default_rng(0)).reshape(-1, 3)
    assert (drawn.sum(axis=1) == 1).all()
    share = family.expected_value(eta).reshape(-1, 3)[0]
    assert stats.chisquare(drawn.sum(axis=0), 4000 * share).pvalue > 1e-4


def test_tables_of_states_become_indicators() -> None:
    data = efemb.data.indicators([[2, 1], [1, None]], states=[1, 2, 3], entities=["q", "r"])
    assert data.values[0].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert np.isnan(data.values[1, 1]).all()
    assert list(data.entities) == ["q", "r"]
    gaps = np.array([["a", None], ["b", "a"], [pd.NA, float("nan")], ["", "b"]], dtype=object)
    missing = np.isnan(efemb.data.indicators(gaps).values).all(axis=2)
    assert missing.tolist() == [[False, True], [False, False], [True, True], [True, False]]
    with pytest.raises(DataError, match="does not list"):
        efemb.data.indicators([[2, 1]], states=[1, 3])
    with pytest.raises(DataError, match="at least 2"):
        efemb.data.indicators([["a", "a"]])
    with pytest.raises(InputTypeError, match="rows and entities"):
        efemb.data.indicators(["a", "b"])


def test_what_is_not_an_indicator_is_refused() -> None:
    with pytest.raises(DataError, match="exactly one state"):
        fit(efemb.Nominal(2), RNG.integers(0, 2, (12, N, 2)))
    with pytest.raises(DataError, match="3 indicators, got 1"):
        fit(efemb.Nominal(3), RNG.integers(0, 2, (12, N)))
    with pytest.raises(ParameterError, match=">= 2"):
        fit(efemb.Nominal(1), STATES)
    with pytest.raises(InputTypeError, match="n_states"):
        fit(efemb.Nominal(2.5), STATES)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="no zeros to weigh"):
        fit(efemb.Nominal(3), STATES, zeros=efemb.model.zeros.All(0.1))
