"""Blend: several models combined into one, with weights fitted to held-out entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from sklearn.utils.validation import check_is_fitted

from efemb._typing import Floats, Ints
from efemb.baselines.arrays import Holdout
from efemb.blend.basket_model import BasketModel
from efemb.blend.members import (
    check_fitted,
    check_models,
    fit_models,
    is_fitted,
    sample_of,
    share_blocks,
)
from efemb.blend.pools import POOLS, Pool, Sample
from efemb.data.matrices import sparse
from efemb.data.vocabulary import shorten
from efemb.errors import (
    DataError,
    ParameterError,
    check_integer,
    check_number,
    suggest,
)
from efemb.estimators.checks import all_or_nothing, check_shape, generator
from efemb.evaluation.adapter import vocabulary_of
from efemb.fitted.selection import Choice, Options, accepts
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

AUTO = "auto"


class Blend(BasketModel):
    """A model of counts or binary data that combines several, weighted by held-out likelihood.

    With q_ij the share of entity j in the means of model i given a row,

    - mixture: ``p_j = sum_i w_i q_ij^t_i / sum_k q_ik^t_i``, with weights ``w_i >= 0`` that sum to
      1 and powers ``t_i > 0``;
    - log-linear: ``p_j proportional to product_i q_ij^w_i``, with weights of any sign; shares below
      1e-12 count as 1e-12.

    Weights and powers maximize the normalized log-likelihood per unit of held-out entries. It is
    concave in the weights of both kinds; powers start at 1 and change only if that improves it.
    A count above 10 weighs 10, so that no single one decides.
    Models must have the same entities, in any order if they are labeled.

    Parameters
    ----------
    models : mapping of str to model
        Any models with `log_means`: embeddings of rows, results of `efemb.load`, baselines, blends.
        Fitted models are used as they are. Others are cloned and fitted (`models_`); if their
        `random_state` is None, they get a seed from the blend.
    how : {"auto", "mixture", "log-linear"}, default="auto"
        "auto" chooses the one with the larger held-out likelihood; `report_` contains both.
    validation_fraction : float, default=0.1
        Fraction of the rows, in (0, 1), that `fit` holds out if `validation` is not passed; at most
        `max_entries` rows.
    max_entries : int, default=2000
        Maximum number of held-out entries that the weights are fitted to, drawn at random.
    random_state : int, RandomState, Generator or None, default=0
        Random seed of the held-out rows, of the drawn entries and of the models.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    models_ : dict
        The fitted models.
    how_ : str
        "mixture" or "log-linear".
    weights_ : dict
        Weight of each model.
    powers_ : dict
        Power of each model in a mixture; 1 in a log-linear blend, whose weights are powers.
    report_ : dict
        how; held_out_score: mean log share per unit of the held-out entries for each kind of blend
        that was tried and for each model alone; n_entries: number of held-out entries; fitted:
        names of the models that `fit` has fitted.
    family_ : Categorical
        Only the shares of the means are meaningful.

    Examples
    --------
    >>> import efemb
    >>> from efemb.baselines import Popularity
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=600, n_entities=12, n_components=2, seed=0
    ... )
    >>> train, test = trips.data.split(test=0.3, seed=0)
    >>> parts = {"vectors": efemb.PoissonEmbedding(2), "popularity": Popularity()}
    >>> blend = Blend(parts, how="mixture").fit(train)
    >>> sorted(blend.weights_), round(sum(blend.weights_.values()), 6)
    (['popularity', 'vectors'], 1.0)
    """

    models_: dict[str, Any]
    how_: str
    weights_: dict[str, float]
    powers_: dict[str, float]
    report_: dict[str, Any]
    pool_: Pool

    def __init__(
        self,
        models: Mapping[str, Any],
        *,
        how: str = AUTO,
        validation_fraction: float = 0.1,
        max_entries: int = 2000,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.models = models
        self.how = how
        self.validation_fraction = validation_fraction
        self.max_entries = max_entries
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None, *, validation: Any = None) -> Self:
        """Fit the models that are not fitted yet, then the weights.

        Parameters
        ----------
        X : like the X of the models, optional
            Training data of the models that are not fitted yet; not needed if all are fitted.
        y : ignored
            Present for compatibility with scikit-learn.
        validation : like X, optional
            Other rows. The weights are fitted to their entries, each predicted from the rest of its
            row; they are also used for early stopping. By default, rows of X are held out from
            every model (`validation_fraction`), and no model is refitted with them. Required, with
            rows that the models have not seen, if any of the models is fitted already.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._check()
            self._learn(X, validation)
        return self

    def _check(self) -> None:
        check_models(self.models)
        if self.how not in (AUTO, *POOLS):
            raise ParameterError(
                f"how={self.how!r} is unknown; {suggest(self.how, [AUTO, *POOLS])}"
            )
        check_number("validation_fraction", self.validation_fraction, above=0, below=1)
        check_integer("max_entries", self.max_entries)

    def _learn(self, X: Any, validation: Any) -> None:
        self.family_ = self._family()
        # Separate, so that neither rows nor entries depend on the number of models.
        for_rows, for_models, for_entries = generator(self.random_state).spawn(3)
        fresh = [name for name, model in self.models.items() if not is_fitted(model)]
        train, held = self._training_and_held_out(X, validation, fresh, for_rows)
        models = fit_models(self.models, train, held, for_models)
        if self.vocabulary_ is None:
            named = (vocabulary_of(model) for model in models.values())
            self.vocabulary_ = next((labels for labels in named if labels is not None), None)
        for name, model in models.items():
            check_fitted(name, model, held, self.vocabulary_)
        self.models_ = models
        sample = sample_of(models, self._labeled(held), int(self.max_entries), for_entries)
        self._choose(sample, fresh)

    def _training_and_held_out(
        self, X: Any, validation: Any, fresh: list[str], rng: np.random.Generator
    ) -> tuple[Dataset | None, Dataset]:
        """Training data of the models (None without X), and data for the weights."""
        if validation is None and len(fresh) < len(self.models):
            name = next(name for name in self.models if name not in fresh)
            raise ParameterError(
                f"{name!r} is fitted already: pass rows that it was not fitted to as "
                "validation, or pass unfitted models only"
            )
        if X is None and fresh:
            raise ParameterError(f"{fresh[0]!r} is not fitted: pass training data as X")
        if X is None:
            held = self._read(validation, reset=True)
            return None, held
        data = self._read(X, reset=True)
        check_shape(data)
        if validation is None:
            return self._held_out_rows(data, rng)
        held = self._read(validation, reset=False)
        _refuse_overlap(data, held)
        return data, held

    def _held_out_rows(self, data: Dataset, rng: np.random.Generator) -> tuple[Dataset, Dataset]:
        """Hold out random rows, at most one per entry that the weights are fitted to."""
        n_held = max(1, int(float(self.validation_fraction) * data.n_rows))
        held = np.zeros(data.n_rows, dtype=bool)
        held[rng.permutation(data.n_rows)[: min(n_held, int(self.max_entries))]] = True
        return data.take_rows(~held), data.take_rows(held)

    def _choose(self, sample: Sample, fresh: list[str]) -> None:
        """Fit the weights, of both kinds for "auto", and keep the better one."""
        tried = [self.how] if self.how in POOLS else list(POOLS)
        pools = {name: POOLS[name].fit(sample) for name in tried}
        scores = {name: pool.score(sample) for name, pool in pools.items()}
        self.how_ = max(tried, key=lambda name: scores[name])
        self._keep(pools[self.how_])
        alone = sample.mean(sample.own())
        self.report_ = {
            "how": self.how_,
            "held_out_score": {**scores, **dict(zip(self.models_, alone.tolist(), strict=True))},
            "n_entries": len(sample.entities),
            "fitted": fresh,
        }

    def _keep(self, pool: Pool) -> None:
        self.pool_ = pool
        self.weights_ = dict(zip(self.models_, pool.weights.tolist(), strict=True))
        powers = pool.model_powers()
        self.powers_ = dict(zip(self.models_, powers.tolist(), strict=True))

    def _labeled(self, data: Dataset) -> Dataset:
        """The data with the labels of the blend, from which models infer their own order."""
        if data.entities is not None or self.vocabulary_ is None:
            return data
        return data._replace(data.values, entities=self.vocabulary_)

    def _log_mean_blocks(
        self, data: Dataset, rows: Ints, entities: Ints
    ) -> Iterator[tuple[slice, Floats]]:
        for cells, logs in share_blocks(self.models_, self._labeled(data), rows, entities):
            yield cells, self.pool_.combine(logs)

    @accepts(Options)
    def explain(
        self, basket: Any, item: Any, *, user: Any = None, **options: Unpack[Options]
    ) -> Table:
        """The contribution of each model to the probability of an item given a basket.

        Parameters
        ----------
        basket : list of labels, or mapping of labels to amounts
            The item itself is removed from its own context.
        item : label
            The item to explain.
        user : label, optional
            The owner of the basket, for models with users.
        match : {"exact", "prefix"}, default="exact"
            "prefix" also accepts the beginning of a label, or a part of it, ignoring case.
        unknown : {"error", "skip"}, default="error"
            "skip" ignores unknown labels of the basket.

        Returns
        -------
        Table
            Columns model, weight and probability (of the item in the model). A mixture also has
            `responsibility` (w_i q_i / p; they sum to 1), a log-linear blend `contribution`
            (w_i log q_i and minus the log normalizer; they sum to log p).
        """
        check_is_fitted(self, "pool_")
        choice = Choice(self._item_labels(), **options)
        data, entity = self._basket_row(basket, choice, user), choice.code(item)
        cell = (np.zeros(1, dtype=np.int64), np.array([entity]))
        ((_, logs),) = share_blocks(self.models_, self._labeled(data), *cell)
        columns = self.pool_.explain(logs[0], entity, list(self.models_))
        return Table(columns, "predictions of each model for the item, and their weights")

    def save(self, path: Any) -> None:
        """Write the blend and its models to one folder; `efemb.load` reads it.

        Embeddings are loaded as `FittedEmbedding`, baselines and blends as what they were.

        Parameters
        ----------
        path : str or path
            A folder; a blend that was saved there before is replaced as a whole.
        """
        from efemb.blend.blend_files import save

        check_is_fitted(self, "pool_")
        save(self, path)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        raise NotImplementedError  # `fit` is overridden: it does not always receive data


def _refuse_overlap(train: Dataset, held: Dataset) -> None:
    """Reject validation data that models were fitted to, which would lead to wrong weights.

    In a training row, a model has learned that held-out entries are absent. On
    MovieLens-100K, weights from such entries gave a blend that was worse than each of its models.
    """
    if Holdout.of(train, held, missing=False).others is None:
        raise DataError(
            "validation contains entries of the rows of X, where models have learned that they are "
            "absent: pass other rows, or omit validation, so that rows are held out"
        )
    if train.row_labels is not None and held.row_labels is not None:
        training_labels = set(train.row_labels.tolist())
        shared = [label for label in held.row_labels.tolist() if label in training_labels]
        if shared:
            raise DataError(
                f"validation and X share {len(shared):,} rows, the first is {shorten(shared[0])}: "
                "remove them from X"
            )
    own = sparse(held)
    if train.shape == held.shape and own.nnz == sparse(train).multiply(own != 0).nnz:
        raise DataError(
            "every entry of validation is also in X: pass rows that the models are not fitted to, "
            "such as those of Dataset.split"
        )
