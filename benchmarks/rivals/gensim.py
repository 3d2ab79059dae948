"""gensim's Word2Vec: on words with the windows and negatives of ours, and on baskets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.harness import Timing, stopwatch
from benchmarks.rivals.base import Completer, mean_of_rows

Array = NDArray[Any]
WHOLE_ROW = 1000  # a window that reaches over any basket


class Gensim(Completer):
    """CBOW with 5 negatives, baskets as sentences (item2vec); its five epochs.

    Words are told from noise: an item's share is its share of the noise times its odds.
    """

    name = "gensim CBOW on baskets"
    package = "gensim"

    def fit(self, train: csr_array, k: int, seed: int, validation: csr_array | None = None) -> None:
        from gensim.models import Word2Vec

        baskets = [[str(n) for n in part] for part in np.split(train.indices, train.indptr[1:-1])]
        options = {"window": WHOLE_ROW, "shrink_windows": False, "sample": 0, "min_count": 1}
        model = Word2Vec(baskets, vector_size=k, seed=seed, workers=1, **options)
        place = np.array([int(word) for word in model.wv.index_to_key])
        self.inner, self.outer = (np.zeros((train.shape[1], k), np.float32) for _ in range(2))
        self.inner[place], self.outer[place] = model.wv.vectors, model.syn1neg
        counts = np.asarray((train > 0).sum(axis=0), dtype=np.float32).ravel()
        self.log_noise = model.ns_exponent * np.log(np.maximum(counts, 1))

    def block(self, context: csr_array, asked: Array) -> Array:
        """Mean vector of the row's other items, times the output vectors of all items."""
        return np.asarray(mean_of_rows(context, self.inner) @ self.outer.T + self.log_noise)


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
