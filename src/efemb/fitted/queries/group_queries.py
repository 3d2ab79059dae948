"""GroupQueries: questions about groups of rows with embeddings of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.group_models import of_group, similar_groups
from efemb.fitted.queries.base import Asked
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


@fill_docstrings
class GroupQueries(Asked):
    """Questions to models with `structure=Grouped(column)`."""

    def of_group(self, label: Any) -> FittedEmbedding:
        """Return the model of one group of rows, with the embeddings of that group.

        Every question, `laplace`, `fold_in` and `save` work with it as with any model.

        Parameters
        ----------
        label : label of a group
            A value of the row column of `structure=Grouped(column)`.

        Returns
        -------
        FittedEmbedding
            With one embedding per item; context vectors are those of all groups.

        Examples
        --------
        %(kids)s
        >>> model.of_group("yes").similar("bread", n=1).columns
        ['label', 'similarity']
        """
        return of_group(self.fitted(), label)

    def similar_groups(self, n: int = 10) -> Table:
        """Compare groups of rows: which of them deviate from the shared embeddings alike.

        Parameters
        ----------
        n : int, default=10
            Number of pairs of groups; fewer are returned if there are fewer.

        Returns
        -------
        Table
            group, other, similarity (the cosine of their offsets over all items) and distance; the
            most similar pair first.

        Examples
        --------
        %(kids)s
        >>> model.similar_groups().columns
        ['group', 'other', 'similarity', 'distance']
        """
        return similar_groups(self.fitted(), n)

    def differs(self, data: Any, n: int = 20, **options: Any) -> Table:
        """Find the items whose embedding in a group differs most from the shared one.

        Distances are measured in standard errors: distances alone would rank rare items first.

        Parameters
        ----------
        data : Dataset
            The rows of the fit, with their row column.
        n : int, default=20
            Number of pairs of an item and a group.
        group : label, optional
            Only this group.
        min_count : float, default=1
            Only items that occur in at least this many rows of the group.
        %(progress)s

        Returns
        -------
        Table
            label, group, count (rows of the group with the item), distance, ratio (distance over
            its standard error if there were no difference), p_value and q_value (expected share of
            false discoveries up to this row); the smallest p-value first.

        Examples
        --------
        %(kids)s
        >>> model.differs(trips, n=1).columns
        ['label', 'group', 'count', 'distance', 'ratio', 'p_value', 'q_value']
        """
        from efemb.inference.group_differences import differs

        return differs(self, data, n, **options)
