"""Damaged and malformed files of word vectors: each is refused, and the place is named."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.export import read_glove, read_word2vec
from export.word2vec import NUMBERS, WORDS, by_hand, same

TEXT = "3 2\na 1 2\nb 3 4\nc 5 6\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT[:-8], "truncated"),
        ("4" + TEXT[1:], "truncated.*promises 4 words.*ends after 3"),
        (TEXT.replace("3 4", "3"), "line 3: a word and 2 numbers are needed, but there are 2"),
        (TEXT.replace("3 4", "3 4 5"), "line 3.*4 fields"),
        (TEXT.replace("3 4", "3 x"), "line 3: 'x' in the vector of 'b' is not a number"),
        (TEXT.replace("3 4", "3 1_0"), "line 3: '1_0'"),
        (TEXT.replace("3 4", "3 nan"), "vector of 'b' .word 2. holds NaN"),
        (TEXT.replace("3 4", "3 1e99"), "too large numbers for float32"),
        (TEXT.replace("b", "a"), "'a' is both word 1 and word 2"),
        (TEXT + "d 7 8\n", "promises 3 words, but line 5 holds another"),
        ("a 1 2\nb 3 4\n", "read_glove"),
        ("0 2\n", "promises 0 words"),
        ("-3 2\na 1 2\n", "first line must hold"),
        ("99999999999999 300\na 1\n", "truncated"),
        ("x" * 1000, "first line must hold"),
    ],
)
def test_bad_text(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text(content)
    with pytest.raises(DataError, match=words) as told:
        read_word2vec(path)
    assert str(path) in str(told.value)


def test_every_cut_of_a_binary_file_is_noticed(tmp_path: Path) -> None:
    content = by_hand(WORDS, NUMBERS.tolist())
    path = tmp_path / "v.bin"
    for length in range(1, len(content) - 1):  # the last byte is only a line end
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"truncated|first line"):
            read_word2vec(path, binary=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (by_hand(WORDS, NUMBERS.tolist()) + b"more", "continues at byte"),
        (by_hand(["a"], [[1.0, 2.0]]).replace(b"a ", b"\xff "), r"byte 4: the word .* not UTF-8"),
        (by_hand(["a"], [[1.0, 2.0]]).replace(b"a ", b" "), "truncated|word is empty"),
        (by_hand(["a", "a"], [[1.0], [2.0]]), "'a' is both word 1 and word 2"),
        (by_hand(["a"], [[float("nan")]]), "vector of 'a'"),
        (b"2 1\n" + b"x" * 200_000, "no word ends within"),
    ],
)
def test_bad_binary(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_word2vec(path, binary=True)


@pytest.mark.parametrize("as_binary", [True, False])
def test_ways_out(as_binary: bool, tmp_path: Path) -> None:
    path = tmp_path / "v"
    body = [b"\xc3 ", b"b ", b"b "]
    numbers = [struct.pack("<f", one) if as_binary else b"%d" % one for one in (1, 2, 3)]
    path.write_bytes(b"3 1\n" + b"".join(w + x + b"\n" for w, x in zip(body, numbers, strict=True)))
    found = read_word2vec(path, binary=as_binary, errors="replace", duplicates="first")
    assert same(found, ["\ufffd", "b"], [[1], [2]])
    with pytest.raises(DataError, match=r"are valid|word is empty"):
        read_word2vec(path, binary=as_binary, errors="ignore", duplicates="first")


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_damaged_archives(suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"v.txt{suffix}"
    numbers = np.random.default_rng(0).normal(size=2000)
    content = "2000 1\n" + "".join(f"w{i} {x}\n" for i, x in enumerate(numbers))
    packed = compress(content.encode())
    path.write_bytes(packed)
    assert len(read_word2vec(path)) == 2000
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="cannot be read: Compressed file ended"):
        read_word2vec(path)
    path.write_bytes(content.encode())
    with pytest.raises(DataError, match="cannot be read"):
        read_word2vec(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("3 2\na 1 2\n", "is a header; use read_word2vec"),
        ("a\n", "a word and its numbers"),
        ("a 1 2\nb 3\n", "line 2"),
        ("a 1 2\nb 3 4c 5 6\n", "line 2: more than 2 numbers follow the word 'b'"),
        ("a 1 2\n5 6 7 8\n", "line 2: more than 2 numbers"),
    ],
)
def test_bad_glove(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text(content)
    with pytest.raises(DataError, match=words):
        read_glove(tmp_path / "g.txt")


def test_bad_arguments(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text(TEXT)
    for options in ({"dtype": "int8"}, {"errors": "skip"}, {"duplicates": "last"}, {"limit": 0}):
        with pytest.raises(ParameterError):
            read_word2vec(path, **options)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="path of a file"):
        read_word2vec(None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"did you mean 'v.txt'"):
        read_word2vec(tmp_path / "w.txt")
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="empty"):
        read_glove(tmp_path / "empty")
    with pytest.raises(DataError, match="directory"):
        read_glove(tmp_path)
