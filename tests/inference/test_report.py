"""report: finds the known problems of data that were made to have them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.exceptions import ConvergenceWarning

import efemb
from efemb.inference import report
from efemb.inference.findings import check_reliability
from efemb.table import Table
from inference.samples import basket_model, counts, fit, labeled, signals

RNG = np.random.default_rng


def truth(family: Any = "poisson", **options: Any) -> efemb.fitted.FittedEmbedding:
    """Intercepts only, so that every mean is known: 0.5, 1, 2, 4."""
    mean = np.array([0.5, 1.0, 2.0, 4.0])
    spec = efemb.Embedding(1, family=family, **options)._spec()
    none = np.zeros((4, 1))
    b = spec.family.predictor(mean if family != "bernoulli" else mean / 8)
    return efemb.fitted.FittedEmbedding(
        efemb.model.parameters.Parameters(none, none.copy(), b), spec
    )


def draws(kind: str, n_rows: int = 4000) -> Any:
    rng, mean = RNG(0), np.array([0.5, 1.0, 2.0, 4.0])
    if kind == "poisson":
        return rng.poisson(mean, (n_rows, 4))
    if kind == "negative binomial":
        return rng.negative_binomial(2.0, 2.0 / (2.0 + mean), (n_rows, 4))
    if kind == "zero-inflated":
        return rng.poisson(2.0 * mean, (n_rows, 4)) * (rng.random((n_rows, 4)) < 0.5)
    return rng.binomial(4, mean / 4, (n_rows, 4))  # less than random


def test_the_right_family_passes() -> None:
    for family, kind in (
        ("poisson", "poisson"),
        (efemb.NegativeBinomial(2.0), "negative binomial"),
    ):
        found = report(truth(family), draws(kind).astype(float))
        assert found["dispersion"].numbers["dispersion"] == pytest.approx(1.0, abs=0.1)
        assert found["zeros"].numbers["ratio"] == pytest.approx(1.0, abs=0.02)
        assert found["level"].numbers["ratio"] == pytest.approx(1.0, abs=0.05)
        # Intercepts alone are popularity.
        assert {finding.topic for finding in found.warnings} <= {"popularity"}


def test_numbers_against_scipy() -> None:
    X = draws("negative binomial").astype(float)
    X = X[X.any(axis=1)]  # as a fit would have them
    found = report(truth(), X)
    mean = np.broadcast_to([0.5, 1.0, 2.0, 4.0], X.shape)
    expected = float(((X - mean) ** 2).sum() / mean.sum())
    assert found["dispersion"].numbers["dispersion"] == pytest.approx(expected)
    zeros = float(stats.poisson.pmf(0, mean).mean())
    assert found["zeros"].numbers["expected_zeros"] == pytest.approx(zeros)
    assert found["zeros"].numbers["zeros"] == pytest.approx(float((X == 0).mean()))


def test_overdispersed_counts_ask_for_the_negative_binomial() -> None:
    found = report(truth(), draws("negative binomial").astype(float))
    one = found["dispersion"]
    assert one.level == "warning"
    assert one.numbers["r"] == pytest.approx(2.0, rel=0.2)
    assert "NegativeBinomial(" in one.advice


def test_too_many_zeros_are_told() -> None:
    found = report(truth(), draws("zero-inflated").astype(float))
    assert found["zeros"].level == "warning"
    assert found["level"].level == "ok"


def test_less_than_random() -> None:
    found = report(truth(), draws("binomial").astype(float))
    assert found["dispersion"].level in ("ok", "note")
    few = report(truth(), np.tile([0.0, 1.0, 2.0, 4.0], (50, 1)))
    assert few["dispersion"].level == "note"


def test_binary_data() -> None:
    rng = RNG(1)
    X = (rng.random((3000, 4)) < np.array([0.5, 1.0, 2.0, 4.0]) / 8).astype(float)
    found = report(truth("bernoulli", context=efemb.Neighbors(1)), X)
    assert found["dispersion"].numbers["dispersion"] == pytest.approx(1.0, abs=0.05)
    assert "zeros" not in found


@pytest.mark.parametrize(("sigma2", "level"), [(0.01, "warning"), ("learned", "ok")])
def test_the_variance_of_a_gaussian(sigma2: Any, level: str) -> None:
    model = fit(
        efemb.GaussianEmbedding(
            2, family=efemb.Gaussian(sigma2), context=efemb.Neighbors(3), random_state=0
        ),
        signals(),
    )
    found = report(model, signals())
    assert found["dispersion"].level == level
    residual = signals() - model.conditional(signals())
    assert found["dispersion"].numbers["variance"] == pytest.approx(float((residual**2).mean()))


def test_means_that_do_not_add_up() -> None:
    X = counts()
    down = report(basket_model(X=X, zeros=efemb.All(0.1)), sparse.csr_array(X[:, :6]))
    assert down["level"].level == "note"
    off = truth()
    off.parameters.intercept[:] += 1.0
    assert report(off, draws("poisson").astype(float))["level"].level == "warning"


def test_convergence() -> None:
    X = counts()[:, :6]
    short = efemb.PoissonEmbedding(2, max_iter=2, random_state=0)
    found = report(fit(short, X))
    assert found["convergence"].level == "warning"
    assert "max_iter" in found["convergence"].advice
    whole = fit(efemb.PoissonEmbedding(2, random_state=0), X)
    found = report(whole)["convergence"]
    assert found.level == "ok"
    assert found.numbers["best_iteration"] == whole.best_iter_
    assert found.numbers["iterations"] == whole.n_iter_
    assert report(whole.fitted())["convergence"].level == "ok"
    plain = fit(efemb.PoissonEmbedding(2, early_stopping=False, random_state=0), X)
    assert report(plain)["convergence"].level == "ok"
    assert report(plain.fitted())["convergence"].numbers["held_out"] is False
    assert report(truth())["convergence"].level == "note"
    rising = [{"iteration": i, "objective": float(i), "validation": None} for i in range(1, 9)]
    model = efemb.fitted.FittedEmbedding(truth().parameters, truth().spec, history=rising)
    assert report(model)["convergence"].level == "warning"


@pytest.mark.parametrize(
    ("zeros", "kind", "level"),
    [
        (efemb.All(), "exact", "ok"),
        (efemb.Sampled(3), "unbiased", "ok"),
        (efemb.NegativeSampling(2), "biased", "note"),
    ],
)
def test_the_kind_of_gradient(zeros: Any, kind: str, level: str) -> None:
    found = report(basket_model(zeros=zeros))["gradient"]
    assert (found.numbers["gradient"], found.level) == (kind, level)


def test_rare_entities_are_named() -> None:
    X = counts(n_entities=6)
    X[5:, 2] = 0.0
    X[:, 4] = 0.0
    found = report(basket_model(X=X), labeled(sparse.csr_array(X)))["rare entities"]
    assert found.level == "warning"
    assert found.numbers["rare"] == 2
    assert found.numbers["never"] == 1
    assert found.numbers["entities"] == ["e", "c"]
    assert "'e', 'c'" in found.text
    words = efemb.Vocabulary("abcd", counts=[100.0, 50.0, 20.0, 10.0])
    known = efemb.fitted.FittedEmbedding(truth().parameters, truth().spec, words)
    assert report(known)["rare entities"].level == "ok"
    assert "rare entities" not in report(truth())


def test_a_long_tail_of_contexts() -> None:
    rng = RNG(0)
    X = (rng.random((200, 90)) < 0.02).astype(float)
    X[0] = 1.0
    model = fit(efemb.Embedding(2, context=efemb.Basket("none"), random_state=0, max_iter=2), X)
    found = report(model, X)["contexts"]
    assert found.level == "warning"
    assert "scale='total'" in found.advice
    assert found.numbers["largest"] == 89
    scaled = fit(efemb.PoissonEmbedding(2, random_state=0, max_iter=2), X)
    assert report(scaled, X)["contexts"].level in ("ok", "note")
    near = fit(efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0), signals())
    assert report(near, signals())["contexts"].numbers["median"] == 3


def test_missing_numbers_are_no_members_of_contexts() -> None:
    X = RNG(0).normal(size=(40, 6))
    X[:, 3:] = np.where(RNG(1).random((40, 3)) < 0.8, np.nan, X[:, 3:])
    context = efemb.Basket(scale="items")
    model = efemb.GaussianEmbedding(2, context=context, random_state=0, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    seen = ~np.isnan(X)
    others = np.repeat(seen.sum(axis=1) - 1, seen.sum(axis=1))  # of each observed number
    found = report(model, X)["contexts"].numbers
    assert found["median"] == np.median(others)
    assert found["largest"] == others.max()


def test_mostly_empty_contexts() -> None:
    X = np.eye(6)[np.arange(120) % 6]
    X[:10, 0] = 1.0
    model = fit(efemb.PoissonEmbedding(2, random_state=0, max_iter=2), X)
    assert report(model, X)["contexts"].level == "note"


def test_many_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    X = draws("poisson", 3000).astype(float)
    whole = report(truth(), X)["dispersion"].numbers
    monkeypatch.setattr("efemb.inference.diagnosis.CELLS", 8000)
    monkeypatch.setattr("efemb.inference.diagnosis.CELLS_AT_ONCE", 1000)
    some = report(truth(), X, progress=True)["dispersion"].numbers
    assert some["rows"] == "2,000 rows, drawn at random"
    assert some["dispersion"] == pytest.approx(whole["dispersion"], rel=0.1)


def explicit(X: Any) -> efemb.Explicit:
    """In the context of each number, the same entity in the row before."""
    n_rows, n_entities = X.shape
    first, last = np.zeros(n_entities, int), np.arange(1, (n_rows - 1) * n_entities + 1)
    return efemb.Explicit(np.concatenate([[0], first, last]), last - 1, binary=True)


@pytest.mark.parametrize("kind", ["lags", "basket and lags", "explicit"])
def test_rows_that_need_one_another_stay_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = draws("poisson", 60).astype(float)
    lags = efemb.Lagged((-1,), binary=True)
    context = {"lags": lags, "basket and lags": efemb.Basket() + lags, "explicit": explicit(X)}[
        kind
    ]
    model = fit(efemb.Embedding(1, context=context, random_state=0, max_iter=5), X)
    whole = report(model, X)["dispersion"].numbers
    monkeypatch.setattr("efemb.inference.diagnosis.CELLS", 100)
    monkeypatch.setattr("efemb.inference.diagnosis.CELLS_AT_ONCE", 100)
    assert report(model, X)["dispersion"].numbers == whole


def test_a_basket_and_neighbors_are_drawn_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X = draws("poisson", 60).astype(float)
    context = efemb.Basket() + efemb.Neighbors(2)
    model = fit(efemb.Embedding(1, context=context, random_state=0, max_iter=5), X)
    monkeypatch.setattr("efemb.inference.diagnosis.CELLS", 100)
    monkeypatch.setattr("efemb.inference.diagnosis.CELLS_AT_ONCE", 100)
    assert report(model, X)["dispersion"].numbers["rows"] == "25 rows, drawn at random"


def test_it_prints_and_is_plain_data() -> None:
    found = report(truth(), draws("negative binomial").astype(float))
    text = repr(found)
    assert text.splitlines()[0] == "Embedding: 4 entities, K = 1, Poisson()"
    assert "LOOK  dispersion" in text
    assert max(map(len, text.splitlines())) <= 96
    again = json.loads(json.dumps(found.to_dict()))
    assert [one["topic"] for one in again["findings"]] == [one.topic for one in found.findings]
    with pytest.raises(KeyError):
        found["weather"]


def test_models_of_other_kinds() -> None:
    text = fit(efemb.CBOW(2, context=efemb.Window(2), max_iter=1), [list("abcd") * 5] * 5)
    assert [one.topic for one in report(text).findings] == [
        "convergence",
        "gradient",
        "rare entities",
    ]
    softmax = basket_model(family="categorical")
    topics = [one.topic for one in report(softmax, sparse.csr_array(counts()[:, :6])).findings]
    assert topics == ["convergence", "gradient", "rare entities", "contexts", "popularity"]
    lagged = fit(
        efemb.GaussianEmbedding(2, context=efemb.Lagged((-1, 1)), random_state=0), signals()
    )
    assert "dispersion" in report(lagged, signals())


@pytest.mark.parametrize("zeros", [efemb.All(0.1), efemb.NegativeSampling(2)])
def test_nothing_is_said_of_how_counts_vary_around_relative_means(zeros: Any) -> None:
    """Such means are right but for a factor: they are neither too few nor too many zeros."""
    X = counts()
    found = report(basket_model(X=X, zeros=zeros), sparse.csr_array(X[:, :6]))
    assert "level" in found
    assert "dispersion" not in found
    assert "zeros" not in found


def test_baskets_that_hold_nothing_are_not_counted() -> None:
    X = counts()[:, :6]
    X = X[X.any(axis=1)]
    model = basket_model(X=X, max_iter=100)
    more = np.vstack([X, np.zeros_like(X)])
    for name in ("level", "dispersion", "zeros"):
        with_empty, without = (report(model, sparse.csr_array(one))[name] for one in (more, X))
        assert with_empty.numbers == pytest.approx(without.numbers)


def recorded(center: float = 0.0, missing: float = 0.0, n_rows: int = 300) -> Any:
    """Eight correlated columns; the last one is constant."""
    rng = RNG(1)
    X = rng.normal(size=(n_rows, 1)) + 0.5 * rng.normal(size=(n_rows, 8)) + center
    X[rng.random(X.shape) < missing] = np.nan
    X[:, 7] = 2.0
    return X


def gaussian(X: Any, **options: Any) -> Any:
    places = np.arange(X.shape[1], dtype=float)[:, None]
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0, **options)
    return model.fit(X, positions=places)


def test_odd_columns_are_named() -> None:
    X = recorded(center=5.0)
    X[::2, 0] = X[::3, 0] = np.nan
    with pytest.warns(UserWarning, match="a missing value counts as 0"):
        uncentered = gaussian(X, center=False)
    plain = report(uncentered, X)["columns"]
    assert plain.level == "warning"
    assert plain.numbers["uncentered"] == 7
    assert plain.numbers["constant"] == 1
    assert plain.numbers["mostly_missing"] == 1
    assert "GaussianEmbedding(center=True)" in plain.advice
    centered = report(gaussian(X), X)["columns"]
    assert centered.numbers["uncentered"] == 0
    assert "constant: 1 (7)" in centered.text
    assert "mostly missing: 1 (0)" in centered.text
    assert centered.advice.startswith("Drop constant columns. Drop columns with hardly any value")
    assert report(gaussian(recorded()[:, :7]), recorded()[:, :7])["columns"].level == "ok"


def test_contexts_count_observed_members() -> None:
    X = recorded(missing=0.6)[:, :7]
    model = gaussian(X)
    owner, members = model.fitted().lists[0].owner, model.fitted().lists[0].members
    seen = ~np.isnan(X)
    sizes = [
        int(seen[t, members[owner == n]].sum())
        for t in range(len(X))
        for n in range(7)
        if seen[t, n]
    ]
    numbers = report(model, X)["contexts"].numbers
    assert numbers["median"] == np.median(sizes)
    assert numbers["empty"] == pytest.approx(np.mean(np.array(sizes) == 0))
    assert numbers["largest"] == max(sizes)


def test_a_model_no_better_than_popularity_is_called_so() -> None:
    X = draws("poisson")[:, ::-1].astype(float)  # the popular item is the rare one of the model
    finding = report(truth(), X)["popularity"]
    assert finding.level == "warning"
    assert "no better than popularity" in finding.advice
    totals = X.sum(axis=0)
    assert finding.numbers["without_context"] == pytest.approx(
        (X * np.log(totals / totals.sum()))[(X > 0).sum(axis=1) >= 2].sum()
        / X[(X > 0).sum(axis=1) >= 2].sum()
    )
    pairs = np.repeat(RNG(0).poisson(0.8, (200, 3)), 2, axis=1).astype(float)
    assert (
        report(efemb.PoissonEmbedding(2, random_state=0).fit(pairs), pairs)["popularity"].level
        == "ok"
    )
    real = report(gaussian(recorded()), recorded())["popularity"]
    assert real.level == "ok"
    assert real.numbers["score"] < real.numbers["without_context"]


def test_advice_names_a_class_that_takes_it() -> None:
    found = report(truth(), draws("negative binomial").astype(float))
    advice = found["dispersion"].advice
    code = advice.partition("try ")[2].partition(", and")[0]
    model = eval(code, {"efemb": efemb, "PoissonEmbedding": efemb.PoissonEmbedding})
    assert isinstance(model._spec().family, efemb.NegativeBinomial)


def test_reports_are_shown_in_notebooks() -> None:
    html = report(truth(), draws("poisson").astype(float))._repr_html_()
    assert html.count("<tr>") == len(report(truth(), draws("poisson").astype(float)).findings)
    assert "dispersion" in html


def test_calibration_is_judged_by_groups_that_are_far_off_for_certain() -> None:
    """By a factor of 1.5 and three standard errors of a Poisson number of hits."""
    n = np.array([10_000, 1000, 100])
    predicted = np.array([0.001, 0.02, 0.2])
    good = Table({"predicted": predicted, "observed": [0.0012, 0.021, 0.35], "n": n})
    assert check_reliability(good).level == "ok"  # 35 hits instead of 20 are 2.5 errors
    bad = Table({"predicted": predicted, "observed": [0.0012, 0.045, 0.2], "n": n})
    finding = check_reliability(bad)
    assert finding.level == "warning"
    assert finding.numbers["far"] == 1
    few = Table({"predicted": [0.001], "observed": [0.04], "n": [100]})
    assert check_reliability(few).numbers["groups"] == 0
