"""The index of a pandas table that was written as a column: labels of rows, not an entity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# What pandas calls an index without a name: in CSV, read again from CSV, in Parquet.
_WRITTEN = re.compile(r"|Unnamed: 0(\.\d+)?|__index_level_\d+__")
COUNTERS = (["index"], ["level_0"])


def index_names(header: Sequence[Any], aside: Sequence[str]) -> list[str]:
    """Columns that by their names are an index; an empty name only in the first place."""
    found = [
        name
        for place, name in enumerate(header)
        if isinstance(name, str) and _WRITTEN.fullmatch(name) and (name or place == 0)
    ]
    # A table of nothing else is no table with an index.
    return [name for name in dict.fromkeys(found) if name not in aside and len(header) > len(found)]


def noted_index(source: Any, header: Sequence[Any], aside: Sequence[str]) -> list[str]:
    """Columns of a pyarrow table that pandas, which wrote it, noted as the index."""
    notes = getattr(getattr(source, "schema", None), "pandas_metadata", None)
    names = notes.get("index_columns", ()) if isinstance(notes, dict) else ()
    known = [name for name in names if isinstance(name, str) and name in header]
    return [name for name in known if name not in (*aside, *index_names(header, aside))]
