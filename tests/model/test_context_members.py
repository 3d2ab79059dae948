"""Members of single cells: in every context they make the inner product of that cell."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import efemb
from efemb.model.contexts.bound.terms import Bags
from efemb.model.factors import Factors
from efemb.model.predictor import Predictor
from efemb.model.spec import Spec

T, N, K = 6, 5, 3
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.8, (T, N)).astype(float)
COUNTS[1] = 0.0
REALS = RNG.normal(size=(T, N))
REALS[2, 1] = REALS[3, 3] = np.nan
PLACES = RNG.normal(size=(N, 2))
WORDS = efemb.Corpus([0, 1, 2, 0, 3, 4, 4, 1], [0, 5, 8], list("abcde"))
CELLS = T * N
EXPLICIT = efemb.Explicit(np.arange(CELLS + 1), (np.arange(CELLS) + 7) % CELLS, scale="items")

ROWS: dict[str, tuple[Any, Any]] = {
    **{
        f"basket {scale} {binary}": (efemb.Basket(scale, binary), efemb.Dataset(COUNTS))
        for scale, binary in product(("total", "items", "none"), (False, True))
    },
    "sparse basket": (efemb.Basket(), efemb.Dataset(csr_array(COUNTS))),
    "neighbors": (efemb.Neighbors(2), efemb.Dataset(REALS, positions=PLACES)),
    "mean of neighbors": (
        efemb.Neighbors(3, scale="items", binary=True),
        efemb.Dataset(REALS, positions=PLACES),
    ),
    "two lists": (
        efemb.Neighbors(2) + efemb.Graph(np.roll(np.eye(N), 1, axis=0), scale="items"),
        efemb.Dataset(REALS, positions=PLACES),
    ),
    "lagged": (efemb.Lagged((-1, 2), of=efemb.Graph(np.roll(np.eye(N), 1, axis=0))), REALS),
    "basket and neighbors": (
        efemb.Basket("items") + efemb.Neighbors(2),
        efemb.Dataset(COUNTS, positions=PLACES),
    ),
    "explicit": (EXPLICIT, REALS),
    **{
        f"window {scale} {positional}": (efemb.Window(2, scale, positional=positional), WORDS)
        for scale, positional in product(("none", "items"), (False, True))
    },
}
REVERSE = [name for name in ROWS if name not in ("lagged", "basket and neighbors", "explicit")]
CASES = [*product(ROWS, [False]), *product(REVERSE, [True])]


@pytest.mark.parametrize(("name", "reverse"), CASES)
def test_members_make_the_inner_product(name: str, reverse: bool) -> None:
    context, data = ROWS[name]
    data = efemb.Dataset(data) if isinstance(data, np.ndarray) else data
    bound = context.bind(data)
    rng = np.random.default_rng(1)
    target, bag = rng.normal(size=(N, K)), rng.normal(size=(bound.n_context_vectors, K))
    rows = np.arange(bound.n_rows)
    products = (bound.reverse_products if reverse else bound.products)(rows, target, bag)
    sizes = 0
    for row, entity in product(rows, range(N)):
        vectors, coefficients = bound.context_of(row, entity, reverse=reverse)
        u = sum(c * (target[entity] @ bag[v]) for v, c in zip(vectors, coefficients, strict=True))
        assert u == pytest.approx(products[row, entity], rel=1e-10, abs=1e-12), (row, entity)
        sizes += len(vectors)
    assert sizes > 0


@pytest.mark.parametrize(("name", "reverse"), CASES)
def test_one_row_at_a_time_is_all_rows_at_once(name: str, reverse: bool) -> None:
    """A single row takes another way, in NumPy alone."""
    context, data = ROWS[name]
    bound = context.bind(efemb.Dataset(data) if isinstance(data, np.ndarray) else data)
    rng = np.random.default_rng(2)
    target, bag = rng.normal(size=(N, K)), rng.normal(size=(bound.n_context_vectors, K))
    ask = bound.reverse_products if reverse else bound.products
    rows = np.arange(bound.n_rows)
    single = np.concatenate([ask(rows[[row]], target, bag) for row in rows])
    np.testing.assert_allclose(single, ask(rows, target, bag), rtol=1e-10, atol=1e-12)


def test_vector_observations_have_no_single_members() -> None:
    bound = efemb.Basket().bind(efemb.Dataset(np.ones((2, 3, 2))))
    with pytest.raises(efemb.ParameterError, match="scalar observations"):
        bound.context_of(0, 1)


def test_coefficients_leave_out_what_a_term_takes_out() -> None:
    matrix, own = csr_array([[1.0, 2.0, 0.0]]), csr_array([[0.0, 2.0, 0.0]])
    bags = Bags(matrix, np.array([0]), np.array([4.0]), own, np.array([0]))
    vectors, coefficients = bags.coefficients()
    assert vectors.tolist() == [0]
    assert coefficients.tolist() == [0.25]


@pytest.mark.parametrize("positional", [False, True])
def test_a_gap_is_the_same_text_with_a_word_missing(positional: bool) -> None:
    """Words before and after a gap predict as they do in a text; unknown ones keep their place."""
    window = efemb.Window(2, "none", positional=positional)
    bound, gap = window.bind_gap(np.array([3, -1, 1, 4]), WORDS.vocabulary)
    text = efemb.Corpus([3, 0, 2, 1, 4], [0, 5], list("abcde"))
    rng = np.random.default_rng(3)
    size = N * (4 if positional else 1)
    target, bag = rng.normal(size=(N, K)), rng.normal(size=(size, K))
    unknown = bag[N] if positional else bag[0]  # second place of four: word 0 stands there
    whole = window.bind(text).products(np.array([2]), target, bag)[0]
    np.testing.assert_allclose(
        bound.products(np.array([gap]), target, bag)[0], whole - target @ unknown
    )


def test_every_row_context_says_what_a_question_leaves_out() -> None:
    assert efemb.Basket().unnamed == 0.0
    assert np.isnan(efemb.Neighbors(2).unnamed)
    assert (efemb.Neighbors(2) + efemb.Basket()).unnamed == 0.0
    assert (efemb.Basket() + efemb.Lagged()).reaches_other_rows
    assert not (efemb.Basket() + efemb.Neighbors(2)).reaches_other_rows
    assert EXPLICIT.reaches_other_rows
    with pytest.raises(efemb.ParameterError, match="not made of words"):
        efemb.Basket().bind_gap(np.array([0]), WORDS.vocabulary)


def test_explanations_add_up_to_the_predictor() -> None:
    spec = Spec.resolve(context=efemb.Basket("items"), family="poisson")
    bound = spec.context.bind(efemb.Dataset(COUNTS))
    rng = np.random.default_rng(4)
    factors = Factors(*rng.normal(size=(2, N, K)), rng.normal(size=N))
    predictor = Predictor(factors)
    u = predictor.cells(spec, bound, np.arange(T))
    for row, entity in np.ndindex(T, N):
        parts = predictor.explain(spec, bound, row, entity)
        total = parts.contribution.sum() + parts.intercept + sum(parts.terms.values())
        assert total == pytest.approx(u[row, entity], rel=1e-12)
