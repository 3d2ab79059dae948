"""Files of other programs: the published layouts by hand, round trips, damage."""

from __future__ import annotations

import gzip
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, MissingExtraError
from efemb.export import (
    read_glove,
    read_word2vec,
    to_keyedvectors,
    word2vec_records,
    write_word2vec,
)
from efemb.fitted import LabeledVectors
from export.word2vec import NUMBERS, WORDS, by_hand, same


@pytest.mark.parametrize("line_end", [b"\n", b""])
def test_reads_the_published_binary_layout(line_end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v.anything"
    path.write_bytes(by_hand(WORDS, NUMBERS.tolist(), line_end))
    found = read_word2vec(path)
    assert same(found, WORDS, NUMBERS)
    assert found.vectors.dtype == np.float32


def test_writes_the_published_binary_layout(tmp_path: Path) -> None:
    write_word2vec(LabeledVectors(WORDS, NUMBERS), tmp_path / "v.bin")
    assert (tmp_path / "v.bin").read_bytes() == by_hand(WORDS, NUMBERS.tolist())


@pytest.mark.parametrize(
    "content",
    [
        "2 3\nthe 1 2.5 -3e-2\nof 0 1 2\n",
        "2 3\nthe 1 2.5 -3e-2 \nof 0 1 2 \n",  # word2vec.c and fastText end lines with a space
        "2 3\r\nthe 1 2.5 -3e-2\r\nof 0 1 2\r\n",
        "2 3\nthe\t1\t2.5\t-3e-2\nof  0 1 2",
        "2 3\n\nthe 1 2.5 -3e-2\n\nof 0 1 2\n\n\n",
    ],
)
def test_reads_text(content: str, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(content.encode())
    found = read_word2vec(path)
    assert same(found, ["the", "of"], np.array([[1, 2.5, -3e-2], [0, 1, 2]], dtype=np.float32))
    assert list(read_word2vec(path, limit=1)) == ["the"]


def test_writes_text_that_other_programs_read(tmp_path: Path) -> None:
    write_word2vec(LabeledVectors(["a", 7], [[0.5, -2.0], [1.0, 0.25]]), tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_text() == "2 2\na 0.5 -2\n7 1 0.25\n"


LABELS = st.text(
    st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=8
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), suffix=st.sampled_from([".bin", ".txt", ".bin.gz", ".txt.xz", ".vec.bz2"]))
def test_round_trip_gives_the_same_bits(data: Any, suffix: str, tmp_path: Path) -> None:
    words = data.draw(st.lists(LABELS, min_size=1, max_size=6, unique=True))
    size = data.draw(st.integers(1, 4))
    kind = np.float32 if ".bin" in suffix else data.draw(st.sampled_from([np.float32, np.float64]))
    width = np.dtype(kind).itemsize * 8
    floats = st.floats(allow_nan=False, allow_infinity=False, width=width)
    values = data.draw(arrays(kind, (len(words), size), elements=floats))
    path = tmp_path / f"v{suffix}"
    write_word2vec(LabeledVectors(words, values), path)
    found = read_word2vec(path, dtype=np.dtype(kind).name, binary=".bin" in suffix)
    assert list(found) == words
    assert np.array_equal(found.vectors, values)
    assert [one.name for one in tmp_path.iterdir() if "partial" in one.name] == []


@pytest.mark.parametrize("as_binary", [True, False])
@pytest.mark.parametrize("size", [1, 2, 50])
def test_kind_is_found_without_the_name(as_binary: bool, size: int, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(200, size)).astype(np.float32)
    own = LabeledVectors([f"w{i}" for i in range(200)], values)
    write_word2vec(own, tmp_path / "v", binary=as_binary)
    assert np.array_equal(read_word2vec(tmp_path / "v").vectors, values)


@pytest.mark.parametrize("as_binary", [True, False])
def test_small_chunks_change_nothing(
    as_binary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
    words = [f"wörd{i}" for i in range(3000)]
    write_word2vec(LabeledVectors(words, values), tmp_path / "v", binary=as_binary)
    monkeypatch.setattr(word2vec_records, "_TEXT_CHUNK", 777)
    monkeypatch.setattr(word2vec_records, "_BINARY_CHUNK", 777)
    assert same(read_word2vec(tmp_path / "v"), words, values)
    assert same(read_word2vec(tmp_path / "v", limit=1700), words[:1700], values[:1700])


def test_glove(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2\n. . . 3 4\nat name@domain.com 5 6\n", encoding="utf-8")
    found = read_glove(path)
    assert same(found, ["the", ". . .", "at name@domain.com"], [[1, 2], [3, 4], [5, 6]])
    assert list(read_glove(path, limit=1)) == ["the"]
    path.write_text("5 1 2\n6 3 4\n")  # numbers are words too
    assert same(read_glove(path), ["5", "6"], [[1, 2], [3, 4]])


def test_progress_bars_change_nothing(tmp_path: Path) -> None:
    write_word2vec(LabeledVectors(WORDS, NUMBERS), tmp_path / "v.txt", progress=True)
    assert same(read_word2vec(tmp_path / "v.txt", progress=True), WORDS, NUMBERS)


# -- what cannot be written ---------------------------------------------------------------------


@pytest.mark.parametrize("label", ["new york", "a\nb", "a\tb", "a\u00a0b", "a\u2028b", " "])
@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
def test_whitespace_is_refused_or_replaced(label: str, name: str, tmp_path: Path) -> None:
    own = LabeledVectors([label, "b"], np.eye(2, dtype=np.float32))
    with pytest.raises(DataError, match='replace="_"'):
        write_word2vec(own, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    write_word2vec(own, tmp_path / name, replace="_")
    written = "".join("_" if one.isspace() else one for one in label)
    assert list(read_word2vec(tmp_path / name)) == [written, "b"]


@pytest.mark.parametrize(
    ("labels", "options", "error", "words"),
    [
        (["a b", "a_b"], {"replace": "_"}, DataError, "written identically"),
        ([1, "1"], {}, DataError, "are the same label"),
        ([" ", "b"], {"replace": ""}, DataError, "empty word"),
        (["a", "b"], {"replace": " "}, InputTypeError, "without whitespace"),
        (["a", "\ud800"], {}, DataError, "UTF-8"),
    ],
)
def test_labels_that_cannot_be_written(
    labels: list[Any], options: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        write_word2vec(LabeledVectors(labels, np.eye(2)), tmp_path / "v.txt", **options)
    assert list(tmp_path.iterdir()) == []


def test_binary_refuses_what_single_precision_cannot_hold(tmp_path: Path) -> None:
    own = LabeledVectors(["a"], [[1e300]])
    with pytest.raises(DataError, match="'a' exceeds"):
        write_word2vec(own, tmp_path / "v.bin")
    write_word2vec(own, tmp_path / "v.txt")
    assert read_word2vec(tmp_path / "v.txt", dtype="float64")["a"][0] == 1e300
    with pytest.raises(DataError, match="too large numbers for float32"):
        read_word2vec(tmp_path / "v.txt")


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.txt"
    write_word2vec(LabeledVectors(WORDS, NUMBERS), path)
    before = path.read_bytes()

    def fails(*_: Any) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("efemb.export.word2vec_writer.join_text", fails)
    with pytest.raises(KeyboardInterrupt):
        write_word2vec(LabeledVectors(["z"], [[1.0]]), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["v.txt"]


def test_targets(tmp_path: Path) -> None:
    own = LabeledVectors(["a"], [[1.0]])
    with pytest.raises(DataError, match="is a directory"):
        write_word2vec(own, tmp_path)
    for bad in (None, 3, ""):
        with pytest.raises(InputTypeError, match="path of a file"):
            write_word2vec(own, bad)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="LabeledVectors"):
        write_word2vec({"a": [1.0]}, tmp_path / "v")  # type: ignore[arg-type]
    write_word2vec(own, tmp_path / "new" / "folder" / "v.txt.gz")
    first = (tmp_path / "new" / "folder" / "v.txt.gz").read_bytes()
    write_word2vec(own, tmp_path / "new" / "folder" / "w.txt.gz")
    assert (tmp_path / "new" / "folder" / "w.txt.gz").read_bytes() == first
    assert gzip.decompress(first) == b"1 1\na 1\n"


# -- gensim -------------------------------------------------------------------------------------


def test_to_keyedvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stand:
        """Takes what gensim's class takes."""

        def __init__(self, size: int, dtype: Any) -> None:
            self.size, self.dtype = size, dtype

        def add_vectors(self, keys: Any, weights: Any) -> None:
            self.keys, self.weights, self.attributes = keys, weights, {}

        def set_vecattr(self, key: Any, attr: str, val: Any) -> None:
            self.attributes[key, attr] = val

    models = types.SimpleNamespace(KeyedVectors=Stand)
    monkeypatch.setitem(sys.modules, "gensim", types.SimpleNamespace(models=models))
    monkeypatch.setitem(sys.modules, "gensim.models", models)
    found = to_keyedvectors(LabeledVectors(Vocabulary("ab", counts=[3, 1]), NUMBERS[:2]))
    assert (found.size, found.dtype, found.keys) == (2, np.float32, ["a", "b"])
    assert np.array_equal(found.weights, NUMBERS[:2])
    assert found.attributes == {("a", "count"): 3, ("b", "count"): 1}
    assert to_keyedvectors(LabeledVectors(["a"], [[1.0]])).attributes == {}
    with pytest.raises(InputTypeError, match="LabeledVectors"):
        to_keyedvectors(NUMBERS)  # type: ignore[arg-type]


def test_gensim_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match="pip install gensim"):
        to_keyedvectors(LabeledVectors(["a"], [[1.0]]))
