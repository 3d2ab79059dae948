"""Text: Bernoulli embeddings beside CBOW and skip-gram."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from efemb import datasets
from efemb.data.corpus import Corpus
from efemb.data.readers.text.read import recode
from efemb.datasets.download import find_files
from efemb.datasets.sources import Copy, DataSet, Wheel
from efemb.errors import DataError
from efemb.estimators import CBOW, BernoulliTextEmbedding, SkipGram
from efemb.evaluation import analogies, held_out_words, word_similarity
from efemb.model.contexts import Window
from efemb.model.zeros import All, Hierarchical, NegativeSampling, NoiseContrastive
from efemb.reproduce.claims import NAN, join_rows
from efemb.reproduce.jobs import Found, Job, Outcome
from efemb.reproduce.study import Options, Results, Study
from efemb.table import Table

# -- models and plans -----------------------------------------------------------------------------


WINDOW = 5
NEGATIVES = 5
NOISE = 20  # noise samples of a noise-contrastive softmax
UNIGRAM = "unigram"


@dataclass(frozen=True)
class TextModel:
    """A model of words given the surrounding words, or the reverse.

    kind : "unigram", "b-emb", "cbow" or "skip-gram"
    zeros : "all" exact, "negatives", "noise" or "tree"
    mean : use the mean of the context vectors instead of the sum
    """

    name: str
    kind: str
    zeros: str = "negatives"
    mean: bool = False
    why: str = ""

    @property
    def exact(self) -> bool:
        """Whether every step visits the whole vocabulary: feasible for small texts only."""
        return self.kind != UNIGRAM and self.zeros == "all"

    @property
    def inputs(self) -> str:
        """The vectors of the input words, which word2vec uses as word vectors."""
        return "rho" if self.kind == "skip-gram" else "alpha"

    def settings(self) -> dict[str, Any]:
        """What results depend on, as JSON."""
        settings = asdict(self)
        del settings["why"], settings["name"]
        return settings


TEXT_MODELS = (
    TextModel(UNIGRAM, UNIGRAM, why="ignores the context"),
    TextModel("b-emb, negative sampling", "b-emb", why="the paper's b-emb: CBOW of word2vec"),
    TextModel("b-emb, negative sampling, mean", "b-emb", mean=True, why="as word2vec does it"),
    TextModel(
        "b-emb, all zeros, mean", "b-emb", "all", True, "what negative sampling approximates"
    ),
    TextModel("CBOW, softmax", "cbow", "all", why="the paper's categorical model"),
    TextModel("CBOW, softmax, mean", "cbow", "all", True, "the same with means"),
    TextModel(
        "CBOW, noise-contrastive, mean",
        "cbow",
        "noise",
        True,
        "noise-contrastive estimate of the softmax",
    ),
    TextModel("CBOW, tree, mean", "cbow", "tree", True, "hierarchical softmax"),
    TextModel("skip-gram, negative sampling", "skip-gram", why="skip-gram of word2vec"),
    TextModel("skip-gram, tree", "skip-gram", "tree", why="hierarchical softmax"),
)


@dataclass(frozen=True)
class TextPlan:
    """A text and how it is fitted.

    passes, exact_passes : maximum number of passes; the best on validation is used
    n_words, n_pairs : number of held-out words to score, by models of words and by skip-gram
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
        """More for exact models, which take one step per minibatch instead of one per word."""
        return self.exact_passes if model.exact else self.passes

    def models(self) -> list[TextModel]:
        """The models to fit."""
        return [model for model in TEXT_MODELS if self.exact or not model.exact]


FULL_PLANS = (
    TextPlan("lee", 50, passes=10, exact=True),
    TextPlan("20newsgroups", 100),
)
QUICK_PLANS = (TextPlan("lee", 20, exact_passes=10, n_words=4_000, n_pairs=1_000, exact=True),)


# -- data -----------------------------------------------------------------------------------------


