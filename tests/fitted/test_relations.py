"""Complements and substitutes: known answers, plain loops, and what data add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats

import efemb
from efemb.fitted.cooccurrence import lift_interval
from fitted.toys import EFFECTS, GOODS, baskets, checkerboard, goods, model, random_model

LABELS = [f"item {i}" for i in range(9)]


def product(fitted: Any, n: int, m: int, direction: str = "given", center: bool = False) -> float:
    """rho_n . alpha_m number by number."""
    rho, alpha = fitted.parameters.rho, fitted.parameters.alpha
    if center:
        alpha = alpha - sum(alpha) / len(alpha)
    one = sum(float(a) * float(b) for a, b in zip(rho[n], alpha[m], strict=True))
    if direction == "given":
        return one
    return (one + sum(float(a) * float(b) for a, b in zip(rho[m], alpha[n], strict=True))) / 2


def test_what_goes_with_what() -> None:
    fitted = goods()
    # Both products are 2; the last bit decides the order.
    assert set(fitted.complements("milk", 2)["label"]) == {"tea", "coffee"}
    assert_allclose(fitted.complements("milk", 5)["score"], [2, 2, 1, -1.4, -1.6], atol=1e-12)
    assert fitted.complements("soap", 1)["label"].tolist() == ["towel"]
    found = fitted.substitutes("tea", apart=True)
    assert found["label"].tolist() == ["coffee", "towel", "soap"]
    assert found["kind"].tolist() == ["suggested", "apart", "apart"]
    assert_allclose(found["score"], [-3.5, -1.2, -1.0], atol=1e-12)
    assert fitted.substitutes("tea")["label"].tolist() == ["coffee"]
    assert fitted.substitutes("soap")["label"].tolist() == []
    assert set(fitted.substitutes("soap", apart=True)["kind"]) == {"apart"}


def test_direction_is_given_or_the_mean_of_both() -> None:
    fitted = goods()
    given = {row["label"]: row["score"] for row in fitted.complements("coffee", 9)}
    both = fitted.complements("coffee", 9, direction="symmetric")
    for row in both:
        n, m = GOODS.index(row["label"]), 1
        assert given[row["label"]] == pytest.approx(EFFECTS[n, m])
        assert row["score"] == pytest.approx((EFFECTS[n, m] + EFFECTS[m, n]) / 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_checkerboard(dtype: Any) -> None:
    fitted = checkerboard(10, dtype)
    assert fitted.complements(3, 4)["label"].tolist() == [9, 7, 5, 1]
    assert fitted.substitutes(3, 5, apart=True)["label"].tolist() == [8, 6, 4, 2, 0]
    assert fitted.similar(3, 4)["label"].tolist() == [1, 5, 7, 9]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("direction", ["given", "symmetric"])
@pytest.mark.parametrize("seed", range(3))
def test_complements_are_the_sorted_products(seed: int, direction: str, center: bool) -> None:
    fitted = random_model(seed)
    options: Any = {"direction": direction, "center": center}
    for m in range(9):
        scores = {n: product(fitted, n, m, **options) for n in range(9) if n != m}
        expected = sorted(scores, key=lambda n: -scores[n])
        found = fitted.complements(LABELS[m], 5, **options)
        assert found["label"].tolist() == [LABELS[n] for n in expected[:5]]
        assert_allclose(found["score"], [scores[n] for n in expected[:5]])
        assert found["count"].tolist() == [fitted.entities.counts[n] for n in expected[:5]]


@pytest.mark.parametrize("direction", ["given", "symmetric"])
@pytest.mark.parametrize("limit", [0.2, 0.5, 0.9])
def test_substitutes_are_told_by_the_correlation_of_responses(limit: float, direction: str) -> None:
    """And suggested where both products are low for their entity; the definitions, in loops."""
    fitted = random_model(1)
    products = [[product(fitted, n, m, direction) for m in range(9)] for n in range(9)]
    scores = stats.zscore(products, axis=1)
    for m in range(9):
        rows = []
        for n in range(9):
            answers = [[product(fitted, i, j) for j in range(9)] for i in (n, m)]
            alike = stats.pearsonr(*answers).statistic
            z = (scores[n, m] + scores[m, n]) / 2
            kind = 2 if alike < limit else 0 if z <= -1.25 else 1
            if n != m and products[n][m] < np.mean(products[n]):
                first = products[n][m] if kind else z
                rows.append((kind, first, LABELS[n], products[n][m], z, alike))
        options = {"min_similarity": limit, "direction": direction}
        found = fitted.substitutes(LABELS[m], 9, apart=True, **options)
        expected = list(zip(*sorted(rows), strict=True)) or [()] * 6
        named = [("suggested", "unclear", "apart")[kind] for kind in expected[0]]
        assert found["kind"].tolist() == named
        assert found["label"].tolist() == list(expected[2])
        assert_allclose(found["score"], expected[3])
        assert_allclose(found["mutual_z"], expected[4])
        assert_allclose(found["context_similarity"], expected[5])


def test_the_kind_does_not_depend_on_how_lengths_are_shared() -> None:
    """rho A and alpha inv(A)' give the same model, whatever A is."""
    fitted = random_model(2)
    A = np.random.default_rng(0).normal(size=(3, 3))
    rho, alpha = fitted.parameters.rho @ A, fitted.parameters.alpha @ np.linalg.inv(A).T
    other = model(rho, alpha, fitted.parameters.intercept, labels=LABELS)
    for label in LABELS:
        one, two = (m.substitutes(label, apart=True) for m in (fitted, other))
        assert one["label"].tolist() == two["label"].tolist()
        assert_allclose(one["context_similarity"], two["context_similarity"], atol=1e-9)


