"""The shipped checks pass for every ingredient of ours, and fail for broken ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb import checks
from efemb.model.contexts import Context, EntityLists
from efemb.model.contexts.bound.entities import Lists
from efemb.model.families import Family
from efemb.model.priors import Prior
from efemb.model.terms import RowVectors, Term
from model.terms.samples import TERMS, cells_of, rows_of

Array = Any
RNG = np.random.default_rng(0)
SIGNALS = RNG.normal(size=(12, 5))
COUNTS = efemb.Dataset(RNG.poisson(0.8, (14, 5)).astype(float), rows=rows_of(14), cells=cells_of(5))
CONTEXTS: dict[str, tuple[Context, Any]] = {
    "basket": (efemb.Basket("items"), None),
    "neighbors": (efemb.Neighbors(2), SIGNALS),
    "lagged": (efemb.Lagged([1], include_self=True), SIGNALS),
    "graph": (efemb.Graph(np.roll(np.eye(5), 1, axis=1)), SIGNALS),
    "explicit": (efemb.Explicit(np.r_[0:61], (np.arange(60) + 1) % 60), SIGNALS),
}


@pytest.mark.parametrize("name", Family.choices())
def test_families(name: str) -> None:
    mixed = efemb.Mixed({"counts": "poisson", "reals": "gaussian"}, codes=np.array([0, 1] * 3))
    checks.check_family(mixed if name == "mixed" else Family.resolve(name))


@pytest.mark.parametrize("name", Prior.choices())
def test_priors(name: str) -> None:
    checks.check_prior(Prior.resolve(name))


@pytest.mark.parametrize("name", [name for name in Context.choices() if name != "window"])
def test_contexts(name: str) -> None:
    checks.check_context(*CONTEXTS[name])


@pytest.mark.parametrize("name", Term.choices())
def test_terms(name: str) -> None:
    checks.check_term(TERMS[name](), COUNTS)


@pytest.mark.parametrize("make", [efemb.PoissonEmbedding, efemb.GaussianEmbedding])
def test_estimators(make: Any) -> None:
    checks.check_estimator(make(2, max_iter=3), np.asarray(COUNTS.values))


class WrongMean(efemb.Poisson):
    def log_normalizer_and_mean(self, eta: Array) -> tuple[Array, Array]:
        rate = np.exp(eta)
        return rate, 2 * rate


class NotNormalized(efemb.Poisson):
    def log_base_measure(self, x: Array) -> Array:
        return np.zeros_like(x)


class WrongCells(efemb.CellCovariate):
    def collect(self, arrays: Any, gradient: Array) -> dict[str, Array]:
        return {**super().collect(arrays, gradient), "entities": 2 * gradient}


class ArrayPrior(efemb.Normal):
    def log_density(self, theta: Array) -> Any:
        return -0.5 * theta**2


class NoNumber(efemb.Normal):
    def log_density(self, theta: Array) -> Any:
        return np.nan


class WrongGradient(efemb.Normal):
    def gradient(self, theta: Array) -> Array:
        return -2.0 * theta


class Itself(efemb.Basket):
    """Everybody's context is the entity itself."""

    def bind(self, data: Any) -> Any:
        n = np.arange(data.n_entities)
        return EntityLists(data, (Lists(np.append(n, len(n)), n, 0 * n, 0 * n),))


class WrongExpectation(efemb.Gaussian):
    def expected_value(self, eta: Array) -> Array:
        return eta + 3.0


class WrongConstant(efemb.Gaussian):
    def log_base_measure(self, x: Array) -> Array:
        return super().log_base_measure(x) + 1.0


class FlatMean(efemb.Poisson):
    def mean(self, eta: Array) -> Array:
        return np.exp(eta).ravel()


class OneArray(efemb.Poisson):
    def value_and_slope(self, x: Array, v: Array) -> Any:
        return x * v - np.exp(v)


class WrongTranspose(efemb.PerEntity):
    def collect(self, rho: Array, alpha: Array, n_entities: int) -> Any:
        return 2.0 * rho, alpha


class WrongPullBack(RowVectors):
    def pull_back_entities(self, gradient: Array) -> dict[str, Array]:
        return {"entities": 0.5 * gradient}


class StoredElsewhere(efemb.Normal):
    def __init__(self, precision: float = 1.0) -> None:
        self.precision = 2.0 * precision


@pytest.mark.parametrize(
    ("check", "arguments", "rule"),
    [
        (checks.check_family, (WrongMean(),), "not the derivative of its value"),
        (checks.check_family, (NotNormalized(),), "do not sum to 1"),
        (checks.check_family, (WrongExpectation(),), r"expected_value is not E\[x\]"),
        (checks.check_family, (WrongConstant(),), "does not integrate to 1"),
        (checks.check_family, (FlatMean(),), r"FlatMean.mean must return shape \(2, 3\)"),
        (checks.check_family, (OneArray(),), "value_and_slope must return two arrays"),
        (checks.check_family, (efemb.Poisson,), r"pass an object, such as Poisson\(\)"),
        (checks.check_prior, (ArrayPrior(),), "must return one number"),
        (checks.check_prior, (NoNumber(),), "log_density returned nan"),
        (checks.check_prior, (WrongGradient(),), "not the derivative of log_density"),
        (checks.check_prior, (StoredElsewhere(),), "differs from the original"),
        (checks.check_context, (Itself(),), "changes with its own value"),
        (checks.check_structure, (WrongTranspose(), 5), "not the transpose of spread"),
        (checks.check_term, (WrongPullBack("user", 2), COUNTS), "not the transpose"),
        (checks.check_term, (WrongCells("price", log=True), COUNTS), "pulling back cells"),
        (checks.check_family, (efemb.Normal(),), "is not a Family"),
    ],
)
def test_broken_rules_are_named(check: Any, arguments: Any, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check(*arguments)


class ShortSlopes(efemb.Poisson):
    def value_and_slope(self, x: Array, v: Array) -> Any:
        return x * v, v[:1]


class FailingFamily(efemb.Poisson):
    def log_base_measure(self, x: Array) -> Array:
        return x.no_such_method()


class OneMean(Family):
    """One mean for all values, which broadcasting would hide."""

    def statistic(self, x: Array) -> Array:
        return x

    def log_normalizer(self, eta: Array) -> Array:
        return np.exp(eta)

    def mean(self, eta: Array) -> Any:
        return np.exp(eta).mean()


class OneExpectation(efemb.Poisson):
    def expected_value(self, eta: Array) -> Any:
        return np.exp(eta).mean()


class LongLink(efemb.model.links.Identity):
    def derivative(self, u: Array) -> Array:
        return np.append(u, 1.0)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"prior": ArrayPrior()}, r"ArrayPrior\.log_density must return one number"),
        ({"family": ShortSlopes()}, r"ShortSlopes\.value_and_slope must return an array"),
        ({"family": FailingFamily()}, r"FailingFamily\.log_base_measure fails on small arrays"),
        ({"family": OneMean()}, r"OneMean\.mean must return an array"),
        ({"family": OneExpectation()}, r"OneExpectation\.expected_value must return an array"),
        ({"family": efemb.Poisson}, r"got the class Poisson: pass Poisson\(...\)"),
        ({"link": LongLink()}, r"LongLink\.derivative must return an array"),
    ],
)
def test_a_broken_contract_is_refused_before_the_fit(options: Any, rule: str) -> None:
    with pytest.raises(efemb.errors.InputTypeError, match=rule):
        efemb.Embedding(2, **options).fit(COUNTS)
