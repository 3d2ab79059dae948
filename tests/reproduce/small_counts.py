"""Small data in place of the real ones, for the studies of counts."""

from __future__ import annotations

import numpy as np

from efemb.data.dataset import Dataset
from efemb.errors import DataError
from efemb.simulation import simulate_baskets

GENRES = ("Children's", "Drama", "Sci-Fi")
WORDS = ("RAMEN CUPS 3 OZ", "YOGURT 6 OZ", "SOFT DRINKS 12 OZ", "FLUID MILK 1 GA")


def small_movies(*_: object, **__: object) -> Dataset:
    """70 users, 24 movies with years and genres."""
    rows = simulate_baskets(n_rows=70, n_entities=24, n_lines=700, n_topics=3, exponent=0.3, seed=0)
    values = rows.values.copy()
    values.data = np.minimum(values.data, 3)
    labels = [f"Movie {number} (19{number + 10})" for number in range(24)]
    genres = {label: [GENRES[place % 3]] for place, label in enumerate(labels)}
    return Dataset(values, entities=labels, report={"genres": genres})


def small_trips(*_: object, **__: object) -> Dataset:
    """400 trips to a shop of 24 items with the four kinds of the paper's examples."""
    rows = simulate_baskets(
        n_rows=400, n_entities=24, n_lines=2400, n_topics=3, exponent=0.3, seed=1
    )
    labels = [f"{WORDS[place % 4]} (national) #{place}" for place in range(24)]
    values = rows.values
    return Dataset(
        values[np.diff(values.indptr) >= 2],
        entities=labels,
        report={"aisles": {label: label.partition(" ")[0] for label in labels}},
    )


def no_orders(*_: object, **__: object) -> Dataset:
    """What a machine without the web says."""
    raise DataError("instacart is nowhere to be had")
