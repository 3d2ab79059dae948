"""Neighbors that a fit found by correlation are used for all later data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import efemb
from efemb.model.contexts import Context

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N = 6
SUMS: dict[str, Any] = {
    "plain": lambda: efemb.Neighbors(1),
    "basket": lambda: efemb.Basket(scale="none") + efemb.Neighbors(1),
    "basket last": lambda: efemb.Neighbors(1) + efemb.Basket(scale="none"),
    "lags of neighbors": lambda: efemb.Lagged((-1,), of=efemb.Neighbors(1), include_self=False),
    "basket and lags": lambda: (
        efemb.Basket(scale="none") + efemb.Lagged((-1,), of=efemb.Neighbors(1), include_self=False)
    ),
    "all": lambda: (
        efemb.Basket(scale="none") + (efemb.Neighbors(1) + efemb.Lagged((-1,), shared=True))
    ),
}


def paired(shift: int, seed: int = 0, n_rows: int = 40) -> Any:
    """Real numbers in which entity 2 i + shift goes with entity 2 i + shift + 1."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.normal(size=(n_rows, N // 2)), 2, axis=1)
    return np.roll(common, shift, axis=1) + 0.1 * rng.normal(size=(n_rows, N))


def partners(X: Any) -> Any:
    """The other entity that each one is most correlated with, by NumPy."""
    strength = np.abs(np.corrcoef(X.T))
    np.fill_diagonal(strength, -1.0)
    return strength.argmax(axis=1)


def expected(name: str, model: Any, X: Any, near: Any) -> Any:
    """Conditional means by the definition, with the neighbors `near`."""
    rho, alpha = model.embedding_.astype(float), model.context_.astype(float)
    found = np.zeros(X.shape)
    for t, n in np.ndindex(X.shape):
        s = np.zeros(rho.shape[1])
        if name in ("basket", "basket last", "basket and lags", "all"):
            s += sum(X[t, m] * alpha[m] for m in range(N) if m != n)
        if name in ("plain", "basket", "basket last", "all"):
            s += X[t, near[n]] * alpha[near[n]]
        if t > 0 and name == "lags of neighbors":
            s += X[t - 1, near[n]] * alpha[near[n]]
        if t > 0 and name == "basket and lags":  # the lag has context vectors of its own
            s += X[t - 1, near[n]] * alpha[N + near[n]]
        if t > 0 and name == "all":
            s += X[t - 1, n] * alpha[n]
        found[t, n] = rho[n] @ s + model.intercept_[n]
    return found


def unfitted(name: str, **options: Any) -> Any:
    settings = {"max_iter": 3, "random_state": 0, "early_stopping": False, "family": "gaussian"}
    return efemb.Embedding(2, context=SUMS[name](), **{**settings, **options})


def fitted(name: str, **options: Any) -> Any:
    """A model of the pairs (0, 1), (2, 3), (4, 5)."""
    return unfitted(name, **options).fit(paired(0))


@pytest.mark.parametrize("name", SUMS)
def test_other_data_are_predicted_from_the_neighbors_of_the_fit(name: str, tmp_path: Path) -> None:
    model, X = fitted(name), paired(1, seed=1)
    assert (partners(paired(0)) != partners(X)).all()
    means = expected(name, model, X, partners(paired(0)))
    np.testing.assert_allclose(model.conditional(X), means, rtol=1e-4, atol=1e-5)
    density = -0.5 * np.log(2 * np.pi * model.family_.variance)
    density = np.mean(density - 0.5 * (X - means) ** 2 / model.family_.variance)
    np.testing.assert_allclose(model.score(X), density, rtol=1e-5)
    model.save(tmp_path / "model")
    again = efemb.load(tmp_path / "model")
    np.testing.assert_allclose(again.conditional(X), means, rtol=1e-4, atol=1e-5)
    assert repr(again.spec.context) == repr(SUMS[name]())
    assert again.spec.context == model.fitted().spec.context
    resumed = efemb.Embedding.from_fitted(again)
    np.testing.assert_array_equal(resumed.conditional(X), model.conditional(X))


@pytest.mark.parametrize("name", SUMS)
def test_the_objective_of_a_fitted_model_is_that_of_its_neighbors(name: str) -> None:
    """Of an estimator that was not fitted, it is that of the neighbors in the data."""
    plain: dict[str, Any] = {"family": efemb.Gaussian(sigma2=0.5), "prior": None}
    model, X = fitted(name, dtype="float64", **plain), paired(1, seed=1)
    for estimator, known in ((model, paired(0)), (unfitted(name, **plain), X)):
        means = expected(name, model, X, partners(known))
        value = stats.norm.logpdf(X, means, np.sqrt(0.5)).sum()
        found, _ = estimator.objective(X, model.parameters_)
        np.testing.assert_allclose(found, value, rtol=1e-9)


@pytest.mark.parametrize("name", SUMS)
def test_passes_over_other_data_keep_the_neighbors(name: str) -> None:
    model, X = fitted(name), paired(1, seed=1)
    model.partial_fit(X)
    means = expected(name, model, X, partners(paired(0)))
    np.testing.assert_allclose(model.conditional(X), means, rtol=1e-4, atol=1e-5)


def test_a_fit_chooses_once_though_rows_are_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []
    bind = efemb.Neighbors.bind_weighted

    def counted(self: Context, data: Any, weight: Any) -> Any:
        chosen.append(data.n_rows)
        return bind(self, data, weight)

    monkeypatch.setattr(efemb.Neighbors, "bind_weighted", counted)
    model = fitted("basket", early_stopping=True)
    assert model.report_["held_out"]
    assert chosen == [40]


def test_a_kept_context_does_not_take_other_entities() -> None:
    context = fitted("basket").fitted().spec.context
    with pytest.raises(efemb.errors.DataError, match="6 entities"):
        context.bind(efemb.Dataset(np.ones((3, 7))))


@pytest.mark.parametrize("name", SUMS)
def test_the_objective_of_other_data_has_the_neighbors_of_the_fit(name: str) -> None:
    model, X = fitted(name, prior=efemb.Normal(0.5)), paired(1, seed=1)
    means = expected(name, model, X, partners(paired(0)))
    plain = np.sum(-0.5 * np.log(2 * np.pi) - 0.5 * (X - means) ** 2)
    plain -= 0.25 * sum(
        np.sum(side.astype(float) ** 2) for side in (model.embedding_, model.context_)
    )
    np.testing.assert_allclose(model.objective(X, model.parameters_)[0], plain, rtol=1e-5)
