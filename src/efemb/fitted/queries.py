"""Queries: the questions as methods of anything that can give a fitted model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from efemb._typing import Floats
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.group_queries import GroupQueries
from efemb.fitted.labeled_vectors import LabeledVectors
from efemb.fitted.pairs import End, pairs
from efemb.fitted.prediction import complete, explain, predict, what_if
from efemb.fitted.query_context import is_table
from efemb.fitted.relation import MIN_SIMILARITY, PairOptions, complements, substitutes
from efemb.fitted.selection import Options
from efemb.fitted.shop_queries import ShopQueries
from efemb.fitted.similarity import analogy, similar
from efemb.fitted.topics import topics
from efemb.fitted.vectors import Which, labeled_vectors
from efemb.fitted.weights import weights
from efemb.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from efemb.explore import Explorer
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.inference import Laplace, Report


@fill_docstrings
class Queries(GroupQueries, ShopQueries):
    """Questions to a fitted model: methods of every estimator and of what `efemb.load` returns.

    Labels name items: products, movies, neurons or words. Without labels in the data, items are
    numbered from 0. Every answer is a `Table`, the best row first.
    """

    _completes_by_vectors = True  # whether `complete` is that of `fitted()`

    if TYPE_CHECKING:

        def fitted(self) -> FittedEmbedding:
            """The fitted model."""

        def conditional(self, X: Any) -> Floats:
            """Conditional means."""

        recommend: Callable[..., Table]

    def vectors(self, which: Which = "auto") -> LabeledVectors:
        """Return the vectors with their labels.

        Parameters
        ----------
        %(which)s

        Returns
        -------
        LabeledVectors
            One vector per item, with methods such as `similar` and `analogy`; `efemb.export` writes
            them for other programs. Later calls return the same object, which keeps its unit
            vectors.

        Examples
        --------
        %(shop)s
        >>> model.vectors()["bread"].shape
        (2,)
        """
        return labeled_vectors(self.fitted(), which)

    def similar(
        self,
        query: Any,
        n: int = 10,
        *,
        which: Which = "auto",
        group: Any = None,
        progress: bool = False,
        **options: Unpack[Options],
    ) -> Table:
        """Find the items whose vectors have the largest cosine with that of the query.

        Two items are similar if they occur in the same contexts, whether or not they occur
        together.

        Parameters
        ----------
        query : label, list of labels, or array of shape (K,) or (B, K)
            A label is excluded from its own answer. A list or a matrix adds a column `query`.
        n : int, default=10
            Number of items per query; fewer are returned if fewer are left.
        %(which)s
        %(group)s
        %(progress)s
        %(select)s
        %(lookup)s

        Returns
        -------
        Table
            label, similarity and, if the fit counted the rows, count (rows that contain the item).
            Ties are in the order of the labels.

        Examples
        --------
        %(shop)s
        >>> model.similar("bread", n=1)["label"][0]
        'butter'
        """
        model = self if group is None else self.of_group(group)
        return similar(model, query, n, which=which, progress=progress, **options)

    def analogy(
        self,
        positive: Any,
        negative: Any = (),
        n: int = 10,
        *,
        which: Which = "auto",
        **options: Any,
    ) -> Table:
        """Find items near all `positive` and far from all `negative` ones.

        "King" and "woman" without "man": `analogy(["king", "woman"], ["man"])`.

        Parameters
        ----------
        positive : label or list of labels
        negative : label or list of labels, optional
            All of these are excluded from the answer.
        n : int, default=10
            Number of items; fewer are returned if fewer are left.
        %(which)s
        method : {"add", "mul"}, default="add"
            "add" is the cosine with the sum of the unit vectors, negative ones subtracted
            (3CosAdd); "mul" multiplies and divides shifted cosines (3CosMul, Levy and Goldberg
            2014).
        %(select)s
        %(lookup)s

        Returns
        -------
        Table
            label, and similarity ("add") or score ("mul").

        Examples
        --------
        %(shop)s
        >>> len(model.analogy(["bread", "chips"], ["beer"], n=1))
        1
        """
        return analogy(self, positive, negative, n, which=which, **options)

    def doesnt_match(self, labels: Any, *, which: Which = "auto", **options: Any) -> Any:
        """Return the label that is least like the others.

        Parameters
        ----------
        labels : list of labels
            At least two.
        %(which)s
        unknown : {"error", "skip"}, default="error"
            Whether unknown labels raise an error or are ignored.

        Returns
        -------
        label
            The one whose unit vector has the smallest cosine with the mean of all of them.

        Examples
        --------
        %(shop)s
        >>> model.doesnt_match(["bread", "butter", "beer"])
        'beer'
        """
        return self.vectors(which).doesnt_match(labels, **options)

    def complements(
        self, item: Any, n: int = 10, *, group: Any = None, **options: Unpack[PairOptions]
    ) -> Table:
        """Find the items that an item makes more probable: the largest rho_n . alpha_m.

        `score` is rho_n . alpha_m, the amount that one unit of item m in the context adds to the
        predictor u of item n, before division by the context scale. With `data`, items that are
        surely more often together with m than by chance come first ("complement"), then those of
        which the data do not tell ("unclear"); those that are surely less often together are left
        out.

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
        model = self if group is None else self.of_group(group)
        return complements(model, item, n, **options)

    def substitutes(
        self,
        item: Any,
        n: int = 10,
        *,
        min_similarity: float = MIN_SIMILARITY,
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
            Only pairs that independence would bring together in at least this many rows. Requires
            `data`.
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
        return substitutes(self, item, n, **pair_options)

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
            Both items must be among these. A string selects the labels that contain it, whatever
            their case; a callable takes a label and returns True or False.
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
        return pairs(self, n, end=end, progress=progress, **options)

    def topics(self, n: int = 10, **options: Any) -> Table:
        """List the items that stand out in each dimension, as topic models list words.

        Parameters
        ----------
        n : int, default=10
            Number of items per topic.
        topic : int or list of int, optional
            Only these dimensions, numbered from 0.
        vectors : {"context", "embedding"}, default="context"
            Context vectors alpha, as in the paper, or embeddings rho.
        by : {"value", "magnitude"}, default="value"
            Rank by value or by absolute value.
        rotate : {"varimax"}, optional
            Rotate the vectors first so that each has few large entries. A common rotation of rho
            and alpha changes no prediction, so the axes of signed vectors have no meaning of their
            own. Rotated topics are sorted by variance, and their largest entries are positive.
        %(progress)s
        %(select)s
        %(lookup)s

        Returns
        -------
        Table
            topic, label, value and, if known, count.

        Examples
        --------
        %(shop)s
        >>> model.topics(n=2)["topic"].tolist()
        [0, 0, 1, 1]
        """
        return topics(self, n, **options)

    def weights(
        self,
        item: Any = None,
        n: int | None = None,
        *,
        scaled: bool = False,
        **options: Any,
    ) -> Any:
        """List the weight rho_n . alpha_m of every neighbor m of an item n.

        For models whose context is a fixed list (`Neighbors`, `Graph`, `Lagged`): the "synaptic
        weights" of the paper's figure.

        Parameters
        ----------
        item : label or list of labels, optional
            Items whose neighbors are listed; all by default.
        n : int, optional
            Only this many neighbors per item, those with the largest absolute weight.
        scaled : bool, default=False
            Divide by the number of neighbors if the context takes their mean (`scale="items"`). The
            weight is then the coefficient of x_m in u_n when all neighbors are observed.
        form : {"table", "csr"}, default="table"
            "csr" returns a sparse matrix of shape (N, N) instead, the weight of neighbor m for item
            n in row n and column m; for contexts within a row.
        where : callable, str, boolean array of shape (N,) or labels, optional
            Only these neighbors are listed. A string selects the labels that contain it, whatever
            their case; a callable takes a label and returns True or False.
        exclude : label or labels, optional
            Items that are never listed.
        min_count : float, optional
            Only items that occur at least this often.
        %(lookup)s

        Returns
        -------
        Table, or csr_array
            label (n), neighbor (m), weight and, if contexts reach other rows, offset; in the order
            of the items, the largest weight first.

        Examples
        --------
        >>> import numpy as np
        >>> import efemb
        >>> X, places = np.random.default_rng(0).normal(size=(60, 5)), np.arange(5.0)[:, None]
        >>> model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0)
        >>> sorted(model.fit(X, positions=places).weights(2)["neighbor"].tolist())
        [1, 3]
        """
        return weights(self, item, n, scaled=scaled, **options)

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
        if is_table(context):
            return self.conditional(context)
        return predict(self, context, n, **options)

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
        if is_table(basket):
            return self.recommend(basket, n, **options)
        return complete(self, basket, n, **options)

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
            first.

        Examples
        --------
        %(shop)s
        >>> sorted(model.explain({"bread": 2}, "butter")["term"].tolist())
        ['(intercept)', 'bread']
        """
        return explain(self, context, item, **options)

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
            For models with a `CellCovariate`: changes of its table, by its name. Of logarithms they
            are factors, ``price={"milk": 0.8}, week=30`` is 20% off in week 30; of other tables
            new values.

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
        return what_if(self, context, add, remove, n, **options)

    # -- in the browser --------------------------------------------------------------------------

    def explore(self, **options: Any) -> Explorer:
        """Show the model in the browser: its map, relations, baskets and topics.

        In a notebook, the page appears in the cell. Elsewhere it is served to the browser until
        interrupted (Ctrl-C). Requires the extra `explore`.

        Parameters
        ----------
        %(explore)s
        host, port, token, open_browser : optional
            How the page is served; see `efemb.explore.Explorer.serve`.

        Returns
        -------
        Explorer
            Shows itself in a notebook; `to_html` writes the page.

        Examples
        --------
        %(shop)s
        >>> model.explore(data=trips)  # doctest: +SKIP
        """
        explore = import_module("efemb.explore")  # by name: a layer above, with web packages
        serving = ("host", "port", "token", "open_browser")
        how = {name: options.pop(name) for name in serving if name in options}
        return explore.show(explore.prepare(self, **options), **how)  # type: ignore[no-any-return]

    def to_html(self, path: Any, *, bits: int = 24, **options: Any) -> Path:
        """Write the model as one self-contained page that answers questions offline.

        The page holds labels, maps and vectors of up to 20,000 items and computes every answer
        itself. It loads nothing from elsewhere, so that it can be sent to a colleague. Requires the
        extra `explore`.

        Parameters
        ----------
        path : str or path
            The file to write.
        bits : {24, 16, 8}, default=24
            Precision of the vectors: 24 bits give the answers of Python, 16 and 8 bits make a
            smaller file whose neighbors are sometimes exchanged.
        %(explore)s

        Returns
        -------
        Path
            The file.

        Examples
        --------
        %(shop)s
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = model.to_html(os.path.join(folder, "map.html"), data=trips, methods="pca")
        ...     page.stat().st_size < 3_000_000
        True
        """
        explore = import_module("efemb.explore")
        return explore.prepare(self, **options).to_html(path, bits)  # type: ignore[no-any-return]

    # -- after the fit ---------------------------------------------------------------------------

    def report(self, data: Any = None, **options: Any) -> Report:
        """Check the fit and say what to do about problems.

        Parameters
        ----------
        data : like the X of `fit`, optional
            Rows of the fit or others. Adds checks of the variance, the share of zeros, context
            sizes and rare items; without data only what the fit left behind is examined.
        seed : int, default=0
            Seed for the sample of rows that is examined if there are too many.
        %(progress)s

        Returns
        -------
        Report
            Prints as text; `findings` is the list of results, `to_dict()` has the numbers.

        Examples
        --------
        %(shop)s
        >>> model.report(trips).findings[0].topic
        'convergence'
        """
        from efemb.inference import report

        return report(self, data, **options)

    def fold_in(self, data: Any, **options: Any) -> FittedEmbedding:
        """Add the new items of `data` without fitting the model again.

        Solves the vectors of the new items from the rows that contain them; all others stay as they
        are.

        Parameters
        ----------
        data : Dataset
            Rows with known and new items. Labels identify the new ones; without labels the first
            columns are the known items.
        context_too : bool, default=True
            Also solve the context vectors alpha of the new items. Without them the new items can be
            predicted, but they do not affect the prediction of others; several times faster.
        prior : {"fitted", "model"} or Prior, default="fitted"
            Prior of the new vectors: as spread out as the known vectors, that of the model, or your
            own.
        sweeps : int, default=1
            Number of further rounds, each of which solves alpha and then rho.
        tol : float, default=0.05
            Stop within tol * p / 2 of the maximum of a log posterior with p unknowns.
        sample_weight : array of shape (rows,), optional
        %(progress)s

        Returns
        -------
        FittedEmbedding
            The known items, then the new ones in the order of the data.

        Examples
        --------
        %(shop)s
        >>> known = efemb.PoissonEmbedding(2, random_state=0).fit(trips.take_entities(slice(0, 3)))
        >>> known.fold_in(trips).n_entities
        4
        """
        from efemb.inference import fold_in

        return fold_in(self, data, **options)

    def laplace(self, data: Any, **options: Any) -> Laplace:
        """Approximate the posterior of every embedding by a normal distribution, given alpha.

        Given the context vectors, the embedding rho_n and its intercept are a generalized linear
        model; the covariance is the inverse of minus the second derivative of its log posterior.

        Parameters
        ----------
        data : like the X of `fit`
            The rows of the fit.
        sandwich : bool, default=False
            Estimate the variance of the scores from the rows instead of trusting the family.
        refit : bool, default=False
            First move each embedding to its optimum given alpha: a fit that stopped early has not
            quite reached it.
        sample_weight : array of shape (rows,), optional
            Weights of the rows, as in `fit`.
        %(progress)s

        Returns
        -------
        Laplace
            `interval(n, m)` is the confidence interval of rho_n . alpha_m; `complements(...,
            errors=)` takes the object as it is. Covariances are computed on demand and kept.

        Examples
        --------
        %(shop)s
        >>> interval = model.laplace(trips).interval("bread", "butter")
        >>> interval.low < interval.value < interval.high
        True
        """
        from efemb.inference import laplace

        return laplace(self, data, **options)
