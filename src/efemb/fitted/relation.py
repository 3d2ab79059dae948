"""Relations of entities: complements, which come together, and substitutes, which do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from efemb._typing import Bools, Ints
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.fitted.cooccurrence import Support, checked_support, lift_interval, quantile
from efemb.fitted.interval import ProductErrors, product_interval
from efemb.fitted.nearest import checked_number, largest_products
from efemb.fitted.products import Affinity, Direction
from efemb.fitted.selection import Choice, Options
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.queries import Queries

MIN_SIMILARITY = 0.5  # of contexts that are alike
# About where suggestions begin to be together less often than by chance in held-out rows of
# groceries, Complete Journey and Instacart.
LOW_Z = -1.25


class PairOptions(Options, total=False):
    """What questions about pairs of entities take: see `complements`."""

    direction: Direction
    center: bool
    data: Any
    min_support: float | None
    confidence: float
    errors: ProductErrors | None


class Pairing:
    """Checked options of a question about pairs, and the table of its answer."""

    def __init__(
        self,
        model: Queries,
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
            raise InputTypeError(f"errors= takes what model.laplace(data) gives, not {errors!r}")
        if errors is not None and direction != "given":
            raise ParameterError("errors= belong to rho_n . alpha_m: use direction='given'")
        if errors is not None and center:
            raise ParameterError("errors= belong to rho_n . alpha_m: use center=False")
        if getattr(errors, "refit", False):
            raise ParameterError(
                "errors= of refitted vectors belong to other products than the model's: use "
                "laplace(...) without refit, or interval() of what you have"
            )
        self.affinity = Affinity(fitted, direction, center)
        self.min_support = checked_support(data, min_support)
        self.support = None if data is None else Support(fitted, data)
        self.confidence, self.errors = confidence, errors
        counts = None if self.support is None else self.support.counts
        self.labels = fitted.entities.labels
        self.choice = Choice(fitted.entities, counts=counts, **options)
        self.rows = np.arange(len(self.labels)) if self.choice.rows is None else self.choice.rows

    def asked(self, item: Any) -> Ints:
        """Codes of the items in question; each must do something to others."""
        codes = self.choice.codes(item)
        for code in codes[~self.affinity.known[codes]].tolist():
            raise DataError(
                f"the model does not know what {shorten(self.labels[code])} does to others: its "
                "context vector is 0, as fold_in(..., context_too=False) leaves it; ask similar()"
            )
        return codes

    def table(self, first: dict[str, Any], n: Ints, m: Ints, extra: dict[str, Any]) -> Table:
        """Products of pairs with everything that is known about them; `first` names the pairs."""
        products = self.affinity.products(n, m)
        columns = {**first, "product": products}
        columns |= product_interval(self.errors, products, n, m, self.confidence)
        columns |= extra
        if self.support is not None:
            columns |= self.support.columns(n, m, self.confidence)
        elif self.choice.counts is not None:
            columns["count"] = self.choice.counts[n]
        return Table(columns)

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

    def surely(self, m: int, rows: Ints) -> tuple[Bools, Bools]:
        """Which entities are surely more, and surely less, often with m than by chance."""
        if self.support is None:
            return np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
        together, expected = self.support.together(m)[rows], self.support.expected(rows, m)
        _, low, high = lift_interval(together, expected, self.confidence)
        return np.asarray(low > 1), np.asarray(high < 1)

    def answer(
        self, item: Any, codes: Ints, found: list[Ints], extra: dict[str, Any] | None = None
    ) -> Table:
        """Table of what was found for each of the codes."""
        m = np.repeat(codes, [len(one) for one in found])
        n = np.concatenate(found)
        several = isinstance(item, Iterable) and not isinstance(item, str)
        first = {"query": self.labels[m]} if several else {}
        return self.table({**first, "label": self.labels[n]}, n, m, extra or {})


def complements(model: Queries, item: Any, n: int = 10, **options: Unpack[PairOptions]) -> Table:
    """Find the items that an item makes more probable: the largest rho_n . alpha_m.

    The method `complements` of fitted models calls it, and documents the parameters and the result.
    """
    size, pairing = checked_number(n), Pairing(model, **options)
    codes = pairing.asked(item)
    left, right = pairing.affinity.left, pairing.affinity.right
    if pairing.min_support is None:
        nearest, _ = largest_products(left, right[codes], size + 1, pairing.choice.rows)
        found = [near[near != m][:size] for near, m in zip(nearest, codes, strict=True)]
    else:
        found = []
        for m in codes.tolist():
            rows = pairing.rows[pairing.often_together(m)]
            near, _ = largest_products(left, right[[m]], size, rows[rows != m])
            found.append(near[0])
    return pairing.answer(item, codes, found)


def substitutes(
    model: Queries,
    item: Any,
    n: int = 10,
    *,
    min_similarity: float = MIN_SIMILARITY,
    apart: bool = True,
    **options: Unpack[PairOptions],
) -> Table:
    """Find the items that take the place of an item: same contexts, but not together.

    The method `substitutes` of fitted models calls it, and documents the parameters and the result.
    """
    fitted = model.fitted()
    if fitted.spec.positive_rho and fitted.spec.positive_alpha:
        raise ParameterError(
            "positive vectors only hold positive correlations, so this model knows no "
            "substitutes: fit one with signed vectors, such as PoissonEmbedding"
        )
    limit = _cosine(min_similarity)
    size, pairing = checked_number(n), Pairing(model, **options)
    codes = pairing.asked(item)
    near, answers, usual = pairing.affinity, pairing.affinity.responses, pairing.affinity.usual[0]
    found, parts = [], []
    for m in codes.tolist():
        rows = pairing.rows[pairing.often_expected(m)]
        product, z = near.left[rows] @ near.right[m], near.mutual_z(rows, m)
        cosine = np.clip(answers[rows] @ answers[m], -1.0, 1.0)
        more, fewer = pairing.surely(m, rows)
        low = z <= LOW_Z if pairing.support is None else fewer
        kind = np.where(cosine < limit, 2, np.where(low, 0, 1))
        confirmed = fewer & (kind == 0)
        kept = np.flatnonzero(((product < usual[rows]) | confirmed) & (rows != m) & ~more)
        rank = np.where(kind == 0, z, product) if pairing.support is None else product
        order = kept[np.lexsort((rank[kept], kind[kept]))]
        if not apart:
            order = order[kind[order] == 0]
        order = order[:size]
        found.append(rows[order])
        parts.append((z[order], cosine[order], kind[order]))
    low_z, alike, kinds = (np.concatenate(part) for part in zip(*parts, strict=True))
    first = "suggested" if pairing.support is None else "substitute"
    extra = {
        "mutual_z": low_z,
        "context_similarity": alike,
        "kind": np.array([first, "unclear", "apart"], dtype=object)[kinds],
    }
    return pairing.answer(item, codes, found, extra)


def _cosine(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputTypeError(f"min_similarity must be a number, got {value!r}")
    if not -1 <= value <= 1:
        raise ParameterError(f"min_similarity is a correlation, from -1 to 1, got {value}")
    return float(value)
