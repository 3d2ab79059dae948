"""BasketEmbedding: the recommended model of transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from sklearn.utils.validation import check_is_fitted

from efemb._typing import Floats, Ints
from efemb.baselines.base import cell_blocks
from efemb.baskets.experts import BASES, SizeMixture
from efemb.baskets.fitting import AUTO, fit_baskets, make_folds
from efemb.baskets.new_items import explain_share, log_shares_by_kind
from efemb.baskets.parts import (
    FAMILIES,
    USER,
    PartOptions,
    Parts,
    choose_neighbors,
    context_members,
    context_sizes,
)
from efemb.blend.basket_model import BasketModel
from efemb.data.matrices import sparse
from efemb.errors import (
    DataError,
    InputTypeError,
    ParameterError,
    check_integer,
    check_number,
    suggest,
)
from efemb.estimators.checks import check_components, check_shape, generator
from efemb.fitted.queries import Queries
from efemb.fitted.recommendation import RowScores
from efemb.fitted.selection import Choice, Options, accepts
from efemb.model.ingredient import positive_number
from efemb.model.predict import check_entries
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.fitted.embedding import FittedEmbedding


@dataclass(eq=False, repr=False)
class BasketEmbedding(Queries, BasketModel):
    """Vectors, item pairs, popularity and the customer's history as one model of baskets.

    The share of item j, given a basket of s items, is a mixture of experts e::

        p_j = sum_e w_e(s) r_ej
        r_ej = prod_f q_fj^a_ef / sum_k prod_f q_fk^a_ef

    where q_f are the shares of the parts:

    - an exponential family embedding, whose contexts have a pseudo-count and are thinned during
      the fit (`Basket`);
    - an item-item ridge regression (`EASE`);
    - popularity;
    - if the customer is known, the share of the item in the customer's other rows, and a second
      embedding with terms of the customer.

    Experts are powers of single parts and products of all parts. Their weights maximize the
    likelihood of entries of held-out rows, given whole and random short contexts, and are
    interpolated in the logarithm of the size. There are two sets of weights: one for `log_means`
    and `score`, where shares are among all items, as in the paper; and one for `complete` and
    `recommend`, where the items of the basket are excluded and probabilities are calibrated.

    For a known customer, the mixture determines the total probability of the items that the
    customer has not bought before. A second mixture, fitted to such items only, determines the
    share of each of them.

    Parameters
    ----------
    n_components : int, default=100
        Length K of the vectors.
    family : {"auto", "bernoulli", "poisson"}, default="auto"
        Family of the embedding. "auto" is Bernoulli for 0/1 data; for counts, both families are
        fitted to at most 10,000 rows, and the one that predicts held-out rows better is used.
    user : str or None, default="user"
        Row column with the customer of each row. ``Dataset(users=)`` and ``read_baskets(user=)``
        fill "user"; any other column of ``Dataset(rows=)`` may be named. If the data have this
        column, the purchase history of the customer is a part of the model, and a second embedding
        has the terms `History` and `RowVectors`. Rows of unknown customers are predicted without
        either. None ignores customers.
    pseudo_count : float or "auto", default="auto"
        Pseudo-count of the contexts (`Basket`); "auto" is 1.5 times the square root of the mean
        number of items per row.
    thinning : float, default=0.3
        Fraction of the contexts that is thinned in each pass (`Basket`).
    penalty : float or "auto", default="auto"
        Ridge penalty of the item pairs, in rows. "auto" chooses among 30, 100, 200, 500 and 1000
        the one with which a mixture of pairs, vectors and popularity predicts held-out entries
        best, if there are at most 4,000 items, and is 100 otherwise.
    n_neighbors : int, None or "auto", default="auto"
        Number of other items that each item is regressed on. None uses all items, which needs N^2
        numbers. "auto" uses all of up to 20,000 items if there is memory for them, otherwise 100.
    validation_fraction : float, default=0.1
        Fraction of the rows (at most 1,500 rows) that `fit` holds out unless `validation` is
        passed. Data of fewer than 5,000 rows are cross-validated in four folds instead, and then
        all parts are fitted to all rows.
    max_iter : int, optional
        Maximum number of passes of the vectors.
    n_jobs : int or None, default=1
        Number of threads; the result has the same bits for any number.
    random_state : int, RandomState, Generator or None, default=None
        Random seed.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    rho_, alpha_ : arrays of shape (N, K)
        Embeddings and context vectors.
    pairs_ : array or csr_array of shape (N, N)
        ``pairs_[m, n]`` is the weight of item m in a basket for item n.
    mixture_ : SizeMixture
        Experts, and their weights by the size of the basket.
    personal_ : SizeMixture or None
        The same for baskets of customers who have a history.
    new_items_ : SizeMixture or None
        The mixture for items that such a customer has not bought before.
    reliability_ : Table
        Predicted and observed probabilities of held-out entries, by predicted probability.
    report_ : dict
        family and how it was chosen; pairs; history; held_out; weights of the largest experts by
        the size of the context; absent_items and new_items: which parts predict them, and how many
        held-out questions the weights were fitted to; held_out_score: mean log share per unit, of
        all and of absent items.
    family_ : Categorical
        Only the shares of the means are meaningful.

    Notes
    -----
    Contexts of the vectors and of the pairs count each item once, so that a large count cannot
    dominate. Pairs are instead regressions of log2(1 + count) if there are at most 4,000 items and
    this improves the prediction of held-out entries by more than 0.01 nats per entry, as it does
    for ratings (``report_["counts_in_pairs"]``). In the fit of the weights, counts are limited to
    10, and to 3 for the weights of `complete` and `recommend`.

    Experts of `log_means` include one product of all parts. Those of absent items include two, one
    of which relies on the pairs and the other on the vectors (with known customers, one).

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.simulation.simulate_baskets(
    ...     n_rows=400, n_entities=30, n_lines=2400, n_topics=3, seed=0
    ... )
    >>> model = BasketEmbedding(5, random_state=0).fit(trips)
    >>> model.complete([0, 1], n=2).columns
    ['label', 'probability']
    >>> model.report_["family"]
    'bernoulli'
    """

    n_components: int = 100
    _: KW_ONLY
    family: str = AUTO
    user: str | None = USER
    pseudo_count: float | str = AUTO
    thinning: float = 0.3
    penalty: float | str = AUTO
    n_neighbors: int | str | None = AUTO
    validation_fraction: float = 0.1
    max_iter: int | None = None
    n_jobs: int | None = 1
    random_state: Any = None
    verbose: int = 0

    _completes_by_vectors = False
    report_: dict[str, Any] = field(init=False)
    parts_: Parts = field(init=False)
    mixture_: SizeMixture = field(init=False)
    personal_: SizeMixture | None = field(init=False)
    new_items_: SizeMixture | None = field(init=False)
    reliability_: Table = field(init=False)

    # -- the fit -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, validation: Any = None) -> Self:
        """Fit all parts, then the weights of their experts.

        Parameters
        ----------
        X : Dataset, array, sparse array, data frame or path
            Training rows. A path is a file of transactions, read by `read_baskets`.
        y : ignored
            Present for compatibility with scikit-learn.
        validation : like X, optional
            Other rows, for early stopping and for the weights; by default rows of X are held out.

        Returns
        -------
        self
        """
        return super().fit(_read_path(X), validation=_read_path(validation))

    def _check(self) -> None:
        check_components(self.n_components)
        families = [AUTO, *FAMILIES]
        if self.family not in families:
            raise ParameterError(
                f"family={self.family!r} is unknown; {suggest(self.family, families)}"
            )
        if self.user is not None and not (isinstance(self.user, str) and self.user):
            raise InputTypeError(
                f"user must be the name of a row column or None, got {self.user!r}"
            )
        if self.penalty != AUTO:
            positive_number(self, "penalty")
        if self.pseudo_count != AUTO:
            positive_number(self, "pseudo_count", zero=True)
        check_number("validation_fraction", self.validation_fraction, above=0, below=1)
        if self.n_neighbors not in (AUTO, None):
            check_integer("n_neighbors, unless 'auto' or None,", self.n_neighbors)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        check_shape(data)
        for_rows, for_parts = generator(self.random_state).spawn(2)
        folds = make_folds(data, validation, float(self.validation_fraction), for_rows)
        options = self._options(data, int(for_parts.integers(1 << 31)))
        basket_fit = fit_baskets(options, data, folds, for_parts, self.verbose)
        self.parts_, self.mixture_ = basket_fit.parts, basket_fit.mixture
        self.personal_, self.new_items_ = basket_fit.personal, basket_fit.new_items
        self.reliability_ = basket_fit.reliability
        self.report_ = {**data.report, **basket_fit.report}

    def _options(self, data: Dataset, seed: int) -> PartOptions:
        """The options with automatic ones decided, except for the family."""
        pseudo_count = self.pseudo_count
        if pseudo_count == AUTO:
            n_items = float(np.diff(sparse(data).indptr).mean())
            pseudo_count = round(1.5 * max(n_items, 1.0) ** 0.5, 2)
        return PartOptions(
            n_components=int(self.n_components),
            family=self.family,
            pseudo_count=float(pseudo_count),
            thinning=self.thinning,
            penalty=None if self.penalty == AUTO else float(self.penalty),
            n_neighbors=choose_neighbors(data.n_entities, self.n_neighbors),
            user=self._customers(data),
            seed=seed,
            n_jobs=self.n_jobs,
            max_iter=self.max_iter,
            verbose=max(0, int(self.verbose) - 1),
        )

    def _customers(self, data: Dataset) -> str | None:
        """The row column of the customers, if there is one; one that is asked for has to be."""
        if self.user is None or self.user in data.rows:
            return self.user
        if self.user == USER:
            return None
        listed = ", ".join(map(repr, data.rows)) or "none"
        raise DataError(
            f"user={self.user!r} is not a row column of the data (columns: {listed}): pass "
            f"Dataset(values, rows={{{self.user!r}: ...}}), or user=None to do without customers"
        )

    # -- predictions -------------------------------------------------------------------------------

    def _log_mean_blocks(
        self, data: Dataset, rows: Ints, entities: Ints, *, absent: bool = False
    ) -> Iterator[tuple[slice, Floats]]:
        known = self.parts_.knows(data)
        for cells in cell_blocks(len(rows), len(BASES) * data.n_entities):
            personal = known[rows[cells]]
            shares = np.empty((len(personal), data.n_entities))
            for chosen, mixture in ((~personal, self.mixture_), (personal, self.personal_)):
                if mixture is not None and chosen.any():
                    given = (rows[cells][chosen], entities[cells][chosen])
                    shares[chosen] = self._shares(mixture, data, *given, absent=absent)
            yield cells, shares

    def absent_log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Floats]]:
        """Calibrated log probabilities of the items outside the basket, as in `recommend`.

        Parameters
        ----------
        X : like the X of `fit`
        rows, entities : integer arrays of shape (n,)
            The queried cells; an entity is removed from its own context.

        Yields
        ------
        slice
            Positions of a block of queried cells.
        array of shape (cells of the block, N)
            -infinity for entities in the context.
        """
        data = self._known(X)
        cells = check_entries((rows, entities), data.n_rows, data.n_entities)
        return self._log_mean_blocks(data, *cells, absent=True)

    def _shares(
        self, mixture: SizeMixture, data: Dataset, rows: Ints, entities: Ints, *, absent: bool
    ) -> Floats:
        """Log shares of all entities in a mixture, (n, N)."""
        matrix, personal = sparse(data), mixture is self.personal_
        members = context_members(matrix, rows, entities)
        sizes = context_sizes(matrix, rows, entities)
        logs = self.parts_.logs(data, rows, entities, personal=personal)
        if not personal:
            return mixture.log_shares(logs, sizes, members if absent else None)
        given = (logs, sizes, members, self.parts_.bought(data, rows))
        return log_shares_by_kind(mixture, self.new_items_, *given, absent=absent)

    complete = BasketModel.complete  # type: ignore[assignment]  # not that of the vectors

    def _whole_row_log_means(
        self, data: Dataset, rows: Ints, entities: Ints, *, exclude_seen: bool
    ) -> Iterator[tuple[slice, Floats]]:
        return self._log_mean_blocks(data, rows, entities, absent=exclude_seen)

    def _row_scores(self, X: Any, *, exclude_seen: bool) -> RowScores:
        return super()._row_scores(_read_path(X), exclude_seen=exclude_seen)

    @accepts(Options)
    def explain(  # type: ignore[override]
        self,
        basket: Any,
        item: Any,
        *,
        by: str = "expert",
        user: Any = None,
        **options: Unpack[Options],
    ) -> Table:
        """What the probability of an item comes from.

        Parameters
        ----------
        basket : list of labels, or mapping of labels to amounts
            The item itself is removed from its own context.
        item : label
            The item to explain.
        by : {"expert", "item"}, default="expert"
            Whether to list the experts of the mixture or the items of the basket.
        user : label, optional
            The customer.
        match : {"exact", "prefix"}, default="exact"
            "prefix" also accepts the beginning of a label, or a part of it, ignoring case.
        unknown : {"error", "skip"}, default="error"
            "skip" ignores unknown labels of the basket.

        Returns
        -------
        Table
            By expert: expert, weight (for a basket of this size), probability and responsibility
            (weight x probability / that of the mixture; they sum to 1). If the item is new to a
            known customer, the experts are those of new items. By item: item, vectors (its
            contribution to the linear predictor of the embedding) and pair (its weight for the
            item in the pairs, "milk - bread"). The largest come first.
        """
        check_is_fitted(self, "mixture_")
        if by not in ("expert", "item"):
            raise ParameterError(f"by={by!r} is unknown; {suggest(by, ['expert', 'item'])}")
        choice = Choice(self._item_labels(), **options)
        data = self._basket_row(basket, choice, user)
        entity = int(choice.codes([item], needed=True)[0])
        if by == "item":
            return self._explain_items(data, entity)
        matrix, cell = sparse(data), (np.zeros(1, dtype=np.int64), np.array([entity]))
        sizes, members = context_sizes(matrix, *cell), context_members(matrix, *cell)
        personal = bool(self.parts_.knows(data)[0])
        mixture, new_items = self.mixture_, None
        if personal and self.personal_ is not None:
            mixture, new_items = self.personal_, self.new_items_
        logs = self.parts_.logs(data, *cell, personal=personal)
        given = (logs, sizes, members, self.parts_.bought(data, cell[0]), entity)
        listed, weights, shares = explain_share(mixture, new_items, *given)
        total = float(weights @ shares)
        responsibility = weights * shares / total
        order = np.argsort(-responsibility, kind="stable")
        names = np.array(listed, dtype=object)
        return Table(
            {
                "expert": names[order],
                "weight": weights[order],
                "probability": shares[order],
                "responsibility": responsibility[order],
            },
            "responsibility: share of the item's probability that comes from the expert",
        )

    def _explain_items(self, data: Dataset, entity: int) -> Table:
        """Contributions of the items of a basket to the vectors' predictor and to the pairs."""
        matrix = sparse(data)
        members = matrix.indices[matrix.indices != entity].astype(np.int64)
        fitted = self.fitted()
        divisor = len(members) + self.report_["pseudo_count"]
        products = fitted.parameters.alpha[members] @ fitted.parameters.rho[entity]
        pairs = self.pairs_[members][:, [entity]]
        pairs = np.asarray(pairs.toarray() if hasattr(pairs, "toarray") else pairs).ravel()
        order = np.argsort(-pairs, kind="stable")
        return Table(
            {
                "item": self._item_labels().labels[members][order],
                "vectors": (products / max(divisor, 1.0))[order].astype(np.float64),
                "pair": pairs[order].astype(np.float64),
            },
            "what each item of the basket adds to the predictor: by its vector, and as a pair",
        )

    # -- the vectors -------------------------------------------------------------------------------

    def fitted(self) -> FittedEmbedding:
        """The embedding, which answers questions about vectors.

        Returns
        -------
        FittedEmbedding
        """
        check_is_fitted(self, "mixture_")
        return self.parts_.vectors

    def _bind(self, X: Any, as_context: bool = False) -> Any:
        """The contexts of the vectors, as the model reads its data."""
        return self.fitted()._bind(self._known(_read_path(X)), as_context)

    @property
    def rho_(self) -> Floats:
        """The embeddings, (N, K)."""
        return self.fitted().parameters.rho

    @property
    def alpha_(self) -> Floats:
        """The context vectors, (N, K)."""
        return self.fitted().parameters.alpha

    @property
    def pairs_(self) -> Any:
        """Weights of the item pairs, (N, N)."""
        check_is_fitted(self, "mixture_")
        return self.parts_.pairs

    @property
    def embedding_(self) -> Floats:
        """Alias of `rho_`."""
        return self.rho_

    @property
    def n_iter_(self) -> int:
        """Number of passes of the vectors."""
        return self.parts_.passes.vectors

    @property
    def converged_(self) -> bool:
        """Whether held-out rows, not an interrupt or `max_iter`, decided when to stop."""
        limited = self.max_iter is not None and self.n_iter_ >= self.max_iter
        return not (limited or self.report_["interrupted"])

    def transform(self, X: Any) -> Floats:
        """Embed rows: the context sum of each whole row.

        Parameters
        ----------
        X : like the X of `fit`

        Returns
        -------
        array of shape (rows, K)
        """
        return self.fitted().transform(self._known(_read_path(X)))

    def save(self, path: Any) -> None:
        """Write the fitted model to a folder; `efemb.load` reads it.

        Parameters
        ----------
        path : str or path
            A folder; a model that was saved there before is replaced as a whole.
        """
        from efemb.baskets.basket_files import save

        save(self, path)


def _read_path(X: Any) -> Any:
    """A file of transactions as a Dataset, anything else as it is."""
    if not isinstance(X, str | os.PathLike):
        return X
    from efemb.data.readers.guess import guess_contents
    from efemb.data.readers.transactions import read_baskets

    guess = guess_contents(Path(X))
    if guess.basket is None or guess.item is None:
        raise DataError(
            f"{X} is not a table of transactions ({guess.why}): read it with read_baskets or "
            "read_matrix first"
        )
    return read_baskets(
        X, basket=guess.basket, item=guess.item, count=guess.count, min_items_per_basket=2
    )
