"""Reading text gives what plain loops over split lines give, whatever the source looks like."""

from __future__ import annotations

import bz2
import codecs
import gc
import gzip
import io
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from efemb.data import Corpus, Vocabulary, read_text, tokenstore
from efemb.data.readers.text import documents as wordstreams
from efemb.data.readers.text import encode as textcodes
from efemb.errors import DataError

TEXT = "the cat saw the dog\n\nthe dog saw a cat and the cat ran\nowl\nthe end\n"
LINES = TEXT.split("\n")[:-1]


def by_loop(
    documents: list[list[Any]], min_count: int = 1, max_vocab: int | None = None
) -> tuple[list[list[Any]], dict[Any, int], dict[str, int]]:
    """The documents kept, the counts of kept words, and the report."""
    counts: dict[Any, int] = {}
    for document in documents:
        for word in document:
            counts[word] = counts.get(word, 0) + 1
    ordered = sorted(counts, key=lambda word: -counts[word])  # stable: first to appear first
    kept = [word for word in ordered if counts[word] >= min_count][:max_vocab]
    short = [[word for word in document if word in set(kept)] for document in documents]
    texts = [document for document in short if len(document) > 1]
    n_read = sum(map(len, documents))
    report = {
        "documents_read": len(documents),
        "documents_dropped": len(documents) - len(texts),
        "tokens_read": n_read,
        "tokens_dropped": n_read - sum(map(len, texts)),
        "words_dropped": len(counts) - len(kept),
    }
    return texts, {word: counts[word] for word in kept}, report


def documents_of(corpus: Corpus) -> list[list[Any]]:
    return [corpus.document(i) for i in range(len(corpus))]


def assert_read(corpus: Corpus, documents: list[list[Any]], **options: Any) -> None:
    texts, counts, report = by_loop(documents, **options)
    assert documents_of(corpus) == texts
    assert list(corpus.vocabulary) == list(counts)
    assert corpus.vocabulary.counts is not None
    assert corpus.vocabulary.counts.tolist() == list(counts.values())
    assert corpus.report == report
    assert corpus.tokens.dtype == np.int32
    assert not corpus.tokens.flags.writeable


@pytest.fixture(params=["plain", "gz", "xz", "bz2"])
def text_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pack: Any = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
    path = tmp_path / ("text.txt" if request.param == "plain" else f"text.{request.param}")
    path.write_bytes(pack[request.param](TEXT.encode()))
    return path


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"max_vocab": 3}, {"min_count": 3}])
def test_files(text_file: Path, options: dict[str, int]) -> None:
    expected = tokens_of(LINES)
    for source in (text_file, str(text_file)):
        assert_read(read_text(source, **{"min_count": 1, **options}), expected, **options)


def tokens_of(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines]


class Sentences:
    def __iter__(self) -> Iterator[list[str]]:
        return iter(tokens_of(LINES))

    def __call__(self) -> None:  # is not asked, because it can be iterated over
        raise AssertionError


SOURCES: dict[str, Any] = {
    "texts": lambda: list(LINES),
    "tuple of texts": lambda: tuple(LINES),
    "array of texts": lambda: np.array(LINES),
    "pandas column": lambda: pd.Series(LINES),
    "file of lines": lambda: io.StringIO(TEXT),
    "lists": lambda: tokens_of(LINES),
    "tuples": lambda: [tuple(line) for line in tokens_of(LINES)],
    "arrays": lambda: [np.array(line, dtype=object) for line in tokens_of(LINES)],
    "arrays of text": lambda: [np.array(line, dtype=str) for line in tokens_of(LINES)],
    "generators": lambda: (iter(line) for line in tokens_of(LINES)),
    "generator of texts": lambda: (line for line in LINES),
    "mixture": lambda: [LINES[0], *tokens_of(LINES[1:3]), *LINES[3:]],
    "function of texts": lambda: lambda: iter(LINES),
    "function of lists": lambda: lambda: tokens_of(LINES),
    "object with __iter__": Sentences,
}


@pytest.mark.parametrize("name", SOURCES)
def test_iterables(name: str) -> None:
    assert_read(read_text(SOURCES[name](), min_count=2), tokens_of(LINES), min_count=2)


def test_a_text_with_line_ends_is_one_document_of_a_list() -> None:
    assert_read(read_text([TEXT], min_count=1), [TEXT.split()])
    assert_read(read_text(TEXT.splitlines(), min_count=1), tokens_of(LINES))


