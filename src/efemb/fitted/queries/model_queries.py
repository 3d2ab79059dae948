"""ModelQueries: questions about a whole model: its page, quality, errors and new items."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.queries.base import HasFitted
from efemb.fitted.selection import accepts

if TYPE_CHECKING:
    from pathlib import Path

    from efemb.explore import Explorer
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.inference import Laplace, Report


class PageOptions(TypedDict, total=False):
    """What is on the page of a model: see `efemb.explore.prepare`."""

    against: Any
    data: Any
    test: Any
    groups: Any
    group_column: str | None
    errors: Any
    methods: Any
    names: Any
    progress: bool


class ServedPageOptions(PageOptions, total=False):
    """The same, and how the page is served: see `efemb.explore.Explorer.serve`."""

    host: str
    port: int
    token: str | None
    open_browser: bool


@fill_docstrings
class ModelQueries(HasFitted):
    """Questions about the whole model: its page, its quality, its errors and new items."""

    @accepts(ServedPageOptions)
    def explore(self, **options: Unpack[ServedPageOptions]) -> Explorer:
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
        passed: dict[str, Any] = {**options}
        contents = {name: passed[name] for name in passed if name in PageOptions.__annotations__}
        serving = {name: passed[name] for name in passed if name not in contents}
        return explore.show(explore.prepare(self, **contents), **serving)  # type: ignore[no-any-return]

    @accepts(PageOptions)
    def to_html(self, path: Any, *, bits: int = 24, **options: Unpack[PageOptions]) -> Path:
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

    def report(self, data: Any = None, **options: Any) -> Report:
        """Check the fit and say what to do about problems.

        Parameters
        ----------
        data : like the X of `fit`, optional
            Rows of the fit or others. Adds checks of the variance, the share of zeros, context
            sizes and rare items; without data only the results of the fit are examined.
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

        Given all context vectors, the embedding rho_n and the intercept of an item are a
        generalized linear model on its own column; given all embeddings, a context vector alpha_n
        is one on the rows that contain n. Both are solved with everything else unchanged. Columns
        of further terms are solved together with rho.

        Parameters
        ----------
        data : Dataset
            Rows with known and new items. Labels identify the new ones; without labels the first
            columns are the known items. Known items that the data lack count as absent.
        context_too : bool, default=True
            Also solve the context vectors alpha of the new items. Without them (0, or small in
            positive models) the new items can be predicted, but they do not affect the prediction
            of others; several times faster. Neighbors of known items never change.
        prior : {"fitted", "model"} or Prior, default="fitted"
            Prior of the new vectors. A model that was stopped early has shorter vectors than its
            prior alone would give: "fitted" is a Normal with the spread of the known vectors, or
            the prior of the model if that is tighter. A Prior applies to rho.
        sweeps : int, default=1
            Number of further rounds, each of which solves alpha and then rho.
        tol : float, default=0.05
            Stop within tol * p / 2 of the maximum of a log posterior with p unknowns; p / 2 is the
            uncertainty of the posterior itself.
        sample_weight : array of shape (rows,), optional
            Weights of the rows, as in `fit`.
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

        Given alpha, an embedding rho_n with its intercept is a generalized linear model, and

            H_n = sum over rows of w c (z, 1)(z, 1)' + precision of the prior

        is minus the second derivative of its log posterior; c, the curvature of a log-density in
        the predictor, is the variance of x for Poisson and Bernoulli. The covariance is the inverse
        of H_n or, with `sandwich`, H_n^-1 (sum of squared scores of the rows) H_n^-1, which also
        holds if the family has the wrong variance. Terms are columns of z: their row side is given
        like alpha, their entity side is unknown like the intercept.

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
            Number of rows that each represents, as in `fit`. The sandwich squares the weights with
            the scores, as for rows that were drawn with unequal probabilities.
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