TEXT_TITLES = {"lee": "Lee corpus (news)", "20newsgroups": "20 Newsgroups"}
PAIRS, QUESTIONS = "wordsim353.tsv", "questions-words.txt"
_SHA256 = {
    PAIRS: "f92a022fc2537793a15bc3a8c162ebcd74990e033a228bb6388cb71e4c0b1e1d",
    QUESTIONS: "8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36",
}
WORD_LISTS = DataSet(
    name="wordsim",
    folder="wordsim",
    title="WordSim-353 (Finkelstein et al. 2002) and the analogies of word2vec",
    shape="353 pairs, 19,544 questions",
    terms="each list has its own; carried by gensim (LGPL-2.1)",
    size=27_800_000,
    copies=(
        Copy(
            _SHA256,
            wheel=Wheel("gensim>=4", {name: f"gensim/test/test_data/{name}" for name in _SHA256}),
        ),
    ),
)


@dataclass(frozen=True)
class Texts:
    """Text for training, validation and testing."""

    train: Corpus
    validation: Corpus
    test: Corpus


@lru_cache(maxsize=1)
def load_texts(name: str, seed: int, data_home: Path | None) -> Texts:
    """A text by name; its documents are split at random unless it has its own test part."""
    if name == "lee":
        return Texts(*datasets.fetch_lee(data_home, progress=False).split(0.1, 0.05, seed=seed))
    train = datasets.fetch_20newsgroups(data_home, progress=False)
    test = datasets.fetch_20newsgroups(data_home, part="test", min_count=1, progress=False)
    # A few words suffice to decide when to stop: each costs a sum over the vocabulary.
    train, validation = train.split(0.005, seed=seed)
    return Texts(train, validation, test)


def find_word_lists(data_home: Path | None) -> dict[str, Path]:
    """Pairs of words with human similarity scores, and analogy questions."""
    return dict(find_files(WORD_LISTS, data_home, download=True, progress=False).paths)


# -- the study ------------------------------------------------------------------------------------


FEWEST_PAIRS = 10  # a rank correlation of fewer is meaningless
ABOUT = (
    "The paper does not fit text; it shows that CBOW is an embedding with categorical "
    "conditionals, and that negative sampling is a biased gradient of the Bernoulli embedding "
    "(b-emb). Here both are fitted to the same text: "
    f"{WINDOW} words on each side, {NEGATIVES} negatives."
)
CAPTION = (
    "{title}: {tokens:,} training words, {words:,} distinct, K={k}; means over {splits} split(s). "
    "log_likelihood: of a held-out word given the surrounding words, normalized over the "
    "vocabulary (noise x odds for models trained with negative sampling); for skip-gram, of a "
    "surrounding word given one word, so its figures can be compared only with one another "
    "and with the unigram. spearman: rank correlation of the cosines of the input vectors with "
    "WordSim-353, on the pairs whose words both occur. analogies: share of correct answers among "
    "the questions whose words all occur."
)


class TextStudy(Study):
    """Held-out words, word lists and times."""

    name = "text"
    title = "Text: b-emb, CBOW and skip-gram"
    minutes = 15.0

    def __init__(
        self, full: Sequence[TextPlan] = FULL_PLANS, quick: Sequence[TextPlan] = QUICK_PLANS
    ) -> None:
        self.full, self.quick = full, quick

    def jobs(self, options: Options) -> Sequence[Job]:
        """Every model on every split of each text."""
        return [
            _make_job(model, plan, seed, options)
            for plan in (self.quick if options.quick else self.full)
            for seed in options.used_seeds()
            for model in plan.models()
        ]

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """One table per text."""
        out.page.paragraph(ABOUT)
        for plan in self.quick if options.quick else self.full:
            splits = [outcome for outcome in outcomes if outcome.job.settings["text"] == plan.text]
            first = splits[0].figures
            words = {
                "title": TEXT_TITLES[plan.text],
                "k": plan.k,
                "splits": len(options.used_seeds()),
            }
            words |= {"tokens": first["tokens"], "words": first["words"]}
            out.table(plan.text, tabulate_text(plan, splits), CAPTION.format(**words))


def _make_job(model: TextModel, plan: TextPlan, seed: int, options: Options) -> Job:
    settings: dict[str, Any] = {"text": plan.text, "seed": seed, "model": model.settings()}
    settings |= {
        "k": plan.k,
        "passes": plan.passes_of(model),
        "scored": [plan.n_words, plan.n_pairs],
    }
    label = f"{plan.text}: {model.name}, seed {seed}"
    return Job("text", label, settings, partial(_fit, model, plan, seed, options))


