"""Features and paired differences of the downstream tasks."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from benchmarks.harness import Report, Settings
from benchmarks.text_data import table_lines
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import efemb
from benchmarks import downstream


def test_documents_are_means_of_unit_vectors() -> None:
    documents = [np.array([0, 1, 0]), np.array([1]), np.array([], dtype=int)]
    means = downstream.document_means(documents, np.array([[3.0, 4.0], [0.0, 2.0]]))
    assert_allclose(means, [[0.4, (0.8 + 1.0 + 0.8) / 3], [0.0, 1.0], [0.0, 0.0]])


@pytest.mark.slow
def test_good_features_are_told_from_noise() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 240).astype(str)
    features = np.eye(3)[labels.astype(int)] + 0.1 * rng.normal(size=(240, 3))
    noise = rng.normal(size=(240, 3))
    halves = [labels[:160], labels[160:]]
    good = downstream._classify(features[:160], features[160:], halves)
    bad = downstream._classify(noise[:160], noise[160:], halves)
    assert good.mean() > 0.95
    assert bad.mean() < 0.6
    flags = np.stack([labels == "0", labels == "1"], axis=1)
    assert downstream._areas(features, flags).min() > 0.95


def test_differences_are_paired() -> None:
    def judge(seed: int) -> dict[str, np.ndarray]:
        ours, theirs = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])
        return {"ours": ours, "theirs": np.roll(theirs, seed)}

    report = Report("downstream", Settings(quick=True, seeds=(0, 2)))
    fixed = {"fixed": np.array([0.0, 0.0, 1.0, 1.0])}
    downstream._add_paired(report, "task", judge, fixed, "ours")
    assert [row["value"] for row in report.rows] == [0.75, 0.5, 0.5]
    # By unit 0, 0, -1, 0 with the first seed and -1, 1, 0, -1 with the second.
    gaps = np.array([-0.5, 0.5, -0.5, -0.5])
    error = gaps.std(ddof=1) / 2
    assert report.rows[1]["beside"] == f"-0.2500 ± {error:.4f} from ours (-0.2500, -0.2500)"
    assert report.rows[2]["beside"] == "-0.2500 ± 0.2500 from ours (-0.2500, -0.2500)"


def test_places_are_explained_by_what_knows_them() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(40, 2))
    known = downstream.explain_places(places @ rng.normal(size=(2, 5)), places)
    unknown = downstream.explain_places(rng.normal(size=(40, 5)), places)
    assert known.shape == (40,)
    assert known.mean() > 0.95
    assert unknown.mean() < 0.2


def test_products_of_a_type_are_added_up() -> None:
    values = csr_array([[1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 3.0]])
    kinds = np.array(["milk", "milk", "tea", "tea"], dtype=object)
    rows = {"household": ["a", "b", "a"], "week": [1, 1, 2]}
    trips = downstream.by_type(efemb.Dataset(values, rows=rows, features={"type": kinds}), 2)
    assert list(trips.entities) == ["milk", "tea"]
    assert trips.values.toarray().tolist() == [[3.0, 0.0], [1.0, 1.0], [0.0, 3.0]]
    total = downstream._by_household(trips, {"a": 0})
    assert total.tolist() == [[3.0, 3.0]]


def test_empty_lines_of_a_table_are_no_documents(tmp_path: Path) -> None:
    path = tmp_path / "table.tab.xz"
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("Category\tText\ndiscrete\tstring\nclass\tmeta\n\nsci.med\ta b\n")
    assert list(table_lines(path)) == ["sci.med\ta b"]
