"""Guesses: what a file holds, which of its columns are which, and what kind of numbers they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from efemb.data.dataset import Dataset
from efemb.data.readers.index import index_names
from efemb.data.readers.roles import (
    BASKET,
    COUNT,
    ITEM,
    USER,
    Role,
    Sample,
    candidates,
    is_number,
    known,
    rivals,
)
from efemb.data.readers.source import existing_file
from efemb.data.readers.text import SAMPLE, CsvSource
from efemb.errors import DataError, suggest

Kind = Literal["baskets", "matrix", "text"]
ARRAYS, TABLES = {".npy", ".npz"}, {".csv", ".tsv", ".tab", ".parquet", ".pq"}
PACKED = {".gz", ".bz2", ".xz"}


@dataclass(frozen=True)
class Guess:
    """What a file seems to hold, and in words why.

    basket, item, count : names of columns, for transactions only
    """

    kind: Kind
    why: str
    basket: str | None = None
    item: str | None = None
    count: str | None = None


def guess_contents(
    path: str | os.PathLike[str],
    *,
    basket: str | None = None,
    item: str | None = None,
    count: str | None = None,
    encoding: str = "utf-8",
) -> Guess:
    """Guess from the name of a file and its first lines what it holds.

    Columns that are told are not guessed; `count="none"` counts each line as 1.

    Raises
    ------
    DataError
        If a table is neither transactions nor all numbers, with the columns there are.
    """
    file = existing_file(path)
    suffix = _suffix(file)
    if suffix in ARRAYS:
        return Guess("matrix", f"{suffix} files hold arrays")
    told = {"basket": basket, "item": item, "count": count}
    if suffix not in TABLES and not any(told.values()):
        return Guess("text", "each line is a document")
    sample = _sample(file, encoding)
    for index in index_names(list(sample), [name for name in told.values() if name is not None]):
        del sample[index]
    for name in told.values():
        if name is not None and name not in (*sample, "none"):
            raise DataError(f"{file} has no column {name!r}; {suggest(name, sample)}")
    found = _transactions(sample, told, file)
    if found is not None:
        return _described(*found)
    if not any(told.values()) and _all_numbers(sample):
        return Guess("matrix", "every column holds numbers")
    raise DataError(
        f"{file}: which columns are basket and item? Name them with basket= and item= "
        f"(--basket and --item); there are {', '.join(sample)}"
    )


def _described(basket: str, item: str, count: str | None) -> Guess:
    why = f"baskets in {basket!r}, items in {item!r}, "
    why += "each line counts 1" if count is None else f"counts in {count!r}"
    return Guess("baskets", why, basket, item, count)


def guess_family(data: Dataset) -> tuple[str, str]:
    """Name of the family that suits the numbers, and why."""
    values = np.asarray(data.values.data if data.is_sparse else data.values)
    seen = values[np.isfinite(values)]
    if seen.size == 0 or (seen < 0).any() or (seen != np.round(seen)).any():
        return "gaussian", "not every number is a count"
    if seen.max(initial=0) <= 1:
        return "bernoulli", "every number is 0 or 1"
    return "poisson", "every number is a count"


def _suffix(path: Path) -> str:
    endings = [suffix.lower() for suffix in path.suffixes]
    while endings and endings[-1] in PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def _sample(path: Path, encoding: str) -> dict[str, list[Any]]:
    """The first lines of a table, column by column."""
    if _suffix(path) in {".parquet", ".pq"}:
        from efemb.data.readers.parquet import ParquetSource, require_pyarrow

        header = ParquetSource(path).header  # a damaged file is told there
        parquet = require_pyarrow(f"reading {path}").parquet.ParquetFile(path)
        batch = next(parquet.iter_batches(batch_size=SAMPLE), None)
        return {name: [] for name in header} if batch is None else dict(batch.to_pydict())
    plain = CsvSource(path, None, encoding)
    return {
        name: plain.change([place])([row[place] for row in plain.sample])
        for place, name in enumerate(plain.header)
    }


def _transactions(
    sample: Sample, told: Mapping[str, str | None], file: Path
) -> tuple[str, str, str | None] | None:
    """Columns of baskets, items and counts; None where there are none for baskets and items.

    A table of numbers may be a matrix: there only names that leave no doubt are a question.
    """
    basket, item, count = (told[role] for role in ("basket", "item", "count"))
    in_doubt = any(told.values()) or not _all_numbers(sample)
    baskets = _choices(sample, BASKET, basket, (item, count), in_doubt)
    items = _choices(sample, ITEM, item, (basket, count, *baskets[:1]), in_doubt)
    if not baskets and items:
        baskets = _choices(sample, USER, None, (item, count, *items[:1]), in_doubt)
    if not baskets or not items:
        return None
    if len(baskets) > 1 or len(items) > 1:
        raise _unclear(file, sample, {"basket": baskets, "item": items})
    if count is None:
        counts = _choices(sample, COUNT, None, (*baskets, *items), in_doubt)
        if len(counts) > 1:
            raise _unclear(file, sample, {"count": counts})
        return baskets[0], items[0], counts[0] if counts else None
    return baskets[0], items[0], None if count == "none" else count


def _choices(
    sample: Sample, role: Role, told: str | None, but: Sequence[str | None], in_doubt: bool
) -> list[str]:
    """The column for a role; several, or one twice, where it takes a person to choose."""
    if told is not None:
        return [told]
    found = candidates(sample, role, but)
    if found["sure"]:
        return [found["sure"][0], *rivals(found["sure"], sample, role)]
    return found["perhaps"] * 2 if in_doubt else []


def _unclear(file: Path, sample: Sample, roles: Mapping[str, Sequence[str]]) -> DataError:
    asked = {role: list(dict.fromkeys(names)) for role, names in roles.items() if len(names) > 1}
    told = [f"is {' or '.join(map(repr, names))} the {role}?" for role, names in asked.items()]
    options = " and ".join(f"{role}= (--{role})" for role in asked)
    none = '; "none" counts each line as 1' if "count" in asked else ""
    return DataError(
        f"{file}: {' '.join(told)} Name it with {options}{none}; there are {', '.join(sample)}"
    )


def _all_numbers(sample: Sample) -> bool:
    filled = [values for values in sample.values() if known(values)]
    return bool(filled) and all(is_number(values) for values in filled)
