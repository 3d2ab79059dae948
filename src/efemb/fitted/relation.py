"""Relations of entities: complements, which come together, and substitutes, which do not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.vocabulary import shorten
from efemb.errors import (
    DataError,
    InputTypeError,
    ParameterError,
    check_integer,
    check_number,
    suggest,
)
from efemb.fitted.cooccurrence import (
    Support,
    checked_support,
    lift_interval,
    quantile,
)
from efemb.fitted.nearest import largest_products, unit_rows
from efemb.fitted.selection import Choice, Options, PairOptions
from efemb.fitted.vectors import check_inner_products, predicting_vectors
from efemb.table import Table, whole_numbers

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.fitted.queries.base import HasFitted

Direction = Literal["given", "symmetric"]
DIRECTIONS = ("given", "symmetric")
MIN_SIMILARITY = 0.5  # of contexts that are alike
# About where suggestions begin to be together less often than by chance in held-out rows of
# groceries, Complete Journey and Instacart.
LOW_Z = -1.25
NO_SUBSTITUTES = (
    "substitutes are together less often than by chance, which takes negative scores; positive "
    "vectors can only express positive correlations: fit a model with signed vectors, such as "
    "PoissonEmbedding"
)


class ProductErrors(Protocol):
    """An object that knows the standard errors of inner products, such as `Laplace`."""

    def standard_errors(self, entities: Ints, given: Ints) -> Floats:
        """Standard error of rho_n . alpha_m for pairs of codes (n, m)."""


class Affinity:
    """product(n, m) = left_n . right_m for every pair of entities.

    "given" is the paper's rho_n . alpha_m: how much m in the context raises the inner product u of
    n. "symmetric" is the mean of both directions. `center` subtracts the mean context vector from
    alpha, so that 0 is the effect of an average entity; the paper does not. `known` marks the
    entities whose effect on others is known.
    """

    def __init__(self, model: FittedEmbedding, direction: str = "given", center: bool = False):
        if direction not in DIRECTIONS:
            raise ParameterError(f"direction={direction!r}; {suggest(direction, DIRECTIONS)}")
        if model.lists is not None:
            raise ParameterError(
                "each entity of this model has a fixed list of neighbors, and inner products with "
                "other entities have no meaning: use weights() for those of the lists "
                "(efemb plot MODEL weights)"
            )
        check_inner_products(model)
        target, bag = predicting_vectors(model)
        # Unknown vectors are 0 only before they are centered.
        self.known: Bools = np.asarray(bag.any(axis=1))
        if center:
            bag = bag - bag.mean(axis=0)
        self.target, self.bag, self.left, self.right = target, bag, target, bag
        if direction == "symmetric":
            self.known |= target.any(axis=1)
            self.left = np.concatenate([target, bag], axis=1)
            self.right = np.concatenate([bag, target], axis=1) / 2

    def products(self, n: Ints, m: Ints) -> Floats:
        """Products of pairs, in float64."""
        left, right = self.left[n].astype(np.float64), self.right[m].astype(np.float64)
        return np.asarray(np.einsum("ik,ik->i", left, right))

    @cached_property
    def usual(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the products of each n with all entities, (N,) each."""
        mean = self.right.mean(axis=0)
        apart = self.right - mean
        spread = ((self.left @ (apart.T @ apart / len(apart))) * self.left).sum(axis=1)
        return np.asarray(self.left @ mean), np.sqrt(np.maximum(spread, 0.0))

    def mutual_z(self, n: Ints, m: int) -> Floats:
        """How unusual product(n, m) is for n, and product(m, n) for m: the mean of both.

        Each in standard deviations from the mean of the entity's products with all entities, so
        that the long vectors of rare entities are not evidence; 0 where they are all the same.
        """
        mean, spread = self.usual
        spread = np.where(spread > 0, spread, np.inf)
        forward = (times_rows(self.left, n, self.right[m]) - mean[n]) / spread[n]
        two = (times_rows(self.right, n, self.left[m]) - mean[m]) / spread[m]
        return np.asarray((forward + two) / 2)

    @cached_property
    def responses(self) -> Floats:
        """Unit vectors whose inner product is the correlation of two entities over all contexts.

        That of rho_n . alpha_j and rho_m . alpha_j over all entities j: 1 where n and m answer
        alike to every context. Unlike the cosine of rho, it does not depend on how
        lengths are shared between rho and alpha.
        """
        bag = self.bag.astype(np.float64)
        size, axes = np.linalg.eigh(np.cov(bag.T, bias=True).reshape(bag.shape[1], -1))
        return unit_rows(self.target @ (axes * np.sqrt(np.maximum(size, 0.0))))

    def similarity(self, n: Ints, m: Ints) -> Floats:
        """Similarity of the contexts of pairs: the correlation of their responses."""
        cosine = np.einsum("ik,ik->i", self.responses[n], self.responses[m])
        return np.asarray(np.clip(cosine, -1.0, 1.0))


