"""PredictionQueries: questions about a context: what fits it, why, and what would change."""

from __future__ import annotations

from typing import Any

from efemb import fitted as questions
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.queries.base import HasFitted
from efemb.table import Table


@fill_docstrings
class PredictionQueries(HasFitted):
    """Questions about a context: what fits it, why, and what would change."""

    def predict(self, context: Any, n: int = 10, **options: Any) -> Any:
        """List the items that fit a context, the most probable first.

        Every item is predicted from the other items of the context, never from itself; a word of a
        text may occur again.

        Parameters
        ----------
        context : list of labels or mapping of labels to amounts, or list of contexts
            For a positional window: the words before the gap and after it, half of each. For fixed
            lists of neighbors: the observed items. Several contexts add a column `context`, their
            number. An array or a Dataset of rows x items gives the means of `conditional` instead.
        n : int, default=10
            Number of items per context; fewer are returned if fewer are left.
        %(select)s
        %(lookup)s
        %(row)s

        Returns
        -------
        Table
            label, probability (share of the conditional means of all items) and, for counts and
            binary data, mean; real-valued data have a mean only.

        Examples
        --------
        %(shop)s
        >>> model.predict(["bread", "butter"], n=4, where="bread").columns
        ['label', 'probability', 'mean']
        """
        return questions.predict(self, context, n, **options)

    def complete(self, basket: Any, n: int = 10, **options: Any) -> Table:
        """List the best items to add to a basket: `predict` without the items already in it.

        Parameters
        ----------
        basket : list of labels, mapping of labels to amounts, list of baskets, or rows x items
            Several baskets add a column `context`, their number. A Dataset or another table of rows
            is answered by `recommend`.
        n : int, default=10
            Number of items per basket; fewer are returned if fewer are left.
        %(select)s
        %(lookup)s
        %(row)s

        Returns
        -------
        Table
            label, probability (share of the conditional means of the items that are not in the
            basket) and, for counts and binary data, mean.

        Examples
        --------
        %(shop)s
        >>> model.complete({"bread": 2}, n=1)["label"][0]
        'butter'
        """
        return questions.complete(self, basket, n, **options)

    def explain(self, context: Any, item: Any, **options: Any) -> Table:
        """Decompose the prediction of an item: what each part of the context contributes.

        The predictor u = intercept + sum over members m of x_m (rho . alpha_m) / d + further terms
        is a sum, so the explanation is exact: the contributions add up to u, and eta = f(u).

        Parameters
        ----------
        context : list of labels or mapping of labels to amounts
            The item itself is left out of its own context, as in the model.
        item : label or list of labels
            A list adds a column `item`.
        %(lookup)s
        %(row)s

        Returns
        -------
        Table
            term (a member, "(intercept)" or the name of a term of the model such as "household"),
            amount x_m, weight rho . alpha_m and contribution; the largest absolute contribution
            first. Members that are outside the context of the item (not in its list of neighbors,
            beyond the window) contribute nothing; the line below the table names them.

        Examples
        --------
        %(shop)s
        >>> sorted(model.explain({"bread": 2}, "butter")["term"].tolist())
        ['(intercept)', 'bread']
        """
        return questions.explain(self, context, item, **options)

    def what_if(
        self,
        context: Any,
        add: Any = (),
        remove: Any = (),
        n: int | None = None,
        **options: Any,
    ) -> Table:
        """Show how the mean of every item changes when a context changes.

        Parameters
        ----------
        context : list of labels or mapping of labels to amounts
            May be empty.
        add : label, list of labels or mapping of labels to amounts, optional
            Added to the amounts of the context.
        remove : label, list of labels or mapping of labels to amounts, optional
            Removed, entirely or, in a mapping, by an amount; must be in the context.
        n : int, optional
            Only this many items.
        %(select)s
        %(lookup)s
        %(row)s
        **table : mappings of labels to numbers
            For models with a `CellCovariate`: changes of its table, by its name. They are
            factors if the term takes logarithms (``price={"milk": 0.8}, week=30`` is 20% off in
            week 30), and new values otherwise.

        Returns
        -------
        Table
            label, before and after (conditional means; probabilities for text and categorical
            models), change and, if means are positive, ratio; the largest absolute change first.

        Examples
        --------
        %(shop)s
        >>> model.what_if(["bread"], add="butter", where="chips").columns
        ['label', 'before', 'after', 'change', 'ratio']
        """
        return questions.what_if(self, context, add, remove, n, **options)
