"""Stability: neighbors in common, whatever the rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

import efemb
from efemb.inference import stability
from efemb.model.spec import Spec

SPEC = Spec.resolve(context="basket", family="poisson")
LABELS = [f"i{n}" for n in range(12)]


def made(rho: Any, labels: Any = None) -> efemb.fitted.FittedEmbedding:
    words = (
        None if labels is None else efemb.Vocabulary(labels, counts=np.arange(len(labels)) + 1.0)
    )
    return efemb.fitted.FittedEmbedding(
        efemb.model.parameters.Parameters(rho, rho, np.zeros(len(rho))), SPEC, words
    )


def random(seed: int, shape: tuple[int, int] = (12, 3)) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def test_a_rotation_changes_nothing() -> None:
    rho = random(0)
    turns = [ortho_group.rvs(3, random_state=seed) for seed in range(3)]
    found = stability([made(rho @ turn) for turn in turns], n=4)
    assert found.overlap == 1.0
    assert found.agreement == pytest.approx(1.0)
    assert found.n_models == 3
    assert found.to_dict()["stable_entities"] == 1.0


def test_against_loops_and_scipy() -> None:
    left, right = random(1), random(1) + 0.7 * random(2)
    found = stability([made(left), made(right)], n=3)

    def near(rho: Any, i: int) -> set[int]:
        unit = rho / np.linalg.norm(rho, axis=1, keepdims=True)
        others = [j for j in range(len(rho)) if j != i]
        return set(sorted(others, key=lambda j: -float(unit[i] @ unit[j]))[:3])

    overlap = [len(near(left, i) & near(right, i)) / 3 for i in range(12)]
    assert_allclose(found.overlap_of[0], overlap)
    turn, _ = orthogonal_procrustes(right, left)
    moved = right @ turn
    cosine = np.sum(left * moved, axis=1)
    cosine /= np.linalg.norm(left, axis=1) * np.linalg.norm(moved, axis=1)
    assert_allclose(found.agreement_of[0], cosine)
    assert found.chance == pytest.approx(3 / 11)


def test_unrelated_vectors_are_at_chance() -> None:
    models = [made(random(seed, (400, 20))) for seed in range(3)]
    found = stability(models, n=20)
    assert found.overlap == pytest.approx(found.chance, abs=0.02)
    assert found.agreement < 0.4


def test_labels_bring_entities_together() -> None:
    rho, order = random(3), np.random.default_rng(0).permutation(12)
    turned = made(rho[order], [LABELS[i] for i in order])
    found = stability([made(rho, LABELS), turned], n=5)
    assert found.overlap == 1.0
    assert found.entities.columns == ["entity", "count", "overlap", "agreement"]


def test_the_least_stable_come_first() -> None:
    left = random(4, (30, 4))
    right = left.copy()
    right[7] = -left[7]
    found = stability([made(left), made(right)], n=3)
    assert found.entities[0]["entity"] == 7
    assert found.pairs.columns == ["model", "other", "overlap", "agreement"]
    assert len(found.pairs) == 1
    text = repr(found)
    assert "2 fits share" in text
    assert "by chance" in text


def test_a_function_of_a_seed_is_called_for_each() -> None:
    seen = []

    def fit(seed: int) -> Any:
        seen.append(seed)
        return made(random(seed % 2))

    found = stability(fit, n=2, seeds=[3, 5, 8], progress=True)
    assert seen == [3, 5, 8]
    assert found.overlap_of.shape == (3, 12)
    assert found.overlap_of[0].tolist() == [1.0] * 12
    stability(fit, n=2, seeds=2)
    assert seen[3:] == [0, 1]


def test_different_lengths_are_compared_too() -> None:
    rho = random(5, (20, 3))
    wide = np.pad(rho, ((0, 0), (0, 2)))
    assert stability([made(rho), made(wide)], n=4).agreement == pytest.approx(1.0)


def test_vectors_that_point_the_same_way() -> None:
    """Many equal vectors: an entity is never its own neighbor, and every row has n."""
    found = stability([made(np.ones((9, 2))), made(np.ones((9, 2)))], n=3)
    assert found.overlap == 1.0


def test_bad_input() -> None:
    one = made(random(0))
    with pytest.raises(efemb.ParameterError, match="at least 2"):
        stability([one])
    with pytest.raises(efemb.ParameterError, match="at most 11"):
        stability([one, one], n=12)
    for n in (0, 2.5):
        with pytest.raises((efemb.ParameterError, efemb.InputTypeError)):
            stability([one, one], n=n)
    with pytest.raises(efemb.InputTypeError, match="list of fitted models"):
        stability("models")
    with pytest.raises(efemb.DataError, match="same entities"):
        stability([one, made(random(0, (5, 3)))])
    with pytest.raises(efemb.DataError, match="same entities"):
        stability([one, made(random(0), LABELS)])
    with pytest.raises(efemb.DataError, match="unknown label"):
        stability([made(random(0), LABELS), made(random(0), [*LABELS[:-1], "other"])])


def test_vectors_of_zeros_have_no_neighbors() -> None:
    left, right = random(1), random(2)
    left[[0, 4]] = right[[0, 4]] = 0.0
    with_zeros, others = [made(left), made(right)], np.delete(np.arange(12), [0, 4])
    found = stability(with_zeros, n=3)
    assert np.isnan(found.overlap_of[:, [0, 4]]).all()
    assert found.overlap == pytest.approx(found.overlap_of[:, others].mean())
    assert found.agreement == pytest.approx(found.agreement_of[:, others].mean())
    assert sorted(found.entities["entity"].tolist()) == others.tolist()
    assert 0.0 <= found.to_dict()["stable_entities"] < 1.0
    with pytest.raises(efemb.DataError, match="other than 0"):
        stability([made(np.zeros((12, 3)))] * 2, n=3)
