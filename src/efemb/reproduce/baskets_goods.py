"""Goods: similar items, complements and substitutes in the basket data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from efemb._typing import Floats
from efemb.data.dataset import Dataset
from efemb.errors import DataError
from efemb.fitted.nearest import unit_rows
from efemb.plots import relations
from efemb.reproduce.claims import HOLDS, NOT, PARTLY, Claim, show_claims
from efemb.reproduce.jobs import Outcome, pack_table, unpack_table
from efemb.reproduce.study import Results
from efemb.table import Table

ALIKE, PAIRS = 3, 5  # as listed in the paper
SUPPORT = 5.0  # trips together (largest products), or expected together (smallest)
# The paper's four examples: what a label must contain, and must not contain.
EXAMPLES = {
    "a ramen": (r"\bramen\b", r"$^"),
    "a yogurt": (r"\byogurt\b", r"\bdrink|smoothie"),
    "a soda": (r"\bsoft drinks?\b|\bsoda\b", r"\bbaking\b|\bwater\b"),
    "a milk": (r"\bmilk\b", r"chocolate|almond|coconut|soy|rice|butter|evaporated|powder"),
}
BLOCK = 1024


def find_example(labels: Sequence[str], counts: Floats, pattern: str, excluded: str) -> str | None:
    """The most frequent item whose label matches `pattern` but not `excluded`."""
    codes = [
        code
        for code, label in enumerate(labels)
        if re.search(pattern, label, re.IGNORECASE)
        and not re.search(excluded, label, re.IGNORECASE)
    ]
    return labels[max(codes, key=lambda code: counts[code])] if codes else None


def parse_kind(label: str) -> str:
    """The type of a product of Complete Journey: the words before its size and brand.

    >>> parse_kind("RAMEN NOODLES/RAMEN CUPS 3 OZ (national) #833715")
    'RAMEN NOODLES/RAMEN CUPS'
    """
    return re.split(r" (?=\d)| \(", label)[0]


def analyze_goods(
    model: Any, data: Dataset, kinds: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures and tables about a fitted model of baskets."""
    assert data.entities is not None
    labels = [str(label) for label in data.entities]
    counts = np.asarray((data.values > 0).sum(axis=0)).ravel()
    queries = {name: find_example(labels, counts, *words) for name, words in EXAMPLES.items()}
    tables = {
        "similar": list_similar(model, {name: label for name, label in queries.items() if label}),
        "pairs": model.pairs(PAIRS, data=data),
        "supported": model.pairs(PAIRS, data=data, min_support=SUPPORT),
    }
    groups = np.unique([kinds[label] for label in labels], return_inverse=True)[1]
    same, chance = measure_same_kind(model.rho_, groups)
    figures = {
        "same_kind": same,
        "same_kind_by_chance": chance,
        "lift_correlation": correlate_with_lift(model, data),
        "smallest_product": float(tables["pairs"]["score"].min()),
    }
    arrays: dict[str, Any] = {}
    for name, table in tables.items():
        arrays |= pack_table(name, table)
    return figures, arrays


def list_similar(model: Any, queries: Mapping[str, str]) -> Table:
    """The items most similar to each example, by the cosine of their embedding vectors."""
    if not queries:
        raise DataError("no label in the data matches ramen, yogurt, soda or milk")
    tables = {name: model.similar(label, ALIKE) for name, label in queries.items()}
    return Table(
        {
            "example": [name for name, table in tables.items() for _ in range(len(table))],
            "item": [queries[name] for name, table in tables.items() for _ in range(len(table))],
            "similar": [label for table in tables.values() for label in table["label"]],
            "cosine": [
                value for table in tables.values() for value in table["similarity"].tolist()
            ],
        }
    )


def measure_same_kind(vectors: Floats, group: Any) -> tuple[float, float]:
    """Share of the three nearest items that are of the same kind, and the share by chance."""
    unit = unit_rows(vectors.astype(np.float32))
    hits = 0
    for start in range(0, len(unit), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(unit)))
        cosine = unit[block] @ unit.T
        cosine[np.arange(len(block)), block] = -np.inf
        near = np.argpartition(-cosine, ALIKE, axis=1)[:, :ALIKE]
        hits += int((group[near] == group[block][:, None]).sum())
    size = np.bincount(group)[group]
    return hits / (ALIKE * len(unit)), float((size - 1).mean() / (len(unit) - 1))


