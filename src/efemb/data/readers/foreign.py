"""Files that other programs read: what they are and the way from there to here."""

from __future__ import annotations

from pathlib import Path

from efemb.errors import DataError

_SHEET = "save the sheet as CSV, or pass what pandas.read_excel makes of it"
_JSON = "pass what pandas.read_json makes of it, or write it as CSV"
_FRAME = "pass the data frame itself, or write it as Parquet or CSV"
_ARRAY = "pass the array itself, or save it with numpy.save"
# By the ending of a name: what such a file is, and what to do.
_FOREIGN = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), ("a spreadsheet", _SHEET)),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), ("JSON", _JSON)),
    **dict.fromkeys((".feather", ".arrow", ".orc", ".dta", ".sav"), ("a table", _FRAME)),
    **dict.fromkeys((".pkl", ".pickle"), ("a pickle, which may run anything", _FRAME)),
    **dict.fromkeys((".mat", ".h5", ".hdf5", ".nwb", ".tif", ".tiff"), ("no plain array", _ARRAY)),
    **dict.fromkeys((".zip", ".tar", ".7z", ".rar"), ("an archive", "unpack it first")),
}
_PACKED = {".gz", ".bz2", ".xz"}
# By the first bytes, where the name says otherwise.
_BYTES = {
    b"PK\x03\x04": "a spreadsheet or a zip archive",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old Excel",
    b"PAR1": "a Parquet file, whose name must end in .parquet",
}


def inner_suffix(path: Path) -> str:
    """The ending in lower case, without that of packing.

    >>> inner_suffix(Path("Trips.CSV.gz"))
    '.csv'
    """
    endings = [suffix.lower() for suffix in path.suffixes]
    while endings and endings[-1] in _PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def refuse_foreign(path: Path) -> None:
    """Say what to do with a file that only other programs can read."""
    found = _FOREIGN.get(inner_suffix(path))
    if found is not None:
        raise DataError(f"{path} is {found[0]}: {found[1]}")


def known_by_bytes(start: bytes) -> str | None:
    """What a file is that begins so, if it is no text."""
    return next((what for magic, what in _BYTES.items() if start.startswith(magic)), None)