def times_rows(matrix: Floats, rows: Ints, vector: Floats) -> Floats:
    """matrix[rows] @ vector for increasing `rows`; all of them are not copied first."""
    return np.asarray((matrix if len(rows) == len(matrix) else matrix[rows]) @ vector)


def affinity_of(model: FittedEmbedding, direction: str, center: bool) -> Affinity:
    """The affinity of a model, kept with it because the next question needs the same sums."""
    cache = model._affinities
    if (direction, center) not in cache:
        cache[direction, center] = Affinity(model, direction, center)
    return cache[direction, center]


class Pairing:
    """Checked options of a question about pairs, and the table of its answer."""

    def __init__(
        self,
        model: HasFitted,
        *,
        direction: Direction = "given",
        center: bool = False,
        data: Any = None,
        min_support: float | None = None,
        confidence: float = 0.95,
        errors: ProductErrors | None = None,
        **options: Unpack[Options],
    ) -> None:
        fitted = model.fitted()
        quantile(confidence)
        if errors is not None and not hasattr(errors, "standard_errors"):
            raise InputTypeError(f"errors must come from model.laplace(data), got {errors!r}")
        if errors is not None and direction != "given":
            raise ParameterError("errors are those of rho_n . alpha_m: use direction='given'")
        if errors is not None and center:
            raise ParameterError("errors are those of rho_n . alpha_m: use center=False")
        if getattr(errors, "refit", False):
            raise ParameterError(
                "errors of refitted vectors belong to other products than the model's: use "
                "laplace(...) without refit, or the method interval() of the errors"
            )
        self.affinity = affinity_of(fitted, direction, center)
        self.min_support = checked_support(data, min_support)
        self.support = data if data is None or isinstance(data, Support) else Support(fitted, data)
        self.confidence, self.errors = confidence, errors
        counts = None if self.support is None else self.support.counts
        self.labels = fitted.entities.labels
        self.choice = Choice(fitted.entities, counts=counts, **options)
        self.rows = np.arange(len(self.labels)) if self.choice.rows is None else self.choice.rows

    def read_items(self, item: Any) -> Ints:
        """Codes of the items in question, whose effects on others must be known."""
        codes = self.choice.codes(item)
        for code in codes[~self.affinity.known[codes]].tolist():
            raise DataError(
                f"the effect of {shorten(self.labels[code])} on others is unknown: its context "
                "vector is 0, as after fold_in(..., context_too=False); use similar()"
            )
        return codes

    def table(
        self, first: dict[str, Any], n: Ints, m: Ints, extra: dict[str, Any], note: str
    ) -> Table:
        """Products of pairs with everything that is known about them; `first` names the pairs."""
        products = self.affinity.products(n, m)
        columns = {**first, "score": products}
        columns |= product_interval(self.errors, products, n, m, self.confidence)
        columns |= extra
        if self.support is not None:
            columns |= self.support.columns(n, m, self.confidence)
        elif self.choice.counts is not None:
            columns["count"] = whole_numbers(self.choice.counts[n])
        return Table(columns, note)

    def often_together(self, m: int) -> Bools:
        """Which of `rows` share enough rows of the data with m."""
        if self.support is None or self.min_support is None:
            return np.ones(len(self.rows), dtype=bool)
        return np.asarray(self.support.together(m)[self.rows] >= self.min_support)

    def often_expected(self, m: int) -> Bools:
        """Which of `rows` would share enough rows of the data with m if they were independent."""
        if self.support is None or self.min_support is None:
            return np.ones(len(self.rows), dtype=bool)
        return np.asarray(self.support.expected(self.rows, m) >= self.min_support)

    def deviating(self, m: int, rows: Ints) -> tuple[Bools, Bools]:
        """Entities that are significantly more, and less, often with m than by chance."""
        if self.support is None:
            return np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
        together, expected = self.support.together(m)[rows], self.support.expected(rows, m)
        _, low, high = lift_interval(together, expected, self.confidence)
        return np.asarray(low > 1), np.asarray(high < 1)

    def answer(
        self, item: Any, codes: Ints, answers: list[Ints], extra: dict[str, Any], note: str
    ) -> Table:
        """Table of the answers to each of the codes."""
        m = np.repeat(codes, [len(listed) for listed in answers])
        n = np.concatenate(answers)
        several = isinstance(item, Iterable) and not isinstance(item, str)
        first = {"query": self.labels[m]} if several else {}
        return self.table({**first, "label": self.labels[n]}, n, m, extra, note)

    def describe_support(self) -> str:
        """Describe the columns that come from data; empty without data."""
        if self.support is None:
            return ""
        return (
            f"; together: rows with both, of {self.support.n_rows:,}; expected: by chance; share: "
            "of the rows with the item"
        )