def _fit(model: TextModel, plan: TextPlan, seed: int, options: Options) -> Found:
    data = load_texts(plan.text, seed, options.data_home)
    size = {"tokens": data.train.n_tokens, "words": data.train.n_entities}
    if model.kind == UNIGRAM:
        return {**size, **score_unigram(data)}, {}
    fitted = make_estimator(model, plan, seed, options.n_jobs)
    start = time.perf_counter()
    fitted.fit(data.train, validation=data.validation)
    seconds = time.perf_counter() - start
    n_words = plan.n_pairs if model.kind == "skip-gram" else plan.n_words
    held = held_out_words(fitted, data.test, n_words=n_words, seed=0)
    figures = {
        **size,
        "log_likelihood": held.log_likelihood,
        "standard_error": held.standard_error,
        "n": held.n_words,
        "fit_seconds": seconds,
        "passes": int(fitted.n_iter_),
        "best_pass": int(fitted.best_iter_),
        **score_word_lists(fitted.fitted().vectors(model.inputs), options.data_home),
    }
    return figures, {}


def make_estimator(model: TextModel, plan: TextPlan, seed: int, n_jobs: int) -> Any:
    """The unfitted model; the same seed gives the same bits."""
    kinds = {"b-emb": BernoulliTextEmbedding, "cbow": CBOW, "skip-gram": SkipGram}
    zeros = {
        "all": All(),
        "negatives": NegativeSampling(NEGATIVES, "smoothed"),
        "noise": NoiseContrastive(NOISE),
        "tree": Hierarchical(),
    }
    options: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "deterministic": True}
    return kinds[model.kind].paper(
        plan.k,
        context=Window(WINDOW, scale="items" if model.mean else "none"),
        zeros=zeros[model.zeros],
        max_iter=plan.passes_of(model),
        **options,
    )


def score_unigram(data: Texts) -> dict[str, Any]:
    """Held-out log-likelihood of the word frequencies of the training text, plus one each."""
    counts = data.train.counts() + 1.0
    tokens = recode(data.test, data.train.vocabulary).tokens
    each = np.log(counts / counts.sum())[tokens]
    error = float(each.std() / np.sqrt(len(each)))
    return {"log_likelihood": float(each.mean()), "standard_error": error, "n": len(each)}


def score_word_lists(vectors: Any, data_home: Path | None) -> dict[str, Any]:
    """How cosines agree with human scores; empty if the lists are missing or have few words."""
    try:
        lists = find_word_lists(data_home)
    except DataError:
        return {}
    figures: dict[str, Any] = {}
    try:
        close = word_similarity(vectors, lists[PAIRS])
        if close.n_pairs >= FEWEST_PAIRS:
            figures = {"spearman": close.spearman, "pairs": close.n_pairs}
    except DataError:  # no pair has both words in this text
        pass
    total = analogies(vectors, lists[QUESTIONS])[-1]
    if total["n"]:
        figures |= {"analogies": total["accuracy"], "questions": total["n"]}
    return figures


def tabulate_text(plan: TextPlan, outcomes: Sequence[Outcome]) -> Table:
    """One row per model, means over splits."""
    rows = []
    for model in plan.models():
        splits = [
            outcome for outcome in outcomes if outcome.job.settings["model"] == model.settings()
        ]

        def mean(name: str, splits: list[Outcome] = splits) -> float:
            return float(np.mean([outcome.figures.get(name, NAN) for outcome in splits]))

        rows.append(
            {
                "model": model.name,
                "log_likelihood": mean("log_likelihood"),
                "standard_error": mean("standard_error"),
                "of": "a pair" if model.kind == "skip-gram" else "a word",
                "spearman": mean("spearman"),
                "pairs": mean("pairs"),
                "analogies": mean("analogies"),
                "questions": mean("questions"),
                "fit_seconds": round(mean("fit_seconds"), 1),
                "best_pass": mean("best_pass"),
                "what it is": model.why,
            }
        )
    return join_rows(rows)


STUDY = TextStudy()
