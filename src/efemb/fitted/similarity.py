"""Similarity of entities: by the direction of their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from efemb.fitted.selection import Options, accepts
from efemb.fitted.vectors import Which, labeled_vectors
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.queries.base import HasFitted


def similar(
    model: HasFitted,
    query: Any,
    n: int = 10,
    *,
    which: Which = "auto",
    progress: bool = False,
    **options: Unpack[Options],
) -> Table:
    """Find the items whose vectors have the largest cosine with that of the query.

    The method `similar` of fitted models calls it, and documents the parameters and the result.
    """
    vectors = labeled_vectors(model.fitted(), which)
    return vectors.similar(query, n, progress=progress, **options)


@accepts(Options)
def analogy(
    model: HasFitted,
    positive: Any,
    negative: Any = (),
    n: int = 10,
    *,
    which: Which = "auto",
    method: Literal["add", "mul"] = "add",
    **options: Unpack[Options],
) -> Table:
    """Find items near all `positive` and far from all `negative` ones.

    The method `analogy` of fitted models calls it, and documents the parameters and the result.
    """
    vectors = labeled_vectors(model.fitted(), which)
    return vectors.analogy(positive, negative, n, method, **options)
