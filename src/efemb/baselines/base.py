"""The interface of models and baselines, and the base class of all baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.baselines.arrays import log_shares, normal_log_density
from efemb.data.align import skip_unknown
from efemb.data.matrices import dense, sparse, stored_cells
from efemb.data.vocabulary import Vocabulary
from efemb.engine.limits import typed_memory_errors
from efemb.errors import DataError, EfembError, ParameterError
from efemb.estimators import checks as checking
from efemb.estimators.inputs import check_size, read
from efemb.fitted.recommendation import Recommender, RowScores, whole_row_blocks
from efemb.fitted.selection import check_choice
from efemb.model.families import Family
from efemb.model.objective import log_sums
from efemb.model.predict import check_entries
from efemb.model.predictor import CHUNK_NUMBERS
from efemb.model.support import check_support

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


@runtime_checkable
class Model(Protocol):
    """What evaluation requires of a model that predicts the entries of a row from one another."""

    def fit(self, X: Any, y: Any = None, *, validation: Any = None) -> Self:
        """Fit to rows x entities; `validation`: held-out entries of these rows, or other rows."""
        ...

    def score(self, X: Any) -> float:
        """Counts: normalized log-likelihood per unit. Real data: mean conditional log-density."""
        ...

    def conditional(self, X: Any) -> Floats:
        """E[x_tn | the other entries of row t] of every cell, missing values (NaN) included."""
        ...


@runtime_checkable
class CountModel(Model, Protocol):
    """A model of counts or binary data."""

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Floats]]:
        """Yield (slice of the queried cells, log E[x_j | row without that cell] of all j)."""
        ...


class Baseline(Recommender, BaseEstimator, ABC):
    """Base class of baselines: u = theta_t . beta_n, with theta_t inferred from the rest of row t.

    A subclass defines `_fit`; for counts also `_factors` (the inferred factors of given cells),
    `_columns` (beta and an offset) and `_log_mean` (log E[x] from u); for real data `_moments`.
    A subclass without factors overrides `_log_mean_blocks` and `_own_log_means` instead.
    """

    verbose: int
    family_: Family
    vocabulary_: Vocabulary | None
    n_features_in_: int
    _allow_real: ClassVar[bool] = False

    def fit(self, X: Any, y: Any = None, *, validation: Any = None) -> Self:
        """Fit the baseline.

        Parameters
        ----------
        X : Dataset, array, sparse array or data frame, rows x entities
            Training data.
        y : ignored
            Present for compatibility with scikit-learn.
        validation : like X, optional
            Held-out entries of the same rows, which are masked in X, or other rows. Used for early
            stopping by baselines that are fitted iteratively.

        Returns
        -------
        self
        """
        with checking.all_or_nothing(self), typed_memory_errors():
            self._check()
            check_size(X, getattr(self, "n_components", 0))
            self.family_ = self._family()
            data = self._read(X, reset=True)
            checking.check_shape(data)
            held = None if validation is None else self._read(validation, reset=False)
            self._fit(data, held)
        return self

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Floats]]:
        """log E[x_j | row without the queried entity] of all entities j, block by block.

        Parameters
        ----------
        X : like the X of `fit`, counts or binary data
        rows, entities : integer arrays of shape (n,)
            The queried cells; an entity that occurs in its row is removed from it first.

        Yields
        ------
        slice
            Positions of a block of queried cells.
        array of shape (cells of the block, N)
        """
        data = self._known(X)
        if not self.family_.normalized_score:
            raise ParameterError(
                f"log_means needs counts or binary data, not the {self.family_.name()} family: use "
                "conditional or moments"
            )
        cells = check_entries((rows, entities), data.n_rows, data.n_entities)
        return self._log_mean_blocks(data, *cells)

    def conditional(self, X: Any) -> Floats:
        """Conditional mean E[x_tn | the other entries of row t] of every cell.

        Parameters
        ----------
        X : like the X of `fit`
            NaN marks missing real values, which are predicted but not used.

        Returns
        -------
        array of shape (rows, N)
            If only the shares of the means are meaningful (`family_` is Categorical), each row
            sums to 1.
        """
        data = self._known(X)
        if not self.family_.normalized_score:
            return self._moments(data)[0]
        means = self._own_log_means(data)
        if self.family_.softmax:
            means -= log_sums(means)[:, None]
        return np.exp(means)

    def score(self, X: Any, y: Any = None, *, unknown: str = "error") -> float:
        """How well the entries of X are predicted from the rest of their rows; higher is better.

        Parameters
        ----------
        X : like the X of `fit`
        y : ignored
            Present for compatibility with scikit-learn.
        unknown : {"error", "skip"}, default="error"
            Whether entities of X that the model does not know raise an error or are ignored. With
            "skip", entities that X lacks count as zeros, or as missing in real data.

        Returns
        -------
        float
            Counts and binary data: normalized log-likelihood per unit, leaving out one entry at a
            time; entries that are alone in their row are skipped. Real data: mean log-density.
        """
        check_choice("unknown", unknown)
        data = self._known(self._skip_unknown(X) if unknown == "skip" else X)
        if not self.family_.normalized_score:
            each = self._log_densities(data)
            if np.isnan(each).all():
                raise DataError("every value of X is missing (NaN): there is nothing to score")
            return float(np.nanmean(each))
        return self._share_score(data, shown=bool(self.verbose))

    def log_densities(self, X: Any) -> Floats:
        """Conditional log-density of every cell of real data given the rest of its row.

        Parameters
        ----------
        X : like the X of `fit`, real data

        Returns
        -------
        array of shape (rows, N)
            NaN where X is missing.
        """
        return self._log_densities(self._real(X, "log_densities"))

    def moments(self, X: Any) -> tuple[Floats, Floats]:
        """Conditional mean and variance of every cell of real data given the rest of its row.

        Parameters
        ----------
        X : like the X of `fit`, real data

        Returns
        -------
        mean, variance : arrays of shape (rows, N)
        """
        mean, variance = self._moments(self._real(X, "moments"))
        return mean, np.broadcast_to(variance, mean.shape)

    def save(self, path: Any) -> None:
        """Write the fitted baseline to a folder; `efemb.load` reads it.

        Parameters
        ----------
        path : str or path
            A folder; a baseline that was saved there before is replaced as a whole.
        """
        from efemb.baselines.baseline_files import save

        save(self, path)

    # -- for subclasses ----------------------------------------------------------------------------

    @abstractmethod
    def _family(self) -> Family:
        """The conditional distribution of the data."""

    @abstractmethod
    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        """Fit to data that were read and checked."""

    def _check(self) -> None:
        """Raise an error that names the first invalid option."""

    def _factors(self, X: Any, rows: Ints, entities: Ints) -> Floats:
        """theta of the row of each cell, given all other cells of the row, (cells, K).

        X : csr_array of float64 (T, N)
        """
        raise NotImplementedError

    def _columns(self) -> tuple[Floats, Floats]:
        """beta (N, K) and offset (N,)."""
        raise NotImplementedError

    def _log_mean(self, u: Floats) -> Floats:
        """log E[x] at u = theta . beta + offset."""
        raise NotImplementedError

    def _moments(self, data: Dataset) -> tuple[Floats, Floats]:
        """Mean (T, N) of each cell given the rest of its row, and its variance (any shape)."""
        raise NotImplementedError

    def _numbers_of_a_cell(self, n_entities: int) -> int:
        """Number of values that `_factors` and the means hold in memory per cell."""
        return n_entities

    # -- shared ------------------------------------------------------------------------------------

    def _known(self, X: Any) -> Dataset:
        check_is_fitted(self, "family_")
        return self._read(X, reset=False)

    def _item_labels(self) -> Vocabulary:
        """The labels of the entities; numbers from 0 if the data had none."""
        check_is_fitted(self, "family_")
        if self.vocabulary_ is not None:
            return self.vocabulary_
        return Vocabulary(range(self.n_features_in_))

    def _skip_unknown(self, X: Any) -> Any:
        """X over the entities of the model."""
        check_is_fitted(self, "family_")
        return skip_unknown(X, self.vocabulary_, np.nan if self.family_.missing else 0.0)

    def _row_scores(self, X: Any, *, exclude_seen: bool) -> RowScores:
        data = self._known(X)
        if self.family_.normalized_score:
            log_means = partial(self._whole_row_log_means, data, exclude_seen=exclude_seen)
            blocks = whole_row_blocks(data, log_means, exclude_seen=exclude_seen)
            return RowScores(data, blocks, shares=True)
        means = ((np.arange(data.n_rows), means) for means, _ in [self._moments(data)])
        return RowScores(data, means, shares=False, missing=self.family_.missing)

    def _whole_row_log_means(
        self, data: Dataset, rows: Ints, entities: Ints, *, exclude_seen: bool
    ) -> Iterator[tuple[slice, Floats]]:
        """`_log_mean_blocks` for recommendations, which may be calibrated differently."""
        return self._log_mean_blocks(data, rows, entities)

    def _real(self, X: Any, method: str) -> Dataset:
        data = self._known(X)
        if self.family_.normalized_score:
            raise ParameterError(
                f"{method} needs real data: use log_means for counts and binary data"
            )
        return data

    def _read(self, X: Any, *, reset: bool) -> Dataset:
        """X as a Dataset of values in the support of the family."""
        data = read(self, X, reset=reset, positions=None)
        if len(data.shape) == 3:
            raise DataError(
                f"{type(self).__name__} needs one number per observation, got values of shape "
                f"{data.shape}: fit one model to each of the {data.n_dims} components"
            )
        way_out = "remove or correct such values"
        check_support(data, self.family_, allow_real=self._allow_real, way_out=way_out)
        return data

    def _factor_blocks(
        self, data: Dataset, rows: Ints, entities: Ints
    ) -> Iterator[tuple[slice, Floats]]:
        X = sparse(data).astype(np.float64, copy=False)
        for cells in cell_blocks(len(rows), self._numbers_of_a_cell(data.n_entities)):
            yield cells, self._factors(X, rows[cells], entities[cells])

    def _own_log_means(self, data: Dataset) -> Floats:
        """log E[x_tn] of every cell given the other entries of its row, (T, N)."""
        beta, offset = self._columns()
        rows, entities = (ids.ravel() for ids in np.indices(data.shape))
        log_means = np.empty(rows.size)
        with progress_bar("predicting cells", rows.size, bool(self.verbose)) as advance:
            for block, theta in self._factor_blocks(data, rows, entities):
                own = entities[block]
                u = np.einsum("ik,ik->i", theta, beta[own]) + offset[own]
                log_means[block] = self._log_mean(u)
                advance(len(own))
        return log_means.reshape(data.shape)

    def _log_mean_blocks(
        self, data: Dataset, rows: Ints, entities: Ints
    ) -> Iterator[tuple[slice, Floats]]:
        beta, offset = self._columns()
        for cells, theta in self._factor_blocks(data, rows, entities):
            u = theta @ beta.T
            u += offset
            yield cells, self._log_mean(u)

    def _share_score(self, data: Dataset, *, shown: bool = False) -> float:
        """Sum x log p / sum x over the entries that are not alone in their row."""
        matrix = sparse(data)
        rows, entities = stored_cells(matrix)
        x = matrix.data.astype(np.float64)
        has_context = np.bincount(rows, minlength=data.n_rows)[rows] >= 2
        rows, entities, x = rows[has_context], entities[has_context], x[has_context]
        if len(x) == 0:
            raise DataError(
                "no row has two or more non-zero entities, so there is no context to predict from"
            )
        total = 0.0
        with progress_bar("scoring entries", len(x), shown) as advance:
            for cells, means in self._log_mean_blocks(data, rows, entities):
                total += float(x[cells] @ log_shares(means, entities[cells]))
                advance(len(means))
        return total / float(x.sum())

    def _entry_score(self, theta: Floats, entities: Ints, x: Floats) -> float:
        """Sum x log p / sum x over entries, given the factor of each one's row."""
        beta, offset = self._columns()
        total = 0.0
        for cells in cell_blocks(len(x), len(beta)):
            means = self._log_mean(theta[cells] @ beta.T + offset)
            total += float(x[cells] @ log_shares(means, entities[cells]))
        return total / float(x.sum())

    def _log_densities(self, data: Dataset) -> Floats:
        mean, variance = self._moments(data)
        return normal_log_density(dense(data) - mean, variance)

    def __sklearn_tags__(self) -> Any:
        """Sparse input; NaN if the family has missing values; positive if it requires them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        try:
            family = self._family()
        except EfembError:  # `fit` reports an invalid family; tags must not raise
            return tags
        tags.input_tags.allow_nan = family.missing
        tags.input_tags.positive_only = family.support.low == 0
        return tags


def cell_blocks(n_cells: int, numbers_per_cell: int) -> Iterator[slice]:
    """Slices of at least 64 cells whose computation needs about CHUNK_NUMBERS numbers each."""
    size = max(64, CHUNK_NUMBERS // numbers_per_cell)
    for start in range(0, n_cells, size):
        yield slice(start, min(start + size, n_cells))
