"""Texts and word lists of the study of text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from efemb.data.corpus import Corpus
from efemb.datasets.download import find_files
from efemb.datasets.sources import Copy, DataSet, Wheel

TITLES = {"lee": "Lee corpus (news)", "20newsgroups": "20 Newsgroups"}
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
    """Text to learn from, to stop by, and to judge on."""

    train: Corpus
    validation: Corpus
    test: Corpus


@lru_cache(maxsize=1)
def texts(name: str, seed: int, data_home: Path | None) -> Texts:
    """A text by its name, its documents split at random where it has no test part of its own."""
    from efemb.datasets import fetch_20newsgroups, fetch_lee

    if name == "lee":
        return Texts(*fetch_lee(data_home, progress=False).split(0.1, 0.05, seed=seed))
    train = fetch_20newsgroups(data_home, progress=False)
    test = fetch_20newsgroups(data_home, part="test", min_count=1, progress=False)
    # Few words are enough to tell when to stop: each costs a sum over the vocabulary.
    kept, held = train.split(0.005, seed=seed)
    return Texts(kept, held, test)


def word_lists(data_home: Path | None) -> dict[str, Path]:
    """Pairs of words with people's scores, and analogy questions."""
    return dict(find_files(WORD_LISTS, data_home, download=True, progress=False).paths)
