"""Zeros: drawing probabilities and inclusion probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import efemb
from efemb.model.zeros import inclusion_probabilities, probabilities

POPULARITY = np.array([16.0, 4.0, 1.0, 0.0])


@given(
    mass=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30),
    n=st.integers(1, 40),
)
def test_inclusion_probabilities_add_up_to_the_number_of_draws(mass: list[float], n: int) -> None:
    share = np.array(mass) / np.sum(mass)
    chance = inclusion_probabilities(share, n)
    assert chance.sum() == pytest.approx(min(n, len(share)), rel=1e-7)
    assert (chance > 0).all()
    assert (chance <= 1).all()
    free = chance < 1 - 1e-9
    if free.sum() > 1:
        ratio = chance[free] / share[free]
        assert_allclose(ratio, ratio[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        ("popularity", [16 / 21, 4 / 21, 1 / 21, 0]),
        ("sqrt", [4 / 7, 2 / 7, 1 / 7, 0]),
        ("uniform", [0.25] * 4),
        ([1, 1, 2, 0], [0.25, 0.25, 0.5, 0]),
    ],
)
def test_probabilities_follow_the_distribution(distribution: Any, expected: list[float]) -> None:
    assert_allclose(probabilities(distribution, POPULARITY), expected)


@pytest.mark.parametrize(
    ("distribution", "match"),
    [
        ([1.0, 2.0], "each of the 4 entities"),
        ([1.0, np.nan, 1.0, 1.0], "finite"),
        ([-1.0, 1.0, 1.0, 1.0], ">= 0"),
        ([0.0, 0.0, 0.0, 0.0], "not all zero"),
        ("popular", "did you mean 'popularity'"),
    ],
)
def test_a_bad_distribution_is_refused(distribution: Any, match: str) -> None:
    with pytest.raises(efemb.EfembError, match=match) as caught:
        probabilities(distribution, POPULARITY)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("make", [efemb.Sampled, efemb.NegativeSampling])
@pytest.mark.parametrize(
    ("n", "kind"),
    [(0, efemb.ParameterError), (-3, efemb.ParameterError), (2.5, efemb.InputTypeError)],
)
def test_the_number_of_draws_is_a_positive_integer(make: Any, n: Any, kind: Any) -> None:
    with pytest.raises(kind, match=r"\.n must be"):
        make(n).check()


@pytest.mark.parametrize("per", ["rows", 3, None])
def test_zeros_are_drawn_per_batch_or_per_row(per: Any) -> None:
    with pytest.raises(efemb.ParameterError, match="per="):
        efemb.Sampled(10, per=per).check()


@pytest.mark.parametrize("make", [efemb.All, lambda weight: efemb.Sampled(weight=weight)])
def test_a_zero_weight_is_not_negative(make: Any) -> None:
    make(0.0).check()
    with pytest.raises(efemb.ParameterError, match="weight"):
        make(-0.1).check()


@pytest.mark.parametrize(
    ("zeros", "kind"),
    [(efemb.All(), "exact"), (efemb.Sampled(), "unbiased"), (efemb.NegativeSampling(), "biased")],
)
def test_zeros_say_what_their_gradient_is(zeros: Any, kind: str) -> None:
    assert zeros.gradient == kind
