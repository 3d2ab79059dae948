"""The studies of counts with a few models and small data."""

from __future__ import annotations

import pytest

from efemb.reproduce import Options, baskets_study, movies_study, reproduce
from efemb.reproduce.counts_models import DEFAULTS, DEFAULTS_DW, P_EMB, P_EMB_DW, POPULARITY
from reproduce.small_counts import small_movies, small_trips


def put_small_movies(patch: pytest.MonkeyPatch) -> None:
    """Small data and three models in place of those of the movie study."""
    patch.setattr(movies_study, "fetch_movielens_100k", small_movies)
    patch.setattr(movies_study, "MOVIES", (POPULARITY, P_EMB, P_EMB_DW, DEFAULTS))


@pytest.fixture
def tiny_movies(monkeypatch):
    """The movie study with three models and small data."""
    put_small_movies(monkeypatch)
    return movies_study.STUDY


@pytest.fixture(scope="module")
def movie_run(tmp_path_factory):
    """Folder of a quick movie study on small data, run once."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        put_small_movies(patch)
        reproduce(["movies"], folder, Options(quick=True, n_jobs=1))
    return folder


@pytest.fixture
def tiny_baskets(monkeypatch):
    """The basket study with a few models and small data."""
    monkeypatch.setattr(baskets_study, "fetch_complete_journey", small_trips)
    monkeypatch.setattr(baskets_study, "fetch_instacart", small_trips)
    kept = ("popularity", P_EMB.name, P_EMB_DW.name, DEFAULTS.name, DEFAULTS_DW.name)
    chosen = tuple(recipe for recipe in baskets_study.BASKETS if recipe.name in kept)
    monkeypatch.setattr(baskets_study, "BASKETS", chosen)
    return baskets_study.STUDY
