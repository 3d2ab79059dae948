"""VectorQueries: questions about the vectors themselves: neighbors, dimensions and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from efemb import fitted as questions
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.queries.base import HasFitted
from efemb.fitted.selection import Options, accepts
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.labeled import LabeledVectors
    from efemb.fitted.vectors import Which


@fill_docstrings
class VectorQueries(HasFitted):
    """Questions about the vectors themselves: neighbors, dimensions and weights."""

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
        return questions.labeled_vectors(self.fitted(), which)

    @accepts(Options)
    def similar(
        self,
        query: Any,
        n: int = 10,
        *,
        which: Which = "auto",
        group: Any = None,
        at: Any = None,
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
        model = self._of_group_or_time(group, at)
        return questions.similar(model, query, n, which=which, progress=progress, **options)

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
        return questions.analogy(self, positive, negative, n, which=which, **options)

    def doesnt_match(self, labels: Any, *, which: Which = "auto", **options: Any) -> Any:
        """Return the label that is least like the others.

        Parameters
        ----------
        labels : list of labels
            At least three different ones.
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
        return questions.topics(self, n, **options)

    def weights(
        self,
        item: Any = None,
        n: int | None = None,
        *,
        scaled: bool = False,
        **options: Any,
    ) -> Any:
        """List the weights of the neighbors of an item: inner products of their vectors.

        The weight of neighbor m of item n is rho_n . alpha_m. For models whose context is a fixed
        list (`Neighbors`, `Graph`, `Lagged`): the "synaptic weights" of the paper's figure.

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
            Only these neighbors are listed. A string selects the labels that contain it, ignoring
            case; a callable takes a label and returns True or False.
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
        return questions.weights(self, item, n, scaled=scaled, **options)
