"""Data as frames, and in notebooks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import efemb
from efemb import Dataset
from efemb.errors import ParameterError


@pytest.mark.parametrize("make", [np.array, csr_array], ids=["dense", "sparse"])
def test_frames_have_values_and_labels(make) -> None:
    values = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    data = Dataset(make(values), entities=["tea", "milk", "salt"], row_labels=["Mo", "Di"])
    frame = data.to_pandas()
    assert frame.index.tolist() == ["Mo", "Di"]
    assert frame.columns.tolist() == ["tea", "milk", "salt"]
    np.testing.assert_array_equal(frame.to_numpy(), values)
    if make is csr_array:
        assert all(isinstance(kind, pd.SparseDtype) for kind in frame.dtypes)
    plain = Dataset(make(values)).to_pandas()
    assert plain.columns.tolist() == [*plain.index.tolist(), 2] == [0, 1, 2]


def test_vectors_of_observations_are_no_frame() -> None:
    with pytest.raises(ParameterError, match="shape"):
        Dataset(np.zeros((2, 3, 2))).to_pandas()


def test_notebooks_show_what_data_hold() -> None:
    data = Dataset(csr_array(np.eye(3)), entities=["<b>", "milk", "salt"], rows={"week": [1, 2, 3]})
    html = data._repr_html_()
    assert "&lt;b&gt;" in html
    assert "3 non-zeros (33.33%)" in html
    assert "row column week" in html
    dense = Dataset(np.array([[1.0, np.nan]]), positions=[[0.0], [1.0]])._repr_html_()
    assert "1 missing (50.00%)" in dense
    words = efemb.read_text([["a", "b", "a"], ["b", "a"]], min_count=1)._repr_html_()
    assert "documents" in words
    assert "<td>5</td>" in words
