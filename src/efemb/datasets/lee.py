"""The Lee corpus: 300 news items in English, and 50 others to evaluate similarity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from efemb.data.corpus import Corpus
from efemb.data.readers.text.read import read_text
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance
from efemb.datasets.sources import Copy, DataSet, Wheel, github
from efemb.errors import check_known

_INSIDE = "gensim/test/test_data"
_SHA256 = {
    "lee_background.cor": "5d78d6dafd953bbf65797bef09a9ffb9ec430583381be705f8fd460000f370fb",
    "lee.cor": "a878f9a58f6743c32985c56c2f2f75988386216b38a4023a01fd3bcf7884d93e",
}
_PARTS = {"background": "lee_background.cor", "test": "lee.cor"}
DATA = DataSet(
    name="lee",
    folder="lee-gensim",
    title="Lee corpus (Lee, Pincombe and Welsh 2005)",
    shape="300 documents of news, 59,576 words",
    terms="no license of its own; carried by gensim (LGPL-2.1)",
    size=27_800_000,
    copies=(
        Copy(
            _SHA256,
            wheel=Wheel("gensim>=4", {name: f"{_INSIDE}/{name}" for name in _SHA256}),
            urls=github("piskvorky/gensim", "4.4.0", _INSIDE, {name: name for name in _SHA256}),
        ),
    ),
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")


def fetch_lee(
    data_home: Home = None,
    *,
    part: str = "background",
    min_count: int = 5,
    download: bool = True,
    progress: bool = True,
) -> Corpus:
    """Short news items of the Australian Broadcasting Corporation, one document each.

    Words are runs of letters (possibly with an apostrophe inside) in lower case; numbers and
    punctuation are removed.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `lee-gensim/lee_background.cor` and `lee.cor`; by default the folder in
        the environment variable EFEMB_DATA. Otherwise the files come from the cache, from
        the package gensim (installed, or its wheel, which is read and not installed) or GitHub.
    part : {"background", "test"}, default="background"
        300 documents for training, or 50 others.
    min_count : int, default=5
        Drop words that occur fewer times.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Corpus

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    """
    check_known("part", part, _PARTS)
    files = find_files(DATA, data_home, download=download, progress=progress)
    corpus = read_text(_documents(files[_PARTS[part]]), min_count=min_count, progress=progress)
    report = provenance(DATA, files) | corpus.report
    return Corpus(corpus.tokens, corpus.starts, corpus.vocabulary, report=report)


def _documents(path: Path) -> Iterator[list[str]]:
    """Words of each line."""
    for line in path.read_text("latin-1").lower().strip("\n").split("\n"):
        yield _WORD.findall(line)


ENTRIES = ((DATA, fetch_lee),)
