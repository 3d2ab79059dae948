"""text8: the first 100,000,000 characters of cleaned Wikipedia (Mahoney)."""

from __future__ import annotations

from efemb.data.corpus import Corpus
from efemb.data.readers.text.read import read_text
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance
from efemb.datasets.sources import Archive, Copy, DataSet

DATA = DataSet(
    name="text8",
    folder="text8",
    title="text8 (Mahoney; Wikipedia of 2006)",
    shape="17,005,207 words, one document",
    terms="text of Wikipedia: CC BY-SA and GFDL",
    size=31_344_016,
    copies=(
        Copy(
            {"text8": "6e890197040d37d85beb962ae1f041ff1d9a9ca8d20c7d99c85027eebf51dca7"},
            archive=Archive(
                "http://mattmahoney.net/dc/text8.zip",
                "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
                {"text8": "text8"},
            ),
        ),
    ),
)


def fetch_text8(
    data_home: Home = None, *, min_count: int = 5, download: bool = True, progress: bool = True
) -> Corpus:
    """Words of Wikipedia, lower-case, without punctuation, as one document of 17 million words.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `text8/text8`; by default the folder in the environment variable
        EFEMB_DATA. Otherwise it comes from the cache or from mattmahoney.net.
    min_count : int, default=5
        Drop words that occur fewer times.
    download : bool, default=True
        Whether the file (31 MB) may be downloaded if it is not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Corpus

    Raises
    ------
    DataError
        If the file is not available, or is not the published one.
    """
    files = find_files(DATA, data_home, download=download, progress=progress)
    corpus = read_text(files["text8"], min_count=min_count, progress=progress)
    report = provenance(DATA, files) | corpus.report
    return Corpus(corpus.tokens, corpus.starts, corpus.vocabulary, report=report)


ENTRIES = ((DATA, fetch_text8),)
