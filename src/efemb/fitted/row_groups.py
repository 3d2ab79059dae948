"""RowGroups: the households, weeks or stores of a model, and questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from efemb._typing import Floats
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, ParameterError, check_integer, suggest
from efemb.fitted.labeled import LabeledVectors
from efemb.fitted.nearest import largest
from efemb.fitted.selection import Choice, Options, accepts
from efemb.model.terms.base import arrays_of
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


@dataclass(frozen=True, eq=False, repr=False)
class RowGroups:
    """Groups of rows, such as households, and their vectors.

    The vector theta_g of a group adds theta_g . gamma_n to u of every item n. The effect of a group
    on an item is this number minus its mean over all groups and minus its mean over all items: how
    much more the group prefers the item than an average group does, in units of log means. Only
    effects are determined by the data: other vectors theta and gamma can have the same inner
    products, and a constant of all groups is an intercept.

    Attributes
    ----------
    column : str
        The row column that names the groups.
    labels : Vocabulary
        The groups.
    items_of_model : Vocabulary
        The items.
    theta, gamma : arrays of shape (groups, k) and (items, k)
        The vectors, centered.
    """

    column: str
    labels: Vocabulary
    items_of_model: Vocabulary
    theta: Floats
    gamma: Floats

    @classmethod
    def of(cls, model: FittedEmbedding, column: str) -> RowGroups:
        """The groups of a term of a model."""
        terms = {term.label: term for term in model.spec.terms if term.group_array is not None}
        if column not in terms:
            way_out = (
                suggest(column, terms) if terms else "fit it with terms=[RowVectors('household')]"
            )
            raise ParameterError(f"the model has no vectors of {column!r}; {way_out}")
        term = terms[column]
        arrays = arrays_of(term, model.parameters.terms)
        theta, gamma = (arrays[str(name)] for name in (term.group_array, term.entity_array))
        centered = (side.astype(np.float64) - side.mean(axis=0) for side in (theta, gamma))
        return cls(column, Vocabulary(term.groups), model.entities, *centered)

    def __repr__(self) -> str:
        return f"RowGroups({len(self.labels):,} groups by {self.column!r})"

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def vectors(self) -> LabeledVectors:
        """A vector per group, whose inner products are those of the effects on all items."""
        spread, basis = np.linalg.eigh(self.gamma.T @ self.gamma)
        return LabeledVectors(self.labels, self.theta @ basis * np.sqrt(np.maximum(spread, 0.0)))

    @accepts(Options)
    def similar(self, group: Any, n: int = 10, **options: Unpack[Options]) -> Table:
        """List the groups whose effects on all items are most similar to those of a group.

        Parameters
        ----------
        group : label or list of labels
        n : int, default=10
            How many groups.
        **options
            where, exclude, match, unknown: which groups may be listed; see `Choice`.

        Returns
        -------
        Table
            label and similarity (the cosine), the largest first.
        """
        return self.vectors.similar(group, n, **options)

    @accepts(Options)
    def items(self, group: Any, n: int = 10, **options: Unpack[Options]) -> Table:
        """List the items that a group prefers: those of a household, or of a season.

        Parameters
        ----------
        group : label or list of labels
            The effects of several groups, such as the weeks of a season or the households of a
            segment, are averaged.
        n : int, default=10
            How many items.
        **options
            where, exclude, min_count: which items may be listed; see `Choice`.

        Returns
        -------
        Table
            label and effect, the largest first.
        """
        size, choice = check_integer("n", n), Choice(self.items_of_model, **options)
        codes = Choice(self.labels).codes(group)
        effect = self.gamma @ self.theta[codes].mean(axis=0)
        return _top_labels(self.items_of_model, effect, size, choice)

    @accepts(Options)
    def of_item(self, item: Any, n: int = 10, **options: Unpack[Options]) -> Table:
        """List the groups that prefer an item.

        Parameters
        ----------
        item : label or list of labels
            The effects on several items are averaged.
        n : int, default=10
            How many groups.
        **options
            where, exclude: which groups may be listed; see `Choice`.

        Returns
        -------
        Table
            label and effect, the largest first.
        """
        size, choice = check_integer("n", n), Choice(self.labels, **options)
        codes = Choice(self.items_of_model).codes(item)
        return _top_labels(self.labels, self.theta @ self.gamma[codes].mean(axis=0), size, choice)

    def segments(self, n: int = 5, seed: int = 0) -> Table:
        """Divide the groups into segments with similar effects, by k-means.

        Parameters
        ----------
        n : int, default=5
            How many segments.
        seed : int, default=0
            Seed of the first centers; segments are numbered by size, the largest first.

        Returns
        -------
        Table
            label, segment and distance from the center of the segment; ordered by both.

        Examples
        --------
        The items of a segment are ``groups.items(table["label"][table["segment"] == 0])``.
        """
        from sklearn.cluster import KMeans

        size = check_integer("n", n)
        if size > len(self.labels):
            raise DataError(f"{len(self.labels):,} groups cannot be divided into {size:,} segments")
        vectors = self.vectors.vectors.astype(np.float64)
        clusters = KMeans(size, n_init=10, random_state=seed).fit(vectors)
        rank = np.argsort(np.argsort(-np.bincount(clusters.labels_, minlength=size)))
        segment = rank[clusters.labels_]
        distance = np.linalg.norm(vectors - clusters.cluster_centers_[clusters.labels_], axis=1)
        order = np.lexsort((distance, segment))
        columns = {"label": self.labels.labels, "segment": segment, "distance": distance}
        return Table({name: values[order] for name, values in columns.items()})


def _top_labels(labels: Vocabulary, effect: Floats, size: int, choice: Choice) -> Table:
    rows = np.arange(len(labels)) if choice.rows is None else choice.rows
    codes = rows[largest(effect[rows], size)]
    return Table({"label": labels.labels[codes], "effect": effect[codes]})
