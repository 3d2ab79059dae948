"""Parts: what a basket model combines, fitted to the same rows, and what they say of a context."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from efemb._typing import Bools, Floats, Ints
from efemb.baselines.personal import PersonalPopularity
from efemb.baskets.experts import (
    AMOUNTS,
    BASES,
    HISTORY,
    PAIRS,
    PERSONAL,
    POPULARITY,
    SMOOTHED,
    VECTORS,
    Questions,
    log_shares,
)
from efemb.blend.members import LARGEST_WEIGHT
from efemb.data.columns import distinct_labels
from efemb.data.dataset import Dataset
from efemb.data.matrices import sparse, stored_cells
from efemb.engine.callbacks import IterateAverage
from efemb.engine.fit import batch_size
from efemb.engine.optimizers.first_order import Adagrad
from efemb.estimators.presets import BernoulliEmbedding, PoissonEmbedding
from efemb.model.contexts import Basket
from efemb.model.contexts.base import gather_rows
from efemb.model.item_regressions import dense_fits, ridge_weights, sparse_ridge_weights
from efemb.model.terms import History, RowVectors, Term
from efemb.model.zeros import Sampled

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

USER = "user"
FAMILIES = {"bernoulli": BernoulliEmbedding, "poisson": PoissonEmbedding}
# Adagrad on minibatches: bold steps whose iterates are averaged need a third of the passes.
PACE, BOLDEST, EPSILON = 3.0, 0.5, 0.01
AVERAGED, PATIENCE, TOLERANCE = 3, 2, 0.002
WATCHED_ROWS = 500  # held-out rows that tell when to stop
# With more cells (rows x items) a pass over all zeros takes minutes: then these many are drawn for
# a minibatch, and fewer rows are watched.
MOST_CELLS, DRAWN_ZEROS, MOST_WATCHED_CELLS, FEWEST_WATCHED = 1 << 35, 8192, 1 << 27, 50
AMOUNT_LINES = 5.0  # an item's mean count is shrunk to that of all items by so many lines
MOST_NUMBERS = 1 << 26  # logarithms of bases that are held at once
CUSTOMER_COMPONENTS = 20  # length of the vectors of customers
HISTORY_SHARE = 0.5  # popularity weighs as much as this part of a mean customer's units
HALF_A_LINE = 0.5  # what never occurred
# Scores of pairs estimate probabilities: what is below counts as this much of a mean one.
LEAST_SCORE, SMOOTHED_SCORE = 1e-6, 2.0


class Passes(NamedTuple):
    """Passes over the data of the embeddings without and with the customer."""

    vectors: int
    personal: int


@dataclass(frozen=True)
class PartOptions:
    """How parts are fitted; the names are those of `BasketEmbedding`.

    damped : whether pairs are regressions of logarithms of counts, not of zeros and ones
    passes : of embeddings that are fitted without held-out rows
    """

    n_components: int
    family: str
    pseudo_count: float
    thinning: float
    penalty: float | None
    n_neighbors: int | None
    user: str | None
    seed: int
    damped: bool = False
    n_jobs: int | None = 1
    max_iter: int | None = None
    verbose: int = 0
    passes: Passes | None = None


@dataclass(frozen=True)
class Parts:
    """Fitted parts.

    vectors : embedding;  personal : embedding with terms of the customer, where they are known
    pairs : (N, N) array or csr_array of the weights of an item for another
    log_popularity : (N,) log shares of lines;  log_amounts : (N,) log mean counts in a line
    history : of customers, where they are known
    density : mean of what the pairs are regressions of, over all cells
    passes : of the embeddings;  interrupted : whether one of them was
    damped : whether pairs are those of logarithms of counts
    """

    vectors: FittedEmbedding
    personal: FittedEmbedding | None
    pairs: Any
    log_popularity: Floats
    log_amounts: Floats
    density: float
    history: PersonalPopularity | None
    passes: Passes
    interrupted: bool = False
    damped: bool = False

    @classmethod
    def fit(cls, train: Dataset, held: Dataset | None, options: PartOptions) -> Parts:
        """Fit all parts to the same rows; `held` are others, which tell when to stop."""
        first, second = (options, options)
        if options.passes is not None:
            first, second = (replace(options, max_iter=most) for most in options.passes)
        estimator = fit_vectors(train, held, first)
        matrix = sparse(train)
        values = pair_values(matrix, damped=options.damped)
        lines = np.bincount(matrix.indices[matrix.data != 0], minlength=train.n_entities)
        lines = np.maximum(lines, HALF_A_LINE)
        interrupted = estimator.report_["interrupted"]
        personal, history, personal_passes = None, None, 0
        if options.user is not None:
            customers = len(distinct_labels(train.rows[options.user].tolist()))
            units = float(matrix.sum()) / max(customers, 1)
            kappa = max(1.0, HISTORY_SHARE * units)
            history = PersonalPopularity(options.user, kappa=kappa).fit(train)
            terms = (
                History(options.user, kappa=kappa),
                RowVectors(options.user, min(CUSTOMER_COMPONENTS, options.n_components)),
            )
            with_customers = fit_vectors(train, held, second, terms)
            personal, personal_passes = with_customers.fitted(), with_customers.best_iter_
            interrupted |= with_customers.report_["interrupted"]
        return cls(
            vectors=estimator.fitted(),
            personal=personal,
            pairs=fit_pairs(values, options),
            log_popularity=np.log(lines / lines.sum()),
            log_amounts=mean_log_amounts(matrix),
            density=mean_value(values),
            history=history,
            passes=Passes(estimator.best_iter_, personal_passes),
            interrupted=interrupted,
            damped=options.damped,
        )

    def knows(self, data: Dataset) -> Bools:
        """Whether the customer of each row has a history, (rows,)."""
        if self.history is None or self.history.column not in data.rows:
            return np.zeros(data.n_rows, dtype=bool)
        return self.history.knows(data)

    def bought(self, data: Dataset, rows: Ints) -> tuple[Ints, Ints]:
        """(cell, entity) of everything that the customers of some rows have bought before."""
        if self.history is None or self.history.column not in data.rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return self.history.bought(data, rows)

    def logs(self, data: Dataset, rows: Ints, entities: Ints, *, personal: bool) -> Floats:
        """Logarithms of the bases of all entities, given rows without an entity, (n, F, N).

        personal : with the bases of the customer, which otherwise are 0
        """
        needed, place = np.unique(rows, return_inverse=True)
        few = data.take_rows(needed)
        logs = np.empty((len(rows), len(BASES), data.n_entities), dtype=np.float32)
        for cells, means in self.vectors.log_means(few, place, entities):
            logs[cells, VECTORS] = log_shares(np.asarray(means))
        self.write_pair_logs(self.pair_scores(sparse(few), place, entities), logs)
        logs[:, POPULARITY] = self.log_popularity
        logs[:, AMOUNTS] = self.log_amounts
        logs[:, [HISTORY, PERSONAL]] = 0.0
        if personal and self.history is not None and self.personal is not None:
            for cells, means in self.history.log_means(few, place, entities):
                logs[cells, HISTORY] = means
            for cells, means in self.personal.log_means(few, place, entities):
                logs[cells, PERSONAL] = log_shares(np.asarray(means))
        return logs

    def pair_scores(self, matrix: Any, rows: Ints, entities: Ints) -> Floats:
        """Sum of the pair weights of the items of each row without an entity, (n, N) float32.

        Scores below 0, which would be probabilities below 0, are 0.
        """
        values = pair_values(matrix, damped=self.damped)
        scores = np.asarray(_product(values, self.pairs))[rows]
        held = np.flatnonzero(_contains(values, rows, entities))
        if len(held):
            own = values[rows[held]].multiply(_one_hot(entities[held], values.shape[1])).sum(axis=1)
            rows_of_b = self.pairs[entities[held]]
            rows_of_b = rows_of_b.toarray() if hasattr(rows_of_b, "toarray") else rows_of_b
            scores[held] -= np.asarray(own, dtype=np.float32)[:, None] * rows_of_b
        return np.maximum(scores, 0.0, out=scores)

    def write_pair_logs(self, scores: Floats, logs: Floats) -> None:
        """Fill the bases of the pairs of some cells; scores : (n, N);  logs : (n, F, N)."""
        np.log(scores + np.float32(LEAST_SCORE * self.density), out=logs[:, PAIRS])
        np.log(scores + np.float32(SMOOTHED_SCORE * self.density), out=logs[:, SMOOTHED])

    def with_pairs(self, train: Dataset, options: PartOptions) -> Parts:
        """The same parts with pairs by other options."""
        values = pair_values(sparse(train), damped=options.damped)
        pairs, density = fit_pairs(values, options), mean_value(values)
        return replace(self, pairs=pairs, density=density, damped=options.damped)


def pair_values(matrix: Any, *, damped: bool) -> Any:
    """What pairs are regressions of, csr_array of float32: 0 and 1, or log2(1 + count)."""
    if not damped:
        return (matrix != 0).astype(np.float32)
    values = matrix.astype(np.float32)
    values.data = np.log2(1.0 + values.data)
    values.eliminate_zeros()
    return values


def mean_value(values: Any) -> float:
    """Mean of all cells of a sparse array."""
    return float(values.data.sum(dtype=np.float64) / (values.shape[0] * values.shape[1]))


def _one_hot(entities: Ints, n_entities: int) -> Any:
    """Rows with a single one, csr_array (n, N)."""
    ones = np.ones(len(entities), dtype=np.float32)
    shape = (len(entities), n_entities)
    return csr_array((ones, entities, np.arange(len(entities) + 1)), shape=shape)


def mean_log_amounts(matrix: Any) -> Floats:
    """log of the mean count in the lines of each entity, (N,), relative to that of all lines."""
    counts = np.minimum(matrix.data.astype(np.float64), LARGEST_WEIGHT)
    mean = float(counts.mean()) if len(counts) else 1.0
    lines = np.bincount(matrix.indices, minlength=matrix.shape[1]) + AMOUNT_LINES
    units = np.bincount(matrix.indices, counts, matrix.shape[1]) + AMOUNT_LINES * mean
    return np.asarray(np.log(units / lines / mean))


def _product(values: Any, pairs: Any) -> Floats:
    scores = values @ pairs
    return np.asarray(scores.toarray() if hasattr(scores, "toarray") else scores)


def _contains(matrix: Any, rows: Ints, entities: Ints) -> Any:
    """Whether an entity is in its row, (n,)."""
    ptr, stored = gather_rows(matrix.indptr, rows)
    cell = np.repeat(np.arange(len(rows)), np.diff(ptr))
    own = cell[matrix.indices[stored] == entities[cell]]
    return np.bincount(own, minlength=len(rows)) > 0


def context_sizes(matrix: Any, rows: Ints, entities: Ints) -> Ints:
    """How many items a row has without an entity, (n,)."""
    return np.asarray(np.diff(matrix.indptr)[rows] - _contains(matrix, rows, entities))


def context_members(matrix: Any, rows: Ints, entities: Ints) -> tuple[Ints, Ints]:
    """(cell, entity) of everything in the contexts of some cells."""
    ptr, stored = gather_rows(matrix.indptr, rows)
    cell = np.repeat(np.arange(len(rows)), np.diff(ptr))
    member = matrix.indices[stored].astype(np.int64)
    other = member != entities[cell]
    return cell[other], member[other]


def basket_context(options: PartOptions) -> Basket:
    """The context of the vectors: items count once, however many of each there are."""
    return Basket(
        "total",
        binary=True,
        pseudo_count=options.pseudo_count,
        thinning=options.thinning,
    )


def fit_vectors(
    train: Dataset, held: Dataset | None, options: PartOptions, terms: tuple[Term, ...] = ()
) -> Any:
    """The embedding; without held-out rows it takes `max_iter` passes."""
    settings: dict[str, Any] = {
        "terms": terms,
        "n_components": options.n_components,
        "context": basket_context(options),
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "max_iter": options.max_iter,
        "verbose": options.verbose,
        "early_stopping": held is not None,
    }
    if draws_zeros(train):
        settings["zeros"] = Sampled(DRAWN_ZEROS)
    settings |= {"binarize": True} if options.family == "bernoulli" else {"allow_real": True}
    average = None
    if batch_size("auto", "rows", train.n_rows) is not None:
        average = IterateAverage(AVERAGED)
        step = round(min(BOLDEST, PACE / options.n_components**0.5), 3)
        settings |= {
            "optimizer": Adagrad(step, epsilon=EPSILON),
            "n_iter_no_change": PATIENCE,
            "tol": TOLERANCE,
            "callbacks": [average],
        }
    estimator = FAMILIES[options.family](**settings)
    with warnings.catch_warnings():
        # A limit of passes is what is asked for here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        watched = held
        if held is not None:
            most = max(FEWEST_WATCHED, min(WATCHED_ROWS, MOST_WATCHED_CELLS // held.n_entities))
            watched = held.take_rows(np.arange(held.n_rows) < most)
        estimator.fit(train, validation=watched)
    if average is not None:
        estimator.parameters_ = average.average()
    return estimator


def draws_zeros(train: Dataset) -> bool:
    """Whether the vectors are fitted to a part of the zeros, since there are too many."""
    return train.n_rows * train.n_entities > MOST_CELLS


def fit_pairs(values: Any, options: PartOptions) -> Any:
    """Item-item ridge regression: dense where N^2 numbers fit, else sparse."""
    assert options.penalty is not None
    # In units of a mean squared entry the best penalty of counts is that of zeros and ones.
    square = float(np.square(values.data, dtype=np.float64).mean()) if values.nnz else 1.0
    if options.n_neighbors is None:
        return ridge_weights(values, options.penalty * square, fast=True)
    return sparse_ridge_weights(values, options.penalty * square, options.n_neighbors)


def choose_neighbors(n_entities: int, asked: Any) -> int | None:
    """None for a dense matrix of pairs, else the number of pairs per item."""
    if asked != "auto":
        return None if asked is None else int(asked)
    return None if dense_fits(n_entities) else NEIGHBORS


NEIGHBORS = 100


def draw_questions(
    held: Dataset,
    sizes: tuple[int | None, ...],
    numbers: tuple[int, ...],
    rng: np.random.Generator,
    user: str | None = None,
) -> tuple[Dataset, Ints, Floats]:
    """Random entries of held-out rows, each with a random part of the rest of its row.

    sizes : of the contexts, None for the whole rest;  numbers : how many entries of each size
    user : row column of the customers, if they are known
    Returns the contexts, the entries and their units.
    """
    matrix = sparse(held)
    owner, entity = stored_cells(matrix)
    others = np.diff(matrix.indptr)[owner] - 1
    asked: list[int] = []
    contexts: list[Ints] = []
    for size, number in zip(sizes, numbers, strict=True):
        least = 1 if size is None else size + (size > 0)  # the whole rest is asked for anyway
        for place in rng.permutation(np.flatnonzero(others >= least))[:number]:
            stored = np.arange(matrix.indptr[owner[place]], matrix.indptr[owner[place] + 1])
            rest = stored[stored != place]
            asked.append(int(place))
            contexts.append(rest if size is None else np.sort(rng.permutation(rest)[:size]))
    where = np.concatenate([np.zeros(0, dtype=np.int64), *contexts])
    ends = np.concatenate([[0], np.cumsum([len(context) for context in contexts])])
    shape = (len(asked), held.n_entities)
    rows = csr_array((matrix.data[where], matrix.indices[where], ends), shape=shape)
    customers = {} if user is None else {user: held.rows[user][owner[asked]]}
    units = np.minimum(matrix.data[asked].astype(np.float64), LARGEST_WEIGHT)
    return (
        Dataset(rows, entities=held.entities, rows=customers),
        entity[asked].astype(np.int64),
        units,
    )


def answer_questions(
    parts: Parts, contexts: Dataset, entities: Ints, units: Floats
) -> list[Questions]:
    """The questions with what the parts say, in pieces of bounded size."""
    matrix, known = sparse(contexts), parts.knows(contexts)
    step = max(1, MOST_NUMBERS // (len(BASES) * contexts.n_entities))
    pieces = []
    for start in range(0, len(entities), step):
        rows = np.arange(start, min(start + step, len(entities)))
        given = (rows, entities[rows])
        cell, member = context_members(matrix, *given)
        pieces.append(
            Questions(
                parts.logs(contexts, *given, personal=True),
                entities[rows],
                units[rows],
                context_sizes(matrix, *given),
                cell,
                member,
                known[rows],
                *parts.bought(contexts, rows),
            )
        )
    return pieces
