"""The protocol of a source of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from efemb._progress import Advance
from efemb.data.readers.accumulators import Column
from efemb.data.readers.badlines import BadLines
from efemb.errors import DataError, InputTypeError, suggest


class NeedsTextReaderError(Exception):
    """The fast reader met something that only the plain one can explain; never leaves here."""


@dataclass(frozen=True)
class Batch:
    """Some lines of the wanted columns, and where they stand."""

    columns: list[Column]
    places: NDArray[np.int64]


class Source(Protocol):
    """Something that gives the wanted columns batch by batch."""

    name: str
    unit: str  # "line" or "row"
    knows_places: bool  # False: `places` are not to be shown
    size: int  # bytes or rows, for the progress bar

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield batches; lines that cannot be read are left out and noted in `bad`."""
        ...


def column_places(wanted: Sequence[str], header: Sequence[str], source: str) -> list[int]:
    """Place of each wanted column in the header; a missing or double name is an error."""
    for name in wanted:
        if not isinstance(name, str):
            raise InputTypeError(f"a column is chosen by its name (text), not {name!r}")
        if name not in header:
            raise DataError(f"{source} has no column {name!r}; {suggest(name, header)}")
        if header.count(name) > 1:
            raise DataError(f"{source} has {header.count(name)} columns named {name!r}; rename one")
    return [header.index(name) for name in wanted]