@pytest.mark.parametrize("method", ["complements", "substitutes"])
def test_batch_is_one_query_after_the_other(method: str) -> None:
    fitted = random_model(3)
    options = {"apart": True} if method == "substitutes" else {}
    found = getattr(fitted, method)(LABELS[:4], 3, **options)
    single = [row for label in LABELS[:4] for row in getattr(fitted, method)(label, 3, **options)]
    for row in single:
        assert row in [{k: v for k, v in one.items() if k != "query"} for one in found]
    assert found["label"].tolist() == [row["label"] for row in single]
    assert list(dict.fromkeys(found["query"])) == LABELS[:4]


def test_reverse_models_predict_with_alpha() -> None:
    plain = random_model(4)
    p = plain.parameters
    reverse = model(p.alpha, p.rho, p.intercept, labels=LABELS, combine="reverse")
    for method in ("complements", "substitutes"):
        one, two = (getattr(fitted, method)("item 2", 5) for fitted in (plain, reverse))
        assert one["label"].tolist() == two["label"].tolist()
        assert_allclose(one["score"], two["score"])


def test_tied_and_shared_vectors() -> None:
    rng = np.random.default_rng(0)
    rho = rng.normal(size=(4, 2))
    tied = model(rho, rho, structure="tied")
    for row in tied.complements(0, 3):
        assert row["score"] == pytest.approx(float(rho[row["label"]] @ rho[0]))
    of = np.array([0, 1, 0, 2, 1])
    shared = model(rho[:3], rng.normal(size=(5, 2)), np.zeros(5), structure=efemb.Shared(rho_of=of))
    for row in shared.complements(3, 5):
        expected = rho[of[row["label"]]] @ shared.parameters.alpha[3]
        assert row["score"] == pytest.approx(float(expected))
    assert shared.similar(0, 1)[0] == {"label": 2, "similarity": pytest.approx(1.0)}


def test_places_of_a_window_are_averaged() -> None:
    rng = np.random.default_rng(0)
    rho, alpha = rng.normal(size=(2, 4, 2))
    place = rng.normal(size=(6, 2))
    window = efemb.Window(3, positional=True)
    fitted = model(rho, alpha, context=window, family="bernoulli", position=place)
    for row in fitted.complements(1, 3):
        expected = sum(rho[row["label"]] @ (c * alpha[1]) for c in place) / 6
        assert row["score"] == pytest.approx(float(expected))


# -- with data ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [np.array, sparse.csr_array, efemb.Dataset, lambda X: efemb.Dataset(sparse.csr_array(X))],
    ids=["dense", "sparse", "Dataset", "sparse Dataset"],
)
def test_counts_and_lift_are_those_of_the_loop(make: Any) -> None:
    X = baskets()
    fitted = goods()
    found = fitted.complements("tea", 5, data=make(X))
    for row in found:
        n = GOODS.index(row["label"])
        together = sum(1 for x in X if x[n] > 0 and x[0] > 0)
        counts = [sum(1 for x in X if x[i] > 0) for i in (n, 0)]
        assert row["count"] == counts[0]
        assert row["together"] == together
        assert row["expected"] == pytest.approx(counts[0] * counts[1] / 200)
        assert row["share"] == pytest.approx(together / counts[1])
        assert row["kind"] == ("complement" if row["lift_low"] > 1 else "unclear")
        assert row["lift"] == pytest.approx(together * 200 / (counts[0] * counts[1]))
        assert row["lift_low"] < row["lift"] < row["lift_high"]
    assert found.columns == [
        "label",
        "score",
        "kind",
        "count",
        "together",
        "expected",
        "share",
        "lift",
        "lift_low",
        "lift_high",
    ]


