"""Complements and substitutes: what a server answers, and what a page holds of every item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError
from efemb.explore.payload import Payload, Quantized, small_integers
from efemb.fitted.cooccurrence import Support
from efemb.fitted.relation import NO_SUBSTITUTES, Affinity
from efemb.fitted.selection import PairOptions
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.explore.contents import Contents

LISTED = 10  # lines of an answer
QUESTIONS = ("complements", "substitutes")
NUMBERS = ("score", "low", "high", "together", "lift", "lift_low", "lift_high")
KINDS = ("complement", "substitute", "suggested", "unclear")
DROPPED = 12  # bits of a number that are 0 in a page, so that it compresses: three digits are shown


def relation_table(
    contents: Contents, question: str, items: Any, n: int = LISTED, group: int | None = None
) -> Table:
    """The answer of the model, or of that of a group of rows, with all evidence there is."""
    model, options = contents.model, PairOptions()
    if isinstance(contents.support, Support):  # counted once, not for every question
        options["data"] = contents.support
    if group is not None:
        model = model.of_group(model.spec.structure.labels[group])
    elif question == "complements" and hasattr(contents.errors, "standard_errors"):
        options["errors"] = contents.errors  # those of all rows
    if question == "complements":
        table = model.complements(items, n, **options)
        listed = table["score"] > 0
    else:
        table = model.substitutes(items, n, apart=True, **options)
        listed = table["kind"] != "apart"
    return Table({name: table[name][listed] for name in table.columns})


def add_relations(payload: Payload, contents: Contents) -> None:
    """Complements and substitutes of every item, or why there are none."""
    model = contents.model
    relations: dict[str, Any] = {}
    payload.header["relations"] = relations
    pair = ("rho", "rho" if model.spec.structure.tied else "alpha")  # names of arrays
    relations["target"], relations["bag"] = pair[::-1] if model.spec.combine.reverse else pair
    try:
        affinity = Affinity(model)
    except ParameterError as error:
        relations |= {f"refused_{question}": str(error) for question in QUESTIONS}
        return
    if model.spec.positive_rho and model.spec.positive_alpha:
        relations["refused_substitutes"] = f"There is no list: {NO_SUBSTITUTES}."
    if isinstance(contents.support, str):
        payload.header["notes"].append(contents.support)
    if not contents.vectors:
        return
    if model.parameters.position is not None:  # words at different places have different weights
        relations["bag"] = "bag"
        payload.vectors["bag"] = Quantized.of(affinity.bag.astype(np.float64), contents.bits)
    known = np.flatnonzero(affinity.known)  # items whose effect on others is known
    for question in QUESTIONS:
        if f"refused_{question}" not in relations and len(known) > 0:
            _prepare(payload, contents, question, known)


def _prepare(payload: Payload, contents: Contents, question: str, known: Ints) -> None:
    """The lists of all items, of all rows first and then of each group."""
    n, labels = contents.model.n_entities, contents.model.entities.labels
    code_of = {label: code for code, label in enumerate(labels)}
    n_groups = len(payload.header.get("slices", {"labels": ()})["labels"])
    tables = [
        relation_table(contents, question, labels[known], group=group)
        for group in (None, *range(n_groups))
    ]
    place = [
        np.array([code_of[label] for label in table["query"]], dtype=np.int64) + number * n
        for number, table in enumerate(tables)
    ]
    columns: dict[str, Any] = {}
    for name in ("label", "kind", *NUMBERS):
        if all(name in table.columns for table in tables):
            columns[name] = np.concatenate([table[name] for table in tables])
    columns["code"] = np.array([code_of[label] for label in columns.pop("label")], dtype=np.int64)
    add_answers(payload, question, np.concatenate(place), n * len(tables), columns)


def add_answers(
    payload: Payload, question: str, place: Ints, n_places: int, columns: dict[str, Any]
) -> None:
    """Prepared answers: lines in the order of their places, those of an item in a group."""
    arrays = payload.arrays
    arrays[f"{question}.start"] = np.searchsorted(place, np.arange(n_places + 1)).astype(np.int32)
    described: list[dict[str, Any]] = []
    for name, values in columns.items():
        column: dict[str, Any] = {"key": name, "array": f"{question}.{name}"}
        described.append(column)
        if name == "kind":
            column["names"] = KINDS
            arrays[column["array"]] = small_integers([KINDS.index(kind) for kind in values])
        elif values.dtype.kind in "iu":
            arrays[column["array"]] = small_integers(values)
        else:
            arrays[column["array"]] = _shorten(values)
    payload.header["prepared"][question] = described


def _shorten(values: Floats) -> Floats:
    """Single precision, rounded to fewer bits."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    half, mask = np.uint32(1 << (DROPPED - 1)), np.uint32(0xFFFFFFFF << DROPPED & 0xFFFFFFFF)
    return np.asarray(((bits + half) & mask).view(np.float32))
