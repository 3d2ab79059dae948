"""Problems of lines, collected over the whole source and reported in a single error."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from efemb.errors import DataError

_SHOWN = 5


@dataclass
class _Problem:
    total: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)  # places, and the files they are in
    example: str = ""


class BadLines:
    """Positions of unusable lines, grouped by problem.

    Parameters
    ----------
    source : str
        Name of the source, for messages.
    unit : {"line", "row"}
        Lines of a file count from 1 (the header is line 1), rows of a table from 0.
    """

    def __init__(self, source: str, unit: str) -> None:
        self._source = source
        self._unit = unit
        self._problems: dict[str, _Problem] = {}
        self.left_out = 0
        self.file = ""  # that contains the following lines, if there are several files

    def add(self, problem: str, places: NDArray[np.int64] | list[int], example: str = "") -> None:
        """Record `problem` at `places`; its first `example` is reported."""
        if len(places):
            noted = self._problems.setdefault(problem, _Problem(example=example))
            noted.total += len(places)
            shown = places[: _SHOWN - len(noted.first)]
            noted.first += [(int(place), self.file) for place in shown]

    def leave_out(self, problem: str, place: int) -> None:
        """Record a line that could not be split into cells."""
        self.left_out += 1
        self.add(problem, [place])

    def __bool__(self) -> bool:
        return bool(self._problems)

    @property
    def totals(self) -> dict[str, int]:
        """Number of lines with each problem."""
        # Sorted: the order must not depend on how the source is split into batches.
        return {problem: noted.total for problem, noted in sorted(self._problems.items())}

    def error(self, way_out: str) -> DataError:
        """The error that lists all problems and the way out."""
        problems = [self._describe(*problem) for problem in sorted(self._problems.items())]
        return DataError(f"{self._source}: {'; '.join(problems)}. {way_out}")

    def _describe(self, problem: str, noted: _Problem) -> str:
        parts = []
        for file, group in groupby(noted.first, key=itemgetter(1)):
            numbers = ", ".join(str(place) for place, _ in group)
            parts.append(f"{numbers} of {file}" if file else numbers)
        places = ", ".join(parts)
        example = f": {noted.example}" if noted.example else ""
        if noted.total == 1:
            return f"{problem} in {self._unit} {places}{example}"
        dots = ", ..." if noted.total > len(noted.first) else ""
        return f"{problem} in {noted.total:,} {self._unit}s ({places}{dots}){example}"
