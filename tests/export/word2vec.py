"""Factors that the tests of word2vec's files share, and such a file written by hand."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from efemb.fitted import LabeledVectors

WORDS = ["the", "naïve", "日本", "a,b", "x"]
NUMBERS = np.array([[0.1, -2.5], [1e-30, 3e30], [0, 1], [5, 6], [-1, 1 / 3]], dtype=np.float32)


def by_hand(words: list[str], rows: Any, line_end: bytes = b"\n") -> bytes:
    """word2vec.c: header, then word, space, floats and (in C, not in gensim) a line end."""
    content = f"{len(words)} {len(rows[0])}\n".encode()
    for word, row in zip(words, rows, strict=True):
        content += word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + line_end
    return content


def same(found: LabeledVectors, words: list[str], numbers: Any) -> bool:
    return list(found) == words and np.array_equal(found.vectors, numbers)
