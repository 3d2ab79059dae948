"""Small simulated samples that ship with the package: trips, a recording and a text."""

from __future__ import annotations

import numpy as np

from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.readers.array_file import load_array
from efemb.data.readers.text.read import read_text
from efemb.data.readers.transactions import read_baskets
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import provenance
from efemb.datasets.sources import Copy, DataSet, Wheel


def _sample(name: str, file: str, sha256: str, size: int, shape: str) -> DataSet:
    """A sample in the folder of this module."""
    inside = {file: f"efemb/datasets/samples/{file}"}
    return DataSet(
        name=f"sample-{name}",
        folder="samples",
        title=f"Sample of {name} (simulated, part of efemb)",
        shape=shape,
        terms="MIT, as the package",
        size=size,
        copies=(Copy({file: sha256}, wheel=Wheel("efemb", inside)),),
    )


TRIPS = _sample(
    "trips",
    "trips.csv.gz",
    "a32f4e90d045611c9ff9899cc605fe3b9aeba5864d5a15c25b40d6bafd01d133",
    15_000,
    "1,000 simulated trips x 36 items with counts",
)
RECORDING = _sample(
    "recording",
    "recording.npz",
    "32be30484352d9786f474cb3464843016d23b8bc5fa50f24f994801065c3f5e0",
    8_000,
    "150 simulated frames x 60 neurons with positions",
)
TEXT = _sample(
    "text",
    "text.txt.gz",
    "6d7b4113e6ee0811d6b1bfd37757fca85cd6370bfee0dc33963e10769d7974cf",
    6_000,
    "900 simulated sentences of about 70 words",
)


def fetch_sample_trips(
    data_home: Home = None, *, download: bool = True, progress: bool = True
) -> Dataset:
    """Trips to a small shop, simulated from known vectors: 1,000 x 36 with counts.

    Items of the same kind (dairy, bakery, snacks, vegetables, dry goods, household) have similar
    vectors, and each item of a trip depends on those before it (`efemb.simulation.simulate_iri`).

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `samples/trips.csv.gz`; by default the file of the package.
    download, progress : bool, default=True
        As for the other data sets; nothing has to be downloaded.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> fetch_sample_trips().shape
    (1000, 36)
    """
    files = find_files(TRIPS, data_home, download=download, progress=progress)
    trips = read_baskets(files["trips.csv.gz"], basket="basket", item="item", count="count")
    return trips._replace(trips.values, report=provenance(TRIPS, files) | trips.report)


def fetch_sample_recording(
    data_home: Home = None, *, download: bool = True, progress: bool = True
) -> Dataset:
    """The activity of 60 neurons in 150 frames, simulated (`efemb.simulation.simulate_zebrafish`).

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `samples/recording.npz`; by default the file of the package.
    download, progress : bool, default=True
        As for the other data sets; nothing has to be downloaded.

    Returns
    -------
    Dataset
        Dense, in steps of 0.05, with positions in micrometers. Entities are neuron-0, neuron-1, ...

    Examples
    --------
    >>> fetch_sample_recording().positions.shape
    (60, 3)
    """
    files = find_files(RECORDING, data_home, download=download, progress=progress)
    path = files["recording.npz"]
    steps = np.asarray(load_array(path, "steps"), dtype=np.float32)
    return Dataset(
        steps * np.float32(load_array(path, "step")),
        entities=[f"neuron-{n}" for n in range(steps.shape[1])],
        positions=load_array(path, "positions"),
        report=provenance(RECORDING, files),
    )


def fetch_sample_text(
    data_home: Home = None, *, min_count: int = 5, download: bool = True, progress: bool = True
) -> Corpus:
    """Sentences about people, animals and food, drawn from a small grammar.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `samples/text.txt.gz`; by default the file of the package.
    min_count : int, default=5
        Drop words that occur fewer times.
    download, progress : bool, default=True
        As for the other data sets; nothing has to be downloaded.

    Returns
    -------
    Corpus

    Examples
    --------
    >>> fetch_sample_text(progress=False).n_documents
    900
    """
    files = find_files(TEXT, data_home, download=download, progress=progress)
    corpus = read_text(files["text.txt.gz"], min_count=min_count, progress=False)
    report = provenance(TEXT, files) | corpus.report
    return Corpus(corpus.tokens, corpus.starts, corpus.vocabulary, report=report)


ENTRIES = (
    (TRIPS, fetch_sample_trips),
    (RECORDING, fetch_sample_recording),
    (TEXT, fetch_sample_text),
)
