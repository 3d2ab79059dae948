"""Factors as tables: what other programs read back is what was written."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import efemb
from efemb.data import read_matrix
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.export import write_projector, write_vectors
from efemb.fitted import LabeledVectors

NAMES = ["milk", "=SUM(A1)", "+1", "-2", "@x", "a,b", 'c"d', "h\ri", "e\nf", " g "]


def vectors(labels: list[str] = NAMES, dtype: str = "f8") -> LabeledVectors:
    values = np.random.default_rng(0).normal(size=(len(labels), 3)).astype(dtype)
    return LabeledVectors(labels, values)


def rows(path: Path, separator: str = ",") -> list[list[str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream, delimiter=separator))


@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.csv.gz", "V.CSV"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_text_keeps_every_bit(tmp_path: Path, name: str, dtype: str) -> None:
    given = vectors(dtype=dtype)
    write_vectors(given, tmp_path / name, formulas="keep")
    head, *found = rows(tmp_path / name, "\t" if "tsv" in name else ",")
    assert head == ["label", "0", "1", "2"]
    assert [row[0] for row in found] == NAMES
    np.testing.assert_array_equal(np.array([row[1:] for row in found], dtype), given.vectors)
    again = read_matrix(tmp_path / name, row_labels="label")
    assert list(again.row_labels) == NAMES


def test_formulas(tmp_path: Path) -> None:
    write_vectors(vectors(), tmp_path / "v.csv")
    found = [row[0] for row in rows(tmp_path / "v.csv")[1:]]
    assert found[:5] == ["milk", "'=SUM(A1)", "'+1", "'-2", "'@x"]
    assert list(read_matrix(tmp_path / "v.csv", row_labels="label").row_labels) == NAMES
    with pytest.raises(DataError, match="4 labels look like formulas"):
        write_vectors(vectors(), tmp_path / "v.csv", formulas="error")
    with pytest.raises(ParameterError, match="quote"):
        write_vectors(vectors(), tmp_path / "v.csv", formulas="quota")
    assert [row[0] for row in rows(tmp_path / "v.csv")[1:]] == found, "the old file is kept"


def test_nul_characters(tmp_path: Path) -> None:
    given = vectors(["a", "b\x00c"])
    for name in ("v.csv", "v.tsv"):
        with pytest.raises(DataError, match="NUL"):
            write_vectors(given, tmp_path / name)
    with pytest.raises(DataError, match="NUL"):
        write_projector(given, tmp_path / "p")
    assert not list(tmp_path.glob("v*"))
    write_vectors(given, tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz") as found:
        assert found["labels"].tolist() == ["a", "b\x00c"]


def test_numpy(tmp_path: Path) -> None:
    given = vectors()
    write_vectors(given, tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as found:
        assert found["labels"].tolist() == NAMES
        np.testing.assert_array_equal(found["vectors"], given.vectors)


def test_parquet(tmp_path: Path) -> None:
    given = vectors()
    write_vectors(given, tmp_path / "v.parquet")
    found = pq.read_table(tmp_path / "v.parquet").to_pydict()
    assert found.pop("label") == NAMES
    np.testing.assert_array_equal(np.column_stack(list(found.values())), given.vectors)


def test_projector(tmp_path: Path) -> None:
    given = vectors()
    write_projector(given, tmp_path / "deep" / "p")
    lines = (tmp_path / "deep" / "p" / "metadata.tsv").read_text("utf-8").splitlines()
    assert lines[:2] == ["milk", "=SUM(A1)"]
    assert lines[-2:] == ["e f", "g"]
    numbers = np.loadtxt(tmp_path / "deep" / "p" / "vectors.tsv", delimiter="\t")
    np.testing.assert_array_equal(numbers, given.vectors)


def test_endings(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"\.csv"):
        write_vectors(vectors(), tmp_path / "v.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.csv", "v.tsv.gz", "v.parquet", "projector"])
def test_half_a_character_is_told(tmp_path: Path, name: str) -> None:
    given = vectors(["milk", "half \ud83d"])
    write = write_projector if name == "projector" else write_vectors
    with pytest.raises(DataError, match=r"'half \\ud83d' cannot be written as UTF-8"):
        write(given, tmp_path / name)
    write_vectors(given, tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz") as found:
        assert found["labels"].tolist() == ["milk", "half \ud83d"]


@pytest.mark.parametrize("name", ["v.npz.gz", "v.parquet.gz", "v.npz.xz"])
def test_what_is_packed_already_is_not_packed_again(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="already compressed"):
        write_vectors(vectors(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["v.npz", "v.csv", "v.parquet"])
def test_a_model_in_place_of_its_vectors(tmp_path: Path, name: str) -> None:
    truth = efemb.simulation.simulate(
        "p-emb", n_rows=9, n_entities=4, n_components=2, seed=0, sweeps=1
    )
    model = efemb.fitted.FittedEmbedding(
        truth.parameters, truth.spec, vocabulary=efemb.Vocabulary("abcd")
    )
    with pytest.raises(InputTypeError, match=r"model\.vectors\(\)"):
        write_vectors(model, tmp_path / name)
    with pytest.raises(InputTypeError, match=r"model\.vectors\(\)"):
        write_projector(model, tmp_path)
    assert not list(tmp_path.iterdir())