ODD_TEXT = st.text(
    st.sampled_from(
        "ab\u00e9\u0416\u4e2d\U0001f600 \t\n\r\x0b\x0c\x1c\x1f\x01\x7f" + textcodes.WIDE_SPACES
    ),
    max_size=80,
)


@given(st.lists(ODD_TEXT, min_size=1, max_size=4), st.integers(1, 9), st.booleans())
@example(["a b\r", "\nc"], 4, False)
def test_any_text_in_blocks_of_any_size(texts: list[str], block: int, closed: bool) -> None:
    text = "a b\n" + "".join(texts) + ("\n" if closed else "")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(wordstreams, "BLOCK", block)
        patch.setattr("efemb.data.readers.text.documents.BLOCK", block)
        path = Path(folder, "text")
        path.write_bytes(text.encode())
        assert_read(read_text(path, min_count=1), tokens_of(list(io.StringIO(text, newline=None))))
        documents = ["a b", *texts]
        lists = tokens_of(documents)
        assert_read(read_text(documents, min_count=1), lists)
        assert_read(read_text(lists, min_count=1), lists)


def test_every_whitespace_of_python_separates() -> None:
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    ascii_spaces = [space for space in spaces if space.isascii()]
    assert sorted(spaces) == sorted([*ascii_spaces, *textcodes.WIDE_SPACES])
    corpus = read_text([space.join("xyz") for space in spaces], min_count=1)
    assert corpus.n_tokens == 3 * len(spaces)
    assert set(corpus.vocabulary) == {"x", "y", "z"}


@pytest.mark.slow
@given(st.lists(st.integers(0, 40), min_size=2, max_size=30), st.sampled_from("a\u00e9\u4e2d"))
@example([23, 7, 8, 15, 16, 24], "a")
def test_words_of_any_length_differ(lengths: list[int], letter: str) -> None:
    # Lengths 256 apart look alike where only a byte of the length is kept.
    words = [letter * n + end for n in lengths for end in ("x", "y", "", letter * 256)]
    words = [word for word in words if word]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordstreams, "BLOCK", 8)  # what one block leaves in the cache, the next finds
        assert_read(read_text([" ".join(words * 2)], min_count=1), [words * 2])


@pytest.mark.slow
def test_words_that_share_a_place_in_the_cache() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in rng.integers(0, 3000, size=20_000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textcodes, "_BITS", 6)
        patch.setattr(textcodes, "_SHIFT_PLACE", np.uint64(64 - 6))
        assert_read(read_text([" ".join(words)], min_count=3), [words], min_count=3)


