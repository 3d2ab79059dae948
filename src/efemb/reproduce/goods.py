"""Goods: which items of the baskets are alike, go together, or replace one another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from efemb.data.dataset import Dataset
from efemb.errors import DataError
from efemb.nearest import unit_rows
from efemb.reproduce.fitting import as_arrays
from efemb.table import Table
from efemb.types import Floats

ALIKE, PAIRS = 3, 5  # as many as the paper lists
SUPPORT = 5.0  # trips together (largest products), or expected together (smallest)
# The paper's four examples: what the label must hold, and must not.
EXAMPLES = {
    "a ramen": (r"\bramen\b", r"$^"),
    "a yogurt": (r"\byogurt\b", r"\bdrink|smoothie"),
    "a soda": (r"\bsoft drinks?\b|\bsoda\b", r"\bbaking\b|\bwater\b"),
    "a milk": (r"\bmilk\b", r"chocolate|almond|coconut|soy|rice|butter|evaporated|powder"),
}
BLOCK = 1024


def example(labels: Sequence[str], counts: Floats, wanted: str, unwanted: str) -> str | None:
    """The most frequent item whose label says so."""
    found = [
        code
        for code, label in enumerate(labels)
        if re.search(wanted, label, re.IGNORECASE) and not re.search(unwanted, label, re.IGNORECASE)
    ]
    return labels[max(found, key=lambda code: counts[code])] if found else None


def kind_of(label: str) -> str:
    """What a product of Complete Journey is: the words before its size and brand.

    >>> kind_of("RAMEN NOODLES/RAMEN CUPS 3 OZ (national) #833715")
    'RAMEN NOODLES/RAMEN CUPS'
    """
    return re.split(r" (?=\d)| \(", label)[0]


def goods(
    model: Any, data: Dataset, kinds: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures and tables about a fitted model of baskets."""
    assert data.entities is not None
    labels = [str(label) for label in data.entities]
    counts = np.asarray((data.values > 0).sum(axis=0)).ravel()
    queries = {name: example(labels, counts, *words) for name, words in EXAMPLES.items()}
    tables = {
        "similar": similar_items(model, {name: one for name, one in queries.items() if one}),
        "pairs": model.pairs(PAIRS, data=data),
        "supported": model.pairs(PAIRS, data=data, min_support=SUPPORT),
    }
    groups = np.unique([kinds[label] for label in labels], return_inverse=True)[1]
    same, chance = same_kind(model.embedding_, groups)
    figures = {
        "same_kind": same,
        "same_kind_by_chance": chance,
        "lift_correlation": lift_correlation(model, data),
        "smallest_product": float(tables["pairs"]["product"].min()),
    }
    arrays: dict[str, Any] = {}
    for name, table in tables.items():
        arrays |= as_arrays(name, table)
    return figures, arrays


def similar_items(model: Any, queries: Mapping[str, str]) -> Table:
    """The items most like each example, by the cosine of their embedding vectors."""
    if not queries:
        raise DataError("no label of the data names a ramen, a yogurt, a soda or a milk")
    found = {name: model.similar(label, ALIKE) for name, label in queries.items()}
    return Table(
        {
            "example": [name for name, table in found.items() for _ in range(len(table))],
            "item": [queries[name] for name, table in found.items() for _ in range(len(table))],
            "similar": [label for table in found.values() for label in table["label"]],
            "cosine": [value for table in found.values() for value in table["similarity"].tolist()],
        }
    )


def same_kind(vectors: Floats, group: Any) -> tuple[float, float]:
    """Share of the items' nearest three that are of their kind, and of any three."""
    unit = unit_rows(vectors.astype(np.float32))
    hits = 0
    for start in range(0, len(unit), BLOCK):
        mine = np.arange(start, min(start + BLOCK, len(unit)))
        cosine = unit[mine] @ unit.T
        cosine[np.arange(len(mine)), mine] = -np.inf
        near = np.argpartition(-cosine, ALIKE, axis=1)[:, :ALIKE]
        hits += int((group[near] == group[mine][:, None]).sum())
    size = np.bincount(group)[group]
    return hits / (ALIKE * len(unit)), float((size - 1).mean() / (len(unit) - 1))


def lift_correlation(model: Any, data: Dataset) -> float:
    """Spearman's correlation of rho_n . alpha_m and the lift of pairs expected in enough trips."""
    from scipy.stats import spearmanr

    bought = (data.values > 0).astype(np.float32)
    counts = np.asarray(bought.sum(axis=0)).ravel()
    often = np.flatnonzero(counts >= np.sqrt(SUPPORT * data.n_rows))
    if len(often) < 3:
        return float("nan")
    bought = bought[:, often]
    together = (bought.T @ bought).toarray()
    expected = np.outer(counts[often], counts[often]) / data.n_rows
    product = model.embedding_[often] @ model.context_[often].T
    other = ~np.eye(len(often), dtype=bool)
    return float(spearmanr(product[other], (together / expected)[other]).statistic)
