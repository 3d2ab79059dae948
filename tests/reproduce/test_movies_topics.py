"""Topics of movies: tests of genres against SciPy and by hand, stability on known rotations."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.sparse import csr_array

from efemb.data.dataset import Dataset
from efemb.reproduce.movies_topics import (
    LISTED,
    Genres,
    count_by_chance,
    count_enriched,
    find_codes,
    measure_agreement,
    rotate_at_random,
    tabulate_enrichment,
    tabulate_stability,
)
from efemb.table import Table


def genres() -> Genres:
    """20 movies: the first five are for children, every other one is a drama."""
    member = np.zeros((20, 2), dtype=np.int64)
    member[:5, 0] = 1
    member[::2, 1] = 1
    return Genres(["Children's", "Drama"], member)


def test_p_values_count_the_ways_to_draw():
    found = genres().p_values([np.array([0, 1, 2, 10]), np.array([11, 13, 15, 17])])
    ways = sum(comb(5, k) * comb(15, 4 - k) for k in (3, 4))
    assert found[0, 0] == pytest.approx(ways / comb(20, 4))
    assert found[1].tolist() == [1.0, 1.0]  # none or more is certain


def test_genres_of_a_data_set_follow_its_entities():
    data = Dataset(
        csr_array(np.eye(3)),
        entities=["b", "a", "c"],
        report={"genres": {"a": ["War"], "b": ["Action", "War"], "c": []}},
    )
    found = Genres.of(data)
    assert found.names == ["Action", "War"]
    assert found.member.tolist() == [[1, 1], [0, 1], [0, 0]]


def test_enriched_topics_are_found_and_counted():
    table = Table({"topic": [0, 0, 0, 1, 1, 1], "label": list("abcxyz"), "value": [1.0] * 6})
    labels = [*"abcde", *"fghijklmnop", *"xyzw"]
    listed = find_codes(table, labels)
    assert [codes.tolist() for codes in listed] == [[0, 1, 2], [16, 17, 18]]
    found = tabulate_enrichment(listed, genres())
    assert found["genre"][0] == "Children's"
    assert found["movies"][0] == 3
    assert found["expected"][0] == pytest.approx(3 * 5 / 20)
    assert count_enriched(listed, genres()) == 1


def test_chance_enriches_next_to_nothing():
    rng = np.random.default_rng(0)
    member = (rng.random((200, 3)) < 0.2).astype(np.int64)
    _, drawn = count_by_chance(rng.standard_normal((200, 6)), Genres(list("abc"), member))
    assert drawn < 1


def test_columns_are_matched_whatever_their_order_and_sign():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((50, 4))
    cosine, shared = measure_agreement(a, -3.0 * a[:, [2, 0, 3, 1]])
    assert cosine == pytest.approx(1.0)
    assert shared == LISTED


def test_agreement_weighs_columns_by_their_squares():
    rng = np.random.default_rng(3)
    large, small, other = rng.standard_normal((3, 40))
    other -= large * (large @ other) / (large @ large)
    other -= small * (small @ other) / (small @ small)
    other -= large * (large @ other) / (large @ large)
    first, second = np.stack([large, 0.01 * small], axis=1), np.stack([large, other], axis=1)
    assert measure_agreement(first, second)[0] > 0.99
    assert measure_agreement(first[:, ::-1], second)[0] > 0.99


def test_varimax_finds_the_same_axes_again():
    rng = np.random.default_rng(2)
    sparse = rng.standard_normal((300, 4)) * (rng.random((300, 4)) < 0.15)
    alphas = [rotate_at_random(sparse, rng) for _ in range(2)]
    for alpha in alphas:  # a rotation leaves products alone
        assert np.allclose(alpha @ alpha.T, sparse @ sparse.T)
    found = {row["axes"]: row["cosine"] for row in tabulate_stability(alphas)}
    assert found["varimax"] > 0.99 > found["as they come"]
