"""Guesses: what a file holds, which columns are which, what kind of numbers they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import efemb
from efemb.data.readers.guess import guess_contents
from efemb.errors import DataError
from efemb.estimators.names import guess_family


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
        ("order_date,order_id,item", "2020,1,a", ("order_id", "item", None)),
        ("orderdate,orderid,productid", "2020,1,7", ("orderid", "productid", None)),
        ("basket,item,country_code", "1,a,44", ("basket", "item", None)),
        ("order_id,product_id,add_to_cart_order", "1,7,3", ("order_id", "product_id", None)),
        ("order_id,order_dow,order_number,sku", "1,2,1,x", ("order_id", "sku", None)),
        ("transaction_date,customer,item", "2020,c,x", ("customer", "item", None)),
        ("ticket_price,receipt,customer_name,article", "2,1,Bo,x", ("receipt", "article", None)),
        ("trip,item_price,item_category,product_id", "1,2,x,7", ("trip", "product_id", None)),
        ("trip,name,product_id", "1,Bo,7", ("trip", "name", None)),
        ("trip,item,amount", "1,a,2", ("trip", "item", "amount")),
        ("trip,item,amount", "1,a,2.5", ("trip", "item", None)),
        ("trip,item,amount,quantity", "1,a,2,3", ("trip", "item", "quantity")),
        ("number_of_items,trip,item", "2,1,a", ("trip", "item", "number_of_items")),
        ("trip,item,account,units_sold,number_of_orders", "1,a,2,3,4", ("trip", "item", 3)),
        ("Member_number,Date,itemDescription", "1,2,a", ("Member_number", "itemDescription", None)),
        ("BillNo,Itemname,CustomerID,Price", "1,a,7,2", ("BillNo", "Itemname", None)),
        ("cart_id,sku,price", "1,x,2", ("cart_id", "sku", None)),
        ("BASKET_ID,DAY,PRODUCT_ID,QUANTITY", "1,2,3,4", ("BASKET_ID", "PRODUCT_ID", "QUANTITY")),
        ("Facture,Produit,Quantité", "1,thé,2", ("Facture", "Produit", "Quantité")),
        ("Bestellnummer,Artikel,Menge", "1,Tee,2", ("Bestellnummer", "Artikel", "Menge")),
        ("Bon-Nr,Artikelbezeichnung,Anzahl", "1,Tee,2", (0, 1, 2)),
        ("Kundennummer,Produkt,Stückzahl", "1,Tee,2", ("Kundennummer", "Produkt", "Stückzahl")),
        ("pedido,producto,cantidad", "1,café,2", ("pedido", "producto", "cantidad")),
        ("order,item,Pcs", "1,tea,2", ("order", "item", "Pcs")),
    ],
)
def test_columns(tmp_path: Path, header: str, line: str, found: tuple) -> None:
    guess = guess_contents(table(tmp_path, header, line))
    names = header.split(",")
    expected = tuple(names[one] if isinstance(one, int) else one for one in found)
    assert guess.kind == "baskets"
    assert (guess.basket, guess.item, guess.count) == expected
    assert all(f"'{name}'" in guess.why for name in expected if name is not None)


@pytest.mark.parametrize(
    ("header", "lines", "asked"),
    [
        ("order,session,item", ["1,1,a", "2,1,b", "3,2,a"], "is 'order' or 'session' the basket"),
        ("item1,item2,trip", ["a,b,1", "b,a,2", "b,c,1"], "is 'item1' or 'item2' the item"),
        ("trip,item,units,qty", ["1,a,1,2", "2,b,2,3"], "is 'qty' or 'units' the count"),
        ("user,product,days_since_order", ["1,a,3"], "is 'days_since_order' the basket"),
    ],
)
def test_what_is_not_clear_is_asked(
    tmp_path: Path, header: str, lines: list[str], asked: str
) -> None:
    path = table(tmp_path, header, *lines)
    with pytest.raises(DataError, match=rf"{asked}\? .* there are {header.replace(',', ', ')}"):
        guess_contents(path)
    role, name = asked.rsplit(maxsplit=1)[-1], asked.split("'")[1]
    assert getattr(guess_contents(path, **{role: name}), role) == name


def test_two_columns_that_sort_the_lines_alike_are_no_question(tmp_path: Path) -> None:
    path = table(tmp_path, "session,order,item", "x,1,a", "x,1,b", "y,2,a")
    assert guess_contents(path).basket == "order"


def test_a_matrix_whose_entities_sound_like_roles(tmp_path: Path) -> None:
    path = table(tmp_path, "mint trip,gift item,loaf", "0,1,2", "1,0,2")
    assert guess_contents(path).kind == "matrix"


def test_a_column_of_one_value_is_no_basket_if_there_is_another(tmp_path: Path) -> None:
    path = table(tmp_path, "trip_type,basket_no,item", "home,1,a", "home,2,b")
    assert guess_contents(path).basket == "basket_no"
    path = table(tmp_path, "order,item", "1,a", "1,b")
    assert guess_contents(path).basket == "order"


def test_dirt_in_the_counts(tmp_path: Path) -> None:
    lines = [f"{i},a,{i}" for i in range(30)]
    assert guess_contents(table(tmp_path, "trip,item,n_units", *lines, "31,a,?")).count == "n_units"
    words = [f"{i},a,few" for i in range(30)]
    with pytest.raises(DataError, match=r"'units' is named like counts but holds 'few'.*none"):
        guess_contents(table(tmp_path, "trip,item,units", *words))
    thousands = [f'{i},a,"1,00{i % 10}"' for i in range(30)]
    guess = guess_contents(table(tmp_path, "trip,item,units", *thousands))
    assert guess.why.endswith("counts in 'units'")
    told = guess_contents(table(tmp_path, "trip,item,units", *words), count="none")
    assert told.why.endswith("each line counts 1")


SALES = [  # basket, item, how many, week, department, line of the basket, price
    *("1,tea,1,40,7,1,3", "1,jam,2,40,8,2,4", "1,ham,1,40,9,3,9", "2,tea,3,41,7,1,3"),
    *("2,jam,1,41,8,2,4", "3,tea,1,41,7,1,3", "3,ham,1,41,9,2,9", "4,tea,2,41,7,1,3"),
]


def test_a_column_that_looks_like_counts_is_asked_about_whatever_its_name(tmp_path: Path) -> None:
    """Weeks belong to baskets, departments and prices to items; lines of a basket run."""
    path = table(tmp_path, "trip,item,zahl,week,dept,line,price", *SALES)
    with pytest.raises(DataError, match=r"is 'zahl' the count\? .*--count.*none"):
        guess_contents(path)
    assert guess_contents(path, count="zahl").count == "zahl"
    assert guess_contents(path, count="none").count is None
    cells = [line.split(",") for line in SALES]
    singles = [",".join([*row[:2], "1", *row[3:]]) for row in cells]
    path = table(tmp_path, "trip,item,zahl,week,dept,line,price", *singles)
    assert guess_contents(path).count is None  # every line is 1, as it is without the column


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


def test_a_matrix_with_gaps(tmp_path: Path) -> None:
    assert guess_contents(table(tmp_path, "a,b,c", "1,NA,", "n/a,2,", "nan,1.5,")).kind == "matrix"
    with pytest.raises(DataError, match="which columns"):
        guess_contents(table(tmp_path, "a,b", "NA,", ","))


def test_tables_among_texts(tmp_path: Path) -> None:
    lines = ["order no\titem\tqty", "1\twhole milk\t2", "1\ttea\t3"]
    for encoding in ("utf-8", "utf-16"):
        path = tmp_path / "excel.txt"
        path.write_text("\n".join(lines), encoding)
        guess = guess_contents(path, encoding=encoding)
        assert (guess.basket, guess.item, guess.count) == ("order no", "item", "qty")
    words = {"tabs.txt": "a b\tc d\nb c\ta\n", "counts.dat": "3 14 15\n9 2 6\n", "empty.gz": "x"}
    for name, text in words.items():
        (tmp_path / name).write_text(text, "utf-8")
        assert guess_contents(tmp_path / name).kind == "text"
    np.savetxt(tmp_path / "activity.txt", np.random.default_rng(0).normal(size=(4, 3)))
    with pytest.raises(DataError, match=r"numbers, not words: save them with numpy\.save"):
        guess_contents(tmp_path / "activity.txt")


@pytest.mark.parametrize("lines", [("7,tea,4", "8,milk,1"), ("tea,milk", "milk,jam", "tea,ham")])
def test_a_table_without_header(tmp_path: Path, lines: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="The first line must name the columns"):
        guess_contents(table(tmp_path, *lines))


def test_sentences_in_a_table_with_one_column(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"single column: .*--layout text.*--layout lines"):
        guess_contents(table(tmp_path, "the cat sat on the mat", "the dog sat on a log"))


def test_a_pivot_table(tmp_path: Path) -> None:
    guess = guess_contents(table(tmp_path, "trip,milk,tea", "t1,1,0", "t2,0,2.5"))
    assert (guess.kind, guess.row_labels) == ("matrix", "trip")
    for lines in (["t1,1,0", "t1,0,2"], ["t1,1,x", "t2,0,2"], ["t1,1,0", ",0,2"]):
        with pytest.raises(DataError, match="which columns"):
            guess_contents(table(tmp_path, "trip,milk,tea", *lines))


@pytest.mark.parametrize("first", ["order_id", "user", "cell id", "time", "frame"])
def test_numbers_that_only_say_which_row_it_is(first: str, tmp_path: Path) -> None:
    """10,001 is not a count of orders."""
    path = table(tmp_path, f"{first},milk,tea", "10001,1,0", "10002,0,2", "10004,3,1")
    assert guess_contents(path).row_labels == first
    twice = table(tmp_path, f"{first},milk,tea", "1,1,0", "1,0,2")
    assert guess_contents(twice).row_labels is None
    entity = table(tmp_path, "milk,time,tea", "1,5,0", "2,6,2")
    assert guess_contents(entity).row_labels is None


def test_other_tables_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"which columns .* there are color, size"):
        guess_contents(table(tmp_path, "color,size", "red,large"))


def test_arrays_and_text(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(2))
    assert guess_contents(tmp_path / "x.npy").kind == "matrix"
    assert guess_contents(table(tmp_path, "once upon a time", name="x.txt")).kind == "text"
    assert guess_contents(table(tmp_path, "once upon a time", name="corpus")).kind == "text"
    with pytest.raises(DataError, match="no file"):
        guess_contents(tmp_path / "y.csv")


def test_parquet(tmp_path: Path) -> None:
    columns = {"basket_id": [1, 1, 2], "product_id": [7, 8, 7], "quantity": [1, 2, 1]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
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
        ([[-1.0, 3.0], [1.0, 0.0]], "gaussian"),
        ([[np.nan, 3.0], [1.0, 0.0]], "poisson"),
    ],
)
def test_families(values: list[list[float]], family: str) -> None:
    assert guess_family(efemb.Dataset(np.array(values)))[0] == family
    if not np.isnan(values).any():
        assert guess_family(efemb.Dataset(csr_array(values)))[0] == family


def test_fractions_are_real_numbers_in_a_matrix_and_kilograms_in_baskets() -> None:
    values = [[0.5, 3.0], [1.0, 0.0]]
    assert guess_family(efemb.Dataset(np.array(values)))[0] == "gaussian"
    assert guess_family(efemb.Dataset(csr_array(values)))[0] == "poisson"


@pytest.mark.parametrize(
    ("header", "label"),
    [("timestamp,product_id,quantity", "2020-01-01 10:{:02d}"), ("tx0,1003,2", "tx1{}")],
)
def test_lines_of_baskets_are_no_matrix(header: str, label: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.csv"
    lines = [f"{label.format(i)},{1000 + i % 7},{i % 3 + 1}" for i in range(50)]
    file.write_text("\n".join([header, *lines]))
    with pytest.raises(DataError, match="which columns are basket and item"):
        guess_contents(file)


def test_rows_may_be_named_and_columns_be_years(tmp_path: Path) -> None:
    file = tmp_path / "pivot.csv"
    file.write_text("region,2019,2020\n" + "".join(f"r{i},{i % 7},{i}\n" for i in range(50)))
    assert guess_contents(file).row_labels == "region"


def test_lists_in_the_first_column_are_told(tmp_path: Path) -> None:
    table = {"tags": [["a", "b"], ["c"]], "order_id": [2, 1], "price": [1.5, 2.0]}
    pd.DataFrame(table).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="which columns are basket and item"):
        guess_contents(tmp_path / "a.parquet")


def test_unclear_columns_of_tabbed_text_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "sales.txt"
    lines = [f"{i // 3}\tS{i % 7}\tp{i % 5}\t{i % 4 + 1}\n" for i in range(60)]
    file.write_text("order_id\tproduct\titem\tqty\n" + "".join(lines))
    with pytest.raises(DataError, match="is 'product' or 'item' the item"):
        guess_contents(file)


def test_tabs_alone_make_no_table(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("The order\tof the item\n" + "a b c\n" * 30)
    assert guess_contents(file).kind == "text"


def test_lists_in_other_columns_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    lists = {"items": [["a", "b"], ["c"]], "quantity": [[1, 2], [1]]}
    pq.write_table(pa.table({"order_id": [1, 2], **lists}), file)
    with pytest.raises(DataError, match="'quantity' is named like counts"):
        guess_contents(file)
    guess = guess_contents(file, count="none")
    assert (guess.basket, guess.item, guess.count) == ("order_id", "items", None)
    with pytest.raises(efemb.InputTypeError, match="column 'items' holds list"):
        efemb.read_baskets(file, basket=guess.basket, item=guess.item)
    pq.write_table(pa.table({"customer_id": [1, 2], "basket": lists["items"]}), file)
    with pytest.raises(DataError, match="which columns are basket and item"):
        guess_contents(file)
    rows = [{"city": "Bern"}, {"city": "Rome"}]
    pq.write_table(pa.table({"order": rows, "basket": rows, "item": ["a", "b"]}), file)
    assert guess_contents(file).basket == "basket"


def test_parquet_that_is_damaged_before_its_end_or_empty(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"trip": rng.integers(0, 9999, 5000), "item": ["a"] * 5000}), file)
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * (len(content) // 2) + content[len(content) // 2 + 4 :])
    with pytest.raises(DataError, match="not a complete Parquet file"):
        guess_contents(file)
    pq.write_table(pa.table({}), file)
    with pytest.raises(DataError, match=r"a\.parquet has no columns"):
        guess_contents(file)


def test_a_letter_is_no_name_of_rows(tmp_path: Path) -> None:
    """Columns s0, s1, ... of a recording are all data: "s" is not the plural of anything."""
    path = tmp_path / "speed.csv"
    rows = np.random.default_rng(0).normal(size=(30, 4))
    lines = [",".join(f"{value:.6f}" for value in row) for row in rows]
    path.write_text("\n".join(["s0,s1,s2,s3", *lines]), "utf-8")
    guess = guess_contents(path)
    assert (guess.kind, guess.row_labels) == ("matrix", None)
    assert efemb.read_matrix(path).shape == (30, 4)