def test_nul_characters_in_a_text_are_letters() -> None:
    words = ["a", "a\0", "a\0\0", "\0a", "a", "a\0"]
    assert_read(read_text([" ".join(words)] * 2, min_count=1), [words] * 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32", "cp1252", "latin1"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("né à la né\r\nà la\r\n".encode(encoding))
    expected = [["né", "à", "la", "né"], ["à", "la"]]
    assert_read(read_text(path, min_count=1, encoding=encoding), expected)


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(codecs.BOM_UTF8 + b"a b a")
    assert_read(read_text(path, min_count=1), [["a", "b", "a"]])


@pytest.mark.parametrize(("errors", "word"), [("replace", "K\ufffdse"), ("ignore", "Kse")])
def test_wrong_bytes_replaced_or_ignored(errors: Any, word: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("Käse und Käse".encode("cp1252"))
    assert_read(read_text(path, min_count=1, errors=errors), [[word, "und", word]])


@pytest.mark.parametrize(
    "source", [["The CAT the Cat", "ÉTÉ été ΟΔΟΣ 7"], [["The", "CAT"], [7, 7]]]
)
def test_lower(source: list[Any]) -> None:
    documents = [one.split() if isinstance(one, str) else one for one in source]
    folded = [[w.lower() if isinstance(w, str) else w for w in one] for one in documents]
    assert_read(read_text(source, min_count=1, lower=True), folded)


def test_labels_of_every_kind() -> None:
    documents = [[3, "3", 2.5, np.int64(3), 4.0, np.str_("x")], [True, 1, "x", 4]]
    corpus = read_text(documents, min_count=1)
    assert documents_of(corpus) == [[3, 3, 2.5, 3, 4, "x"], [1, 1, "x", 4]]
    assert [type(word) for word in corpus.vocabulary] == [int, int, str, int, float]


def test_matrix_of_numbers() -> None:
    assert_read(read_text(np.array([[5, 6], [6, 7]]), min_count=1), [[5, 6], [6, 7]])


class TestVocabulary:
    def test_exactly_these_words(self) -> None:
        words = Vocabulary(["dog", "the", "owl", "bee"], counts=[4, 3, 2, 1])
        corpus = read_text(LINES, vocabulary=words, min_count=99, max_vocab=2)
        assert corpus.vocabulary is words
        assert documents_of(corpus) == [["the", "the", "dog"], ["the", "dog", "the"]]
        assert corpus.tokens.tolist() == [1, 1, 0, 1, 0, 1]
        assert corpus.report == {
            "documents_read": 5,
            "documents_dropped": 3,
            "tokens_read": 17,
            "tokens_dropped": 11,
            "words_dropped": 6,
        }

    def test_one_known_word_is_enough_and_numbers_find_their_text(self) -> None:
        assert read_text(["17 b 17"], vocabulary=Vocabulary([17])).tokens.tolist() == [0, 0]

    def test_corpus_is_returned_or_coded_anew(self) -> None:
        corpus = read_text(LINES, min_count=1)
        assert read_text(corpus) is corpus
        words = Vocabulary(["dog", "the", "owl", "bee"])
        again = read_text(corpus, vocabulary=words)
        assert documents_of(again) == documents_of(read_text(LINES, vocabulary=words))
        assert again.vocabulary is words
        assert again.report["words_dropped"] == 6
        assert documents_of(corpus) == by_loop(tokens_of(LINES))[0]


def is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


@pytest.mark.slow
@pytest.mark.parametrize("large", [0, 5, 100, 10**6])
def test_memory_mapped(large: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tokenstore, "LARGE", large)
    monkeypatch.setattr(tokenstore, "CHUNK", 7)
    monkeypatch.setattr(wordstreams, "BLOCK", 50)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 6, size=200)
    documents = [[f"w{n}" for n in rng.geometric(0.1, size=size)] for size in sizes]
    corpus = read_text(documents, min_count=10)
    assert is_mapped(corpus.tokens) == (large < sum(sizes))
    assert_read(corpus, documents, min_count=10)
    again = read_text(corpus, vocabulary=corpus.vocabulary)
    np.testing.assert_array_equal(again.tokens, corpus.tokens)
    part = corpus.take([0])
    del corpus, again
    gc.collect()
    assert part.n_tokens > 1
    del part
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_progress(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(TEXT)
    for source in (path, LINES, tokens_of(LINES), iter(LINES)):
        read_text(source, min_count=1, progress=True)
    assert capsys.readouterr().out == ""


def test_reading_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(TEXT)
    code = (
        "import sys; from efemb.data import read_text; "
        f"read_text({str(path)!r}, min_count=1).split(test=0.3)[0].subsampled(0.5); "
        "print({'numba', 'scipy', 'sklearn', 'pandas', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_several_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("part-1.txt", "part-2.txt.gz", "part-3.txt")]
    paths[0].write_text("a b c\nb c d", "utf-8")  # the end of a file ends a document
    with gzip.open(paths[1], "wt", encoding="utf-8") as file:
        file.write("c d\n")
    paths[2].write_text("a d\n", "utf-8")
    expected = read_text(["a b c", "b c d", "c d", "a d"], min_count=1)
    for source in (paths, str(tmp_path / "part-*"), tmp_path / "part-*"):
        corpus = read_text(source, min_count=1)
        assert corpus.tokens.tolist() == expected.tokens.tolist()
        assert corpus.starts.tolist() == expected.starts.tolist()
        assert list(corpus.vocabulary) == list(expected.vocabulary)
    paths[2].write_bytes(b"a \xff b")
    with pytest.raises(DataError, match=r"part-3\.txt"):
        read_text(paths)
    with pytest.raises(DataError, match=r"no file matches 'what is it\?'; a str is a path"):
        read_text("what is it?")


def test_columns_of_all_documents_when_short_ones_were_dropped() -> None:
    texts = ["a b a", "b", "b a"]
    corpus = read_text(texts, min_count=1)
    with pytest.raises(DataError, match=r"3 documents, but 1 of them .*keep_short=True"):
        corpus.with_rows({"year": [1, 2, 3]})
    kept = read_text(texts, min_count=1, keep_short=True)
    assert kept.with_rows({"year": [1, 2, 3]}).rows["year"].tolist() == [1, 2, 3]
