"""Groceries: one month of a grocery shop, 9,835 trips x 169 categories (package arules)."""

from __future__ import annotations

import numpy as np

from efemb.data.array_checks import make_csr
from efemb.data.dataset import Dataset
from efemb.data.readers.input_file import open_bytes
from efemb.data.vocabulary import Vocabulary
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance
from efemb.datasets.sources import Copy, DataSet, Found, github

_LABELS = {
    "Groceries.labels": "f3c3d5c682aeef4298b2f21a380e028eebb77fecb8a34418cc2fc42c3a977994",
    "Groceries.cat1.labels": "110a177de48783f4933550cfc369c49110a7b0b58631859793405a3cbe2c7cc1",
    "Groceries.cat2.labels": "434d1afe18fd391fc9f325fea87eb6454706fc44bb72a8b789c15eea101a15e2",
}
_PLAIN = {
    "Groceries.data": "72b386dd752cc0b7395702a60e8165290cc203a88556bf209223f12847c3fdb4",
    **_LABELS,
}
_PACKED = {
    "Groceries.data.gz": "8b63403ed26f59a6ada0fc19141c156ea6463ed61ac3f06a397fc2e49f172ea5",
    **_LABELS,
}
DATA = DataSet(
    name="groceries",
    folder="groceries",
    title="Groceries (arules; Hahsler, Hornik and Reutterer 2006)",
    shape="9,835 trips x 169 categories with counts",
    terms="GPL-3 (the R package arules); cite Hahsler, Hornik and Reutterer 2006",
    size=3_331_602,
    copies=(
        Copy(
            _PLAIN,
            urls=github(
                "mhahsler/arules",
                "814537d4da5dcca48c58212b6b397624d8bdd537",
                "data_src/Groceries",
                {name: name for name in _PLAIN},
            ),
        ),
        Copy(_PACKED),
    ),
)


def fetch_groceries(
    data_home: Home = None, *, download: bool = True, progress: bool = True
) -> Dataset:
    """Trips x categories of goods with counts: 9,835 x 169, 43,367 non-zeros that sum to 48,332.

    Nothing is dropped, not even trips with a single category.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `groceries/Groceries.data` (or .data.gz) and the three `.labels` files
        next to it; by default the folder in the environment variable EFEMB_DATA. Otherwise the
        files come from the cache or from GitHub.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Dataset
        Sparse. Entities are labeled in English; ``report["departments"]`` and
        ``report["sections"]`` give the department (10) and the section (55) of each label.

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    """
    files = find_files(DATA, data_home, download=download, progress=progress)
    name = "Groceries.data" if "Groceries.data" in files else "Groceries.data.gz"
    with open_bytes(files[name]) as stream:
        counts = np.loadtxt(stream, dtype=np.float32, delimiter="\t")
    values = make_csr(counts)
    names = _names(files, "Groceries.labels")
    groups = {
        "departments": _names(files, "Groceries.cat1.labels"),
        "sections": _names(files, "Groceries.cat2.labels"),
    }
    # The code of an item starts with the code of its group.
    report = {
        kind: {label: group[code[: len(next(iter(group)))]] for code, label in names.items()}
        for kind, group in groups.items()
    }
    return Dataset(
        values,
        entities=Vocabulary(names.values(), counts=(counts > 0).sum(axis=0)),
        report=provenance(DATA, files) | report,
    )


def _names(files: Found, name: str) -> dict[str, str]:
    """English name of each code; the German name is ignored."""
    lines = files[name].read_text("latin-1").splitlines()
    return {code: english for code, english, *_ in (line.split("\t") for line in lines if line)}


ENTRIES = ((DATA, fetch_groceries),)
