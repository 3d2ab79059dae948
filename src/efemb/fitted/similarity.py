"""Similarity of entities: by the direction of their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from efemb.fitted.selection import Options
from efemb.fitted.vectors import Which, labeled_vectors
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.queries import Queries


def similar(
    model: Queries,
    query: Any,
    n: int = 10,
    *,
    which: Which = "auto",
    progress: bool = False,
    **options: Unpack[Options],
) -> Table:
    """The entities whose vectors have the largest cosine with the query's, as in the paper.

    Parameters
    ----------
    model : fitted model
    query : label, list of labels, or array of floats of shape (K,) or (B, K)
        A label is left out of its own answer. With a list of labels or a matrix, the table gets a
        column `query`.
    n : int
        Fewer rows come back where fewer entities are left.
    which : {"auto", "rho", "alpha", "both"}
        Embeddings (default), context vectors, or one after the other.
    progress : bool
        Show a progress bar.
    where, exclude, min_count, match, unknown
        Which entities may be answers, applied before the search; see `Choice`.

    Returns
    -------
    Table
        label, similarity and, where the rows of the fit were counted, count (how many hold it);
        best first, ties in the order of the labels.
    """
    vectors = labeled_vectors(model.fitted(), which)
    return vectors.similar(query, n, progress=progress, **options)


def analogy(
    model: Queries,
    positive: Any,
    negative: Any = (),
    n: int = 10,
    *,
    which: Which = "auto",
    method: Literal["add", "mul"] = "add",
    **options: Unpack[Options],
) -> Table:
    """Entities near the sum of some and far from others; see `LabeledVectors.analogy`."""
    vectors = labeled_vectors(model.fitted(), which)
    return vectors.analogy(positive, negative, n, method, **options)
