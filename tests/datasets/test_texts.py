"""text8, Lee and 20 Newsgroups, on a few words each."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import pytest

import efemb
from efemb.datasets import (
    fetch_20newsgroups,
    fetch_lee,
    fetch_text8,
    lee,
    newsgroups,
    text8,
)


def test_text8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    folder = tmp_path / "text8"
    folder.mkdir()
    (folder / "text8").write_text(" anarchism originated as a term a term as a term once")
    monkeypatch.setattr(text8, "DATA", published(text8.DATA, folder))
    corpus = fetch_text8(tmp_path, min_count=2, progress=False)
    assert corpus.n_documents == 1
    assert corpus.document(0) == ["as", "a", "term", "a", "term", "as", "a", "term"]
    assert corpus.report["tokens_read"] == 11
    assert corpus.report["data_set"] == "text8"


def test_lee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> None:
    folder = tmp_path / "lee-gensim"
    folder.mkdir()
    text = "The party's leader said: \u00a320 won't do.\nThe LEADER left the party in 2001\n"
    (folder / "lee_background.cor").write_text(text, encoding="latin-1")
    (folder / "lee.cor").write_text("A test, a test\n", encoding="latin-1")
    monkeypatch.setattr(lee, "DATA", published(lee.DATA, folder))
    corpus = fetch_lee(tmp_path, min_count=1, progress=False)
    assert corpus.document(0) == ["the", "party's", "leader", "said", "won't", "do"]
    assert corpus.document(1) == ["the", "leader", "left", "the", "party", "in"]
    test = fetch_lee(tmp_path, part="test", min_count=1, progress=False)
    assert test.document(0) == ["a", "test", "a", "test"]
    with pytest.raises(efemb.ParameterError, match="background"):
        fetch_lee(tmp_path, part="both")


@pytest.mark.parametrize("packed", [False, True])
def test_newsgroups(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any
) -> None:
    folder = tmp_path / "20newsgroups"
    folder.mkdir()
    header = "Category\tText\nd\tstring\nclass\t\n\n"
    for part in ("train", "test"):
        text = header + f'alt.atheism\tfaq "of {part}\nsci.med\tone\nrec.autos\ta car of a kind\n'
        name = f"20newsgroups-{part}.tab"
        if packed:
            (folder / f"{name}.xz").write_bytes(lzma.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    monkeypatch.setattr(newsgroups, "DATA", published(newsgroups.DATA, folder))
    corpus = fetch_20newsgroups(tmp_path, part="test", min_count=1, progress=False)
    assert corpus.report["groups"] == ["alt.atheism", "sci.med", "rec.autos"]
    assert corpus.n_documents == 3
    assert corpus.document(0) == ["faq", '"of', "test"]
    assert corpus.document(1) == ["one"]
    with pytest.raises(efemb.ParameterError, match="train"):
        fetch_20newsgroups(tmp_path, part="trian")
