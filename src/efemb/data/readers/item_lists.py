"""Baskets as lists of items: in memory, or one per line of a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from efemb._terminal import Advance
from efemb.data.readers.accumulators import Column
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.dialect import SEPARATORS, check_separator, huge_fields
from efemb.data.readers.input_file import (
    check_encoding,
    existing_file,
    explain_errors,
    is_compressed,
    open_bytes,
    refuse_foreign,
    text_lines,
)
from efemb.data.readers.several import find_files
from efemb.data.readers.source import Batch, Source
from efemb.errors import DataError, InputTypeError

_LINES = 1 << 15  # of a batch
_LOOKED_AT = 200

OpenLists = Callable[[Advance], Iterable[Any]]


class ItemLists:
    """A basket per list; places are the numbers of the lists."""

    knows_places = True

    def __init__(self, open_lists: OpenLists, name: str, unit: str, size: int) -> None:
        self._open_lists = open_lists
        self.name, self.unit, self.size = name, unit, size

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield pairs of the number of a basket and an item."""
        numbers: list[int] = []
        items: list[Any] = []
        first = int(self.unit == "line")  # lines count from 1, as everywhere
        for number, basket in enumerate(self._open_lists(advance), start=first):
            items += basket
            numbers += [number] * (len(items) - len(numbers))
            if len(items) >= _LINES:
                yield _pairs(numbers, items)
                numbers, items = [], []
        if items:
            yield _pairs(numbers, items)


def _pairs(numbers: list[int], items: list[Any]) -> Batch:
    columns: list[Column] = [list(numbers), items]
    return Batch(columns, np.array(numbers, np.int64))


def peek_lists(source: Any) -> tuple[Any, bool]:
    """The source, still complete, and whether it is an iterable of lists of items."""
    if not isinstance(source, Iterator | list | tuple) or hasattr(source, "__arrow_c_stream__"):
        return source, False
    start = list(islice(source, 1))
    if isinstance(source, Iterator):
        source = chain(start, source)
    if not start:
        raise DataError("the source is empty: there are no baskets")
    return source, _is_item_list(start[0])


def _is_item_list(basket: Any) -> bool:
    if isinstance(basket, list | tuple | Set):
        return True
    return isinstance(basket, np.ndarray) and basket.ndim == 1 and basket.dtype.names is None


def item_lists(source: Any, in_memory: bool, separator: str | None, encoding: str) -> list[Source]:
    """The source of lists in memory, or of the lines of files."""
    if in_memory:
        return [ItemLists(lambda advance: _checked(source, advance), "the list", "basket", 0)]
    several = find_files(source)
    if several is None and not isinstance(source, str | os.PathLike):
        kind = type(source[0] if isinstance(source, list | tuple) else source).__name__
        raise InputTypeError(f'layout="lines" reads a text file, or lists of items; not {kind}')
    names: Any = [source] if several is None else several
    paths = [existing_file(path) for path in names]
    for path in paths:
        refuse_foreign(path)
    codec = check_encoding(encoding)
    checked = None if separator is None else _check_separator(separator)

    def open_lists(advance: Advance) -> Iterator[list[str]]:
        for path in paths:
            yield from _lines(path, checked, codec, advance)

    size = 0 if any(map(is_compressed, paths)) else sum(path.stat().st_size for path in paths)
    return [ItemLists(open_lists, str(paths[0]), "line", size)]


def _check_separator(separator: str) -> str:
    return separator if separator == " " else check_separator(separator)


def _checked(baskets: Iterable[Any], advance: Advance) -> Iterator[list[Any]]:
    for number, basket in enumerate(baskets):
        if not _is_item_list(basket):
            hint = ": pass one list of items per basket"
            if isinstance(basket, Mapping):
                hint = ": repeat an item to count it, or pass a table with a column of counts"
            raise InputTypeError(f"basket {number} is {type(basket).__name__}, not a list{hint}")
        # A set has no order, and the labels decide the order of the items anyway.
        yield sorted(basket, key=str) if isinstance(basket, Set) else list(basket)
        advance(1)


def _lines(
    path: Path, separator: str | None, encoding: str, advance: Advance
) -> Iterator[list[str]]:
    """The items of each line; a blank line has none."""
    with explain_errors(path, encoding), open_bytes(path) as raw:
        lines = text_lines(raw, encoding, path)
        first = list(islice(lines, _LOOKED_AT))
        split = separator or line_separator(first)
        for line in chain(first, lines):
            yield split_line(line, split)
            advance(len(line))


def line_separator(lines: Sequence[str]) -> str:
    """The separator of the items of a line: the usual one of most lines, otherwise a space.

    >>> line_separator(["whole milk,rolls", "soda", "beer,chips"]), line_separator(["1 2", "3"])
    (',', ' ')
    """
    counts = {sign: sum(sign in line for line in lines) for sign in SEPARATORS}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else " "


def split_line(line: str, separator: str) -> list[str]:
    """The items of a line, without spaces around them.

    >>> split_line('milk, "rolls, sweet",', ","), split_line("1 22  3 ", " ")
    (['milk', 'rolls, sweet'], ['1', '22', '3'])
    """
    if separator == " ":
        return line.split()
    if '"' in line:
        with huge_fields():
            try:
                cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
            except csv.Error as error:
                raise DataError(
                    f"a line that begins with {line[:40]!r} cannot be split: {error}"
                ) from error
    else:
        cells = line.split(separator)
    return [cell for cell in map(str.strip, cells) if cell]
