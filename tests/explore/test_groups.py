"""Groups of items from mappings, sequences and files; what does not match is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import efemb
from efemb.explore.groups import read_groups

ITEMS = efemb.Vocabulary(["tea", "coffee", "soap", 7])


def test_a_mapping_counts_what_does_not_match() -> None:
    groups = read_groups({"tea": "drink", "soap": "bath", "beer": "drink", "coffee": None}, ITEMS)
    assert groups is not None
    assert sorted(groups.names) == ["bath", "drink"]
    assert [groups.names[code] if code >= 0 else None for code in groups.codes] == [
        "drink",
        None,
        "bath",
        None,
    ]
    assert (groups.n_missing, groups.n_unknown) == (2, 1)
    assert "2 items have no group; 1 of the grouped items not in the model" in groups.remark()


def test_one_group_per_item() -> None:
    groups = read_groups(["a", "a", "b", "a"], ITEMS)
    assert groups is not None
    assert groups.names == ["a", "b"]
    assert groups.codes.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    "text",
    [
        "department,product\ndrink,tea\ndrink,coffee\nbath,soap\nother,7\n",
        "product;department\ntea;drink\ncoffee;drink\nsoap;bath\n7;other\n",
        "\ufeffproduct\tdepartment\tbrand\ntea\tdrink\tx\ncoffee\tdrink\ty\nsoap\tbath\tz\n7\tother\tx\n",
    ],
)
def test_the_columns_of_a_file_are_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "products.csv"
    path.write_text(text, "utf-8")
    groups = read_groups(path, ITEMS)
    assert groups is not None
    assert groups.title == "department"
    assert [groups.names[code] for code in groups.codes] == ["drink", "drink", "bath", "other"]


def test_a_column_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "products.csv"
    path.write_text("product,department,brand\ntea,drink,x\nsoap,bath,y\n")
    groups = read_groups(path, ITEMS, "brand")
    assert groups is not None
    assert (groups.title, groups.n_missing) == ("brand", 2)
    with pytest.raises(efemb.DataError, match=r"no column 'brnd'.*brand"):
        read_groups(path, ITEMS, "brnd")


def test_parquet_files(tmp_path: Path) -> None:
    import pandas as pd

    path = tmp_path / "products.parquet"
    pd.DataFrame({"product": ["tea", "soap"], "kind": ["drink", None]}).to_parquet(path)
    groups = read_groups(path, ITEMS)
    assert groups is not None
    assert (groups.names, groups.n_missing) == (["drink"], 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\nx,y\n", "none of the items of the groups is an item of the model"),
        ("only\ntea\n", "needs two columns"),
        ("product,kind\ntea,drink\nsoap\n", "Correct these lines"),
    ],
)
def test_files_that_do_not_work(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "products.csv"
    path.write_text(text)
    with pytest.raises(efemb.DataError, match=message):
        read_groups(path, ITEMS)


def test_arguments_that_do_not_work() -> None:
    with pytest.raises(efemb.DataError, match="3 entries for 4 items"):
        read_groups(["a", "b", "c"], ITEMS)
    with pytest.raises(efemb.InputTypeError, match="mapping of labels"):
        read_groups(3, ITEMS)
    with pytest.raises(efemb.ParameterError, match="group_column needs the table"):
        read_groups(None, ITEMS, "kind")


def test_groups_that_are_not_in_a_file_have_a_title() -> None:
    for source in ({"tea": "x"}, list("xyzx")):
        titles = [read_groups(source, ITEMS, *given).title for given in ((), ("kind",))]
        assert titles == ["group", "kind"]
