"""Words of a test set in a vocabulary, whatever their case."""

from __future__ import annotations

import numpy as np

from efemb.data.vocabulary import Vocabulary
from efemb.types import Ints

NOT_FOUND = -1


class WordLookup:
    """Finds a word as it is written, else the first label that differs from it only in case."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        folded = [str(label).casefold() for label in vocabulary]
        self._first: dict[str, int] = {}
        for code, word in enumerate(folded):
            self._first.setdefault(word, code)
        first = self._first
        self.same = np.array([first[word] for word in folded], dtype=np.int64)
        """For each label the first one that differs from it only in case."""

    def code(self, word: object) -> int:
        """Code of the word, or NOT_FOUND."""
        if word in self.vocabulary:
            return self.vocabulary.index_of(word)
        return self._first.get(str(word).casefold(), NOT_FOUND)

    def codes(self, words: list[list[object]], width: int) -> Ints:
        """Codes of rows of `width` words."""
        known: dict[object, int] = {}
        for row in words:
            for word in row:
                if word not in known:
                    known[word] = self.code(word)
        found = [[known[word] for word in row] for row in words]
        return np.array(found, dtype=np.int64).reshape(len(words), width)
