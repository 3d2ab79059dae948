"""Table: the result of a query, as named columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from importlib import import_module
from typing import Any, overload
from unicodedata import combining, east_asian_width

import numpy as np

from efemb._deprecated import warn_renamed
from efemb._terminal import one_line
from efemb._typing import Floats
from efemb.errors import DataError, InputTypeError, MissingExtraError, check_integer, suggest

_SHOWN = 40
# Column names of version 0.2, and the names that replaced them in the various tables.
_RENAMED = {"neighbour": ("neighbor",), "product": ("score", "weight")}
_WIDEST = 60


class Table:
    """Immutable columns of equal length; prints aligned and iterates over rows as dicts.

    Parameters
    ----------
    columns : mapping of str to sequence
        At least one column; all of the same length.
    note : str, optional
        One line below the printed table that says what it holds.

    Examples
    --------
    >>> answers = Table({"label": ["milk", "bread"], "similarity": [0.91234, 0.5]})
    >>> answers
    label  similarity
    milk       0.9123
    bread      0.5000
    >>> answers["label"][0], len(answers), answers[1]
    ('milk', 2, {'label': 'bread', 'similarity': 0.5})
    """

    __slots__ = ("_columns", "note")
    # Equal tables would need equal hashes, but arrays are not hashable.
    __hash__ = None  # type: ignore[assignment]

    _columns: dict[str, Any]
    note: str

    def __init__(self, columns: Mapping[str, Any], note: str = "") -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise InputTypeError("a Table needs a mapping of names to at least one column")
        arrays = {_name(name): _column(name, values) for name, values in columns.items()}
        lengths = {name: len(values) for name, values in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns must have the same length, not {lengths}")
        object.__setattr__(self, "_columns", arrays)
        object.__setattr__(self, "note", str(note))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Table is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self._columns, self.note)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = zip(*(values.tolist() for values in self._columns.values()), strict=True)
        return (dict(zip(self._columns, row, strict=True)) for row in rows)

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: str | int | slice) -> Any:
        """A column by name, a row (dict) by index, or rows (Table) by a slice."""
        if isinstance(key, slice):
            return self._take(key)
        if isinstance(key, int | np.integer):
            return {name: _plain(values[key]) for name, values in self._columns.items()}
        current = [name for name in _RENAMED.get(key, ()) if name in self._columns]
        if key not in self._columns and current:
            warn_renamed(f"column {key!r}", repr(current[0]))
            key = current[0]
        if key not in self._columns:
            raise DataError(f"there is no column {key!r}; {suggest(key, self._columns)}")
        return self._columns[key]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        if self.columns != other.columns or len(self) != len(other):
            return False
        return all(_same(self[name], other[name]) for name in self._columns)

    def _take(self, rows: Any) -> Table:
        return Table({name: values[rows] for name, values in self._columns.items()}, self.note)

    def head(self, n: int = 5) -> Table:
        """The first rows.

        Parameters
        ----------
        n : int, default=5
            Number of rows; all of them if there are fewer.

        Returns
        -------
        Table
        """
        return self[: check_integer("n", n, 0)]

    def sort_by(self, column: str, *, descending: bool = False) -> Table:
        """Sort the rows by a column; equal values keep their order.

        Parameters
        ----------
        column : str
            Name of the column.
        descending : bool, default=False
            Begin with the largest value. Unknown values (NaN) come last in both cases.

        Returns
        -------
        Table

        Examples
        --------
        >>> Table({"label": ["tea", "milk"], "n": [2, 7]}).sort_by("n", descending=True)["label"][0]
        'milk'
        """
        values = self[column]
        if values.dtype.kind == "O":
            values = np.array([str(value) for value in values.tolist()])
        _, rank = np.unique(values, return_inverse=True)
        unknown = values != values
        order = np.lexsort((-rank if descending else rank, unknown))
        return self._take(order)

    def to_csv(self, path: Any, *, formulas: str = "quote") -> None:
        """Write the table as CSV in UTF-8, completely or not at all.

        Parameters
        ----------
        path : str or path
            The file; one that exists is replaced. Endings .gz, .bz2 and .xz compress it, .tsv
            separates by tabs. Unknown numbers (NaN) are empty cells.
        formulas : {"quote", "keep", "error"}, default="quote"
            How to handle text that a spreadsheet would interpret as a formula, as in
            `efemb.export.write_vectors`; numbers are written as they are.
        """
        from efemb._files import as_cells, complete_or_absent, file_target, table_writer

        target = file_target(path)
        separator = "\t" if ".tsv" in target.suffixes else ","
        columns = [as_cells(values.tolist(), formulas) for values in self._columns.values()]
        with complete_or_absent(target) as stream, table_writer(stream, separator) as writer:
            writer.writerow(as_cells(self.columns, formulas))
            for row in zip(*columns, strict=True):
                writer.writerow(["" if value != value else value for value in row])

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        pandas = import_package("pandas")
        return pandas.DataFrame({name: values.copy() for name, values in self._columns.items()})

    def to_polars(self) -> Any:
        """The table as a polars DataFrame; a column of mixed types becomes text."""
        polars = import_package("polars")
        return polars.DataFrame({name: _one_type(values) for name, values in self._columns.items()})

    def plot(self, n: int = 20, **options: Any) -> Any:
        """Draw the first rows as bars; see `efemb.plots.answer`.

        Parameters
        ----------
        n : int, default=20
            Number of bars.
        **options
            ``value`` (the column of the numbers), ``palette``, ``backend`` ("matplotlib" or
            "plotly") and ``ax``.

        Returns
        -------
        Axes, or plotly Figure

        Examples
        --------
        >>> answer = Table({"label": ["milk", "bread"], "similarity": [0.9, 0.5]})
        >>> answer.plot().get_xlabel()
        'similarity'
        """
        return import_module("efemb.plots").answer(self, n, **options)

    def to_text(self, rows: int | None = None, *, note: bool = True) -> str:
        """The table as aligned lines.

        Parameters
        ----------
        rows : int, optional
            Show this many rows and the number of the others; by default all.
        note : bool, default=True
            Print the note below the table.

        Examples
        --------
        >>> print(Table({"n": [1, 2, 3]}).to_text(1))
        n
        1
        ... 2 more rows
        """
        shown = len(self) if rows is None else min(rows, len(self))
        padded = []
        for cells, values in zip(self._cells(shown), self._columns.values(), strict=True):
            sizes = [_columns_of(cell) for cell in cells]
            gaps = [" " * (max(sizes) - size) for size in sizes]
            right = values.dtype.kind in "iuf"
            pairs = zip(cells, gaps, strict=True)
            padded.append([gap + cell if right else cell + gap for cell, gap in pairs])
        lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
        below = [text for text in (self._rest(shown), one_line(self.note) if note else "") if text]
        return "\n".join([*lines, *below])

    def __repr__(self) -> str:
        return self.to_text(_SHOWN)

    def _cells(self, shown: int) -> list[list[str]]:
        """Text of every shown cell, column by column, the name first."""
        return [[one_line(name), *_texts(values[:shown])] for name, values in self._columns.items()]

    def _rest(self, shown: int) -> str:
        if len(self) == 0:
            return "(no rows)"
        return f"... {len(self) - shown:,} more rows" if len(self) > shown else ""

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, rows: int = _SHOWN) -> str:
        """The first rows as an HTML table.

        Parameters
        ----------
        rows : int, default=40
            Show this many rows and the number of the others.
        """
        head, *lines = zip(*self._cells(rows), strict=True)
        html = [
            "<table>",
            _html_row(head, "th"),
            *(_html_row(line, "td") for line in lines),
        ]
        rest = self._rest(rows)
        if rest:
            html.append(f'<tr><td colspan="{len(head)}">{escape(rest)}</td></tr>')
        if self.note:
            html.insert(1, f'<caption style="caption-side:bottom">{escape(self.note)}</caption>')
        return "\n".join([*html, "</table>"])


def whole_numbers(values: Any) -> Any:
    """Counts as integers; unchanged if any of them is a fraction."""
    counts = np.asarray(values)
    return counts.astype(np.int64) if (counts == np.floor(counts)).all() else counts


def import_package(name: str) -> Any:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"to_{name} needs {name}: pip install {name}") from error


def _html_row(cells: tuple[str, ...], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InputTypeError(f"the name of a column is text, not {name!r}")
    return name


def _column(name: str, values: Any) -> Any:
    """`values` as a read-only array of numbers or booleans if all are, otherwise of objects."""
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise InputTypeError(f"column {name!r} must be a sequence, not {type(values).__name__}")
    array = values if isinstance(values, np.ndarray) else _array(list(values))
    if array.ndim != 1:
        raise DataError(f"column {name!r} must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind not in "biufO":
        array = array.astype(object)
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array


def _array(values: list[Any]) -> Any:
    # NumPy would turn [1, "a"] into text and [True, 2] into integers.
    kinds = {type(value) for value in values}
    if kinds and (kinds <= {int, float} or kinds == {bool}):
        array = np.array(values)
        if array.dtype.kind in "bif":
            return array
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _same(a: Any, b: Any) -> bool:
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(np.array_equal(a, b))


def _one_type(values: Any) -> Any:
    if values.dtype.kind != "O":
        return values.copy()
    cells = values.tolist()
    kinds = {type(cell) for cell in cells if cell is not None}
    return cells if len(kinds) <= 1 else [None if cell is None else str(cell) for cell in cells]


# -- formatting of cells ------------------------------------------------------------------------


def _texts(values: Any) -> list[str]:
    if values.dtype.kind == "f":
        return _float_texts(values.astype(np.float64))
    if values.dtype.kind in "iu":
        return [f"{value:,}" for value in values.tolist()]
    return [_cut(one_line(str(value))) for value in values.tolist()]


def _float_texts(values: Floats) -> list[str]:
    """Format numbers: four digits of the largest, whole numbers without decimals, or exponents.

    Unknown values (NaN) are blank.
    """
    form = _float_form(values)
    return ["" if value != value else format(value, form) for value in values.tolist()]


def _float_form(values: Floats) -> str:
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    largest, smallest = size.max(initial=0.0), size.min(initial=np.inf)
    if largest < 1e15 and (size == np.floor(size)).all():
        return ",.0f"
    if largest >= 1e6 or largest < 1e-3 or largest / smallest > 1e4:
        return ".4g"
    decimals = max(0, 3 - max(-1, int(np.floor(np.log10(largest)))))
    return f",.{decimals}f"


def _columns_of(text: str) -> int:
    """Width of a text in a terminal: two columns for a wide character, none for an accent."""
    if text.isascii():
        return len(text)
    wide = sum(east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(bool(combining(sign)) for sign in text)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