def complements(model: HasFitted, item: Any, n: int = 10, **options: Unpack[PairOptions]) -> Table:
    """Find the items that an item makes more probable, by the inner product of their vectors.

    The method `complements` of fitted models calls it, and documents the parameters and the result.
    """
    size, pairing = check_integer("n", n), Pairing(model, **options)
    codes = pairing.read_items(item)
    if pairing.support is None:
        left, right = pairing.affinity.left, pairing.affinity.right
        nearest, _ = largest_products(left, right[codes], size + 1, pairing.choice.rows)
        answers = [near[near != m][:size] for near, m in zip(nearest, codes, strict=True)]
        note = "score: how much more probable the item makes it; data= (--data FILE) verifies it"
        return pairing.answer(item, codes, answers, {}, note)
    tiers = [_complement_tiers(pairing, m, size) for m in codes.tolist()]
    answers = [np.concatenate([sure, rest])[:size] for sure, rest in tiers]
    kinds = [
        np.arange(len(each)) >= len(sure) for each, (sure, _) in zip(answers, tiers, strict=True)
    ]
    names = np.array(["complement", "unclear"], dtype=object)
    extra = {"kind": names[np.concatenate(kinds).astype(np.int64)]}
    level = f"{pairing.confidence:.0%}"
    note = f"complement: significantly more often together than by chance ({level})"
    return pairing.answer(item, codes, answers, extra, note + pairing.describe_support())


def _complement_tiers(pairing: Pairing, m: int, size: int) -> tuple[Ints, Ints]:
    """The best of those significantly more often with m than by chance, and of unclear ones."""
    rows = pairing.rows[pairing.often_together(m)]
    rows = rows[rows != m]
    attracted, repelled = pairing.deviating(m, rows)
    left, right = pairing.affinity.left, pairing.affinity.right[[m]]
    sure, _ = largest_products(left, right, size, rows[attracted])
    rest, _ = largest_products(left, right, size, rows[~attracted & ~repelled])
    return sure[0], rest[0]