def correlate_with_lift(model: Any, data: Dataset) -> float:
    """Spearman correlation of rho_n . alpha_m with the lift of pairs expected in enough trips."""
    bought = (data.values > 0).astype(np.float32)
    counts = np.asarray(bought.sum(axis=0)).ravel()
    often = np.flatnonzero(counts >= np.sqrt(SUPPORT * data.n_rows))
    if len(often) < 3:
        return float("nan")
    bought = bought[:, often]
    together = (bought.T @ bought).toarray()
    expected = np.outer(counts[often], counts[often]) / data.n_rows
    product = model.rho_[often] @ model.alpha_[often].T
    other = ~np.eye(len(often), dtype=bool)
    return float(spearmanr(product[other], (together / expected)[other]).statistic)


# -- report ---------------------------------------------------------------------------------------


def report_goods(lists: Mapping[str, Outcome], missing: str, out: Results) -> None:
    """Similar items, complements and substitutes of each fit."""
    out.page.section("Goods: similar items, complements, substitutes")
    for number, (name, outcome) in enumerate(lists.items()):
        file = f"{number}-" + name.replace(", ", "-").replace(" ", "-")
        similar, all_pairs, supported = (
            unpack_table(table_name, outcome.arrays)
            for table_name in ("similar", "pairs", "supported")
        )
        out.write(f"similar-{file}", similar)
        caption = f"{name}: the {ALIKE} items most similar to an example, by the cosine of rho."
        out.page.table(name_examples_once(similar), caption)
        out.write(f"pairs-{file}", all_pairs)
        out.page.table(shorten_pairs(all_pairs), f"{name}: {ALL_PAIRS}")
        out.write(f"supported-{file}", supported)
        out.page.table(shorten_pairs(supported), f"{name}: {SUPPORTED}")
        caption = f"{name}: the supported pairs as a plot."
        out.figure(f"supported-{file}", relations(supported), caption)
    if missing:
        out.page.paragraph(f"Instacart, whose products have names, is omitted: {missing}")
    out.table("goods", tabulate_goods(lists), GOODS)
    show_claims("goods-claims", judge_goods(lists), out)


ALL_PAIRS = (
    f"the {PAIRS} largest and {PAIRS} smallest inner products rho_label . alpha_given of all: "
    "label is more (less) probable if given is in the basket. Together: trips that contain both; "
    "lift: their number relative to independent items."
)
SUPPORTED = (
    f"the same for supported pairs: {SUPPORT:g} trips together (largest), or {SUPPORT:g} trips "
    "expected of independent items (smallest)."
)
GOODS = (
    "Over all items: share of the three most similar items that are of the same kind (the product "
    "type of Complete Journey, the aisle of Instacart), next to the share by chance; rank "
    "correlation between the inner product of a pair and its lift (how often both are bought "
    f"together, relative to chance), over pairs expected in at least {SUPPORT:g} trips."
)


def tabulate_goods(lists: Mapping[str, Outcome]) -> Table:
    """Figures on the lists."""
    figures = [outcome.figures["goods"] for outcome in lists.values()]
    return Table(
        {
            "fit": list(lists),
            "same kind": [fit["same_kind"] for fit in figures],
            "by chance": [fit["same_kind_by_chance"] for fit in figures],
            "correlation with lift": [fit["lift_correlation"] for fit in figures],
            "smallest product": [fit["smallest_product"] for fit in figures],
        }
    )


def judge_goods(lists: Mapping[str, Outcome]) -> list[Claim]:
    """The paper's claims about goods, for each fit."""
    claims = []
    for name, outcome in lists.items():
        figures = outcome.figures["goods"]
        same, chance = figures["same_kind"], figures["same_kind_by_chance"]
        shares = f"{same:.0%} of the {ALIKE} nearest are of the same kind, {chance:.1%} by chance"
        text = f"{name}: {shares}."
        verdict = HOLDS if same > 0.5 else PARTLY if same > 2 * chance else NOT
        sentence = (
            "The most similar items to a soda are other sodas; the most similar items to a yogurt "
            "are (mostly) other yogurts."
        )
        claims.append(Claim(sentence, verdict, text))
        rank = figures["lift_correlation"]
        text = f"{name}: the rank correlation of inner product and lift is {rank:.2f}."
        verdict = HOLDS if rank > 0.5 else PARTLY if rank > 0.1 else NOT
        sentence = (
            "Items that tend to be purchased together have high value of the inner product ... "
            "while items that are substitutes have negative value."
        )
        claims.append(Claim(sentence, verdict, text))
    return claims


def name_examples_once(similar: Table) -> Table:
    """Name each example on its first line only."""
    items = similar["item"].tolist()
    shown = [
        item if item != before else "" for item, before in zip(items, [None, *items], strict=False)
    ]
    return Table({"item": shown, "similar": similar["similar"], "cosine": similar["cosine"]})


def shorten_pairs(table: Table) -> Table:
    """The columns that fit the page; the file has all of them."""
    return Table({name: table[name] for name in ("label", "given", "score", "together", "lift")})
