"""FittedEmbedding: the result of a fit, immutable and safe on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import ParameterError
from efemb.fitted.docstrings import fill_docstrings
from efemb.fitted.queries import Queries
from efemb.fitted.recommendation import Recommender, RowScores, whole_row_blocks
from efemb.fitted.selection import check_choice
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.data.vocabulary import Vocabulary
    from efemb.fitted.labeled import LabeledVectors
    from efemb.fitted.relation import Affinity
    from efemb.model.contexts.base import BoundContext
    from efemb.model.contexts.bound.entities import Lists
    from efemb.model.factors import Factors

_READERS = {
    "efemb baseline": "efemb.baselines.baseline_files",
    "efemb blend": "efemb.blend.blend_files",
    "efemb basket model": "efemb.baskets.basket_files",
}


@fill_docstrings
class DataMethods(Recommender, Queries):
    """Predictions and scores of data, for anything that has a fitted model and reads its data."""

    if TYPE_CHECKING:

        def _read(self, X: Any, as_context: bool = False) -> Any: ...

    def _bind(self, X: Any, as_context: bool = False) -> tuple[Spec, BoundContext, Factors]:
        """Ingredients, contexts of X and vectors: the arguments of `efemb.model.predict`."""
        fitted = self.fitted()  # first, so that an estimator without a fit says so
        return fitted._bound(self._read(X, as_context))

    def _item_labels(self) -> Vocabulary:
        return self.fitted().entities

    def _skip_unknown(self, X: Any) -> Any:
        """X over the entities of the model; text is recoded when it is read."""
        from efemb.data.align import skip_unknown

        fitted = self.fitted()
        if fitted.spec.context.reads_text:
            return X
        absent = np.nan if fitted.spec.family.missing else 0.0
        return skip_unknown(X, fitted.vocabulary, absent)

    def _row_scores(self, X: Any, *, exclude_seen: bool) -> RowScores:
        """Log means of counts and binary data on rows, conditional means of everything else."""
        from efemb.model import predict

        if self.fitted().spec.context.reads_text:
            raise ParameterError(
                "recommend takes rows x items; for the words that fit a gap in a text use "
                "predict(words)"
            )
        data = self._read(X, as_context=True)
        spec, bound, factors = self.fitted()._bound(data)
        if bound.n_dims > 1:
            raise ParameterError("recommend needs scalar observations, not vectors of them")
        rules: dict[str, Any] = {"shares": spec.family.normalized_score and bound.shares_rows}
        rules["missing"] = spec.family.missing
        if not rules["shares"]:
            return RowScores(data, predict.mean_blocks(spec, bound, factors), **rules)
        log_means = partial(predict.log_mean_blocks, spec, bound, factors)
        blocks = whole_row_blocks(data, log_means, exclude_seen=exclude_seen)
        return RowScores(data, blocks, **rules)

    def transform(self, X: Any) -> Floats:
        """Embed rows: the context sum X alpha / d of each whole row.

        Parameters
        ----------
        X : like the X of `fit`
            Rows of numbers, or documents for a text model.

        Returns
        -------
        array of shape (rows, K)
            Missing values are skipped; an empty row gives zeros.

        Examples
        --------
        %(shop)s
        >>> model.transform(trips).shape
        (100, 2)
        """
        fitted = self.fitted()
        return fitted._embedded(self._read(X, as_context=True))

    def context_sums(self, X: Any, entries: Any) -> Floats:
        """Scaled context sums s_tn / d_tn of selected cells.

        Parameters
        ----------
        X : like the X of `fit`
        entries : pair of integer arrays (rows, entities)
            The cells (t, n), both arrays of length n.

        Returns
        -------
        array of shape (n, K)
            NaN where the observation is missing.

        Examples
        --------
        %(shop)s
        >>> model.context_sums(trips, ([0, 0], [0, 1])).shape
        (2, 2)
        """
        from efemb.model import predict

        spec, bound, vectors = self._bind(X)
        rows, entities = predict.check_entries(entries, bound.n_rows, bound.n_entities)
        return predict.context_sums(spec, bound, vectors, rows, entities)

    def conditional(self, X: Any) -> Floats:
        """Conditional mean E[x_tn | context] of every entry, in the shape of X.

        Parameters
        ----------
        X : like the X of `fit`

        Returns
        -------
        array of shape (rows, N), or (rows, N, D) for vector observations
            A categorical model gives probabilities: each row sums to 1 over the entities, every
            one of which is predicted with its own units removed from the context.

        Examples
        --------
        %(shop)s
        >>> model.conditional([[1, 0, 0, 0]]).round(1).shape
        (1, 4)
        """
        from efemb.model import predict

        return predict.conditional_means(*self._bind(X, as_context=True))

    def probability_at_least(self, X: Any, k: int) -> Floats:
        """P(x_tn >= k | context) of every entry, for models of counts.

        Parameters
        ----------
        X : like the X of `fit`
        k : int
            ``k=1`` gives the probability that the entity occurs, ``k=2`` of two or more units.

        Returns
        -------
        array of shape (rows, N)

        Examples
        --------
        %(shop)s
        >>> p = model.probability_at_least([[1, 0, 0, 0]], 2)
        >>> p.shape, bool((p < model.probability_at_least([[1, 0, 0, 0]], 1)).all())
        ((1, 4), True)
        """
        from efemb.model import predictive

        return predictive.tail_probabilities(*self._bind(X, as_context=True), k)

    def quantile(self, X: Any, q: float) -> Floats:
        """Quantile of the conditional distribution of every entry, for models of counts.

        Parameters
        ----------
        X : like the X of `fit`
        q : float
            Between 0 and 1.

        Returns
        -------
        array of shape (rows, N)
            The smallest whole number x with P(x_tn <= x) >= q.

        Examples
        --------
        %(shop)s
        >>> model.quantile([[1, 0, 0, 0]], 0.99).shape
        (1, 4)
        """
        from efemb.model import predictive

        return predictive.quantiles(*self._bind(X, as_context=True), q)

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Floats]]:
        """log E[x_j | row without the queried entity] of all entities j, block by block.

        Parameters
        ----------
        X : like the X of `fit`, counts or binary data on rows
        rows, entities : integer arrays of shape (n,)
            The queried cells; an entity that occurs in its row is removed from it first.

        Yields
        ------
        slice
            Positions of a block of queried cells.
        array of shape (cells of the block, N)
            Up to a constant per cell for categorical models and negative sampling.

        Examples
        --------
        %(shop)s
        >>> [block.shape for _, block in model.log_means(trips, [0, 3], [1, 2])]
        [(2, 4)]
        """
        from efemb.model import predict

        return predict.log_mean_blocks(*self._bind(X, as_context=True), rows, entities)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, unknown: str = "error"
    ) -> float:
        """How well the entries of X are predicted from their contexts; higher is better.

        Parameters
        ----------
        X : like the X of `fit`
        y : ignored
            Present for compatibility with scikit-learn.
        sample_weight : array of shape (rows,), optional
            Finite weights >= 0; text models do not take any.
        unknown : {"error", "skip"}, default="error"
            Whether entities of X that the model does not know raise an error or are ignored. With
            "skip", entities that X lacks count as zeros, or as missing in real data; words of a
            text that the model does not know are always ignored.

        Returns
        -------
        float
            Counts and binary data on rows: normalized log-likelihood per unit, leaving out one
            entry at a time. Otherwise: mean conditional log-density per observed entry.

        Examples
        --------
        %(shop)s
        >>> model.score(trips) > -1.386  # log(1/4), the score of equal shares
        True
        """
        from efemb.model import predict
        from efemb.model.support import check_sample_weight, refuse_weights

        check_choice("unknown", unknown)
        spec, bound, vectors = self._bind(self._skip_unknown(X) if unknown == "skip" else X)
        if spec.context.reads_text:
            refuse_weights(sample_weight)
        return predict.score(spec, bound, vectors, check_sample_weight(sample_weight, bound.n_rows))

    def score_parts(self, X: Any) -> tuple[float, float]:
        """The sum of scores and the weight, whose ratio is `score`: those of shards add up.

        Parameters
        ----------
        X : like the X of `fit`

        Returns
        -------
        total, weight : float
        """
        from efemb.model import predict

        return predict.score_parts(*self._bind(X))


@fill_docstrings
@dataclass(frozen=True, repr=False)
class FittedEmbedding(DataMethods):
    """The result of a fit: vectors, labels and the ingredients that give them meaning.

    Immutable, and needs neither scikit-learn nor numba. `estimator.fitted()` returns it, `save`
    writes it to a folder, and `efemb.load` reads it.

    Attributes
    ----------
    parameters : Parameters
        All learned arrays: rho, alpha, the intercepts and those of terms.
    spec : Spec
        The ingredients: context, family, link, priors, zeros, structure, terms.
    vocabulary : Vocabulary or None
        Labels of the entities; `entities` numbers them from 0 if there are none.
    positions : array of shape (N, p) or None
        Where the entities are, for contexts of neighbors.
    lists : tuple of Lists or None
        Neighbors that were chosen from the training data.
    history : list of dict
        One record per pass.
    model : str
        Name of the estimator.
    binarize : bool
        Whether every nonzero value counts as 1.
    """

    parameters: Parameters
    spec: Spec
    vocabulary: Vocabulary | None = None
    positions: Floats | None = None
    lists: tuple[Lists, ...] | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    model: str = "Embedding"
    binarize: bool = False  # every non-zero value counts as 1

    def __repr__(self) -> str:
        """The model, its size and its ingredients."""
        size = f"{self.n_entities:,} entities in {self.n_components} dimensions"
        ingredients = (self.spec.context, self.spec.family, self.spec.link)
        return f"<{self.model} of {size}: {', '.join(map(repr, ingredients))}>"

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without cached results, which are recomputed when needed."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def fitted(self) -> FittedEmbedding:
        """The object itself."""
        return self

    @property
    def n_components(self) -> int:
        """K."""
        return int(self.parameters.rho.shape[1])

    @property
    def n_entities(self) -> int:
        """N."""
        if self.parameters.intercept is not None:
            return len(self.parameters.intercept)
        if self.vocabulary is not None:
            return len(self.vocabulary)
        of_structure = self.spec.structure.n_entities
        return len(self.parameters.rho) if of_structure is None else of_structure

    @cached_property
    def entities(self) -> Vocabulary:
        """The labels; numbers from 0 where the data had none."""
        from efemb.data.vocabulary import Vocabulary

        return Vocabulary(range(self.n_entities)) if self.vocabulary is None else self.vocabulary

    @cached_property
    def _labeled(self) -> dict[str, LabeledVectors]:
        """Vectors that were requested, kept with their unit vectors."""
        return {}

    @cached_property
    def _affinities(self) -> dict[tuple[str, bool], Affinity]:
        """Inner products of requested pairs, with what was derived from them."""
        return {}

    @cached_property
    def _group_models(self) -> dict[int, FittedEmbedding]:
        """Models of groups of rows that were requested."""
        return {}

    @property
    def n_slots(self) -> int:
        """Context vectors per entity: more than one for `Lagged` contexts."""
        return 1 + max(
            (int(members.slot.max(initial=0)) for members in self.lists or ()), default=0
        )

    def _read(self, X: Any, as_context: bool = False) -> Any:
        """X as the estimator read it: words, or numbers that the model can have produced."""
        from efemb.data.readers.text.read import recode
        from efemb.model.support import binarized, check_not_negative, check_support

        if self.spec.context.reads_text:
            assert self.vocabulary is not None  # text always has its words
            return recode(X, self.vocabulary)
        data = self._labeled_rows(X)
        if self.binarize:
            check_not_negative(data)
            data = binarized(data)
        # Whether the fit accepted fractions is not known here.
        way_out = "correct such values, or pass 0 and 1 where only presence matters"
        rules: dict[str, Any] = {"allow_real": True, "way_out": way_out}
        check_support(data, self.spec.family, **rules, as_context=as_context)
        return data

    def _labeled_rows(self, X: Any) -> Dataset:
        """Rows of numbers over the entities of the model, in its order."""
        from efemb.data.align import check_entities, label_columns

        data = label_columns(X, self.vocabulary)
        check_entities(data, self.vocabulary, self.n_entities)
        return data

    def _bound(self, data: Any) -> tuple[Spec, BoundContext, Factors]:
        """Ingredients, contexts of data that were read before, and vectors."""
        from efemb.model.contexts.bound.entities import EntityLists

        bound: BoundContext = (
            self.spec.context.bind(data) if self.lists is None else EntityLists(data, self.lists)
        )
        return self.spec, bound, self._factors(bound)

    def _factors(self, bound: BoundContext) -> Factors:
        """The vectors in the shape that a bound context needs."""
        from efemb.model.space import ParameterSpace

        dims = (bound.n_entities, bound.n_slots, bound.n_dims, self.n_components)
        return ParameterSpace(self.spec, *dims).vectors(self.parameters)

    def _embedded(self, data: Any) -> Floats:
        """Context sums of whole rows, or of documents."""
        from efemb.data.corpus import Corpus
        from efemb.fitted.vectors import entity_vectors
        from efemb.model import predict
        from efemb.model.space import ParameterSpace

        spec, reverse = self.spec, self.spec.combine.reverse
        text = isinstance(data, Corpus)
        if text and not spec.structure.contexts:
            alpha = entity_vectors(self, "rho" if reverse else "alpha")
            return predict.document_embedding(data, alpha, spec.context.scale)
        dims = (self.n_entities, self.n_slots, 1 if text else data.n_dims, self.n_components)
        vectors = ParameterSpace(spec, *dims).vectors(self.parameters)
        center = next((lists.column_center for lists in self.lists or ()), None)

        def embed(part: Any, alpha: Floats) -> Floats:
            if text:
                return predict.document_embedding(part, alpha, spec.context.scale)
            return predict.row_embedding(spec, part, alpha.astype(part.values.dtype), center)

        if spec.structure.contexts:
            return predict.embed_groups(spec, data, vectors, embed)
        return embed(data, vectors.target if reverse else vectors.bag)

    def save(self, path: Any) -> None:
        """Write the model to a folder of arrays and JSON, without pickle.

        Parameters
        ----------
        path : str or path
            A folder; a model that was saved there before is replaced atomically.

        Examples
        --------
        %(shop)s
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.fitted().save(os.path.join(folder, "shop"))
        ...     efemb.load(os.path.join(folder, "shop")).n_entities
        4
        """
        from efemb.fitted.disk import save

        save(self, path)


def load(path: Any) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    FittedEmbedding, BasketEmbedding, baseline or Blend
        Whatever was saved. It needs neither scikit-learn nor numba to answer questions.

    Raises
    ------
    DataError
        If the folder does not contain a model, or if a file changed since it was written.
    """
    from importlib import import_module

    from efemb.storage.folder import format_of

    # By name: these are higher layers, which models of vectors do not need.
    return import_module(_READERS.get(format_of(path) or "", "efemb.fitted.disk")).read(path)
