"""Text: the models that are compared, and the texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

WINDOW = 5
NEGATIVES = 5
NOISE = 20  # draws of a noise-contrastive softmax
UNIGRAM = "unigram"


@dataclass(frozen=True)
class TextModel:
    """A model of words given the words around, or the reverse.

    kind : "unigram", "b-emb", "cbow" or "skip-gram"
    zeros : "all" exact, "negatives", "noise" or "tree"
    mean : take the mean of the context vectors, not the sum
    """

    name: str
    kind: str
    zeros: str = "negatives"
    mean: bool = False
    why: str = ""

    @property
    def exact(self) -> bool:
        """Whether every step visits the whole vocabulary: for small texts."""
        return self.kind != UNIGRAM and self.zeros == "all"

    @property
    def inputs(self) -> str:
        """The vectors of given words, which stand for words in word2vec."""
        return "rho" if self.kind == "skip-gram" else "alpha"

    def settings(self) -> dict[str, Any]:
        """What results depend on, as JSON."""
        found = asdict(self)
        del found["why"], found["name"]
        return found


MODELS = (
    TextModel(UNIGRAM, UNIGRAM, why="knows no context"),
    TextModel("b-emb, negative sampling", "b-emb", why="the paper's b-emb: CBOW of word2vec"),
    TextModel("b-emb, negative sampling, mean", "b-emb", mean=True, why="as word2vec does it"),
    TextModel("b-emb, all zeros, mean", "b-emb", "all", True, "what negative sampling stands for"),
    TextModel("CBOW, softmax", "cbow", "all", why="the paper's categorical model"),
    TextModel("CBOW, softmax, mean", "cbow", "all", True, "the same with means"),
    TextModel("CBOW, noise-contrastive, mean", "cbow", "noise", True, "a softmax from noise"),
    TextModel("CBOW, tree, mean", "cbow", "tree", True, "hierarchical softmax"),
    TextModel("skip-gram, negative sampling", "skip-gram", why="skip-gram of word2vec"),
    TextModel("skip-gram, tree", "skip-gram", "tree", why="hierarchical softmax"),
)


@dataclass(frozen=True)
class TextPlan:
    """A text and how it is fitted.

    passes, exact_passes : at most; the one that validates best is kept
    n_words, n_pairs : held-out words that are scored, by models of words and by skip-gram
    exact : whether models that visit the whole vocabulary are fitted
    """

    text: str
    k: int
    passes: int = 5
    exact_passes: int = 40
    n_words: int = 20_000
    n_pairs: int = 4_000
    exact: bool = False

    def passes_of(self, model: TextModel) -> int:
        """Exact models make one step a minibatch, the others one a word: fewer passes do."""
        return self.exact_passes if model.exact else self.passes

    def models(self) -> list[TextModel]:
        """Those that are fitted."""
        return [model for model in MODELS if self.exact or not model.exact]


FULL = (
    TextPlan("lee", 50, passes=10, exact=True),
    TextPlan("20newsgroups", 100),
)
QUICK = (TextPlan("lee", 20, exact_passes=10, n_words=4_000, n_pairs=1_000, exact=True),)
