"""Text that cannot be read raises a typed error that names the place and the way out."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from efemb.data import Corpus, Dataset, Vocabulary, read_text, tokenstore
from efemb.data.readers.text import documents as textfile
from efemb.data.readers.text import documents as wordstreams
from efemb.errors import DataError, InputTypeError, ParameterError

GOOD = "a rose is a rose\n" * 5

FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("t.txt", b"", "is empty"),
    "blank": ("t.txt", b" \n\t\n\n", r"no words \(3 documents, all empty"),
    "empty packed": ("t.gz", gzip.compress(b""), r"no words \(0 documents"),
    "one word": ("t.txt", b"a a a\na a a\n", r"only one distinct word, 'a' \(6 times\)"),
    "single words": ("t.txt", b"a\nb\na\nb\n", "every document is a single word"),
    "rare words": ("t.txt", b"a b c\na b\na", r"min_count=5 leaves none of 3 .* 'a' \(3 times\)"),
    "one frequent word": ("t.txt", b"a b " * 3 + b"a " * 9, "leaves only one of 2 .*min_count=3"),
    "binary": ("t.txt", b"a b\na \0 b\n", "line 2 has a NUL byte; is it a binary file"),
    "binary and not UTF-8": ("t.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 3 has a NUL byte"),
    "UTF-16 taken for UTF-8": ("t.txt", GOOD.encode("utf-16-le"), 'NUL byte.*encoding="utf-16"'),
    "packed without suffix": ("t.txt", gzip.compress(GOOD.encode()), r"its name must end in \.gz"),
    "xz without suffix": ("t.txt", lzma.compress(GOOD.encode()), r"its name must end in \.xz"),
    "bz2 without suffix": ("t.txt", bz2.compress(GOOD.encode()), r"its name must end in \.bz2"),
    "suffix without gz": ("t.gz", GOOD.encode(), "cannot be read: Not a gzipped file"),
    "suffix without xz": ("t.xz", GOOD.encode(), "cannot be read"),
    "suffix without bz2": ("t.bz2", GOOD.encode(), "cannot be read: Invalid data stream"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name: str, tmp_path: Path) -> None:
    file_name, content, message = FILES[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_text(path)
    assert str(path) in str(caught.value)


PACKERS: dict[str, Any] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("damage", ["truncated", "corrupt"])
def test_damaged_archives(suffix: str, damage: str, tmp_path: Path) -> None:
    words = np.random.default_rng(0).integers(0, 10_000, size=30_000)
    packed = bytearray(PACKERS[suffix](" ".join(map(str, words)).encode()))
    if damage == "truncated":
        del packed[len(packed) // 2 :]
    else:
        packed[-12:-4] = bytes(8)  # the checksums are here
    path = tmp_path / f"text.{suffix}"
    path.write_bytes(packed)
    with pytest.raises(DataError, match=r"text\.\w+ cannot be read"):
        read_text(path)


@pytest.mark.parametrize("block", [3, 1 << 16])
@pytest.mark.parametrize("suffix", ["txt", *PACKERS])
def test_wrong_encoding(suffix: str, block: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(textfile, "BLOCK", block)
    content = "é a b\r\na b c\nKäse".encode()
    bad = content.index("ä".encode())
    content = content[:bad] + b"\xe4" + content[bad + 2 :]
    path = tmp_path / f"text.{suffix}"
    path.write_bytes(PACKERS.get(suffix, bytes)(content))
    message = f"text.{suffix} is not utf-8: line 3 has the byte 0xe4 at byte {bad} of the file"
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_text(path)
    assert 'errors="replace" or errors="ignore"' in str(caught.value)
    assert ("decompression" in str(caught.value)) == (suffix != "txt")


def test_cut_character(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("a b\nKä".encode()[:-1])
    with pytest.raises(DataError, match="line 2 has the byte 0xc3 at byte 5"):
        read_text(path)


def test_place_after_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(codecs.BOM_UTF8 + b"ab \xe4")
    with pytest.raises(DataError, match="line 1 has the byte 0xe4 at byte 6"):
        read_text(path)


def test_missing_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\0a\0 \0b")
    with pytest.raises(DataError, match="is not utf-16"):
        read_text(path, encoding="utf-16")


def test_nul_in_a_later_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 4)
    path = tmp_path / "text"
    path.write_bytes(b"a b\nc\n\nd\0")
    with pytest.raises(DataError, match="line 4 has a NUL byte"):
        read_text(path)


def test_endless_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "BLOCK", 10)
    monkeypatch.setattr(wordstreams, "_LONGEST_WORD", 30)
    path = tmp_path / "text"
    path.write_bytes(b"a b\n" + b"x" * 100)
    with pytest.raises(DataError, match=r"text: a word that starts with 'xx.* within 30 char"):
        read_text(path)


def test_paths_that_name_no_file(tmp_path: Path) -> None:
    (tmp_path / "reviews.txt").write_text(GOOD)
    with pytest.raises(DataError, match=r"no file .*did you mean 'reviews\.txt'") as caught:
        read_text(tmp_path / "review.txt")
    assert "splitlines" not in str(caught.value)
    with pytest.raises(DataError, match=r"did you mean 'reviews\.txt'.*\[text\].*splitlines"):
        read_text(str(tmp_path / "review.txt"))
    with pytest.raises(DataError, match=r"is a directory; pass a single file.*/\*\.txt'"):
        read_text(str(tmp_path))
    with pytest.raises(DataError, match="folder does not exist"):
        read_text(tmp_path / "nowhere" / "text")


TEXTS = {
    "short": "a rose is a rose",
    "with line ends": GOOD,
    "too long for a name": "rose " * 5000,
    "with a NUL": "a\0b",
    "unknown home": "~no-such-user-here/text",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_no_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"no file.* use \[text\] or text\.splitlines\(\)"):
        read_text(TEXTS[name])


def test_the_empty_path_is_the_folder() -> None:
    with pytest.raises(DataError, match="directory"):
        read_text("")


def numbers() -> Iterator[Any]:
    yield ["a", "b"]
    yield 7


SOURCES: dict[str, tuple[Any, type[Exception], str]] = {
    "None": (None, InputTypeError, "from NoneType: pass a path, an iterable"),
    "a number": (3, InputTypeError, "from int: pass a path"),
    "no dimensions": (np.array(3), InputTypeError, "from ndarray: pass a path"),
    "bytes": (b"a b", InputTypeError, r"from bytes: decode them.*\[text\]"),
    "dict": ({"x": "a b"}, InputTypeError, r"pass source\.values\(\)"),
    "set": ({"a b", "b a"}, InputTypeError, "no order"),
    "frame": (pd.DataFrame({"text": ["a b"]}), InputTypeError, r'source\["text"\]'),
    "dataset": (Dataset(np.eye(2)), InputTypeError, "need ordered words"),
    "function of nothing": (lambda: None, InputTypeError, "from NoneType"),
    "function of a path": (lambda: "text.txt", InputTypeError, "from str: the function must"),
    "no documents": ([], DataError, r"no words \(0 documents"),
    "empty documents": ([[], ""], DataError, r"no words \(2 documents"),
    "empty generator": (iter(()), DataError, "no words"),
    "words": (["a", "rose", "is"], DataError, r"single word.*pass \[source\]"),
    "lists of one": ([["a"], ["rose"]], DataError, "every document is a single word"),
    "one word": ([["a", "a"], "a a"], DataError, "only one distinct word, 'a'"),
    "rare": ([[3, 4], [3, 4], [3]], DataError, r"none of 2 .* 3 \(3 times\) and 4 \(2 times\)"),
    "flat numbers": ([1, 2, 3], InputTypeError, r"document 0 .* not int \(1\).*\[source\]"),
    "generator of numbers": (numbers(), InputTypeError, "document 1 must be a text or a list"),
    "missing document": (["a b", None], InputTypeError, r"document 1 .* NoneType \(None\)"),
    "NaN document": (["a b", np.nan], InputTypeError, "document 1 .* not float"),
    "bytes document": (["a b", b"a b"], InputTypeError, "document 1 .* not bytes .*decode it"),
    "dict document": ([{"a": 1}], InputTypeError, "document 0 .* not dict .*in order"),
    "set document": ([["a"], {"a", "b"}], InputTypeError, "document 1 .* not set"),
    "path document": (["a b", Path("t.txt")], InputTypeError, r"document 1 .* not \w*Path"),
    "path of no file": ([Path("t.txt")], DataError, r"no file t\.txt"),
    "nested": ([[["a", "b"], ["c"]]], InputTypeError, "document 0 .* list .*one list too many"),
    "bytes token": ([["a"], ["b", b"c"]], InputTypeError, "document 1 .* bytes .*text or numbers"),
    "dict token": ([["a"], ["b"], [{}]], InputTypeError, "document 2 .* type dict"),
    "object token": ([["a", object()]], InputTypeError, "document 0 .* type object"),
    "complex token": ([["a", 1j]], InputTypeError, "document 0 .* type complex"),
    "None token": ([["a"], ["b", None]], DataError, r"document 1 .*missing token \(None\)"),
    "NaN token": ([["a", float("nan")]], DataError, r"document 0 .*missing token \(nan\)"),
    "empty token": (["a b", ["a", ""]], DataError, "document 1 .*empty or missing token"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_bad_sources(name: str) -> None:
    source, error, message = SOURCES[name]
    with pytest.raises(error, match=message):
        read_text(source)


def test_bad_token_in_a_later_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordstreams, "BLOCK", 3)
    documents = [["a"] * n for n in (1, 5, 2, 0, 3)]
    with pytest.raises(DataError, match="document 5 has an empty"):
        read_text([*documents, ["a", "b", "c", "d", None]])


def test_errors_of_the_caller_pass_through() -> None:
    def broken() -> Iterator[str]:
        yield "a b"
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$") as caught:
        read_text(broken())
    assert not isinstance(caught.value, InputTypeError)


def test_words_that_never_meet() -> None:
    rare = [f"a x{i}" for i in range(5)] + [f"b y{i}" for i in range(5)]
    with pytest.raises(DataError, match=r"no document has two words that occur .*min_count=5"):
        read_text(rare)
    with pytest.raises(DataError, match="no document has two words of the vocabulary"):
        read_text(rare, vocabulary=Vocabulary(["a", "b"]))


OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "max_vocab 1": ({"max_vocab": 1}, ParameterError, "max_vocab=1 must be .* at least 2"),
    "max_vocab 0": ({"max_vocab": 0}, ParameterError, "at least 2"),
    "max_vocab float": ({"max_vocab": 1e4}, ParameterError, "whole number"),
    "min_count 0": ({"min_count": 0}, ParameterError, "min_count=0 must be .* at least 1"),
    "min_count text": ({"min_count": "5"}, ParameterError, "min_count='5' must be"),
    "errors": ({"errors": "replac"}, ParameterError, "did you mean 'replace'"),
    "encoding": ({"encoding": "utf-9"}, ParameterError, "encoding='utf-9' is unknown"),
    "no text encoding": ({"encoding": "rot13"}, ParameterError, "encoding='rot13' cannot"),
    "bytes encoding": ({"encoding": "hex"}, ParameterError, "encoding='hex' cannot be used"),
    "no encoding": ({"encoding": None}, InputTypeError, "encoding=None must be a name"),
    "list of words": ({"vocabulary": ["a"]}, InputTypeError, r"not list; pass Vocabulary\(labels"),
    "corpus": (
        {"vocabulary": Corpus([0], [0, 1], ["a"])},
        InputTypeError,
        "not Corpus; .*the vocabulary of a corpus",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options(name: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(GOOD)
    options, error, message = OPTIONS[name]
    with pytest.raises(error, match=message):
        read_text(path, **options)


def test_errors_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenstore, "LARGE", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputTypeError):
        read_text([["a", "b", "c"], ["d"], 5])
    with pytest.raises(DataError, match="leaves none"):
        read_text([["a", "b", "c"]])
    assert list(tmp_path.iterdir()) == []
