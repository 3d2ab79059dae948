"""GroupQueries: questions about groups of rows with embeddings of their own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from efemb.errors import ParameterError
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.queries.base import HasFitted
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


@fill_docstrings
class GroupQueries(HasFitted):
    """Questions about models with `structure=Grouped(column)` or `structure=Dynamic(column)`."""

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
            With one embedding per item; context vectors are those of all groups, unless the
            structure has `contexts=True`.

        Examples
        --------
        %(kids)s
        >>> model.of_group("yes").similar("bread", n=1).columns
        ['label', 'similarity']
        """
        from efemb.fitted.group_models import of_group

        return of_group(self.fitted(), label)

    def _of_group_or_time(self, group: Any, at: Any) -> Any:
        """The model of a group or of a time, itself if neither is given."""
        if group is not None and at is not None:
            raise ParameterError("group= and at= mean the same: pass one of them")
        label = at if group is None else group
        return self if label is None else self.of_group(label)

    def similar_groups(self, n: int = 10) -> Table:
        """Compare groups of rows: which ones deviate from the shared embeddings in the same way.

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
        from efemb.fitted.group_models import similar_groups

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
        table: Table = _group_differences().differs(self, data, n, **options)
        return table

    # -- time ------------------------------------------------------------------------------------

    def trajectory(self, items: Any, data: Any = None) -> Table:
        """Follow items through time: how far their embeddings moved, and what they are near to.

        Parameters
        ----------
        items : label or list of labels
        data : Dataset, optional
            The rows of the fit; adds the column `count`. Slices without the item are interpolated.

        Returns
        -------
        Table
            label, at (beginning of the slice), distance (from the embedding of the first slice),
            similarity (cosine with it), intercept, nearest (the most similar item at that time) and
            count (rows of the slice that contain the item); `plots.trajectory` draws it.

        Examples
        --------
        %(weeks)s
        >>> model.trajectory("bread", data=trips)["count"].tolist()
        [30.0, 30.0]
        """
        from efemb.fitted.group_models import trajectory

        return trajectory(self, items, data)

    def drift(self, data: Any, n: int = 20, **options: Any) -> Table:
        """Find the items whose embedding moved most, in units of the standard error.

        Parameters
        ----------
        data : Dataset
            The rows of the fit, with their row column.
        n : int, default=20
            Number of items.
        min_count : float, default=1
            Only items that occur in at least this many rows of the later half; of a text, words
            that occur so often in the first slice and in the last.
        %(progress)s

        Returns
        -------
        Table
            label, count (rows of the later half with the item), distance (between the first and the
            last slice), ratio (distance between the halves of the rows over its standard error if
            nothing moved), p_value and q_value (expected share of false discoveries up to this
            row); the smallest p-value first. Of a text,
            label, count_first and count_last (tokens of the first and the last slice), distance and
            similarity (cosine) between these slices; the largest distance first.

        Examples
        --------
        %(weeks)s
        >>> model.drift(trips, n=1).columns
        ['label', 'count', 'distance', 'ratio', 'p_value', 'q_value']
        """
        table: Table = _group_differences().drift(self, data, n, **options)
        return table

    def change_points(self, item: Any, data: Any, n: int = 3, **options: Any) -> Table:
        """Find when the embedding of an item changed, compared with shuffled times.

        Parameters
        ----------
        item : label
        data : Dataset
            The rows of the fit, with their row column.
        n : int, default=3
            Number of slices.
        n_permutations : int, default=199
            How often the times of the rows are shuffled.
        seed : int, default=0
            Random seed of the shuffles.
        %(progress)s

        Returns
        -------
        Table
            at (the slice with which the change begins), rows_before, rows_after, step (length of
            the step into this slice), statistic (squared difference of the scores before and after,
            in units of its variance) and p_value (share of shuffles whose largest statistic is as
            large); the largest first.

        Examples
        --------
        %(weeks)s
        >>> model.change_points("bread", trips, n_permutations=9)["at"].tolist()
        [2]
        """
        table: Table = _group_differences().change_points(self, item, data, n, **options)
        return table


def _group_differences() -> Any:
    """A module of a higher layer, imported when it is needed."""
    return import_module("efemb.inference.group_differences")