def test_missing_values_are_not_there() -> None:
    X = baskets()
    X[X[:, 0] > 0, 2] = np.nan
    found = goods().pairs(20, end="largest", data=X)
    of_tea = [row for row in found if row["label"] == "milk" and row["given"] == "tea"]
    assert [row["together"] for row in of_tea] == [0]


def test_complements_that_the_rows_confirm_come_first() -> None:
    X, fitted = baskets(n_rows=400), goods()
    X[::3, [0, 3]], X[1::3, 0], X[1::5, 5] = 1, 0, 1  # tea comes with sugar, rarely with towels
    plain = {row["label"]: row["score"] for row in fitted.complements("tea", 9)}
    found = fitted.complements("tea", 9, data=X)
    assert set(found["kind"]) == {"complement", "unclear"}
    assert found["kind"].tolist() == sorted(found["kind"])
    for kind in ("complement", "unclear"):
        scores = [row["score"] for row in found if row["kind"] == kind]
        assert scores == sorted(scores, reverse=True)
        assert_allclose(scores, [plain[row["label"]] for row in found if row["kind"] == kind])
    listed = set(found["label"])
    counts = (X > 0).sum(axis=0)
    for n, label in enumerate(GOODS[1:], 1):  # what is surely less often together is left out
        together = float(((X[:, 0] > 0) & (X[:, n] > 0)).sum())
        expected = counts[0] * counts[n] / len(X)
        _, low, high = lift_interval(np.array([together]), np.array([expected]), 0.95)
        assert (label in listed) == (high[0] >= 1)
        if label in listed:
            assert (low[0] > 1) == (
                found["kind"][list(found["label"]).index(label)] == "complement"
            )
    assert fitted.complements("tea", 2, data=X)["label"].tolist() == found["label"][:2].tolist()


def test_counts_are_integers_in_pandas() -> None:
    frame = goods().complements("tea", 5, data=baskets()).to_pandas()
    assert frame["count"].dtype.kind == frame["together"].dtype.kind == "i"
    assert goods(counts=[1, 2, 3, 4, 5, 6]).similar("tea")["count"].dtype.kind == "i"


def test_every_answer_says_what_it_holds() -> None:
    fitted = goods()
    answers = {
        "cosine": fitted.similar("tea"),
        "data=": fitted.complements("tea"),
        "significantly more often": fitted.complements("tea", data=baskets()),
        "suggested": fitted.substitutes("tea"),
        "similar contexts": fitted.substitutes("tea", data=baskets()),
        "given item": fitted.pairs(2),
        "dimension": fitted.topics(2),
        "next item, among all": fitted.predict(["tea"]),
        "outside the basket": fitted.complete(["tea"]),
        "add up": fitted.explain(["tea"], "milk"),
        "before and after": fitted.what_if(["tea"], add="milk"),
    }
    for words, table in answers.items():
        assert words in table.note
        assert repr(table).splitlines()[-1] == table.note


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("together", [0, 1, 7, 1000])
@pytest.mark.parametrize("expected", [0.2, 3.0, 900.0])
def test_the_interval_of_lift_solves_its_equation(
    together: float, expected: float, confidence: float
) -> None:
    arrays = np.array([together * 1.0]), np.array([expected])
    lift, low, high = (float(one[0]) for one in lift_interval(*arrays, confidence))
    z = stats.norm.ppf(0.5 + confidence / 2)
    assert lift == pytest.approx(together / expected)
    assert (together - high * expected) ** 2 == pytest.approx(z * z * high * expected)
    if together:
        assert (together - low * expected) ** 2 == pytest.approx(z * z * low * expected)
    else:
        assert low == pytest.approx(0.0, abs=1e-12)


def test_the_interval_covers() -> None:
    rng = np.random.default_rng(0)
    for mean in (2.0, 10.0, 200.0):
        drawn = rng.poisson(1.7 * mean, 4000).astype(float)
        _, low, high = lift_interval(drawn, np.full(4000, mean), 0.95)
        inside = np.mean((low <= 1.7) & (high >= 1.7))
        assert 0.93 < inside < 0.98


