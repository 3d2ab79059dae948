"""Movies: the paper's table of MovieLens-100K and its topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from efemb.data.dataset import Dataset
from efemb.datasets import fetch_movielens_100k
from efemb.reproduce.fitting import Later, Task
from efemb.reproduce.movies_report import report_scores
from efemb.reproduce.runner import Job, Outcome
from efemb.reproduce.settings import MOVIES, SIZES, TOPIC_SIZE, Recipe
from efemb.reproduce.splits import Split, movies_split
from efemb.reproduce.study import Options, Results, Study
from efemb.reproduce.tables import rows_of
from efemb.reproduce.topics import topic_job
from efemb.reproduce.topics_report import report_topics

NAME = "movies"
QUICK_SIZES, QUICK_TOPICS = (5,), 8
QUICK_MODELS = (
    "popularity",
    "p-emb",
    "p-emb (dw)",
    "ap-emb",
    "HPF",
    "Poisson PCA",
    "p-emb, defaults",
)
QUICK_USERS, QUICK_PASSES = 300, 200
ONE_SIZE = {"categorical": SIZES[0]}  # the exact softmax is slow, and longer vectors add nothing


class Movies(Study):
    """Ratings of MovieLens-100K: five models of the paper, K = 20 and 100, and topics."""

    name = NAME
    title = "Movies: MovieLens-100K"
    minutes = 6
    side_by_side = True

    def jobs(self, options: Options) -> Sequence[Job]:
        """Models on splits, then fits for the topics."""
        data = Later(partial(_data, options))
        tasks = [task.job() for task in _tasks(data, options)]
        k = QUICK_TOPICS if options.quick else TOPIC_SIZE
        # Stability over first vectors needs two fits, also in a quick look.
        seeds = options.used_seeds() if len(options.used_seeds()) > 1 else (0, 1)
        return tasks + [topic_job(NAME, data, _named(options), k, seed) for seed in seeds]

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """Scores, claims and topics."""
        data = Later(partial(_data, options))
        tasks = _tasks(data, options)
        rows = rows_of(tasks, outcomes[: len(tasks)])
        report_scores(rows, data.value, options, out)
        report_topics(outcomes[len(tasks) :], data.value, out)


def _data(options: Options) -> Dataset:
    data = fetch_movielens_100k(options.data_home, progress=False)
    return data.take_rows(slice(0, QUICK_USERS)) if options.quick else data


def _named(options: Options) -> dict[str, object]:
    return {"name": "movielens_100k", "users": QUICK_USERS if options.quick else None}


def _tasks(data: Later, options: Options) -> list[Task]:
    def split(seed: int) -> Split:
        return movies_split(data.value, seed)

    seeds = options.used_seeds()
    passes = QUICK_PASSES if options.quick else None
    splits = {seed: Later(partial(split, seed)) for seed in seeds}
    return [
        Task(NAME, recipe, k, seed, splits[seed], _named(options), passes=passes)
        for recipe in MOVIES
        if not options.quick or recipe.name in QUICK_MODELS
        for k in _sizes(recipe, options)
        for seed in seeds
    ]


def _sizes(recipe: Recipe, options: Options) -> tuple[int | None, ...]:
    if not recipe.sized:
        return (None,)
    if options.quick:
        return QUICK_SIZES
    return (ONE_SIZE[recipe.name],) if recipe.name in ONE_SIZE else SIZES


STUDY = Movies()
