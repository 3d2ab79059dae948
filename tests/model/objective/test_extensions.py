"""A family, links, priors and contexts of a user's own, defined here and used as they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse, special, stats
from sklearn.exceptions import ConvergenceWarning

import efemb
from oracle.differences import along, flatten
from oracle.loops import Problem, predictors, problem
from oracle.model import Array, Model, Part, Point

N_ROWS, N, K = 12, 5, 2


class Binomial(efemb.model.families.Family):
    """x successes of `trials`; t(x) = x, eta the log-odds."""

    def __init__(self, trials: int = 4) -> None:
        self.trials = trials

    def statistic(self, x: Array) -> Array:
        return x

    def log_normalizer(self, eta: Array) -> Array:
        return self.trials * np.logaddexp(0.0, eta)

    def mean(self, eta: Array) -> Array:
        return self.trials * special.expit(eta)

    def log_base_measure(self, x: Array) -> Array:
        return np.log(special.binom(self.trials, x))


class Rayleigh(efemb.model.families.Family):
    """x^2 is the statistic, eta = -1 / (2 scale^2) < 0; needs a link with negative values."""

    support = efemb.model.families.Interval(low=0.0)

    def statistic(self, x: Array) -> Array:
        return x**2

    def log_normalizer(self, eta: Array) -> Array:
        return -np.log(-2 * eta)

    def mean(self, eta: Array) -> Array:
        return -1 / eta

    def log_base_measure(self, x: Array) -> Array:
        return np.log(x)


class NegativeExp(efemb.model.links.Link):
    """eta = -exp(u)."""

    def __call__(self, u: Array) -> Array:
        return -np.exp(u)

    def derivative(self, u: Array) -> Array:
        return -np.exp(u)


class Bounded(efemb.model.links.Link):
    """eta = limit * tanh(u / limit): a mean that cannot run away."""

    def __init__(self, limit: float = 2.0) -> None:
        self.limit = limit

    def __call__(self, u: Array) -> Array:
        return self.limit * np.tanh(u / self.limit)

    def derivative(self, u: Array) -> Array:
        return 1 - np.tanh(u / self.limit) ** 2


class StudentT(efemb.model.priors.Prior):
    """Heavy tails: a few long vectors are allowed."""

    def __init__(self, df: float = 3.0) -> None:
        self.df = df

    def log_density(self, theta: Array) -> float:
        return float(-(self.df + 1) / 2 * np.sum(np.log1p(theta**2 / self.df)))

    def gradient(self, theta: Array) -> Array:
        return -(self.df + 1) * theta / (self.df + theta**2)


class Gamma(efemb.model.priors.Prior):
    """Positive vectors with a gamma density."""

    positive = True

    def __init__(self, shape: float = 2.0, rate: float = 3.0) -> None:
        self.shape = shape
        self.rate = rate

    def log_density(self, theta: Array) -> float:
        return float(np.sum((self.shape - 1) * np.log(theta) - self.rate * theta))

    def gradient(self, theta: Array) -> Array:
        return (self.shape - 1) - self.rate * theta


class Ring(efemb.model.contexts.Context):
    """The entities before and after, in a circle; built from a graph."""

    def __init__(self, scale: str = "none", binary: bool = False) -> None:
        self.scale = scale
        self.binary = binary

    def bind(self, data: Any) -> Any:
        eye = np.eye(data.n_entities)
        beside = np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1)
        return efemb.Graph(sparse.csr_array(beside), self.scale, self.binary).bind(data)


class Before(efemb.model.contexts.Context):
    """The entities with a smaller number in the same row; built from lists of cells."""

    def __init__(self, scale: str = "none", binary: bool = False) -> None:
        self.scale = scale
        self.binary = binary

    def bind(self, data: Any) -> Any:
        cells = [(t, n) for t in range(data.n_rows) for n in range(data.n_entities)]
        indices = [t * data.n_entities + m for t, n in cells for m in range(n)]
        indptr = np.cumsum([0] + [n for _, n in cells])
        return efemb.Explicit(indptr, np.array(indices), self.scale, self.binary).bind(data)


RING = [[(n - 1) % N, (n + 1) % N] for n in range(N)]
BEFORE = {(t, n): [(t, m) for m in range(n)] for t in range(N_ROWS) for n in range(N)}
PARTS = {
    "ring": (Ring("items"), Part("graph", "items", neighbors=RING)),
    "before": (Before("items"), Part("explicit", "items", explicit=BEFORE)),
    "basket": (efemb.Basket("items"), Part("basket", "items")),
}


def _counts(high: int = 4) -> Array:
    rng = np.random.default_rng(2)
    return rng.binomial(high, 0.35, size=(N_ROWS, N)).astype(float)


def _point(positive: bool = False) -> Point:
    rng = np.random.default_rng(3)
    rho, alpha, b = (0.4 * rng.normal(size=shape) for shape in ((N, K), (N, K), (N,)))
    return Point(np.exp(rho), np.exp(alpha), np.exp(b)) if positive else Point(rho, alpha, b)


def _compare(
    est: Any,
    x: Array,
    task: Problem,
    log_density: Callable[[Array, Array], Array],
    log_prior: Callable[[Array], float] = lambda theta: 0.0,
) -> None:
    """Value, and the gradient along some directions by differences."""

    def value(task: Problem, point: Point) -> float:
        x, u, w = predictors(task, point)
        prior = log_prior(point.rho) + log_prior(point.alpha)
        return float(np.sum(w * log_density(x, u))) + prior

    point = _point(task.model.intercept_positive)
    got, slopes = est.objective(x, efemb.model.parameters.Parameters(*point))
    assert got == pytest.approx(value(task, point), rel=1e-8)
    flat = flatten(task.model, Point(slopes.rho, slopes.alpha, slopes.intercept))
    rng = np.random.default_rng(4)
    for _ in range(5):
        direction = rng.normal(size=flat.size)
        expected = along(task, point, direction, objective=value)
        assert flat @ direction == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_a_family_of_ones_own(kind: str) -> None:
    context, part = PARTS[kind]
    task = problem(Model((part,), zero_weight=0.5), _counts())
    zeros = efemb.All(weight=0.5)
    est = efemb.Embedding(K, context=context, family=Binomial(4), prior=None, zeros=zeros)
    _compare(est, _counts(), task, lambda x, u: stats.binom.logpmf(x, 4, special.expit(u)))


@pytest.mark.parametrize("kind", ["ring", "before"])
def test_a_family_with_a_link_of_its_own(kind: str) -> None:
    context, part = PARTS[kind]
    x = stats.rayleigh.rvs(size=(N_ROWS, N), random_state=5)
    task = problem(Model((part,)), x)

    def log_density(x: Array, u: Array) -> Array:
        return np.asarray(stats.rayleigh.logpdf(x, scale=np.sqrt(0.5 * np.exp(-u))))

    est = efemb.Embedding(K, context=context, family=Rayleigh(), link=NegativeExp(), prior=None)
    _compare(est, x, task, log_density)


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_a_link_of_ones_own_on_a_family_of_the_package(kind: str) -> None:
    context, part = PARTS[kind]
    task = problem(Model((part,), family="poisson"), _counts())

    def log_density(x: Array, u: Array) -> Array:
        return np.asarray(stats.poisson.logpmf(x, np.exp(2 * np.tanh(u / 2))))

    est = efemb.Embedding(K, context=context, family="poisson", link=Bounded(2.0), prior=None)
    _compare(est, _counts(), task, log_density)


def _log_poisson(x: Array, u: Array) -> Array:
    return np.asarray(stats.poisson.logpmf(x, np.exp(u)))


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_a_prior_of_ones_own(kind: str) -> None:
    context, part = PARTS[kind]
    task = problem(Model((part,), family="poisson"), _counts())

    def log_prior(theta: Array) -> float:
        return float(np.sum(stats.t.logpdf(theta, 3.0) - stats.t.logpdf(0.0, 3.0)))

    est = efemb.Embedding(K, context=context, family="poisson", prior=StudentT(3.0))
    _compare(est, _counts(), task, _log_poisson, log_prior)


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_a_positive_prior_of_ones_own(kind: str) -> None:
    context, part = PARTS[kind]
    positive = ("lognormal", 0.0, 0.0)  # tells the oracle that the vectors are positive
    model = Model((part,), family="poisson", prior_rho=positive, prior_alpha=positive)
    constant = 2.0 * np.log(3.0) - special.gammaln(2.0)

    def log_prior(theta: Array) -> float:
        return float(np.sum(stats.gamma.logpdf(theta, 2.0, scale=1 / 3.0) - constant))

    est = efemb.Embedding(K, context=context, family="poisson", prior=Gamma(2.0, 3.0))
    _compare(est, _counts(), problem(model, _counts()), _log_poisson, log_prior)


def _models() -> dict[str, tuple[Any, Array]]:
    rayleigh = stats.rayleigh.rvs(size=(N_ROWS, N), random_state=6)
    normal = np.random.default_rng(6).normal(size=(N_ROWS, N))
    return {
        "family": (efemb.Embedding(K, context="basket", family=Binomial(4)), _counts()),
        "family, link, context": (
            efemb.Embedding(K, context=Ring(), family=Rayleigh(), link=NegativeExp()),
            rayleigh,
        ),
        "context, prior": (efemb.GaussianEmbedding(K, context=Ring(), prior=StudentT()), normal),
        "link, prior": (efemb.PoissonEmbedding(K, link=Bounded(), prior=StudentT()), _counts()),
        "positive prior": (efemb.PoissonEmbedding(K, prior=(Gamma(), None)), _counts()),
        "sum of contexts": (
            efemb.Embedding(K, context=Before() + Ring(), family="gaussian"),
            normal,
        ),
    }


@pytest.mark.parametrize("name", sorted(_models()))
def test_all_of_them_can_be_fitted(name: str) -> None:
    est, x = _models()[name]
    est.set_params(random_state=0, early_stopping=False, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        est.fit(x)
    fitted = efemb.model.parameters.Parameters(est.embedding_, est.context_, est.intercept_)
    assert all(np.isfinite(array).all() for array in (fitted.rho, fitted.alpha, fitted.intercept))
    # No better than its intercepts would mean that nothing was learned.
    small = efemb.model.parameters.Parameters(
        np.full_like(fitted.rho, 0.01), np.full_like(fitted.alpha, 0.01), fitted.intercept
    )
    assert est.objective(x, fitted)[0] > est.objective(x, small)[0]
    assert np.isfinite(est.score(x))
    assert est.transform(x).shape == (N_ROWS, K)
    est.get_params(deep=True)
