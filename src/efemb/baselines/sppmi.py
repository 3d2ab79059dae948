"""ShiftedPPMI: word vectors by factorizing co-occurrences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.engine.threads import one_blas_thread
from efemb.errors import DataError, ParameterError, check_integer, check_number
from efemb.estimators.checks import check_components, generator
from efemb.fitted import LabeledVectors
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts.window import Window
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec

if TYPE_CHECKING:
    from efemb.data.corpus import Corpus
    from efemb.data.vocabulary import Vocabulary

_SMALL = 512  # up to this many words, a dense decomposition is faster
# Number of pairs counted at a time, 16 bytes each.
PAIRS = 1 << 23


@dataclass(eq=False, repr=False)
class ShiftedPPMI(BaseEstimator):
    """Singular vectors of shifted positive pointwise mutual information.

    M_wc = max(0, log(P(w, c) / (P(w) P_power(c))) - log(shift)), where P(w, c) counts pairs at
    most `window` tokens apart in a document and P_power(c) is proportional to count(c)^power;
    M = U S V', embedding U S^eigen, context V S^eigen. Skip-gram with negative sampling
    factorizes this matrix implicitly (Levy and Goldberg 2014; Levy, Goldberg and Dagan 2015).

    Parameters
    ----------
    n_components : int, default=100
        K, at most the number of words.
    window : int, default=5
        Number of tokens on either side.
    shift : float, default=5.0
        Corresponds to the number of negative samples; 1 means no shift.
    power : float, default=0.75
        Exponent that smooths the distribution of contexts; 1 means no smoothing.
    eigen : float, default=0.5
        Exponent of the singular values.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the start vector, on which the result does not depend; None uses a fixed
        one.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    embedding_, context_ : array of shape (N, K)
        float64, components in order of decreasing singular values; signs are such that the
        largest entry of each component of the embedding is positive.
    singular_values_ : array of shape (K,)
    vocabulary_ : Vocabulary

    Examples
    --------
    >>> from efemb.data.corpus import Corpus
    >>> text = Corpus([0, 1, 2, 3, 0, 1, 2, 3], [0, 2, 4, 6, 8], ["a", "b", "c", "d"])
    >>> model = ShiftedPPMI(n_components=2, shift=1).fit(text)
    >>> model.embedding_.shape, len(model.vectors())
    ((4, 2), 4)
    """

    n_components: int = 100
    _: KW_ONLY
    window: int = 5
    shift: float = 5.0
    power: float = 0.75
    eigen: float = 0.5
    random_state: Any = None
    verbose: int = 0

    embedding_: Floats = field(init=False)
    context_: Floats = field(init=False)
    singular_values_: Floats = field(init=False)
    vocabulary_: Vocabulary = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count and factorize.

        Parameters
        ----------
        X : Corpus, or anything that `read_text` takes
        y : ignored
        """
        self._check()
        corpus = _corpus(X)
        if self.n_components > corpus.n_entities:
            raise ParameterError(
                f"n_components={self.n_components} exceeds the number of words, "
                f"{corpus.n_entities:,}"
            )
        with progress_bar("counting pairs", corpus.n_tokens, bool(self.verbose)) as advance:
            counts = count_cooccurrences(corpus, int(self.window), advance)
        matrix = shifted_ppmi(counts, float(self.shift), float(self.power))
        seed = 0 if self.random_state is None else self.random_state
        left, values, right = decompose(matrix, int(self.n_components), generator(seed))
        # If the rank is too low, directions are undefined and set to 0, even for eigen = 0.
        weight = np.where(values > 0, values, 1.0) ** float(self.eigen) * (values > 0)
        self.embedding_, self.context_ = left * weight, right * weight
        self.singular_values_ = values
        self.vocabulary_ = corpus.vocabulary.with_counts(corpus.counts())
        return self

    def fitted(self) -> FittedEmbedding:
        """A model that can be scored: p(w | context) proportional to p(w) exp(rho . mean alpha).

        The inner products approximate log p(w | c) / p(w); a context is the mean of its words.
        """
        check_is_fitted(self)
        counts = self.vocabulary_.counts
        assert counts is not None  # as `fit` counted them
        spec = Spec.resolve(
            context=Window(int(self.window), scale="items"), family="categorical", prior=None
        )
        unigram = np.log(np.maximum(counts, 0.5) / counts.sum())
        # Inner products contain each singular value once, whatever its power in the vectors.
        values = np.where(self.singular_values_ > 0, self.singular_values_, 1.0)
        context = self.context_ * values ** (1.0 - 2.0 * float(self.eigen))
        parameters = Parameters(self.embedding_, context, unigram)
        return FittedEmbedding(parameters, spec, self.vocabulary_, model="ShiftedPPMI")

    def vectors(self) -> LabeledVectors:
        """The embedding with its words."""
        check_is_fitted(self, "embedding_")
        return LabeledVectors(self.vocabulary_, self.embedding_)

    def _check(self) -> None:
        check_components(self.n_components)
        check_integer("window", self.window)
        check_number("shift", self.shift, above=0)
        check_number("power", self.power, low=0)
        check_number("eigen", self.eigen, low=0)


