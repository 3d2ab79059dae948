"""RelationQueries: questions about pairs of items: complements, substitutes, extreme pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from efemb import fitted as questions
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.queries.base import HasFitted
from efemb.fitted.selection import PairOptions, accepts
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.extreme_pairs import End


@fill_docstrings
class RelationQueries(HasFitted):
    """Questions about pairs of items: complements, substitutes and the extreme pairs."""

    @accepts(PairOptions)
    def complements(
        self,
        item: Any,
        n: int = 10,
        *,
        group: Any = None,
        at: Any = None,
        **options: Unpack[PairOptions],
    ) -> Table:
        """Find the items that an item makes more probable, by the inner product of their vectors.

        `score` is rho_n . alpha_m, the amount that one unit of item m in the context adds to the
        predictor u of item n, before division by the context scale. With `data`, items that occur
        together with m significantly more often than by chance come first ("complement"), then
        those without a significant difference ("unclear"). Items that occur together significantly
        less often are left out.

        Parameters
        ----------
        item : label or list of labels
            The item m in the context. A list adds a column `query`.
        n : int, default=10
            Number of items per question; fewer are returned if fewer are left.
        %(group)s
        %(pair)s
        min_support : float, optional
            Only pairs that occur together in at least this many rows. Requires `data`.
        %(errors)s
        %(select)s
        %(lookup)s

        Returns
        -------
        Table
            label, score and the columns that the options add; with `data` also kind. Without
            `data`, count refers to the rows of the fit.

        Examples
        --------
        %(shop)s
        >>> table = model.complements("bread", data=trips)
        >>> table["label"].tolist(), table["together"].tolist(), table["kind"].tolist()
        (['butter'], [40], ['complement'])
        """
        model = self._of_group_or_time(group, at)
        return questions.complements(model, item, n, **options)

    @accepts(PairOptions)
    def substitutes(
        self,
        item: Any,
        n: int = 10,
        *,
        min_similarity: float = 0.5,
        apart: bool = False,
        **options: Unpack[PairOptions],
    ) -> Table:
        """Find the items that take the place of an item: same contexts, but not together.

        A product rho_n . alpha_m is small for two reasons: n and m replace each other, or they
        simply occur in different contexts. The column `kind` distinguishes them by
        `context_similarity`, the correlation of rho_n . alpha_j and rho_m . alpha_j over all items
        j:

        - "substitute": similar contexts, and in `data` a lift significantly below 1;
        - "suggested" (without `data`): similar contexts and a `mutual_z` of at most -1.25;
        - "unclear": similar contexts, but neither of the above;
        - "apart": different contexts.

        Vectors alone confirm nothing, and most suggestions are wrong: pass `data`. An empty result
        is possible; the line below the table says why.

        Parameters
        ----------
        item : label or list of labels
            A list adds a column `query`.
        n : int, default=10
            Number of items per question; fewer are returned if fewer are left.
        min_similarity : float, default=0.5
            Correlation from which two contexts count as similar.
        apart : bool, default=False
            Also list "unclear" and "apart" items, after the substitutes.
        %(pair)s
        min_support : float, optional
            Only pairs that are expected together in at least this many rows under independence.
            Requires `data`.
        %(errors)s
        %(select)s
        %(lookup)s

        Returns
        -------
        Table
            label, score (rho_n . alpha_m), mutual_z (mean of the standardized scores of n given m
            and of m given n), context_similarity, kind and the columns that the options add.

        Raises
        ------
        ParameterError
            If all vectors are positive: such a model has no negative effects.

        Examples
        --------
        %(shop)s
        >>> table = model.substitutes("bread", data=trips, apart=True)
        >>> [(row["label"], row["kind"]) for row in table]
        [('chips', 'apart')]
        """
        pair_options: Any = {"min_similarity": min_similarity, "apart": apart, **options}
        return questions.substitutes(self, item, n, **pair_options)

    @accepts(PairOptions)
    def pairs(
        self,
        n: int = 10,
        *,
        end: End = "both",
        progress: bool = False,
        **options: Unpack[PairOptions],
    ) -> Table:
        """Find the pairs of items with the largest and smallest inner products.

        Examines all N^2 products rho_n . alpha_m, block by block.

        Parameters
        ----------
        n : int, default=10
            Number of pairs at each end.
        end : {"both", "largest", "smallest"}, default="both"
            "both" lists the largest products in descending order, then the smallest in ascending
            order.
        %(progress)s
        %(pair)s
        min_support : float, optional
            Only pairs with at least this many rows together (largest products) or expected together
            under independence (smallest products). Requires `data`.
        %(errors)s
        where : callable, str, boolean array of shape (N,) or labels, optional
            Both items must be among these. A string selects the labels that contain it, ignoring
            case; a callable takes a label and returns True or False.
        exclude : label or labels, optional
            Items that are never listed.
        min_count : float, optional
            Only items that occur at least this often.
        %(lookup)s

        Returns
        -------
        Table
            label (n), given (m), score, context_similarity as in `substitutes`, and the columns
            that the options add. With `direction="symmetric"` each pair is listed once.

        Examples
        --------
        %(shop)s
        >>> model.pairs(1, end="largest").columns
        ['label', 'given', 'score', 'context_similarity']
        """
        return questions.pairs(self, n, end=end, progress=progress, **options)
