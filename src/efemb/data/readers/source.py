"""The protocol of a source of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from efemb._terminal import Advance
from efemb.data.readers.accumulators import Column
from efemb.data.readers.badlines import BadLines
from efemb.errors import DataError, InputTypeError, suggest


class NeedsTextReaderError(Exception):
    """The fast reader needs the plain one to explain an error; never reaches the caller."""


@dataclass(frozen=True)
class Batch:
    """A batch of lines of the wanted columns, and their line numbers."""

    columns: list[Column]
    places: NDArray[np.int64]


class Source(Protocol):
    """A source of the wanted columns in batches."""

    name: str
    unit: str  # "line" or "row"
    knows_places: bool  # if False, `places` are meaningless
    size: int  # bytes or rows, for the progress bar

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield batches; lines that cannot be read are skipped and recorded in `bad`."""
        ...


def column_places(wanted: Sequence[str], header: Sequence[str], source: str) -> list[int]:
    """Index of each wanted column in the header; a missing or duplicate name is an error."""
    for name in wanted:
        if not isinstance(name, str):
            raise InputTypeError(f"a column is selected by its name (text), not {name!r}")
        if name not in header:
            raise DataError(f"{source} has no column {name!r}; {suggest(name, header)}")
        if header.count(name) > 1:
            raise DataError(f"{source} has {header.count(name)} columns named {name!r}; rename one")
    return [header.index(name) for name in wanted]