def substitutes(
    model: HasFitted,
    item: Any,
    n: int = 10,
    *,
    min_similarity: float = MIN_SIMILARITY,
    apart: bool = False,
    **options: Unpack[PairOptions],
) -> Table:
    """Find the items that take the place of an item: same contexts, but not together.

    The method `substitutes` of fitted models calls it, and documents the parameters and the result.
    """
    fitted = model.fitted()
    if fitted.spec.positive_rho and fitted.spec.positive_alpha:
        raise ParameterError(NO_SUBSTITUTES)
    limit = check_number("min_similarity", min_similarity, low=-1, high=1)
    size, pairing = check_integer("n", n), Pairing(model, **options)
    codes = pairing.read_items(item)
    near, answers, usual = pairing.affinity, pairing.affinity.responses, pairing.affinity.usual[0]
    listed, columns = [], []
    for m in codes.tolist():
        rows = pairing.rows[pairing.often_expected(m)]
        product, z = times_rows(near.left, rows, near.right[m]), near.mutual_z(rows, m)
        cosine = np.clip(times_rows(answers, rows, answers[m]), -1.0, 1.0)
        attracted, repelled = pairing.deviating(m, rows)
        low = z <= LOW_Z if pairing.support is None else repelled
        kind = np.where(cosine < limit, 2, np.where(low, 0, 1))
        confirmed = repelled & (kind == 0)
        candidates = np.flatnonzero(
            ((product < usual[rows]) | confirmed) & (rows != m) & ~attracted
        )
        rank = np.where(kind == 0, z, product) if pairing.support is None else product
        order = candidates[np.lexsort((rank[candidates], kind[candidates]))]
        if not apart:
            order = order[kind[order] == 0]
        order = order[:size]
        listed.append(rows[order])
        columns.append((z[order], cosine[order], kind[order]))
    low_z, alike, kinds = (np.concatenate(column) for column in zip(*columns, strict=True))
    first = "suggested" if pairing.support is None else "substitute"
    extra = {
        "mutual_z": low_z,
        "context_similarity": alike,
        "kind": np.array([first, "unclear", "apart"], dtype=object)[kinds],
    }
    note = _substitute_note(pairing, len(kinds), apart)
    note = "; ".join([note, *(text for kind, text in _OTHER_KINDS.items() if kind in kinds)])
    return pairing.answer(item, codes, listed, extra, note)


# What else `apart=True` lists, by the code of its kind.
_OTHER_KINDS = {
    1: "unclear: similar contexts, and together about as often as by chance",
    2: "apart: different contexts, so neither replaces the other",
}


def _substitute_note(pairing: Pairing, n_listed: int, apart: bool) -> str:
    """What the table holds, or why it is empty."""
    hint = "" if apart else "; apart=True (--apart) lists possible ones"
    if pairing.support is None and not n_listed:
        return f"the vectors suggest no substitute{hint}; data= (--data FILE) examines the rows"
    if pairing.support is None:
        return "suggested by the vectors alone, and often wrong: data= (--data FILE) verifies them"
    level = f"{pairing.confidence:.0%}"
    if not n_listed:
        return (
            "no item with similar contexts is significantly less often together with it than by "
            f"chance ({level}){hint}"
        )
    meaning = "substitute: similar contexts, but significantly less often together than by chance"
    return f"{meaning} ({level}){pairing.describe_support()}"


def product_interval(
    errors: ProductErrors | None, products: Floats, n: Ints, m: Ints, confidence: float
) -> dict[str, Floats]:
    """Columns `low` and `high` around the products of pairs; none without `errors`."""
    if errors is None:
        return {}
    spread = np.asarray(errors.standard_errors(n, m), dtype=np.float64)
    if spread.shape != products.shape or not (spread >= 0).all():
        raise DataError("standard errors must be one number >= 0 for each pair")
    half = quantile(confidence) * spread
    return {"low": products - half, "high": products + half}
