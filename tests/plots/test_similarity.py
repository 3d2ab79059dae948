"""similarity: cosines, their order, and names."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage, to_tree
from scipy.spatial.distance import squareform

from efemb.errors import DataError, ParameterError
from efemb.fitted import LabeledVectors
from efemb.plots import similarity
from efemb.plots.canvas import label_text
from efemb.plots.heat_map import order_leaves
from plots.models import baskets


def names_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_yticklabels()]


def cosines_of(ax: Any) -> Any:
    return np.asarray(ax.images[0].get_array())


def test_cells_are_cosines_of_the_named_rows_and_columns() -> None:
    model = baskets(10)
    ax = similarity(model, 7)
    names = names_of(ax)
    assert names == [text.get_text() for text in ax.get_xticklabels()]
    place = {label_text(label, 28): n for n, label in enumerate(model.vocabulary)}
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            a, b = (model.parameters.rho[place[name]] for name in (first, second))
            wanted = a @ b / np.sqrt((a @ a) * (b @ b))
            assert cosines_of(ax)[i, j] == pytest.approx(wanted, abs=1e-12)


def test_colors_are_symmetric_about_zero() -> None:
    assert similarity(baskets()).images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.slow
def test_the_most_frequent_are_shown() -> None:
    model = baskets(20)
    best = np.argsort(-model.vocabulary.counts)[:5]
    wanted = {label_text(model.vocabulary[int(n)], 28) for n in best}
    assert set(names_of(similarity(model, 5))) == wanted


def test_given_order_is_kept() -> None:
    labels = ["_item_8", "_item_0", "_item_4"]
    assert names_of(similarity(baskets(), labels, order="given")) == [f" {one}" for one in labels]


def test_groups_stand_together() -> None:
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(4), 5))
    vectors = np.eye(4)[group] + 0.05 * rng.normal(size=(20, 4))
    ax = similarity(LabeledVectors([f"{g}-{i}" for i, g in enumerate(group)], vectors), 20)
    seen = [name[0] for name in names_of(ax)]
    assert sum(a != b for a, b in pairwise(seen)) == 3


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_one_of_the_tree_and_better_than_most(seed: int) -> None:
    unit = np.random.default_rng(seed).normal(size=(7, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    distance = 1 - unit @ unit.T
    np.fill_diagonal(distance, 0)
    tree = to_tree(linkage(squareform(distance, checks=False), "average"))

    def orders(node: Any) -> list[list[int]]:
        if node.is_leaf():
            return [[node.id]]
        sides = product(orders(node.left), orders(node.right))
        return [order for a, b in sides for order in (a + b, b + a)]

    def length(order: Any) -> float:
        return float(sum(distance[a, b] for a, b in pairwise(order)))

    found, every = order_leaves(unit @ unit.T).tolist(), orders(tree)
    assert found in every
    assert length(found) <= np.quantile([length(order) for order in every], 0.25)


def test_zero_vectors_are_like_nothing() -> None:
    vectors = LabeledVectors(["a", "b", "c"], [[1.0, 0], [0, 0], [0, 1]])
    for order in ("given", "leaves"):
        ax = similarity(vectors, ["a", "b", "c"], order=order)
        assert cosines_of(ax)[names_of(ax).index("b")].tolist() == [0, 0, 0]


def test_names_that_cannot_be_read_are_left_out() -> None:
    ax = similarity(baskets(100), 90)
    assert names_of(ax) == []
    assert "90 entities" in ax.get_xlabel()


def test_bad_choices_are_refused() -> None:
    with pytest.raises(DataError, match="2 to 1,000 entities, got 1"):
        similarity(baskets(), 1)
    with pytest.raises(DataError, match="unknown label 'milk'"):
        similarity(baskets(), ["milk", "_item_0"])
    with pytest.raises(ParameterError, match="order='best' is unknown"):
        similarity(baskets(), order="best")
    with pytest.raises(ParameterError, match="unknown vectors 'beta'"):
        similarity(baskets(), which="beta")