def shifted_ppmi(counts: Any, shift: float, power: float) -> Any:
    """max(0, PMI - log shift) of a symmetric csr_array of counts; zeros are not stored."""
    if counts.nnz == 0:
        raise DataError("no word has another one near it: every document holds one word only")
    totals = np.asarray(counts.sum(axis=1)).ravel()
    occurs = totals > 0
    smoothed = np.where(occurs, totals**power, 0.0)
    # Words that never occur are in no stored entry, so any finite number will do.
    log_word = np.log(np.where(occurs, totals, 1.0))
    log_context = np.log(np.where(occurs, smoothed / smoothed.sum(), 1.0))
    ppmi = counts.copy()
    ppmi.data = np.log(ppmi.data) - log_context[ppmi.indices] - np.log(shift)
    ppmi.data -= np.repeat(log_word, np.diff(ppmi.indptr))
    np.maximum(ppmi.data, 0.0, out=ppmi.data)
    ppmi.eliminate_zeros()
    if ppmi.nnz == 0:
        raise DataError(
            f"no two words occur together more than shift={shift:g} times as often as by chance; "
            "lower shift, or read more text"
        )
    return ppmi


def decompose(matrix: Any, k: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """U (N, k), s falling, V (N, k); the same bits for any number of BLAS threads."""
    size = matrix.shape[0]
    # A single thread is also faster, because the products of the iteration are small.
    with one_blas_thread:
        if size <= _SMALL or 2 * k >= size:
            left, values, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
        else:
            left, values, right = svds(matrix, k, v0=rng.standard_normal(size))
    order = np.argsort(-values, kind="stable")[:k]
    left, values, right = left[:, order], values[order], right[order].T
    values = np.where(values > size * np.finfo(np.float64).eps * values[0], values, 0.0)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(k)])
    return left * signs, values, right * signs


def _corpus(X: Any) -> Corpus:
    from efemb.data.corpus import Corpus
    from efemb.data.readers.text.read import read_text

    return X if isinstance(X, Corpus) else read_text(X)


def count_cooccurrences(corpus: Corpus, window: int, advance: Callable[[int], None]) -> Any:
    """csr_array (N, N): pairs of tokens of a document, at most `window` apart, both ways round."""
    size, n_tokens = corpus.n_entities, corpus.n_tokens
    # No pair is longer than the longest document: a huge window costs nothing.
    window = min(window, max(1, int(np.diff(corpus.starts).max(initial=0)) - 1))
    step = max(1, PAIRS // window)
    sums: list[Any] = [csr_array((size, size), dtype=np.float64)]
    for start in range(0, n_tokens, step):
        stop = min(start + step, n_tokens)
        sums.append(_count_pairs(corpus, start, stop, window))
        # Add only equal sizes, as in a merge sort, so that the total is not copied every time.
        while len(sums) > 1 and sums[-2].nnz <= 2 * sums[-1].nnz:
            last = sums.pop()
            sums.append(sums.pop() + last)
        advance(stop - start)
    total = sums.pop()
    while sums:
        total = total + sums.pop()
    return csr_array(total + total.T)


def _count_pairs(corpus: Corpus, start: int, stop: int, window: int) -> Any:
    """Pairs whose first token is in start ... stop, first word in the rows."""
    # A copy, so that a memory-mapped corpus is read only once.
    tokens = np.array(corpus.tokens[start : min(stop + window, corpus.n_tokens)])
    following = _tokens_left(corpus.starts, start, stop)
    offsets = range(1, min(window, int(following.max())) + 1)
    firsts = [np.flatnonzero(following >= offset) for offset in offsets]
    rows = np.concatenate([tokens[:0], *(tokens[first] for first in firsts)])
    shifted = (tokens[first + offset] for first, offset in zip(firsts, offsets, strict=True))
    columns = np.concatenate([tokens[:0], *shifted])
    shape = (corpus.n_entities, corpus.n_entities)
    return coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()


def _tokens_left(starts: Ints, start: int, stop: int) -> Ints:
    """For each token of start ... stop, the number of tokens that follow it in its document."""
    first = int(np.searchsorted(starts, start, side="right"))
    last = int(np.searchsorted(starts, stop, side="left"))
    ends = starts[first : last + 1]
    lengths = np.diff(np.r_[start, np.minimum(ends, stop)])
    following: Ints = np.repeat(ends, lengths) - np.arange(start, stop) - 1
    return following
