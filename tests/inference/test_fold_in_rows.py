"""fold_in_rows: new households are solved where their gradient vanishes, and nothing else moves."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.inference import fold_in_rows
from efemb.model.terms import RowVectors

N, K, SMALL = 12, 2, 2
FAMILIES = {
    "poisson": efemb.PoissonEmbedding,
    "bernoulli": efemb.BernoulliEmbedding,
    "categorical": efemb.CategoricalEmbedding,
}


def homes(n_rows: int = 600, n_homes: int = 30, seed: int = 5) -> efemb.Dataset:
    """Households that buy one half of the items, or the other."""
    rng = np.random.default_rng(seed)
    home = rng.integers(0, n_homes, n_rows)
    rate = np.where((home[:, None] % 2) == (np.arange(N) % 2), 0.6, 0.05)
    values = csr_array(rng.poisson(rate).astype(float))
    names = [f"h{i}" for i in home]
    labels = [f"i{n}" for n in range(N)]
    return efemb.Dataset(
        values, entities=labels, rows={"household": names, "row": np.arange(n_rows)}
    )


def fit(name: str, data: efemb.Dataset, terms: Any = None, **options: Any) -> Any:
    terms = [RowVectors("household", SMALL)] if terms is None else terms
    values: dict[str, Any] = {"random_state": 0, "max_iter": 60, "dtype": "float64", **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return FAMILIES[name](K, terms=terms, **values).fit(data)


def parts(data: efemb.Dataset, new: Any = ("h0", "h1", "h7")) -> tuple[efemb.Dataset, Any]:
    is_new = np.isin(data.rows["household"], new)
    return data.take_rows(~is_new), data.take_rows(is_new)


@pytest.mark.parametrize("scale", ["none", "items", "total"])
def test_new_vectors_are_those_of_a_general_optimizer(scale: str) -> None:
    """The log-posterior of a household by its definition, maximized by SciPy."""
    known, new = parts(homes())
    model = fit("poisson", known, context=efemb.Basket(scale))
    grown = fold_in_rows(model, new, prior="model", tol=1e-10)
    groups = grown.rows("household")
    p = grown.parameters
    theta, gamma = p.terms["household.rows"], p.terms["household.entities"]
    alone = efemb.Dataset(
        new.values, entities=known.entities, rows={"household": [None] * len(new)}
    )
    base = np.log(model.conditional(alone))  # prior mean 0
    for code in range(len(groups) - 3, len(groups)):
        label = groups.labels[code]
        mine = np.flatnonzero(new.rows["household"] == label)
        x = new.values.toarray()[mine]

        def loss(v: Any, mine: Any = mine, x: Any = x) -> float:
            u = base[mine] + gamma @ v
            return float((np.exp(u) - x * u).sum() + 0.5 * v @ v)

        best = minimize(loss, np.zeros(SMALL), tol=1e-12).x
        assert_allclose(theta[code], best, atol=1e-4, err_msg=label)


@pytest.mark.parametrize("name", FAMILIES)
def test_new_households_are_predicted_better_and_known_ones_as_before(name: str) -> None:
    data = homes()
    if name == "bernoulli":
        data = data._replace((data.values > 0).astype(float))
    known, new = parts(data)
    train, test = new.split(test=0.5, seed=0)
    model = fit(name, known)
    grown = model.fold_in_rows(train)
    assert grown.score(test) > model.score(test) + 0.05
    assert_array_equal(grown.conditional(known), model.fitted().conditional(known))
    before, after = model.fitted().parameters.named(), grown.parameters.named()
    for array in before:
        assert_array_equal(after[array][: len(before[array])], before[array], err_msg=array)


def test_rows_of_new_households_become_history_and_shares_stay() -> None:
    known, new = parts(homes())
    train, test = new.split(test=0.5, seed=0)
    for terms in (
        [efemb.History("household", kappa=2.0)],
        [efemb.History("household", kappa=2.0), RowVectors("household", SMALL)],
    ):
        model = fit("poisson", known, terms)
        grown = model.fold_in_rows(train)
        assert grown.score(test) > model.score(test) + 0.05
        assert_array_equal(grown.conditional(known), model.fitted().conditional(known))


def test_grown_models_are_saved(tmp_path: Path) -> None:
    known, new = parts(homes())
    terms = [efemb.History("household", kappa=2.0), RowVectors("household", SMALL)]
    grown = fit("poisson", known, terms).fold_in_rows(new)
    grown.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert_array_equal(loaded.conditional(new), grown.conditional(new))
    again = loaded.fold_in_rows(homes(40, 50, seed=6))
    assert len(again.rows("household")) > len(grown.rows("household"))


def test_weights_of_rows_count() -> None:
    """A row of weight 2 is two rows, a row of weight 0 is none."""
    known, new = parts(homes(), ("h0", "h1"))
    model = fit("poisson", known)
    weight = np.where(new.rows["household"] == "h0", 2.0, 1.0)
    twice = np.repeat(np.arange(len(new)), weight.astype(int))
    left = model.fold_in_rows(new, sample_weight=weight, tol=1e-9)
    right = model.fold_in_rows(new.take_rows(twice), tol=1e-9)
    name = "household.rows"
    assert_allclose(left.parameters.terms[name], right.parameters.terms[name], atol=1e-4)
    none = model.fold_in_rows(new, sample_weight=weight * (new.rows["household"] == "h0"))
    assert len(none.rows("household")) == len(model.rows("household")) + 1


@pytest.mark.slow
def test_bad_rows_are_refused() -> None:
    known, new = parts(homes())
    model = fit("poisson", known)
    with pytest.raises(efemb.DataError, match="no new group"):
        model.fold_in_rows(known)
    missing = new._replace(new.values, rows={"household": [None] * len(new)})
    with pytest.raises(efemb.DataError, match="no new group"):
        model.fold_in_rows(missing)
    with pytest.raises(efemb.DataError, match="row column 'household', which the data lack"):
        model.fold_in_rows(new.values)
    with pytest.raises(efemb.ParameterError, match="knows no groups of rows"):
        fit("poisson", known, []).fold_in_rows(new)
    with pytest.raises(efemb.ParameterError, match="vectors of groups are signed"):
        model.fold_in_rows(new, prior=efemb.HalfNormal(1.0))
    odds = efemb.PoissonEmbedding(
        K, zeros=efemb.NegativeSampling(3), terms=[RowVectors("household", 2)], random_state=0
    ).fit(known)
    with pytest.raises(efemb.ParameterError, match="up to a factor per row"):
        odds.fold_in_rows(new)
