"""gensim's Word2Vec, with the windows and negatives of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Timing, stopwatch
from benchmarks.rivals.base import Package

Array = NDArray[Any]


class Gensim(Package):
    """Word2Vec."""

    package = "gensim"


def skip_gram_vectors(train: Any, seed: int) -> tuple[Array, Timing]:
    """Vectors after five epochs of skip-gram with gensim's defaults, and the time of `train`."""
    from gensim.models import Word2Vec

    words = train.vocabulary.labels
    documents = [words[part].tolist() for part in np.split(train.tokens, train.starts[1:-1])]
    model = Word2Vec(vector_size=100, min_count=1, sg=1, workers=1, seed=seed)
    model.build_vocab(documents)
    with stopwatch() as timing:
        model.train(documents, total_examples=len(documents), epochs=5)
    return model.wv.vectors[[model.wv.key_to_index[word] for word in words]], timing


def word_vectors(
    train: Any, n: int, seed: int, *, reverse: bool = False, n_jobs: int = 1
) -> tuple[Array, Array, Timing]:
    """Input and output vectors after one epoch over a Corpus, and the time of `train` alone.

    Window 5, K=100, n negatives; skip-gram where `reverse`; its other defaults kept. Documents
    are lists: from a file (`corpus_file`) it is no faster, with one worker or two.
    """
    from gensim.models import Word2Vec

    words = train.vocabulary.labels
    documents = [words[part].tolist() for part in np.split(train.tokens, train.starts[1:-1])]
    options = {"window": 5, "shrink_windows": False, "sample": 0, "epochs": 1, "min_count": 1}
    model = Word2Vec(
        vector_size=100, negative=n, sg=int(reverse), workers=n_jobs, seed=seed, **options
    )
    model.build_vocab(documents)
    with stopwatch() as timing:
        model.train(documents, total_examples=len(documents), epochs=1)
    place = [model.wv.key_to_index[word] for word in words]
    return model.wv.vectors[place], model.syn1neg[place], timing
