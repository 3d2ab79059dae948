"""Queries: the questions as methods of anything that can give a fitted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from efemb._typing import Floats
from efemb.fitted.labeled_vectors import LabeledVectors
from efemb.fitted.pairs import End, pairs
from efemb.fitted.prediction import complete, explain, predict, what_if
from efemb.fitted.relation import MIN_SIMILARITY, PairOptions, complements, substitutes
from efemb.fitted.selection import Options
from efemb.fitted.similarity import analogy, similar
from efemb.fitted.topics import topics
from efemb.fitted.vectors import Which, labeled_vectors
from efemb.fitted.weights import weights
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.inference import Laplace, Report


class Queries:
    """Methods of estimators and of what `efemb.load` returns; each is a function of this package.

    Every method takes the options of `efemb.fitted.Choice` where they make sense: `where`,
    `exclude` and `min_count` say which entities may be answers, `match` and `unknown` how labels
    are looked up.
    """

    if TYPE_CHECKING:

        def fitted(self) -> FittedEmbedding:
            """The fitted model."""

        def conditional(self, X: Any) -> Floats:
            """Conditional means."""

    def vectors(self, which: Which = "auto") -> LabeledVectors:
        """The vectors with their labels; see `efemb.fitted.labeled_vectors`."""
        return labeled_vectors(self.fitted(), which)

    def similar(
        self,
        query: Any,
        n: int = 10,
        *,
        which: Which = "auto",
        progress: bool = False,
        **options: Unpack[Options],
    ) -> Table:
        """The entities whose vectors point the same way; see `efemb.fitted.similar`."""
        return similar(self, query, n, which=which, progress=progress, **options)

    def analogy(
        self,
        positive: Any,
        negative: Any = (),
        n: int = 10,
        *,
        which: Which = "auto",
        **options: Any,
    ) -> Table:
        """Entities near the sum of some and far from others; see `LabeledVectors.analogy`."""
        return analogy(self, positive, negative, n, which=which, **options)

    def doesnt_match(self, labels: Any, *, which: Which = "auto", **options: Any) -> Any:
        """The label that is least like the others."""
        return self.vectors(which).doesnt_match(labels, **options)

    def complements(self, item: Any, n: int = 10, **options: Unpack[PairOptions]) -> Table:
        """Entities that an item makes more probable; see `efemb.fitted.complements`."""
        return complements(self, item, n, **options)

    def substitutes(
        self,
        item: Any,
        n: int = 10,
        *,
        min_similarity: float = MIN_SIMILARITY,
        apart: bool = True,
        **options: Unpack[PairOptions],
    ) -> Table:
        """Entities that an item makes less probable; see `efemb.fitted.substitutes`."""
        more: Any = {"min_similarity": min_similarity, "apart": apart, **options}
        return substitutes(self, item, n, **more)

    def pairs(
        self,
        n: int = 10,
        *,
        end: End = "both",
        progress: bool = False,
        **options: Unpack[PairOptions],
    ) -> Table:
        """The largest and smallest inner products of all pairs; see `efemb.fitted.pairs`."""
        return pairs(self, n, end=end, progress=progress, **options)

    def topics(self, n: int = 10, **options: Any) -> Table:
        """The entities that stand out in each dimension; see `efemb.fitted.topics`."""
        return topics(self, n, **options)

    def weights(
        self,
        entity: Any = None,
        n: int | None = None,
        *,
        scaled: bool = False,
        **options: Unpack[Options],
    ) -> Table:
        """What each neighbour counts for an entity; see `efemb.fitted.weights`."""
        return weights(self, entity, n, scaled=scaled, **options)

    def predict(self, context: Any, top: int = 10, **options: Unpack[Options]) -> Any:
        """Entities that belong into a context; see `efemb.fitted.predict`.

        An array or a Dataset of rows x entities gives what `conditional` gives.
        """
        if len(getattr(context, "shape", ())) > 1:
            return self.conditional(context)
        return predict(self, context, top, **options)

    def complete(self, basket: Any, n: int = 10, **options: Unpack[Options]) -> Table:
        """The next-best entities for a basket; see `efemb.fitted.complete`."""
        return complete(self, basket, n, **options)

    def explain(self, context: Any, item: Any, **options: Unpack[Options]) -> Table:
        """The exact terms of an entity's inner product; see `efemb.fitted.explain`."""
        return explain(self, context, item, **options)

    def what_if(
        self,
        context: Any,
        add: Any = (),
        remove: Any = (),
        n: int | None = None,
        **options: Unpack[Options],
    ) -> Table:
        """Change of every mean when a context changes; see `efemb.fitted.what_if`."""
        return what_if(self, context, add, remove, n, **options)

    # -- after the fit ---------------------------------------------------------------------------

    def report(self, data: Any = None, **options: Any) -> Report:
        """How the fit went and what to do about it, in words; see `efemb.inference.report`."""
        from efemb.inference import report

        return report(self, data, **options)

    def fold_in(self, data: Any, **options: Any) -> FittedEmbedding:
        """A model that also knows the new entities of data; see `efemb.inference.fold_in`."""
        from efemb.inference import fold_in

        return fold_in(self, data, **options)

    def laplace(self, data: Any, **options: Any) -> Laplace:
        """How sure the embeddings are, given the context vectors; see `efemb.inference.laplace`."""
        from efemb.inference import laplace

        return laplace(self, data, **options)