def test_an_entity_that_never_occurs_has_no_lift() -> None:
    X = baskets()
    X[:, 3] = 0
    found = goods().complements("tea", 5, data=X)
    row = next(one for one in found if one["label"] == "sugar")
    assert row["together"] == row["count"] == 0
    assert all(np.isnan(row[name]) for name in ("lift", "lift_low", "lift_high"))


def test_minimum_support_counts_rows_together() -> None:
    X, fitted = baskets(), goods()
    everything = fitted.complements("tea", 9, data=X)
    for least in (0, 20, 40, 60, 1000):
        kept = [row for row in everything if row["together"] >= least]
        found = fitted.complements("tea", 9, data=X, min_support=least)
        assert found["label"].tolist() == [row["label"] for row in kept]
        first = fitted.complements("tea", 1, data=X, min_support=least)
        assert first["label"].tolist() == [row["label"] for row in kept[:1]]


def test_minimum_support_of_substitutes_counts_expected_rows() -> None:
    X, fitted = baskets(seed=1), goods()
    X[:150, 5] = 0  # towels are rare
    counts = (X > 0).sum(axis=0)
    everything = fitted.substitutes("tea", data=X, apart=True)
    expected = [counts[0] * counts[GOODS.index(label)] / 200 for label in everything["label"]]
    assert "towel" in set(everything["label"])
    least = sorted(expected)[1]
    kept = [row["label"] for row, e in zip(everything, expected, strict=True) if e >= least]
    found = fitted.substitutes("tea", data=X, min_support=least, apart=True)
    assert found["label"].tolist() == kept
    assert "towel" not in kept


def test_what_comes_together_beyond_chance_is_no_substitute() -> None:
    fitted = goods()
    assert "coffee" in fitted.substitutes("tea")["label"]
    X = baskets(n_rows=400)  # tea and coffee come together there
    assert fitted.complements("tea", 9, data=X, where=["coffee"])["lift_low"][0] > 1
    assert "coffee" not in fitted.substitutes("tea", data=X, apart=True)["label"]


def test_rows_confirm_a_substitute_or_leave_it_unclear() -> None:
    fitted = goods()
    X = np.zeros((400, 6))
    X[:100, 0], X[100:200, 1] = 1, 1  # tea or coffee, never both
    X[::7, 4] = X[::9, 5] = 1
    found = fitted.substitutes("tea", data=X, apart=True)
    assert found["label"].tolist() == ["coffee", "towel", "soap"]
    assert found["kind"].tolist() == ["substitute", "apart", "apart"]
    assert found["lift_high"][0] < 1
    assert found.note.startswith(
        "substitute: similar contexts, but significantly less often together"
    )
    assert found.note.endswith("apart: different contexts, so neither replaces the other")
    assert "apart:" not in fitted.substitutes("tea", data=X).note
    assert fitted.substitutes("tea", data=X)["label"].tolist() == ["coffee"]
    X[95:130, :2] = 1  # about as often together as by chance
    unclear = fitted.substitutes("tea", data=X, apart=True)
    assert unclear["label"].tolist() == ["coffee", "towel", "soap"]
    assert unclear["kind"].tolist() == ["unclear", "apart", "apart"]
    assert "unclear: similar contexts, and together about as often as by chance" in unclear.note
    assert "unclear:" not in found.note
    assert unclear["lift_low"][0] < 1 < unclear["lift_high"][0]
    empty = fitted.substitutes("tea", data=X)
    assert len(empty) == 0
    assert "significantly less often together" in empty.note
    assert "apart=True" in empty.note


def test_min_count_uses_the_counts_of_the_data() -> None:
    X = baskets()
    X[20:, 2] = 0
    found = goods(counts=[1] * 6).complements("tea", 9, data=X, min_count=30)
    assert "milk" not in found["label"]
    assert len(found) == 4


class KnownErrors:
    """Standard errors 0.1 (n + 1) + m."""

    def standard_errors(self, entities: Any, given: Any) -> Any:
        return 0.1 * (entities + 1) + given


def test_products_get_an_interval_from_whoever_knows_their_errors() -> None:
    fitted = goods()
    z = stats.norm.ppf(0.95)
    for table in (
        fitted.complements("coffee", 4, errors=KnownErrors(), confidence=0.9),
        fitted.substitutes("coffee", 4, errors=KnownErrors(), confidence=0.9, apart=True),
    ):
        for row in table:
            half = z * (0.1 * (GOODS.index(row["label"]) + 1) + 1)
            assert row["low"] == pytest.approx(row["score"] - half)
            assert row["high"] == pytest.approx(row["score"] + half)
