"""HPF against the published updates as loops, its bound, and hpfrec where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import digamma, gammaln
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.baselines import HPF, hpf
from efemb.baselines.arrays import Holdout
from efemb.baselines.hpf import _Ascent
from efemb.kernels.poisson_factors import exp_digamma

PRIOR = {"a": 0.3, "a_prime": 0.4, "b_prime": 1.5, "c": 0.2, "c_prime": 0.6, "d_prime": 0.7}


def counts(n_rows: int = 12, n_entities: int = 7, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    theta, beta = rng.gamma(0.8, 1.0, (n_rows, 2)), rng.gamma(0.8, 1.0, (n_entities, 2))
    X = rng.poisson(theta @ beta.T).astype(float)
    X[0] = 0.0
    X[:, 1] += 1
    return X


def entries(X: Any, cells: list[tuple[int, int]]) -> tuple[Any, Any]:
    """The data without some cells, and these cells alone."""
    rest, held = X.copy(), np.zeros_like(X)
    for t, n in cells:
        held[t, n] = max(X[t, n], 1.0)
        rest[t, n] = 0.0
    return rest, held


class Loops:
    """Gamma shapes and rates of all factors, updated cell by cell as the paper has it."""

    def __init__(self, X: Any, ascent: _Ascent, masked: Any) -> None:
        self.X, self.masked, self.size = X, masked, ascent.rows.mean.shape[1]
        self.log_theta, self.log_beta = (
            np.log(side.geometric) for side in (ascent.rows, ascent.columns)
        )
        self.beta = ascent.columns.mean.copy()
        self.xi, self.eta = ascent.rows.top.copy(), ascent.columns.top.copy()

    def step(self) -> None:
        (n_rows, n_entities), K, p = self.X.shape, self.size, PRIOR
        phi = np.zeros((n_rows, n_entities, K))
        for t in range(n_rows):
            for n in range(n_entities):
                each = np.exp(self.log_theta[t] + self.log_beta[n])
                phi[t, n] = each / each.sum()
        self.row_shape = np.full((n_rows, K), p["a"])
        self.row_rate = np.zeros((n_rows, K))
        for t in range(n_rows):
            self.row_rate[t] = self.xi[t]
            for n in range(n_entities):
                self.row_shape[t] += self.X[t, n] * phi[t, n]
                if not self.masked[t, n]:
                    self.row_rate[t] += self.beta[n]
        self.theta = self.row_shape / self.row_rate
        self.xi_rate = p["a_prime"] / p["b_prime"] + self.theta.sum(axis=1)
        self.xi = (p["a_prime"] + K * p["a"]) / self.xi_rate
        self.column_shape = np.full((n_entities, K), p["c"])
        self.column_rate = np.zeros((n_entities, K))
        for n in range(n_entities):
            self.column_rate[n] = self.eta[n]
            for t in range(n_rows):
                self.column_shape[n] += self.X[t, n] * phi[t, n]
                if not self.masked[t, n]:
                    self.column_rate[n] += self.theta[t]
        self.beta = self.column_shape / self.column_rate
        self.eta_rate = p["c_prime"] / p["d_prime"] + self.beta.sum(axis=1)
        self.eta = (p["c_prime"] + K * p["c"]) / self.eta_rate
        self.log_theta = digamma(self.row_shape) - np.log(self.row_rate)
        self.log_beta = digamma(self.column_shape) - np.log(self.column_rate)


@given(st.floats(1e-3, 1e6))
def test_exp_digamma_is_scipys(x: float) -> None:
    assert_allclose(exp_digamma(x), np.maximum(np.exp(digamma(x)), 1e-150), rtol=1e-11)


@pytest.mark.parametrize("cells", [[], [(2, 1), (2, 4), (5, 1)]], ids=["all", "some held out"])
def test_passes_are_the_published_updates(cells: list[tuple[int, int]]) -> None:
    X, held = entries(counts(), cells)
    model = HPF(3, random_state=1, **PRIOR)
    given = efemb.Dataset(held) if cells else None
    holdout = Holdout.of(efemb.Dataset(X), given, missing=False)
    ascent = _Ascent(model, csr_array(X), holdout)
    loops = Loops(X, ascent, held > 0)
    for _ in range(6):
        ascent.step()
        loops.step()
    assert_allclose(ascent.rows.mean, loops.theta, rtol=1e-9)
    assert_allclose(ascent.columns.mean, loops.beta, rtol=1e-9)
    assert_allclose(ascent.columns.geometric, np.exp(loops.log_beta), rtol=1e-9)
    assert_allclose(ascent.rows.top, loops.xi, rtol=1e-9)
    rate = ascent.rows.mean @ ascent.columns.mean.T
    if not cells:
        expected = (X * np.log(rate) - rate).sum() / X.sum()
        assert_allclose(ascent.log_likelihood(), expected, rtol=1e-9)


def gamma_divergence(shape: Any, rate: Any, prior_shape: Any, mean_rate: Any, log_rate: Any) -> Any:
    """E[log q - log p] of Gamma(shape, rate) where log p has the mean and mean log of its rate."""
    entropy = shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)
    mean, log_mean = shape / rate, digamma(shape) - np.log(rate)
    prior = prior_shape * log_rate - gammaln(prior_shape) + (prior_shape - 1) * log_mean
    return float(np.sum(-entropy - (prior - mean_rate * mean)))


def bound(X: Any, loops: Loops) -> float:
    """Evidence lower bound without log x!, from its definition."""
    total = -float(loops.theta.sum(axis=0) @ loops.beta.sum(axis=0))
    for t, n in zip(*np.nonzero(X), strict=True):
        total += X[t, n] * np.log(np.exp(loops.log_theta[t] + loops.log_beta[n]).sum())
    sides = (
        ("a", "a_prime", "b_prime", loops.row_shape, loops.row_rate, loops.xi_rate),
        ("c", "c_prime", "d_prime", loops.column_shape, loops.column_rate, loops.eta_rate),
    )
    for shape_name, top_name, scale_name, shape, rate, top_rate in sides:
        top_shape = PRIOR[top_name] + loops.size * PRIOR[shape_name]
        top_mean, top_log = top_shape / top_rate, digamma(top_shape) - np.log(top_rate)
        prior_rate = PRIOR[top_name] / PRIOR[scale_name]
        total -= gamma_divergence(
            shape, rate, PRIOR[shape_name], top_mean[:, None], top_log[:, None]
        )
        each = np.full(len(top_rate), top_shape)
        total -= gamma_divergence(each, top_rate, PRIOR[top_name], prior_rate, np.log(prior_rate))
    return total


def test_every_pass_raises_the_bound() -> None:
    X = counts()
    nothing = Holdout.of(efemb.Dataset(X), None, missing=False)
    loops = Loops(X, _Ascent(HPF(3, random_state=1, **PRIOR), csr_array(X), nothing), X < 0)
    found = []
    for _ in range(25):
        loops.step()
        found.append(bound(X, loops))
    assert (np.diff(found) > -1e-9).all()


def folded_in(model: HPF, row: Any, left: int) -> Any:
    """Coordinate ascent for theta and xi alone, cell by cell."""
    K, seen = model.beta_.shape[1], [n for n in range(len(row)) if n != left]
    geometric, rate_top = np.ones(K), model.a_prime / model.b_prime
    xi = (model.a_prime + K * model.a) / rate_top
    for _ in range(5000):
        shape, rate = np.full(K, model.a), np.full(K, xi)
        for n in seen:
            phi = geometric * model.geometric_beta_[n]
            shape += row[n] * phi / phi.sum()
            rate += model.beta_[n]
        theta, geometric = shape / rate, np.exp(digamma(shape)) / rate
        xi = (model.a_prime + K * model.a) / (rate_top + theta.sum())
    return theta


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_cell_of_a_row_is_left_out_of_its_own_fold_in() -> None:
    X = counts()
    model = HPF(2, random_state=0, max_iter=40, **PRIOR).fit(X)
    for t in (0, 3):  # an empty row, and one with zeros and counts
        rows, entities = np.full(X.shape[1], t), np.arange(X.shape[1])
        found = np.concatenate([means for _, means in model.log_means(X, rows, entities)])
        expected = [model.beta_ @ folded_in(model, X[t], n) for n in range(X.shape[1])]
        assert_allclose(np.exp(found), expected, rtol=1e-5)
    # Cells in any order and twice: neighbors of one row are only a matter of speed.
    cells = np.array([3, 5, 3, 3, 5]), np.array([1, 1, 4, 1, 0])
    found = np.concatenate([means for _, means in model.log_means(X, *cells)])
    for means, t, n in zip(found, *cells, strict=True):
        assert_allclose(np.exp(means), model.beta_ @ folded_in(model, X[t], n), rtol=1e-5)


def test_a_fold_in_that_does_not_settle_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    X = counts(40, 8)
    model = HPF(2, random_state=0, tol=1e-2).fit(X)
    monkeypatch.setattr(hpf, "ROUNDS", 2)
    with pytest.warns(ConvergenceWarning, match="still moving after 2 rounds"):
        model.score(X)


@pytest.mark.parametrize("kind", ["entries", "rows"])
def test_stops_on_validation(kind: str) -> None:
    X = counts(60, 9)
    train, held = entries(X, [(t, t % 9) for t in range(1, 60, 3)])
    if kind == "rows":
        train, held = X[:45], X[45:]
    model = HPF(2, random_state=0, n_iter_no_change=2).fit(train, validation=held)
    assert model.converged_
    scores = [look["score"] for look in model.history_]
    assert model.best_iter_ == model.history_[int(np.argmax(scores))]["iteration"]
    if kind == "rows":
        assert_allclose(model.score(held), max(scores), rtol=1e-6)
    else:
        mean = model.theta_ @ model.beta_.T
        share = np.log(mean / mean.sum(axis=1, keepdims=True))
        assert_allclose((held * share).sum() / held.sum(), max(scores), rtol=1e-9)


def test_agrees_with_hpfrec() -> None:
    """Where it is installed: as likely a fit of the training data, up to the maximum found."""
    hpfrec = pytest.importorskip("hpfrec")
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.5, 1.0, (200, 3)) @ rng.gamma(0.5, 1.0, (3, 40))).astype(float)
    rows, columns = np.nonzero(X)
    table = pd.DataFrame({"UserId": rows, "ItemId": columns, "Count": X[rows, columns]})
    options = {"maxiter": 300, "stop_crit": "maxiter", "check_every": None, "verbose": False}
    theirs = hpfrec.HPF(k=3, ncores=1, random_seed=1, use_float=False, reindex=True, **options)
    theirs.fit(table)
    order = np.argsort(theirs.item_mapping_), np.argsort(theirs.user_mapping_)
    theta, beta = theirs.Theta[order[1]], theirs.Beta[order[0]]
    ours = HPF(3, random_state=0, tol=1e-6).fit(X)

    def likelihood(theta: Any, beta: Any) -> float:
        seen = np.unique(rows), np.unique(columns)
        rate = theta @ beta.T
        return float((X[np.ix_(*seen)] * np.log(rate) - rate).sum() / X.sum())

    own = likelihood(ours.theta_[np.unique(rows)], ours.beta_[np.unique(columns)])
    assert own > likelihood(theta, beta) - 0.01
