"""ItemSkipGram: items as words, baskets as sentences (item2vec, prod2vec)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.baselines.base import Baseline
from efemb.data.corpus import Corpus
from efemb.data.matrices import sparse
from efemb.data.vocabulary import Vocabulary
from efemb.engine.optimizers.first_order import Adagrad
from efemb.errors import DataError, check_integer
from efemb.estimators.checks import check_components
from efemb.estimators.text_presets import SkipGram
from efemb.model.contexts.window import Window
from efemb.model.families import Categorical, Family
from efemb.model.zeros import NegativeSampling, word_noise

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

NOISE = "smoothed"


@dataclass(eq=False, repr=False)
class ItemSkipGram(Baseline):
    """Skip-gram on baskets, or item2vec (Barkan and Koenigstein 2016; Grbovic et al. 2015).

    Any two different items of a row form a pair of words; counts are ignored. Skip-gram
    distinguishes pairs from noise q, so that p(n | m) is proportional to q_n exp(rho_m . alpha_n).
    For a row, the geometric mean over its items m is used: log p(n | row) = log q_n + mean over m
    of rho_m . alpha_n + constant.

    Parameters
    ----------
    n_components : int, default=20
        K.
    n_negatives : int, default=5
        Number of negatives per pair, drawn in proportion to counts to the power 3/4.
    max_iter : int, default=20
        Number of passes over the rows.
    subsample : float or None, default=None
        Threshold above which frequent items are dropped at random, as in `Window`.
    n_jobs : int or None, default=1
        Number of threads; with more than one, runs are not bitwise reproducible.
    random_state : int, RandomState, Generator or None, default=None
        Random seed.
    verbose : int, default=0
        Show progress bars.

    Attributes
    ----------
    embedding_ : array of shape (N, K)
        rho, the vectors of items in the context.
    beta_ : array of shape (N, K)
        alpha, the vectors of predicted items.
    log_noise_ : array of shape (N,)
        log q.
    family_ : Categorical
        Only the shares of the means are meaningful.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).poisson(1.0, size=(50, 6))
    >>> ItemSkipGram(2, max_iter=2, random_state=0).fit(X).embedding_.shape
    (6, 2)
    """

    n_components: int = 20
    _: KW_ONLY
    n_negatives: int = 5
    max_iter: int = 20
    subsample: float | None = None
    n_jobs: int | None = 1
    random_state: Any = None
    verbose: int = 0

    embedding_: Floats = field(init=False)
    beta_: Floats = field(init=False)
    log_noise_: Floats = field(init=False)

    def _family(self) -> Family:
        return Categorical()

    def _check(self) -> None:
        check_components(self.n_components)
        check_integer("n_negatives", self.n_negatives)
        check_integer("max_iter", self.max_iter)

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        X = sparse(data)
        sizes = np.diff(X.indptr)
        if sizes.max() < 2:
            raise DataError("every row contains only one entity: there are no pairs to learn from")
        counts = np.bincount(X.indices, minlength=data.n_entities).astype(np.float64)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        words = Vocabulary(range(data.n_entities), counts=counts)
        model = SkipGram(
            int(self.n_components),
            context=Window(int(sizes.max()) - 1, scale="none", subsample=self.subsample),
            zeros=NegativeSampling(int(self.n_negatives), NOISE),
            optimizer=Adagrad(0.3, epsilon=1e-4),
            max_iter=int(self.max_iter),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
        ).fit(Corpus(X.indices.astype(np.int32), starts, words))
        self.embedding_ = model.embedding_.astype(np.float64)
        self.beta_ = model.context_.astype(np.float64)
        self.log_noise_ = np.log(word_noise(NOISE, counts))

    def _factors(self, X: Any, rows: Ints, entities: Ints) -> Floats:
        """Mean of the row's other vectors; 0 if there are none."""
        distinct, index = np.unique(rows, return_inverse=True)
        present = (X[distinct] != 0).astype(np.float64)
        own = np.asarray(present[index, entities]).ravel()
        sums = (present @ self.embedding_)[index] - own[:, None] * self.embedding_[entities]
        others = np.diff(present.indptr)[index] - own
        return np.asarray(sums / np.maximum(others, 1.0)[:, None])

    def _columns(self) -> tuple[Floats, Floats]:
        return self.beta_, self.log_noise_

    def _log_mean(self, u: Floats) -> Floats:
        return u
