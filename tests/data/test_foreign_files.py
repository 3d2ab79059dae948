"""Files of other programs are recognized, and the error says how to convert them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from efemb.data import read_baskets, read_matrix, read_traces
from efemb.data.readers.guess import guess_contents
from efemb.errors import DataError

NAMES = {
    "trips.xlsx": "spreadsheet: save the sheet as CSV",
    "trips.XLS": "spreadsheet",
    "trips.json": r"pandas\.read_json",
    "trips.jsonl.gz": r"pandas\.read_json",
    "trips.feather": "Parquet or CSV",
    "trips.pkl": "pickle",
    "session.mat": r"numpy\.save",
    "session.nwb": r"numpy\.save",
    "trips.7z": "extract it first",
}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"order": 1, "item": "milk"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=NAMES[name]):
        guess_contents(path)
    with pytest.raises(DataError, match=NAMES[name]):
        read_baskets(path, basket="order", item="item")
    with pytest.raises(DataError, match=NAMES[name]):
        read_matrix(path)
    with pytest.raises(DataError, match=NAMES[name]):
        read_matrix(np.eye(3), positions=path)
    with pytest.raises(DataError, match=NAMES[name]):
        read_traces(path, np.eye(3))


def test_by_the_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/workbook.xml", "".join(f"<sheet n='{n * 7919}'/>" for n in range(200)))
    with pytest.raises(DataError, match=r"trips\.csv is not text: .* spreadsheet or a zip"):
        read_baskets(path, basket="order", item="item")
    with pytest.raises(DataError, match="spreadsheet or a zip"):
        guess_contents(path)
