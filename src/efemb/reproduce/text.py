"""Text: Bernoulli embeddings beside CBOW and skip-gram."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from efemb.errors import DataError
from efemb.evaluation import analogies, held_out_words, word_similarity
from efemb.reproduce.runner import Found, Job, Outcome
from efemb.reproduce.study import Options, Results, Study
from efemb.reproduce.text_data import PAIRS, QUESTIONS, TITLES, Texts, texts, word_lists
from efemb.reproduce.text_settings import (
    FULL,
    NEGATIVES,
    NOISE,
    QUICK,
    UNIGRAM,
    WINDOW,
    TextModel,
    TextPlan,
)
from efemb.table import Table

FEWEST_PAIRS = 10  # a rank correlation of fewer says nothing
NAN = float("nan")
ABOUT = (
    "The paper fits no text; it shows that CBOW is an embedding with categorical conditionals, and "
    "that negative sampling is a biased gradient of the Bernoulli embedding (b-emb). Here both are "
    f"fitted to the same text: {WINDOW} words on either side, {NEGATIVES} negatives."
)
CAPTION = (
    "{title}: {tokens:,} words to learn from, {words:,} different, K={k}; means over {splits} "
    "split(s). log_likelihood: of a held-out word given those around it, normalised over the "
    "vocabulary (noise x odds where words were told from noise); for skip-gram of a word around, "
    "given one word, so its figures compare with one another and the unigram's only. spearman: "
    "cosines of the vectors of given words against WordSim-353, on the pairs whose words are "
    "there. analogies: share of the questions whose words are there that are answered right."
)


class TextStudy(Study):
    """Held-out words, word lists and times."""

    name = "text"
    title = "Text: b-emb, CBOW and skip-gram"
    minutes = 15.0

    def __init__(self, full: Sequence[TextPlan] = FULL, quick: Sequence[TextPlan] = QUICK) -> None:
        self.full, self.quick = full, quick

    def jobs(self, options: Options) -> Sequence[Job]:
        """Every model on every split of each text."""
        return [
            _job(model, plan, seed, options)
            for plan in (self.quick if options.quick else self.full)
            for seed in options.used_seeds()
            for model in plan.models()
        ]

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """A table for each text."""
        out.page.paragraph(ABOUT)
        for plan in self.quick if options.quick else self.full:
            mine = [one for one in outcomes if one.job.settings["text"] == plan.text]
            first = mine[0].figures
            words = {"title": TITLES[plan.text], "k": plan.k, "splits": len(options.used_seeds())}
            words |= {"tokens": first["tokens"], "words": first["words"]}
            out.table(plan.text, text_table(plan, mine), CAPTION.format(**words))


def _job(model: TextModel, plan: TextPlan, seed: int, options: Options) -> Job:
    settings: dict[str, Any] = {"text": plan.text, "seed": seed, "model": model.settings()}
    settings |= {
        "k": plan.k,
        "passes": plan.passes_of(model),
        "scored": [plan.n_words, plan.n_pairs],
    }
    label = f"{plan.text}: {model.name}, seed {seed}"
    return Job("text", label, settings, partial(_fitted, model, plan, seed, options))


def _fitted(model: TextModel, plan: TextPlan, seed: int, options: Options) -> Found:
    data = texts(plan.text, seed, options.data_home)
    size = {"tokens": data.train.n_tokens, "words": data.train.n_entities}
    if model.kind == UNIGRAM:
        return {**size, **unigram(data)}, {}
    found = estimator(model, plan, seed, options.n_jobs)
    start = time.perf_counter()
    found.fit(data.train, validation=data.validation)
    seconds = time.perf_counter() - start
    n_words = plan.n_pairs if model.kind == "skip-gram" else plan.n_words
    held = held_out_words(found, data.test, n_words=n_words, seed=0)
    figures = {
        **size,
        "log_likelihood": held.log_likelihood,
        "standard_error": held.standard_error,
        "n": held.n_words,
        "fit_seconds": seconds,
        "passes": int(found.n_iter_),
        "best_pass": int(found.best_iter_),
        **by_word_lists(found.fitted().vectors(model.inputs), options.data_home),
    }
    return figures, {}


def estimator(model: TextModel, plan: TextPlan, seed: int, n_jobs: int) -> Any:
    """The model, not yet fitted; the same seed gives the same bits."""
    from efemb.contexts import Window
    from efemb.estimators import CBOW, BernoulliTextEmbedding, SkipGram
    from efemb.zeros import All, Hierarchical, NegativeSampling, NoiseContrastive

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


def unigram(data: Texts) -> dict[str, Any]:
    """Held-out log-likelihood of the words' shares in the training text; one is added to each."""
    from efemb.data.readers.words import recoded

    counts = data.train.counts() + 1.0
    tokens = recoded(data.test, data.train.vocabulary).tokens
    each = np.log(counts / counts.sum())[tokens]
    error = float(each.std() / np.sqrt(len(each)))
    return {"log_likelihood": float(each.mean()), "standard_error": error, "n": len(each)}


def by_word_lists(vectors: Any, data_home: Path | None) -> dict[str, Any]:
    """How cosines agree with people; nothing where the lists cannot be had or words are few."""
    try:
        lists = word_lists(data_home)
    except DataError:
        return {}
    found: dict[str, Any] = {}
    try:
        close = word_similarity(vectors, lists[PAIRS])
        if close.n_pairs >= FEWEST_PAIRS:
            found = {"spearman": close.spearman, "pairs": close.n_pairs}
    except DataError:  # no pair has both of its words in this text
        pass
    total = analogies(vectors, lists[QUESTIONS])[-1]
    if total["n"]:
        found |= {"analogies": total["accuracy"], "questions": total["n"]}
    return found


def text_table(plan: TextPlan, outcomes: Sequence[Outcome]) -> Table:
    """One row a model, means over splits."""
    rows = []
    for model in plan.models():
        mine = [one for one in outcomes if one.job.settings["model"] == model.settings()]

        def mean(name: str, mine: list[Outcome] = mine) -> float:
            return float(np.mean([one.figures.get(name, NAN) for one in mine]))

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
    return Table({name: [row[name] for row in rows] for name in rows[0]})


STUDY = TextStudy()
