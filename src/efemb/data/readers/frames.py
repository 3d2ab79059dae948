"""pandas, polars and other data frames through narwhals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from efemb._terminal import Advance
from efemb.data.containers import refuse_remote
from efemb.data.readers.accumulators import Coded, Column
from efemb.data.readers.arrow import ArrowTableSource
from efemb.data.readers.badlines import BadLines
from efemb.data.readers.source import Batch, Source, column_places
from efemb.errors import DataError, InputTypeError

_ROWS = 1 << 17


def eager_frame(source: Any) -> Any:
    """`source` as a narwhals DataFrame."""
    import narwhals as nw

    refuse_remote(source)
    try:
        frame = nw.from_native(source)
    except TypeError as error:
        hint = "; for a list of records pass pandas.DataFrame(records)"
        raise InputTypeError(
            "expected the path of a CSV, TSV or Parquet file or a pandas, polars or pyarrow table, "
            f"not {type(source).__name__}{hint if isinstance(source, dict) else ''}"
        ) from error
    except Exception as error:
        # For instance, duplicate column names.
        raise DataError(f"the table cannot be used: {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise InputTypeError("the table is lazy; call .collect() first")
    return frame


def frame_source(source: Any) -> Source:
    """The source for a table in memory."""
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "num_rows"):
        import pyarrow as pa

        is_table = hasattr(source, "to_batches")
        return ArrowTableSource(source if is_table else pa.Table.from_batches([source]))
    return FrameSource(eager_frame(source))


class FrameSource:
    """Rows of a data frame."""

    name = "the table"
    unit = "row"
    knows_places = True

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.size = len(frame)
        self.header = list(frame.columns)

    def batches(
        self, wanted: Sequence[str], numeric: Sequence[bool], bad: BadLines, advance: Advance
    ) -> Iterator[Batch]:
        """Yield the wanted columns."""
        self._check_index(wanted)
        column_places(wanted, self.header, self.name)
        for start in range(0, self.size, _ROWS):
            stop = min(start + _ROWS, self.size)
            columns = [
                _column(self._frame[name][start:stop], is_count)
                for name, is_count in zip(wanted, numeric, strict=True)
            ]
            yield Batch(columns, np.arange(start, stop, dtype=np.int64))
            advance(stop - start)

    def _check_index(self, wanted: Sequence[str]) -> None:
        """Reject columns that groupby or set_index moved into pandas' index."""
        names = list(getattr(getattr(self._frame.to_native(), "index", None), "names", ()))
        hidden = [name for name in wanted if name in names and name not in self.header]
        if hidden:
            raise DataError(
                f"{self.name} has {hidden[0]!r} in its index, not as a column: pass "
                "table.reset_index()"
            )


def _column(series: Any, is_count: bool) -> Column:
    dtype = series.dtype
    if is_count and (dtype.is_integer() or dtype.is_float()):
        return number_column(series)
    if dtype.is_integer() and series.null_count() == 0:
        cells, indices = np.unique(series.to_numpy(), return_inverse=True)
        return Coded(cells.tolist(), indices)
    cells_list: list[Any] = series.to_list()
    return cells_list


def number_column(series: Any) -> NDArray[np.float64]:
    """A numeric series as float64, NaN where it is null."""
    import narwhals as nw

    return np.asarray(series.cast(nw.Float64()).to_numpy(), dtype=np.float64)
