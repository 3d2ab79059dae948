"""The text models of the paper and its relatives as presets of `Embedding` on a `Window`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from efemb.estimators.general import Embedding
from efemb.fitted.queries import Queries, documented_by
from efemb.model.contexts import Window
from efemb.model.zeros import NegativeSampling, Zeros


def _summed() -> Window:
    """The paper's context of a word."""
    return Window(5, scale="none")


@dataclass(eq=False, repr=False)
class _TextEmbedding(Embedding):
    """Words given the words around them."""

    n_components: int = 100
    context: Any = field(default="window", kw_only=True)
    prior: Any = field(default=None, kw_only=True)
    min_count: int = field(default=5, kw_only=True)
    max_vocab: int | None = field(default=None, kw_only=True)
    early_stopping: bool | str = field(default="auto", kw_only=True)

    @documented_by(Queries.predict)
    def predict(self, context: Any, n: int = 10, **options: Any) -> Any:
        return self.fitted().predict(context, n, **options)


@dataclass(eq=False, repr=False)
class BernoulliTextEmbedding(_TextEmbedding):
    """b-emb for text: every word of the vocabulary is there or not, given the words around.

    Parameters are those of `Embedding` with these defaults and additions:

    Parameters
    ----------
    n_components : int, default=100
    context : default="window"
        `Window(size=5)`, the mean of the context vectors; `Window(5, scale="none")` takes their
        sum, `Window(5, subsample=1e-3)` leaves out frequent words.
    zeros : default=NegativeSampling(5, "smoothed")
        CBOW with negative sampling. `All()` visits every word of the vocabulary (exact, for small
        data), `Sampled(n)` some of them without bias.
    prior : default=None
    intercept : bool, default=False
    min_count, max_vocab
        Which words to keep when X is text, not a `Corpus`; see `read_text`.
    deterministic : bool, default=False
        With n_jobs > 1, threads change the same vectors without locks: fast, but not the same to
        the last bit in each run. True leaves the steps to one thread, so that the result depends
        on `random_state` alone.
    early_stopping : bool or "auto"
        "auto" holds text out for exact models, while stochastic ones make `max_iter` passes (5).

    Examples
    --------
    >>> import efemb
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 20
    >>> model = efemb.BernoulliTextEmbedding(4, min_count=1, random_state=0).fit(text)
    >>> model.embedding_.shape
    (7, 4)
    """

    family: Any = field(default="bernoulli", kw_only=True)
    zeros: Any = field(default=None, kw_only=True)
    intercept: bool = field(default=False, kw_only=True)

    def _zeros(self) -> Any:
        return NegativeSampling(5, "smoothed") if self.zeros is None else self.zeros

    @classmethod
    def paper(cls, n_components: int = 100, **overrides: Any) -> Self:
        """CBOW with negative sampling as in the paper: sum context, no prior, no intercept."""
        return cls(n_components=n_components, **{"context": _summed(), **overrides})


@dataclass(eq=False, repr=False)
class SkipGram(BernoulliTextEmbedding):
    """Skip-gram: the words around given a word, the reverse conditional.

    Parameters are those of `BernoulliTextEmbedding`, except:

    Parameters
    ----------
    family : default="auto"
        Bernoulli; categorical where `zeros` are those of a softmax: `Hierarchical()` or
        `NoiseContrastive(n)`.
    zeros : default=NegativeSampling(5, "smoothed")
        Neighbours of a word share its negatives.
    """

    family: Any = field(default="auto", kw_only=True)
    combine: Any = field(default="reverse", kw_only=True)
    zeros: Any = field(default=None, kw_only=True)

    def _family(self) -> Any:
        if not isinstance(self.family, str) or self.family != "auto":
            return self.family
        softmax = Zeros.resolve(self._zeros()).words_only
        return "categorical" if softmax else "bernoulli"


@dataclass(eq=False, repr=False)
class CBOW(_TextEmbedding):
    """Continuous bag of words: which word it is (a softmax), given the mean of the words around.

    Parameters are those of `BernoulliTextEmbedding`, except:

    Parameters
    ----------
    zeros : default="all"
        "all" is the exact softmax by matrix products; `SampledSoftmax(n)`, `NoiseContrastive(n)`
        and `Hierarchical()` approximate it.
    intercept : bool, default=True
        Starts at the unigram.
    """

    family: Any = field(default="categorical", kw_only=True)

    @classmethod
    def paper(cls, n_components: int = 100, **overrides: Any) -> Self:
        """No prior, sum context, no intercept."""
        settings = {"context": _summed(), "intercept": False, **overrides}
        return cls(n_components=n_components, **settings)


@dataclass(eq=False, repr=False)
class PoissonTextEmbedding(_TextEmbedding):
    """Counts of each word at a position, given the words around: Poisson instead of a softmax.

    Parameters are those of `BernoulliTextEmbedding`, except:

    Parameters
    ----------
    link : default="log"
        Positive vectors, and a sum over the zeros in closed form, so that it is exact and fast.
        "identity" takes vectors of any sign, and matrix products.
    context : default="window"
        `Window(5, length_offset=True)` makes means proportional to the length of the document.
    """

    family: Any = field(default="poisson", kw_only=True)
    link: Any = field(default="log", kw_only=True)
