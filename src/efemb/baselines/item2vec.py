"""Item2Vec: baskets as sentences, through our own skip-gram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.baselines.base import Baseline
from efemb.baselines.cells import sparse
from efemb.contexts.window import Window
from efemb.data.corpus import Corpus
from efemb.data.vocabulary import Vocabulary
from efemb.engine.options import whole
from efemb.estimators.checking import check_components, generator
from efemb.estimators.text import SkipGram
from efemb.families import Family, Poisson
from efemb.types import Floats, Ints
from efemb.zeros import NegativeSampling, probabilities

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


class Item2Vec(Baseline):
    """Skip-gram with negative sampling on the items of each row, in random order (prod2vec).

    Items of a row are each other's neighbours if they are at most `window` apart in that order;
    how many of each were bought is not looked at. Given a row, the items have the shares
    q_n exp(mean of rho_m over the row . alpha_n), q being the noise that they are told from
    (Grbovic et al. 2015; Barkan and Koenigstein 2016).

    Parameters
    ----------
    n_components : int
        K.
    window : int
        Items on either side.
    negatives : int
        Draws of noise for each item.
    max_iter : int
        Passes.
    random_state : None, int, RandomState or Generator
        Order of the items, draws and first vectors; the same seed gives the same bits.
    verbose : int
        Show progress bars.

    Attributes
    ----------
    embedding_, context_ : array (N, K)
        rho and alpha of the skip-gram.
    log_noise_ : array (N,)

    Examples
    --------
    >>> X = np.random.default_rng(0).poisson(0.5, size=(200, 6))
    >>> Item2Vec(2, random_state=0).fit(X).embedding_.shape
    (6, 2)
    """

    embedding_: Floats
    context_: Floats
    log_noise_: Floats

    def __init__(
        self,
        n_components: int = 100,
        *,
        window: int = 10,
        negatives: int = 5,
        max_iter: int = 10,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.window = window
        self.negatives = negatives
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _family(self) -> Family:
        return Poisson()

    def _check(self) -> None:
        check_components(self.n_components)
        for name in ("window", "negatives", "max_iter"):
            whole(name, getattr(self, name))

    def _fit(self, data: Dataset, validation: Dataset | None) -> None:
        rng = generator(self.random_state)
        noise = NegativeSampling(int(self.negatives), "smoothed")
        corpus = sentences(sparse(data), rng)
        model = SkipGram(
            int(self.n_components),
            context=Window(int(self.window)),
            zeros=noise,
            max_iter=int(self.max_iter),
            deterministic=True,
            random_state=rng,
            verbose=self.verbose,
        ).fit(corpus)
        self.embedding_ = np.asarray(model.embedding_, dtype=np.float64)
        self.context_ = np.asarray(model.context_, dtype=np.float64)
        share = probabilities(noise.distribution, np.maximum(corpus.counts(), 0.5))
        self.log_noise_ = np.log(share)

    def _factors(self, data: Dataset, rows: Ints, entities: Ints) -> Floats:
        """Mean rho of the other items of the row; 0 where there are none."""
        needed, place = np.unique(rows, return_inverse=True)
        X = (sparse(data)[needed] != 0).astype(np.float64)
        sums, sizes = X @ self.embedding_, np.diff(X.indptr).astype(np.float64)
        own = np.asarray(X[place, entities]).ravel()
        total = sums[place] - own[:, None] * self.embedding_[entities]
        return np.asarray(total / np.maximum(sizes[place] - own, 1.0)[:, None])

    def _columns(self) -> tuple[Floats, Floats]:
        return self.context_, self.log_noise_

    def _log_mean(self, u: Floats) -> Floats:
        return u


def sentences(X: Any, rng: np.random.Generator) -> Corpus:
    """The non-zero entities of each row in random order, as documents of entity numbers."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((rng.random(len(row)), row))
    counts = np.bincount(X.indices, minlength=X.shape[1]).astype(np.float64)
    words = Vocabulary(range(X.shape[1]), counts=np.maximum(counts, 0.5))
    return Corpus(X.indices[order], X.indptr.astype(np.int64), words)
