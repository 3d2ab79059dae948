"""MovieLens: the paper's filter by plain loops, both published forms, labels and genres."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import efemb
from efemb.datasets import fetch_movielens_100k, movielens_100k

GENRES = ["unknown", "Action", "Comedy"]
TITLES = {1: "Toy Story (1995)", 2: "Chasing Amy (1997)", 3: "Café (1996)", 4: "unknown"}
TITLES |= {5: "Chasing Amy (1997) ", 6: "Big (1988)"}
FLAGS = {1: "001", 2: "011", 3: "010", 4: "100", 5: "001", 6: "010"}


def ratings() -> list[tuple[int, int, int]]:
    """(user, movie, rating), 70 users and 6 movies, in no order."""
    rng = np.random.default_rng(0)
    liked = {1: 0.95, 2: 0.9, 3: 0.85, 4: 0.1, 5: 0.8, 6: 0.78}
    found = []
    for user in range(1, 71):
        for movie, share in liked.items():
            if user % 9 or movie in (1, 4):
                rating = rng.integers(3, 6) if rng.random() < share else rng.integers(1, 3)
                found.append((user, movie, int(rating)))
    return [found[i] for i in rng.permutation(len(found))]


def write_grouplens(folder: Path) -> None:
    folder.mkdir(parents=True)
    lines = [f"{u}\t{m}\t{r}\t88125094{u % 10}\n" for u, m, r in ratings()]
    (folder / "u.data").write_text("".join(lines))
    items = [
        f"{number}|{title}|01-Jan-1995||http://x|{'|'.join(FLAGS[number])}\n"
        for number, title in TITLES.items()
    ]
    (folder / "u.item").write_text("".join(items), encoding="latin-1")
    (folder / "u.genre").write_text("".join(f"{g}|{i}\n" for i, g in enumerate(GENRES)) + "\n")


def write_recbole(folder: Path) -> None:
    folder.mkdir(parents=True)
    lines = [f"{u}\t{m}\t{r}\t88125094{u % 10}\n" for u, m, r in ratings()]
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (folder / "ml-100k.inter").write_text(header + "".join(lines))
    items = ["item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"]
    for number, label in TITLES.items():
        title, _, year = label.strip().rpartition(" ")
        title, year = (title, year[1:-1]) if title else ("unkonwn", "unkonwn")
        flagged = zip(GENRES, FLAGS[number], strict=True)
        kinds = " ".join(name for name, flag in flagged if flag == "1")
        items.append(f"{number}\t{title}\t{year}\t{kinds}\n")
    (folder / "ml-100k.item").write_text("".join(items), encoding="utf-8")


@pytest.fixture(params=[write_grouplens, write_recbole], ids=["grouplens", "recbole"])
def home(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: Any) -> Path:
    request.param(tmp_path / "movielens-100k")
    small = published(movielens_100k.DATA, tmp_path / "movielens-100k")
    monkeypatch.setattr(movielens_100k, "DATA", small)
    monkeypatch.setattr(movielens_100k, "LEAST_MOVIES", 3)
    return tmp_path


def test_the_filter_by_loops(home: Path) -> None:
    liked = {(u, m): r - 2 for u, m, r in ratings() if r > 2}
    often = Counter(m for _, m in liked)
    movies = sorted(m for m in often if often[m] >= 50)
    seen = Counter(u for u, m in liked if m in movies)
    users = sorted(u for u in seen if seen[u] >= 3)
    assert 4 not in movies
    assert 40 < len(users) < 65
    data = fetch_movielens_100k(home, progress=False)
    expected = [[liked.get((u, m), 0) for m in movies] for u in users]
    assert data.values.toarray().tolist() == expected
    assert data.row_labels is not None
    assert data.row_labels.tolist() == users
    assert data.report["ratings"] == len(ratings())
    assert data.report["ratings_dropped"] == len(ratings()) - len(liked)
    assert data.report["users_dropped"] == 70 - len(users)
    assert data.report["movies_dropped"] == 6 - len(movies)


def test_raw_ratings_labels_and_genres(home: Path) -> None:
    data = fetch_movielens_100k(home, raw=True, progress=False)
    assert data.shape == (70, 6)
    for user, movie, rating in ratings():
        assert data.values[user - 1, movie - 1] == rating
    assert data.values.nnz == len(ratings())
    assert data.entities is not None
    assert list(data.entities) == [
        "Toy Story (1995)",
        "Chasing Amy (1997) #2",
        "Café (1996)",
        "unknown",
        "Chasing Amy (1997) #5",
        "Big (1988)",
    ]
    assert data.report["genres"]["Chasing Amy (1997) #2"] == ["Action", "Comedy"]
    assert data.report["genres"]["unknown"] == ["unknown"]
    assert "GroupLens" in data.report["terms"]


def test_edited_copies_are_refused(tmp_path: Path) -> None:
    write_grouplens(tmp_path / "movielens-100k")
    with pytest.raises(efemb.DataError, match=r"u\.data is not the published file"):
        fetch_movielens_100k(tmp_path)
