"""MovieLens-100K: 100,000 ratings of 1,682 movies by 943 users (GroupLens, research use)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.datasets.download import Home, find_files
from efemb.datasets.lines import baskets_of_lines, distinct, provenance, relabel
from efemb.datasets.sources import Archive, Copy, DataSet, Found, Wheel

_NAMES = ("u.data", "u.item", "u.genre")
_INSIDE = "recbole/dataset_example/ml-100k"
DATA = DataSet(
    name="movielens_100k",
    folder="movielens-100k",
    title="MovieLens-100K",
    shape="777 users x 516 movies (raw: 943 x 1,682)",
    terms=(
        "research use; acknowledge GroupLens (Harper and Konstan 2015, doi 10.1145/2827872); "
        "no redistribution and no commercial use without permission"
    ),
    size=4_924_029,
    copies=(
        Copy(
            {
                "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
                "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
                "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
            },
            archive=Archive(
                "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
                "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
                {name: f"ml-100k/{name}" for name in _NAMES},
            ),
        ),
        Copy(
            {
                "ml-100k.inter": "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
                "ml-100k.item": "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532",
            },
            wheel=Wheel(
                "recbole==1.2.1",
                {name: f"{_INSIDE}/{name}" for name in ("ml-100k.inter", "ml-100k.item")},
            ),
        ),
    ),
)
LEAST_USERS = 50
LEAST_MOVIES = 20


def fetch_movielens_100k(
    data_home: Home = None, *, raw: bool = False, download: bool = True, progress: bool = True
) -> Dataset:
    """Users x movies of the paper: 777 x 516, 65,504 non-zeros that sum to 129,664.

    A value is the rating minus 2. Ratings of 1 and 2 are dropped first, then movies with fewer
    than 50 remaining ratings, then users with fewer than 20. Users and movies are sorted by their
    numbers.

    Parameters
    ----------
    data_home : path, optional
        Folder that holds `movielens-100k/u.data`, `u.item` and `u.genre`; by default the folder
        in the environment variable EFEMB_DATA. Otherwise the files come from the cache, from
        the package `recbole` (its wheel is read, not installed) or from files.grouplens.org.
    raw : bool, default=False
        Return all ratings from 1 to 5 of all users and movies: 943 x 1,682, 100,000 non-zeros.
    download : bool, default=True
        Whether the files may be downloaded if they are not on this machine.
    progress : bool, default=True
        Show progress bars.

    Returns
    -------
    Dataset
        Sparse. Entities are labeled "Title (Year)", rows by the number of the user.
        ``report["genres"]`` gives the genres of each label, ``report["terms"]`` the terms of use.

    Raises
    ------
    DataError
        If the files are not available, or one is not the published file.
    """
    files = find_files(DATA, data_home, download=download, progress=progress)
    user, movie, rating = _ratings(files)
    titles, genres = _movies(files)
    lines = {"user": user, "movie": movie, "value": rating if raw else rating - 2}
    filters = {} if raw else {"min_count": LEAST_USERS, "min_items_per_basket": LEAST_MOVIES}
    data = baskets_of_lines(
        {name: column[lines["value"] > 0] for name, column in lines.items()},
        basket="user",
        item="movie",
        count="value",
        progress=progress,
        **filters,
    )
    assert data.entities is not None
    assert data.row_labels is not None
    numbers = [int(number) for number in data.entities]
    labels = [titles[number] for number in numbers]
    report = provenance(DATA, files) | {
        "ratings": len(rating),
        "ratings_dropped": int((lines["value"] <= 0).sum()),
        "users_dropped": len(np.unique(user)) - data.n_rows,
        "movies_dropped": len(np.unique(movie)) - data.n_entities,
        "genres": {titles[number]: genres[number] for number in numbers},
    }
    return relabel(data, labels, report, data.row_labels.astype(np.int64))


def _ratings(files: Found) -> Any:
    """User, movie and rating of every line; the timestamps are ignored."""
    grouplens = "u.data" in files
    path = files["u.data" if grouplens else "ml-100k.inter"]
    columns = np.loadtxt(path, dtype=np.int64, skiprows=0 if grouplens else 1, usecols=(0, 1, 2))
    return columns.T


def _movies(files: Found) -> tuple[dict[int, str], dict[int, list[str]]]:
    """Label and genres of every movie by its number."""
    if "u.item" in files:
        titles, genres = _grouplens_movies(files["u.item"], files["u.genre"])
    else:
        titles, genres = _recbole_movies(files["ml-100k.item"])
    # Eighteen movies are listed twice, under two numbers.
    labels = distinct(list(titles.values()), list(titles))
    return dict(zip(titles, labels, strict=True)), genres


def _grouplens_movies(items: Path, names: Path) -> tuple[dict[int, str], dict[int, list[str]]]:
    genre_names = [line.partition("|")[0] for line in names.read_text("latin-1").split()]
    titles, genres = {}, {}
    for line in items.read_text("latin-1").splitlines():
        number, title, _, _, _, *flags = line.split("|")
        titles[int(number)] = title.strip()
        genres[int(number)] = [
            name for name, flag in zip(genre_names, flags, strict=True) if flag == "1"
        ]
    return titles, genres


def _recbole_movies(items: Path) -> tuple[dict[int, str], dict[int, list[str]]]:
    titles, genres = {}, {}
    for line in items.read_text("utf-8").splitlines()[1:]:
        number, title, year, kinds = line.split("\t")
        # The only movie without a name has the same (misspelled) word as its year.
        titles[int(number)] = "unknown" if title == year else f"{title} ({year})"
        genres[int(number)] = kinds.split()
    return titles, genres


ENTRIES = ((DATA, fetch_movielens_100k),)
