"""Weights of neighbors: every edge of the lists, in a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from fitted.toys import model, neighbor_lists, random_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
PTR, MEMBERS = [0, 2, 3, 5, 5], [1, 2, 3, 0, 1]


def neurons(**options: Any) -> Any:
    rng = np.random.default_rng(0)
    lists = (neighbor_lists(PTR, MEMBERS, **options),)
    rho, alpha = rng.normal(size=(2, 4, 3))
    names = {"labels": list("abcd"), "counts": [4, 3, 2, 1]}
    context = efemb.Neighbors(2, np.arange(4.0))
    return model(rho, alpha, family="gaussian", context=context, lists=lists, **names)


def edges(fitted: Any, ptr: Any = PTR, members: Any = MEMBERS) -> list[tuple[str, str, float]]:
    """(n, m, rho_n . alpha_m), entity by entity, the largest first."""
    found = []
    p, labels = fitted.parameters, "abcd"
    for n in range(len(ptr) - 1):
        mine = []
        for m in members[ptr[n] : ptr[n + 1]]:
            weight = sum(p.rho[n, k] * p.alpha[m, k] for k in range(3))
            mine.append((labels[n], labels[m], round(float(weight), 9)))
        found += sorted(mine, key=lambda edge: -edge[2])
    return found


def rows(table: efemb.Table) -> list[tuple[Any, ...]]:
    weight = [round(one, 9) for one in table["weight"].tolist()]
    return list(zip(table["label"], table["neighbor"], weight, strict=True))


def test_all_edges() -> None:
    fitted = neurons()
    assert rows(fitted.weights()) == edges(fitted)
    assert fitted.weights().columns == ["label", "neighbor", "weight"]


def test_some_entities_some_neighbors() -> None:
    fitted = neurons()
    everything = edges(fitted)
    assert rows(fitted.weights("c")) == [e for e in everything if e[0] == "c"]
    assert rows(fitted.weights(["a", "d"])) == [e for e in everything if e[0] == "a"]
    assert rows(fitted.weights("d")) == []
    chosen = fitted.weights(where=["b", "d"], min_count=2)
    assert rows(chosen) == [e for e in everything if e[1] == "b"]
    lists = (everything[:2], everything[2:3], everything[3:])
    strongest = [max(edges_of, key=lambda edge: abs(edge[2])) for edges_of in lists]
    assert rows(fitted.weights(n=1)) == strongest
    assert len(fitted.weights(n=99)) == 5


@pytest.mark.parametrize("scale", ["none", "items"])
def test_scaled_weights_are_coefficients(scale: str) -> None:
    """Then they are the change of the conditional mean with each neighbor."""
    fitted = neurons(scale=scale)
    X = np.random.default_rng(1).normal(size=(1, 4))
    before = fitted.conditional(X)[0]
    for row in fitted.weights(scaled=True):
        n, m = "abcd".index(row["label"]), "abcd".index(row["neighbor"])
        moved = X.copy()
        moved[0, m] += 1.0
        assert fitted.conditional(moved)[0, n] - before[n] == pytest.approx(row["weight"])


def test_sums_of_values_are_no_fixed_scale() -> None:
    fitted = neurons(scale="total")
    assert len(fitted.weights()) == 5
    with pytest.raises(efemb.ParameterError, match="differ from row to row"):
        fitted.weights(scaled=True)


def test_lags_have_offsets_and_vectors_of_their_own() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    context = efemb.Lagged((-1, 1), of=efemb.Graph(np.ones((3, 3)) - np.eye(3)))
    fitted = efemb.GaussianEmbedding(2, context=context, max_iter=3, random_state=0).fit(X).fitted()
    found = fitted.weights()
    assert found.columns == ["label", "neighbor", "weight", "offset"]
    assert len(found) == sum(len(part.members) for part in fitted.lists)
    p = fitted.parameters
    expected = []
    for part in fitted.lists:
        for n in range(3):
            for e in range(part.ptr[n], part.ptr[n + 1]):
                alpha = p.alpha[part.slot[e] * 3 + part.members[e]]
                weight = float(p.rho[n].astype(float) @ alpha)
                expected.append((n, part.members[e], part.offset[e], round(weight, 6)))
    columns = (found["label"], found["neighbor"], found["offset"], np.round(found["weight"], 6))
    assert sorted(zip(*columns, strict=True)) == sorted(expected)


def test_reverse_models_have_the_same_weights() -> None:
    plain = neurons()
    p = plain.parameters
    options = {"family": "gaussian", "context": plain.spec.context, "lists": plain.lists}
    reverse = model(p.rho, p.alpha, combine="reverse", labels=list("abcd"), **options)
    assert reverse.weights() == plain.weights()


def test_rows_have_no_fixed_neighbors() -> None:
    with pytest.raises(efemb.ParameterError, match=r"not fixed lists.*complements\(\)"):
        random_model(0).weights()


@pytest.mark.parametrize("method", ["complements", "substitutes"])
def test_fixed_neighbors_have_weights_only(method: str) -> None:
    with pytest.raises(efemb.ParameterError, match=r"use weights\(\)"):
        getattr(neurons(), method)("a")
    with pytest.raises(efemb.ParameterError, match=r"use weights\(\)"):
        neurons().pairs()


def test_an_empty_list_has_no_weights() -> None:
    lists = (neighbor_lists([0, 0, 0], []),)
    fitted = model(np.ones((2, 1)), np.ones((2, 1)), family="gaussian", lists=lists)
    assert len(fitted.weights()) == 0


def test_weights_as_a_matrix() -> None:
    fitted = neurons()
    matrix = fitted.weights(form="csr")
    expected = np.zeros((4, 4))
    for n, m, weight in edges(fitted):
        expected["abcd".index(n), "abcd".index(m)] = weight
    np.testing.assert_allclose(matrix.toarray(), expected, atol=1e-9)
    one = fitted.weights("c", form="csr").toarray()
    assert not one[[0, 1, 3]].any()
    np.testing.assert_allclose(one[2], expected[2], atol=1e-9)
    with pytest.raises(efemb.ParameterError, match="form='dense'"):
        fitted.weights(form="dense")
    X = np.random.default_rng(0).normal(size=(50, 3))
    lagged = efemb.GaussianEmbedding(1, context=efemb.Lagged((1, 2)), random_state=0, max_iter=3)
    with pytest.raises(efemb.ParameterError, match="form='table'"):
        lagged.fit(X).weights(form="csr")
