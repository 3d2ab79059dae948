"""Guesses: what a file holds, which columns are which, what kind of numbers they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import efemb
from efemb.data.readers.guess import guess_contents, guess_family
from efemb.errors import DataError


def table(folder: Path, header: str, *lines: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", "utf-8")
    return path


RETAIL = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"


@pytest.mark.parametrize(
    ("header", "line", "found"),
    [
        (RETAIL, "1,85A,LANTERN,6,2010,2.5,17.0,UK", ("InvoiceNo", "Description", "Quantity")),
        ("user,movie,rating,time", "1,7,3,9", ("user", "movie", "rating")),
        ("order_id,product_id,reordered", "1,7,0", ("order_id", "product_id", None)),
        ("household_id,basket_id,product_id,quantity", "1,2,3,4", (1, 2, 3)),
        ("sku,basket,qty", "a,1,2", ("basket", "sku", "qty")),
        ("userId,movieTitle", "1,Heat", ("userId", "movieTitle", None)),
    ],
)
def test_columns(tmp_path: Path, header: str, line: str, found: tuple) -> None:
    guess = guess_contents(table(tmp_path, header, line))
    names = header.split(",")
    expected = tuple(names[one] if isinstance(one, int) else one for one in found)
    assert guess.kind == "baskets"
    assert (guess.basket, guess.item, guess.count) == expected
    assert all(f"'{name}'" in guess.why for name in expected if name is not None)


def test_a_column_of_one_value_is_no_basket_if_there_is_another(tmp_path: Path) -> None:
    path = table(tmp_path, "trip_type,basket_no,item", "home,1,a", "home,2,b")
    assert guess_contents(path).basket == "basket_no"
    path = table(tmp_path, "order,item", "1,a", "1,b")
    assert guess_contents(path).basket == "order"


def test_dirt_in_the_counts(tmp_path: Path) -> None:
    lines = [f"{i},a,{i}" for i in range(30)]
    assert guess_contents(table(tmp_path, "trip,item,n_units", *lines, "31,a,?")).count == "n_units"
    words = [f"{i},a,few" for i in range(30)]
    assert guess_contents(table(tmp_path, "trip,item,units", *words)).count is None


def test_told_columns(tmp_path: Path) -> None:
    path = table(tmp_path, "trip,item,a,b,units", "1,x,p,2,3", "2,y,q,3,4")
    guess = guess_contents(path, item="a", count="b")
    assert (guess.basket, guess.item, guess.count) == ("trip", "a", "b")
    assert guess_contents(path, count="none").count is None
    with pytest.raises(DataError, match="did you mean 'trip'"):
        guess_contents(path, basket="trips")


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
def test_tables_of_numbers_are_matrices(tmp_path: Path, name: str) -> None:
    import gzip

    text = "a,b\n1,2.5\n3,\n".replace(",", "\t" if "tsv" in name else ",").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert guess_contents(tmp_path / name).kind == "matrix"


def test_other_tables_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"which columns .* there are colour, size"):
        guess_contents(table(tmp_path, "colour,size", "red,large"))


def test_arrays_and_text(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(2))
    assert guess_contents(tmp_path / "x.npy").kind == "matrix"
    assert guess_contents(table(tmp_path, "once upon a time", name="x.txt")).kind == "text"
    assert guess_contents(table(tmp_path, "once upon a time", name="corpus")).kind == "text"
    with pytest.raises(DataError, match="no file"):
        guess_contents(tmp_path / "y.csv")


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"basket_id": [1, 1, 2], "product_id": [7, 8, 7], "quantity": [1, 2, 1]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    guess = guess_contents(tmp_path / "x.parquet")
    assert (guess.basket, guess.item, guess.count) == ("basket_id", "product_id", "quantity")
    (tmp_path / "y.parquet").write_text("not Parquet")
    with pytest.raises(DataError, match="Parquet"):
        guess_contents(tmp_path / "y.parquet")


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], "bernoulli"),
        ([[0.0, 3.0], [1.0, 0.0]], "poisson"),
        ([[0.5, 3.0], [1.0, 0.0]], "gaussian"),
        ([[-1.0, 3.0], [1.0, 0.0]], "gaussian"),
        ([[np.nan, 3.0], [1.0, 0.0]], "poisson"),
    ],
)
def test_families(values: list[list[float]], family: str) -> None:
    assert guess_family(efemb.Dataset(np.array(values)))[0] == family
    if not np.isnan(values).any():
        assert guess_family(efemb.Dataset(csr_array(values)))[0] == family
