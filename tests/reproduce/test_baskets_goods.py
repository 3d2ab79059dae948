"""Goods: kinds, examples and correlations on baskets whose answers are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import spearmanr

from efemb.data.dataset import Dataset
from efemb.reproduce.baskets_goods import (
    EXAMPLES,
    correlate_with_lift,
    find_example,
    measure_same_kind,
    parse_kind,
)

LABELS = ["Chocolate Milk", "Whole Milk", "Baking Soda", "Soda", "Top Ramen", "2% Milk", "Framen"]


@pytest.mark.parametrize(
    ("name", "found"),
    [("a milk", "2% Milk"), ("a soda", "Soda"), ("a ramen", "Top Ramen"), ("a yogurt", None)],
)
def test_examples_are_the_most_frequent_of_their_kind(name, found):
    counts = np.array([99, 5, 99, 1, 1, 7, 99])
    assert find_example(LABELS, counts, *EXAMPLES[name]) == found


def test_kinds_are_the_words_before_size_and_brand():
    assert parse_kind("SOFT DRINKS 12/18&15PK CAN CAR 12 OZ (national) #1") == "SOFT DRINKS"
    assert parse_kind("CHOCOLATE MILK (private)") == "CHOCOLATE MILK"


def test_neighbors_of_the_same_kind_are_counted():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(5), 6)
    vectors = np.eye(5)[group] + 0.01 * rng.standard_normal((30, 5))
    same, chance = measure_same_kind(vectors, group)
    assert same == 1.0
    assert chance == pytest.approx(5 / 29)


def test_correlation_with_lift_is_that_of_all_supported_pairs():
    rng = np.random.default_rng(1)
    X = (rng.random((300, 6)) < [0.5, 0.5, 0.4, 0.3, 0.3, 0.02]).astype(float)
    rho, alpha = rng.standard_normal((2, 6, 3))
    model = SimpleNamespace(rho_=rho, alpha_=alpha)
    products, lifts = [], []
    for n in range(5):  # the last item is too rare
        for m in range(5):
            if n != m:
                together = sum(row[n] * row[m] for row in X)
                lifts.append(together / (X[:, n].sum() * X[:, m].sum() / 300))
                products.append(float(rho[n] @ alpha[m]))
    found = correlate_with_lift(model, Dataset(csr_array(X)))
    assert found == pytest.approx(spearmanr(products, lifts).statistic)
