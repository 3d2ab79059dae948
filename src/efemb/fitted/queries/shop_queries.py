"""ShopQueries: questions about households, weeks and prices, as methods of a fitted model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb import fitted as questions
from efemb.errors import ParameterError
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.labeled import LabeledVectors
from efemb.fitted.queries.base import HasFitted
from efemb.fitted.selection import Choice
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.fitted.row_groups import RowGroups
    from efemb.inference import Laplace


@fill_docstrings
class ShopQueries(HasFitted):
    """Questions about models with terms: groups of rows, new groups, prices."""

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
        return questions.RowGroups.of(self.fitted(), column)

    def fold_in_rows(self, data: Any, **options: Any) -> FittedEmbedding:
        """Give new households vectors without fitting the model again.

        Given everything else, the vector of a household is a regression with k coefficients on the
        cells of its rows: the mirror image of `fold_in`. Rows of new households also become
        history if the model has a `History`; the popularity that it is weighed against stays.

        Parameters
        ----------
        data : like the X of `fit`
            Rows of new groups; a few per group are enough. Rows of known groups are ignored.
        prior : {"fitted", "model"} or Prior, default="fitted"
            Prior of the new vectors: as spread out as the known vectors (or that of the term if it
            is tighter), that of the term, or your own.
        tol : float, default=0.05
            Stop within tol * p / 2 of the maximum of a log posterior with p unknowns.
        sample_weight : array of shape (rows,), optional
            Weights of the rows, as in `fit`.
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

    # -- features of items ------------------------------------------------------------------------

    def categories(self, feature: str) -> LabeledVectors:
        """Return the vectors of the categories of a feature, such as departments.

        For models with ``structure=Tree([...])`` or ``Featured([...])``: the embedding of an item
        of which only the category is known.

        Parameters
        ----------
        feature : str
            One of the features of the structure.

        Returns
        -------
        LabeledVectors
            One vector per category, with methods such as `similar`.

        Examples
        --------
        %(tree)s
        >>> list(model.categories("kind"))
        ['dairy', 'bakery']
        """
        fitted = self.fitted()
        labels, structure = fitted.spec.structure.categories(feature)
        array, size = fitted.parameters.rho, fitted.n_entities
        own = np.zeros((len(labels), *array.shape[1:]), dtype=array.dtype)
        rho = np.concatenate([own, array[size:]])
        return LabeledVectors(labels, structure.spread(rho, rho, len(labels))[0])

    def add_items(self, table: Any, *, item: str = "item") -> FittedEmbedding:
        """Add items that were never sold, by their features.

        For models with ``structure=Tree([...])`` or ``Featured([...])``. New items answer every
        question: what they are similar to, complements, baskets they fit.

        Parameters
        ----------
        table : mapping of str to list, or a pandas, polars or pyarrow table
            A column of labels, and one for each feature of the structure. A missing feature, or a
            category that the fit did not see, adds nothing.
        item : str, default="item"
            The column of labels.

        Returns
        -------
        FittedEmbedding
            Known items first, then the new ones. Their own vectors are 0, the prior mean, so that
            they have the vectors of their features. Their intercepts, and the item arrays of
            terms, are predicted from the features by regressions on the known items.

        Examples
        --------
        %(tree)s
        >>> new = model.add_items({"item": ["rye"], "kind": ["bakery"]})
        >>> sorted(new.similar("rye", n=2)["label"])
        ['bread', 'rolls']
        """
        from efemb.inference import add_items

        return add_items(self, table, item=item)

    # -- scenarios --------------------------------------------------------------------------------

    def simulate(self, rows: Any, **options: Any) -> Dataset:
        """Draw baskets from the model, for example at other prices or with another assortment.

        Parameters
        ----------
        rows : Dataset, mapping of row columns, or int
            The rows to draw. A Dataset gives the row columns and the values at which the sweeps
            start, which are not in the result. A mapping such as ``{"household": [...], "week":
            [...]}`` gives only row columns, a number none; missing columns count as the prior mean.
        sweeps : int, default=8
            How many times every value is redrawn, given the current values of the others.
        row_size : float, optional
            Mean number of units of a row, for categorical models, which know what is bought but not
            how much; by default as in the Dataset.
        seed : int, default=0
            The same seed gives the same random numbers whatever the tables are, so that two calls
            differ by the effect of the tables.
        %(progress)s
        **tables : CellTable, or mapping of items to numbers
            Tables of terms by name, in place of those of the data: ``price={"milk": 0.8}`` is 20%
            off in every week, ``available={"milk": 0}`` takes milk off the shelf.

        Returns
        -------
        Dataset
            Sparse counts of the same rows. ``report["sampler"]`` is "gibbs": conditionals need not
            be those of any joint distribution, and then hold approximately.

        Examples
        --------
        %(market)s
        >>> drawn = model.simulate(market, price={"milk": 0.5}, seed=1)
        >>> drawn.shape, drawn.report["sampler"]
        ((80, 2), 'gibbs')
        """
        simulation = import_module("efemb.simulation")  # by name: a layer above
        return simulation.simulate_rows(self, rows, **options)  # type: ignore[no-any-return]

    def compare_prices(self, rows: Any, after: Any, before: Any = None, **options: Any) -> Table:
        """Units and revenue of every item at two tables of prices, by simulation.

        Both tables use the same random numbers. Like `elasticity`, this describes how sales and
        prices move together, not the effect of a price change: prices are set with demand in mind.

        Parameters
        ----------
        rows : Dataset, mapping of row columns, or int
            The rows to draw, as for `simulate`.
        after, before : CellTable, or mapping of items to numbers
            The two tables, or changes of the table of the fit, which `before` is by default.
        table : str, default="price"
            Name of the table.
        draws : int, default=4
            How many times the rows are drawn.
        seed : int, default=0
            Random seed of the first draw.
        %(progress)s
        **options
            sweeps, row_size and further tables, as for `simulate`.

        Returns
        -------
        Table
            label, units_before, units_after, change (of the units), standard_error (of the change,
            treating the rows as a sample), revenue_before and revenue_after (units times the
            numbers of the table); the largest absolute change first.

        Examples
        --------
        %(market)s
        >>> model.compare_prices(market, {"milk": 0.5}, draws=2)["label"][0]
        'milk'
        """
        simulation = import_module("efemb.simulation")
        return simulation.compare_prices(self, rows, after, before, **options)  # type: ignore[no-any-return]

    # -- prices ----------------------------------------------------------------------------------

    def elasticity(
        self, item: Any = None, *, table: str | None = None, errors: Laplace | None = None
    ) -> Table:
        """Own price elasticities: the response of an item's mean to its own price.

        For models with a `CellCovariate` of the logarithm of a price. The elasticity of counts is
        c_n. Categorical and binary models have c_n (1 - p_n), where p_n is the share or the
        probability of the item without a context. Prices are set with demand in mind, so this
        describes how sales and prices of an item move together, not the effect of a change.

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

        To first order, c_m times the mean share of m in the baskets times rho_n . alpha_m: at a
        higher price m is bought less often, and adds less to the means of others.
        In categorical models other items also gain what m loses.

        Parameters
        ----------
        item : label
            The item m whose price changes.
        data : like the X of `fit`
            Baskets from which the share of m is computed.
        n : int, default=10
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

    # -- shelves ----------------------------------------------------------------------------------

    def exposure(self, item: Any = None) -> Table:
        """How often an item is on offer at all, in models with `ZeroInflated` counts.

        A rare item with a high exposure is seldom wanted; one with a low exposure is wanted where
        it is on offer, but seldom is. Only counts above 1 distinguish the two: where an item is
        bought one at a time, its exposure is that of the prior.

        Parameters
        ----------
        item : label or list of labels, optional
            By default all items, the lowest exposure first.

        Returns
        -------
        Table
            label and exposure, the probability p_n.

        Examples
        --------
        >>> import numpy as np
        >>> import efemb
        >>> rng = np.random.default_rng(0)
        >>> counts = rng.poisson(3, (300, 3)) * (rng.random((300, 3)) < [0.9, 0.9, 0.2])
        >>> trips = efemb.Dataset(counts, entities=["milk", "tea", "turkey"])
        >>> family = efemb.ZeroInflated("poisson")
        >>> model = efemb.Embedding(1, family=family, context="basket", random_state=0).fit(trips)
        >>> print(model.exposure("turkey"))
        label   exposure
        turkey    0.2671
        """
        model = self.fitted()
        exposures = model.spec.family.exposures(model.n_entities)
        if exposures is None:
            raise ParameterError(
                f"family={model.spec.family!r} takes every item to be on offer in every row: fit "
                "with family=ZeroInflated('poisson')"
            )
        codes = np.argsort(exposures, kind="stable")
        if item is not None:
            codes = np.atleast_1d(Choice(model.entities).codes(item))
        return Table({"label": model.entities.labels[codes], "exposure": exposures[codes]})
