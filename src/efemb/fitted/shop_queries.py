"""ShopQueries: questions about households, weeks and prices, as methods of a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.row_groups import RowGroups
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.inference import Laplace


@fill_docstrings
class ShopQueries:
    """Questions to models with terms: groups of rows, new groups, prices."""

    if TYPE_CHECKING:

        def fitted(self) -> FittedEmbedding:
            """The fitted model."""

    # -- households, weeks, stores ----------------------------------------------------------------

    def rows(self, column: str) -> RowGroups:
        """Return the groups of rows that a `RowVectors` term gave vectors: households, weeks.

        Parameters
        ----------
        column : str
            The row column of the term, such as "household".

        Returns
        -------
        RowGroups
            Its methods answer which groups are alike (`similar`, `segments`), what is typical of
            a group (`items`) and which groups prefer an item (`of_item`).

        Examples
        --------
        %(homes)s
        >>> model.rows("household")
        RowGroups(4 groups by 'household')
        >>> model.rows("household").similar("ann", n=1)["label"][0]
        'bob'
        """
        return RowGroups.of(self.fitted(), column)

    def fold_in_rows(self, data: Any, **options: Any) -> FittedEmbedding:
        """Give new households vectors without fitting the model again.

        Solves the vectors of groups that the fit did not see from their rows, with everything else
        as it was fitted; their rows also become history, if the model has a `History`.

        Parameters
        ----------
        data : like the X of `fit`
            Rows of new groups, a few of each will do. Rows of known groups are ignored.
        prior : {"fitted", "model"} or Prior, default="fitted"
            Prior of the new vectors: as spread out as the known vectors, that of the term, or your
            own.
        tol : float, default=0.05
            Stop within tol * p / 2 of the maximum of a log posterior with p unknowns.
        sample_weight : array of shape (rows,), optional
        %(progress)s

        Returns
        -------
        FittedEmbedding
            The model with the known groups, then the new ones in the order of their first rows.

        Examples
        --------
        %(homes)s
        >>> new = efemb.Dataset([[2, 1, 0, 0]], rows={"household": ["fay"]}, entities=list("abcd"))
        >>> model.fold_in_rows(new).rows("household")
        RowGroups(5 groups by 'household')
        """
        from efemb.inference import fold_in_rows

        return fold_in_rows(self, data, **options)

    # -- prices ----------------------------------------------------------------------------------

    def elasticity(
        self, item: Any = None, *, table: str | None = None, errors: Laplace | None = None
    ) -> Table:
        """Own price elasticities: the response of an item's mean to its own price.

        For models with a `CellCovariate` of the logarithm of a price. The elasticity of counts is
        c_n. Categorical and binary models have c_n (1 - p_n), where p_n is the share or the
        probability of the item without a context. Prices are set with demand in mind, so this is
        how sales and prices move together within an item, not what a change of price would cause.

        Parameters
        ----------
        item : label or list of labels, optional
            By default all items, the most elastic first.
        table : str, optional
            Name of the table, if the model has several.
        errors : Laplace, optional
            ``model.laplace(data)``: adds standard errors, given alpha and the responses of category
            and of all items, and 95% limits.

        Returns
        -------
        Table
            label, elasticity and, with `errors`, standard_error, low and high.

        Examples
        --------
        %(market)s
        >>> model.elasticity("tea", errors=model.laplace(market)).columns
        ['label', 'elasticity', 'standard_error', 'low', 'high']
        """
        from efemb.inference.elasticities import elasticity

        return elasticity(self, item, table=table, errors=errors)

    def cross_elasticity(
        self, item: Any, data: Any, n: int = 10, *, table: str | None = None
    ) -> Table:
        """Responses of other items to the price of an item, through the basket.

        To first order: a dearer item is bought less, and what it would have added to the mean of
        others is missing. c_m times the mean share of m in the baskets times rho_n . alpha_m.
        In categorical models other items also gain what m loses.

        Parameters
        ----------
        item : label
            The item m whose price changes.
        data : like the X of `fit`
            Baskets that tell how often m is in them.
        n : int
            How many items, the largest absolute elasticity first.
        table : str, optional
            Name of the table, if the model has several.

        Returns
        -------
        Table
            label and elasticity; negative for complements of the item, where c_m is negative.

        Examples
        --------
        %(market)s
        >>> model.cross_elasticity("tea", market)["label"].tolist()
        ['milk']
        """
        from efemb.inference.elasticities import cross_elasticity

        return cross_elasticity(self, item, data, n, table=table)
