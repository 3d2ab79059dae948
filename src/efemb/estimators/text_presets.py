"""The text models of the paper and its relatives as presets of `Embedding` on a `Window`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from efemb.estimators.general import Embedding, complete_docstring
from efemb.fitted.docstrings import documented_by
from efemb.fitted.queries import Queries
from efemb.model.combine import Combine
from efemb.model.contexts import Window
from efemb.model.zeros import NegativeSampling, Zeros

DRAWING = ("auto", "windows")  # solvers that may draw windows anew in each pass


def _summed() -> Window:
    """The paper's context of a word."""
    return Window(5, scale="none")


@dataclass(eq=False, repr=False)
class _TextEmbedding(Embedding):
    """Words given the words around them.

    Parameters
    ----------
    context : Context or str, default="window"
        `Window(size=5)` is the mean of the context vectors of five words on each side. `Window(5,
        scale="none")` takes their sum; `Window(5, subsample=1e-3)` drops frequent words at random.
    min_count : int, default=5
        Drop words that occur fewer times, if X is text and not a `Corpus`.
    max_vocab : int, optional
        Keep only this many of the most frequent words, if X is text and not a `Corpus`.
    """

    n_components: int = 100
    context: Any = field(default="window", kw_only=True)
    prior: Any = field(default=None, kw_only=True)
    min_count: int = field(default=5, kw_only=True)
    max_vocab: int | None = field(default=None, kw_only=True)
    early_stopping: bool | str = field(default="auto", kw_only=True)

    @documented_by(Queries.predict)
    def predict(self, context: Any, n: int = 10, **options: Any) -> Any:
        return self.fitted().predict(context, n, **options)


@complete_docstring
@dataclass(eq=False, repr=False)
class BernoulliTextEmbedding(_TextEmbedding):
    """b-emb for text: whether each word of the vocabulary is present, given the words around.

    Parameters
    ----------
    zeros : Zeros, str or None, default=None
        None is `NegativeSampling(5, "smoothed")`: CBOW with negative sampling. `All()` visits every
        word of the vocabulary (exact, for small data), `Sampled(n)` an unbiased sample.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> model = efemb.BernoulliTextEmbedding(4, min_count=1, random_state=0).fit(text)
    >>> model.rho_.shape
    (7, 4)
    """

    family: Any = field(default="bernoulli", kw_only=True)
    zeros: Any = field(default=None, kw_only=True)
    intercept: bool = field(default=False, kw_only=True)

    def _zeros(self) -> Any:
        return NegativeSampling(5, "smoothed") if self.zeros is None else self.zeros

    @classmethod
    def paper(cls, n_components: int = 100, **overrides: Any) -> Self:
        """CBOW with negative sampling as in the paper: sum context, no prior, no intercept.

        Parameters
        ----------
        n_components : int, default=100
            Length K of the vectors.
        **overrides
            Other arguments of the class; they replace the paper's settings.
        """
        return cls(n_components=n_components, **{"context": _summed(), **overrides})


@complete_docstring
@dataclass(eq=False, repr=False)
class SkipGram(BernoulliTextEmbedding):
    """Skip-gram: the words around, given a word.

    Parameters
    ----------
    family : Family or str, default="auto"
        Bernoulli, or categorical if `zeros` are those of a softmax: `Hierarchical()` or
        `NoiseContrastive(n)`.
    context : Context, str or None, default=None
        None is `Window(5, shrink=True, subsample="auto")`: five words on each side of which near
        ones count for more, and frequent words thinned out in texts of a million words and more;
        or `Window(5)` where no windows are drawn (`zeros="all"`, other solvers).
    zeros : Zeros, str or None, default=None
        None is `NegativeSampling(5, "smoothed", shared=False)`: each word around a word has its own
        negatives, as in word2vec. Solvers other than `windows` share them.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> model = efemb.SkipGram(4, min_count=1, random_state=0).fit(text)
    >>> model.rho_.shape
    (7, 4)
    """

    family: Any = field(default="auto", kw_only=True)
    combine: Any = field(default="reverse", kw_only=True)
    zeros: Any = field(default=None, kw_only=True)
    context: Any = field(default=None, kw_only=True)

    def _zeros(self) -> Any:
        if self.zeros is not None:
            return self.zeros
        apart = self.solver in DRAWING and Combine.resolve(self.combine).reverse
        return NegativeSampling(5, "smoothed", shared=not apart)

    def _context(self) -> Any:
        if self.context is not None:
            return self.context
        zeros, draws = Zeros.resolve(self._zeros()), self.solver in DRAWING
        thinned = "auto" if draws and zeros.by_noise else None
        return Window(shrink=draws and (zeros.by_noise or zeros.tree), subsample=thinned)

    def _family(self) -> Any:
        if not isinstance(self.family, str) or self.family != "auto":
            return self.family
        softmax = Zeros.resolve(self._zeros()).of_softmax
        return "categorical" if softmax else "bernoulli"


@complete_docstring
@dataclass(eq=False, repr=False)
class CBOW(_TextEmbedding):
    """Continuous bag of words: which word it is, a softmax given the mean of the words around.

    Parameters
    ----------
    zeros : Zeros or str, default="all"
        "all" is the exact softmax by matrix products; `SampledSoftmax(n)`, `NoiseContrastive(n)`
        and `Hierarchical()` approximate it.
    intercept : bool, default=True
        Whether every word has an intercept, which starts at its log frequency.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> model = efemb.CBOW(4, min_count=1, random_state=0).fit(text)
    >>> model.rho_.shape
    (7, 4)
    """

    family: Any = field(default="categorical", kw_only=True)

    @classmethod
    def paper(cls, n_components: int = 100, **overrides: Any) -> Self:
        """The exact softmax as in the paper: sum context, no prior, no intercept.

        Parameters
        ----------
        n_components : int, default=100
            Length K of the vectors.
        **overrides
            Other arguments of the class; they replace the paper's settings.
        """
        settings = {"context": _summed(), "intercept": False, **overrides}
        return cls(n_components=n_components, **settings)


@complete_docstring
@dataclass(eq=False, repr=False)
class PoissonTextEmbedding(_TextEmbedding):
    """Counts of each word at a position, given the words around: Poisson instead of a softmax.

    Parameters
    ----------
    link : Link or str, default="log"
        "log" has positive vectors and sums over the zeros in closed form: exact and fast.
        "identity" has signed vectors and uses matrix products.
    context : Context or str, default="window"
        `Window(size=5)` is the mean of the context vectors of five words on each side. `Window(5,
        length_offset=True)` makes means proportional to the length of the document.

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> model = efemb.PoissonTextEmbedding(4, min_count=1, random_state=0).fit(text)
    >>> model.rho_.shape
    (7, 4)
    """

    family: Any = field(default="poisson", kw_only=True)
    link: Any = field(default="log", kw_only=True)
