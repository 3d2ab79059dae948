"""Ingredients written outside the package: checked, fitted, saved, loaded and asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import efemb
from efemb.model.contexts import Context, EntityLists
from efemb.model.families import Density
from efemb.model.priors import Prior

pytestmark = pytest.mark.filterwarnings("ignore:.*was still improving")

ITEMS = ["apples", "pears", "plums", "beer", "wine", "cider"]
DEPARTMENT = ["fruit"] * 3 + ["drinks"] * 3


@efemb.storage.register
class StudentT(Density):
    """x = v + scale e, where e has a Student t distribution: real numbers with outliers."""

    def __init__(self, df: float = 4.0, scale: float = 1.0) -> None:
        self.df = df
        self.scale = scale  # type: ignore[misc]

    def value_and_slope(self, x: Any, v: Any) -> tuple[Any, Any]:
        gap = (x - v) / self.scale
        value = stats.t.logpdf(gap, self.df) - np.log(self.scale)
        slope = (self.df + 1) * gap / (self.df + gap**2) / self.scale
        return value.astype(v.dtype), slope.astype(v.dtype)

    def expected_value(self, eta: Any) -> Any:
        return eta


@efemb.storage.register
class SameGroup(Context):
    """The other entities of the same group in the row, by a feature of the entities."""

    def __init__(
        self, feature: str = "department", scale: str = "none", binary: bool = False
    ) -> None:
        self.feature = feature
        self.scale = scale
        self.binary = binary

    def bind(self, data: Any) -> EntityLists:
        group = np.asarray(data.features[self.feature])
        same = group[:, None] == group
        np.fill_diagonal(same, False)
        entity, member = np.nonzero(same)
        ptr = np.searchsorted(entity, np.arange(data.n_entities + 1))
        return EntityLists.from_neighbors(data, ptr, member, scale=self.scale, binary=self.binary)


def baskets() -> efemb.Dataset:
    counts = np.random.default_rng(0).poisson(0.6, (80, 6))
    counts[:, 1] += counts[:, 0]
    return efemb.Dataset(counts, entities=ITEMS, features={"department": DEPARTMENT})


def test_a_density() -> None:
    efemb.checks.check_family(StudentT(3.0, 0.5))
    X = np.random.default_rng(0).standard_t(3, (60, 5)).cumsum(axis=1)
    model = efemb.Embedding(
        2, family=StudentT(3.0, 0.5), context=efemb.Neighbors(2), max_iter=20, random_state=0
    )
    efemb.checks.check_estimator(model, X)
    gaps = (X - model.fit(X).conditional(X)) / 0.5
    expected = stats.t.logpdf(gaps, 3.0).mean() - np.log(0.5)
    assert model.score(X) == pytest.approx(expected, rel=1e-4)


def test_a_context_from_a_feature(tmp_path: Path) -> None:
    trips = baskets()
    for scale in ("none", "items", "total"):
        efemb.checks.check_context(SameGroup(scale=scale), trips)
    model = efemb.PoissonEmbedding(2, context=SameGroup(), max_iter=20, random_state=0).fit(trips)
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    bare = efemb.Dataset(trips.values, entities=ITEMS)  # the fit keeps the lists
    assert loaded.score(bare) == model.score(trips)
    assert len(loaded.similar("apples")) == 5
    answer = loaded.explain({"apples": 1, "beer": 2}, "pears")
    assert set(answer["term"].tolist()) == {"apples", "(intercept)"}
    weight = model.rho_[1] @ model.alpha_[0]
    at = answer["term"].tolist().index("apples")
    assert answer["contribution"][at] == pytest.approx(weight, rel=1e-5)


class NegativeLogarithm(Density):
    """A density whose derivative is not a number."""

    def value_and_slope(self, x: Any, v: Any) -> tuple[Any, Any]:
        return -((x - v) ** 2), np.log(-np.abs(x - v) - 1)

    def expected_value(self, eta: Any) -> Any:
        return eta


class NoGradient(Prior):
    """A prior whose gradient is not a number."""

    def log_density(self, theta: Any) -> float:
        return -float((theta**2).sum())

    def gradient(self, theta: Any) -> Any:
        return np.full_like(theta, np.nan)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("options", "check"),
    [
        ({"family": NegativeLogarithm()}, "check_family on NegativeLogarithm"),
        ({"prior": NoGradient()}, "check_prior on NoGradient"),
        ({"prior": NoGradient(), "solver": "generic"}, "check_prior on NoGradient"),
    ],
)
def test_what_users_wrote_is_named_where_training_diverges(
    options: dict[str, Any], check: str
) -> None:
    X = np.random.default_rng(0).normal(size=(30, 6))
    model = efemb.Embedding(2, **{"family": "gaussian", **options}, context=efemb.Neighbors(2))
    with pytest.raises(efemb.DivergenceError, match=f"run efemb.checks.{check} first; then"):
        model.fit(X)
    name = check.partition(" ")[0]
    ingredient = next(value for value in options.values() if not isinstance(value, str))
    with pytest.raises(AssertionError):
        getattr(efemb.checks, name)(ingredient)
