"""Skip-gram as users call it, against gensim's with its own defaults: five passes, K=100, window 5.

Both sides' word vectors are judged by the same code: WordSim-353, SimLex-999 and the analogies of
word2vec. Texts are cut to three million words, so that all seeds take minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Report, Settings, Spread, stopwatch
from benchmarks.rivals.gensim import Gensim, skip_gram_vectors
from benchmarks.text_data import imdb, newsgroups, pairs_file, questions_file, simlex_file

MOST_WORDS = 3_200_000
LISTS = ("WordSim-353", "SimLex-999", "analogies")


def run(settings: Settings) -> Report:
    """Three lists and the CPU time on two texts."""
    report = Report("skip_gram", settings)
    if not Gensim.available():
        report.add("gensim, which all is compared with", Gensim.missing())
        return report
    for name, read in (("imdb", imdb), ("20newsgroups", newsgroups)):
        text, _ = read(settings)
        n_documents = int(np.searchsorted(text.starts, MOST_WORDS))
        _contest(report, name, used_words(text[: max(n_documents, 1)]))
        if settings.quick:
            break
    return report


def used_words(text: Any) -> Any:
    """The text with a vocabulary of the words that occur in it, at least five times."""
    import efemb

    labels = text.vocabulary.labels
    documents = np.split(text.tokens, text.starts[1:-1])
    return efemb.read_text([labels[codes].tolist() for codes in documents], min_count=5)


def _contest(report: Report, name: str, text: Any) -> None:
    """Both sides in turn, one seed after the other."""
    import efemb

    settings = report.settings
    figures: dict[str, list[dict[str, float]]] = {"ours": [], "gensim": []}
    ratios = []
    for seed in settings.seeds:
        model = efemb.SkipGram(100, random_state=seed)
        with stopwatch() as timing:
            model.fit(text)
        figures["ours"].append(_judge(model.fitted().vectors("rho"), settings))
        theirs, their_timing = skip_gram_vectors(text, seed)
        figures["gensim"].append(
            _judge(efemb.fitted.LabeledVectors(text.vocabulary, theirs), settings)
        )
        ratios.append(timing.cpu / their_timing.cpu)
    for what in figures["ours"][0]:
        own, rival = ([each[what] for each in side] for side in figures.values())
        note = f"gensim {Spread.of(rival)}"
        least = float(np.mean(rival))
        report.add(f"{name}: {what}", Spread.of(own), at_least=least, beside=note)
    report.add(f"{name}: CPU time over gensim's", Spread.of(ratios), at_most=0.6)


def _judge(vectors: Any, settings: Settings) -> dict[str, float]:
    import efemb

    if settings.quick:
        return {}
    files = (pairs_file(settings), simlex_file(settings))
    found = {
        name: efemb.evaluation.word_similarity(vectors, path).spearman
        for name, path in zip(LISTS, files, strict=False)
    }
    best = efemb.evaluation.analogies(vectors, questions_file(settings), restrict=300_000)
    return {**found, LISTS[2]: float(best["accuracy"][-1])}
