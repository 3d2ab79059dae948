"""Text shared by the docstrings of questions, and the decorators that insert it."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

# Parameters and data that several docstrings share.
_SHARED = {
    "shop": """\
>>> import efemb
>>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [1, 0, 1, 0]] * 20
>>> trips = efemb.Dataset(X, entities=["bread", "butter", "beer", "chips"])
>>> model = efemb.PoissonEmbedding(2, random_state=0).fit(trips)
""",
    "market": """\
>>> import efemb
>>> price = efemb.data.CellTable([[1.0, 2.0], [0.8, 2.5]], by="week", groups=[1, 2])
>>> market = efemb.Dataset(
...     [[1, 2], [1, 1], [2, 1], [3, 1]] * 20,
...     entities=["milk", "tea"],
...     rows={"week": [1, 1, 2, 2] * 20},
...     cells={"price": price},
... )
>>> terms = [efemb.CellCovariate("price", log=True)]
>>> model = efemb.PoissonEmbedding(1, random_state=0, terms=terms).fit(market)
""",
    "homes": """\
>>> import efemb
>>> X = [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]] * 20
>>> homes = efemb.Dataset(
...     X, entities=list("abcd"), rows={"household": ["ann", "bob", "cid", "dee"] * 20}
... )
>>> terms = [efemb.RowVectors("household", 1)]
>>> model = efemb.PoissonEmbedding(1, random_state=0, terms=terms).fit(homes)
""",
    "tree": """\
>>> import efemb
>>> trips = efemb.Dataset(
...     [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [1, 0, 1, 0]] * 20,
...     entities=["milk", "cream", "bread", "rolls"],
...     features={"kind": ["dairy", "dairy", "bakery", "bakery"]},
... )
>>> model = efemb.PoissonEmbedding(2, structure=efemb.Tree(["kind"]), random_state=0).fit(trips)
""",
    "select": """\
where : callable, str, boolean array of shape (N,) or labels, optional
    Only these items may be listed. A string selects the labels that contain it, ignoring
    case; a callable takes a label and returns True or False.
exclude : label or labels, optional
    Items that are never listed.
min_count : float, optional
    Only items that occur at least this often.
""",
    "lookup": """\
match : {"exact", "prefix"}, default="exact"
    How labels in the question are looked up. "prefix" also accepts part of a label if it
    identifies a single one.
unknown : {"error", "skip"}, default="error"
    Whether unknown labels in the question raise an error or are ignored. At least one label
    must be known.
""",
    "row": """\
**row : values of row columns
    For models with terms: the household, the week, ..., by the name of the row column that a term
    reads, such as `household=1234`. A value that the fit did not see, or none at all, counts as
    the prior mean: a household without a vector of its own, an average temperature. With such a
    value the context may be empty.
""",
    "which": """\
which : {"auto", "rho", "alpha", "both"}, default="auto"
    The embeddings rho, the context vectors alpha, or the concatenation of both. "auto" is
    rho, except for a hierarchical softmax, where rho belongs to the nodes of the tree and
    "auto" is alpha.
""",
    "group": """\
group : label, optional
    With `structure=Grouped(column)`: the embeddings of this group of rows. By default those that
    all groups share.
at : number, date or text, optional
    With `structure=Dynamic(column)`: the embeddings of the slice of this time. By default the mean
    over time.
""",
    "kids": """\
>>> import efemb
>>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [1, 0, 1, 0]] * 20
>>> trips = efemb.Dataset(
...     X, entities=["bread", "butter", "beer", "chips"], rows={"kids": ["no", "yes"] * 50}
... )
>>> groups = efemb.Grouped("kids", min_rows=20)
>>> model = efemb.PoissonEmbedding(2, structure=groups, random_state=0).fit(trips)
""",
    "weeks": """\
>>> import efemb
>>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1], [1, 0, 1, 0]] * 20
>>> trips = efemb.Dataset(
...     X, entities=["bread", "butter", "beer", "chips"], rows={"week": [1] * 50 + [2] * 50}
... )
>>> model = efemb.PoissonEmbedding(2, structure=efemb.Dynamic("week"), random_state=0).fit(trips)
""",
    "progress": """\
progress : bool, default=False
    Show a progress bar.
""",
    "pair": """\
direction : {"given", "symmetric"}, default="given"
    "given" ranks by rho_n . alpha_m, the effect of m on n; "symmetric" by the mean of that
    and rho_m . alpha_n.
center : bool, default=False
    Subtract the mean context vector from alpha first, so that 0 is the effect of an average
    item.
data : Dataset or array, optional
    Rows of counts or binary values. Adds the columns `count` (rows that contain n),
    `together` (rows that contain both), `expected` (such rows under independence), `share` (of the
    rows that contain m), `lift` (`together` divided by `expected`), `lift_low` and `lift_high`.
""",
    "explore": """\
against : fitted estimator or FittedEmbedding, optional
    A second model, shown beside the first; neighbors that differ are marked.
data : like the X of `fit`, optional
    Rows of the fit or others. Adds counts of pairs and lift, and R^2 for recordings.
test : like the X of `fit`, optional
    Held-out rows; the card shows their score and, with `data`, that of popularity.
groups : mapping of labels to groups, one group per item, or path of a table, optional
    Colors of the map; in a table, `group_column` names the column of the groups.
errors : Laplace or array of shape (N,), optional
    How uncertain each embedding is: the result of `laplace`, or a number per item.
methods : str or list of {"pca", "tsne", "umap"}, optional
    Projections of the maps; t-SNE and principal components by default.
names : str or pair of str, optional
    Titles of the models.
progress : bool, default=False
    Show progress bars.
""",
    "errors": """\
confidence : float, default=0.95
    Level of the intervals.
errors : Laplace, optional
    Standard errors of the inner products, as returned by `laplace`; adds the columns `low`
    and `high`. Requires `direction="given"` and `center=False`.
""",
}
C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
_PLACEHOLDER = re.compile(r"^( *)%\((\w+)\)s\n", re.M)


def fill_docstrings(cls: C) -> C:
    """Put the shared text in place of `%(name)s` lines in the docstrings of the methods."""
    for method in vars(cls).values():
        if callable(method) and method.__doc__:
            method.__doc__ = _PLACEHOLDER.sub(_shared_lines, method.__doc__)
    return cls


def documented_by(source: Any) -> Callable[[F], F]:
    """Give a method that overrides another one the docstring of that one."""

    def decorate(method: F) -> F:
        method.__doc__ = source.__doc__
        return method

    return decorate


def as_function_of(method: Any) -> Callable[[F], F]:
    """Give the function behind a method its docstring, and a parameter `model`.

    The docstring that the function has describes this parameter.
    """

    def decorate(function: F) -> F:
        if method.__doc__ is not None:  # python -OO
            text = cleandoc(method.__doc__).partition("\n\nExamples\n-----")[0]
            title = "Parameters\n----------\n"
            entry = f"model : fitted estimator or FittedEmbedding\n    {function.__doc__}\n"
            function.__doc__ = text.replace(title, title + entry)
        return function

    return decorate


def _shared_lines(match: re.Match[str]) -> str:
    lines = _SHARED[match[2]].splitlines(keepends=True)
    return "".join(match[1] + line for line in lines)
