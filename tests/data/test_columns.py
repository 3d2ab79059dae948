"""Laws of row columns, entity features and cell tables: every operation carries them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import efemb
from efemb.data import CellTable, Dataset, Vocabulary
from efemb.data.align import aligned, in_order, with_new
from efemb.data.columns import NamedColumns
from efemb.engine.checkpoint import fingerprint
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.support import binarized

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WEEKS = ["w0", "w1", "w2"]


def example(n_rows: int, n_entities: int, seed: int, *, is_sparse: bool = True) -> Dataset:
    """Random counts with a column of every kind; row columns contain the number of their row."""
    rng = np.random.default_rng(seed)
    values = rng.poisson(0.8, (n_rows, n_entities)).astype(float)
    weeks = rng.choice([*WEEKS, None], n_rows)
    make = sparse.csr_array if is_sparse and rng.random() < 0.5 else np.asarray
    return Dataset(
        sparse.csr_array(values) if is_sparse else values,
        entities=[f"e{n}" for n in range(n_entities)],
        row_labels=[f"r{t}" for t in range(n_rows)],
        users=rng.integers(0, 3, n_rows),
        recordings=np.sort(rng.integers(0, 3, n_rows)),
        rows={"week": weeks, "weight": rng.choice([1.5, np.nan], n_rows), "t": np.arange(n_rows)},
        features={"n": np.arange(n_entities), "brand": [f"b{n}" for n in range(n_entities)]},
        cells={
            "price": CellTable(make(rng.random((3, n_entities))), by="week", groups=WEEKS),
            "stock": CellTable(rng.random((3, n_entities)), by="user", groups=[0, 1, 2]),
        },
        report={"lines": 7},
    )


def same(left: Any, right: Any) -> None:
    """Equal columns, missing values included."""
    pd.testing.assert_series_equal(pd.Series(left), pd.Series(right), check_dtype=False)


def check_rows(result: Dataset, data: Dataset, index: Any) -> None:
    """All row columns of `result` are those of `data` at `index`, taken by hand."""
    assert list(result.rows) == list(data.rows)
    for name, column in data.rows.items():
        same(result.rows[name], [column[t] for t in index])


def check_entities(result: Dataset, data: Dataset, index: Any) -> None:
    """Features and cells of `result` are those of `data` at `index`; -1 is an unknown entity."""
    assert list(result.features) == list(data.features)
    for name, column in data.features.items():
        same(result.features[name], [None if n < 0 else column[n] for n in index])
    assert list(result.cells) == list(data.cells)
    for name, table in data.cells.items():
        found, plain = (
            t.values.toarray() if sparse.issparse(t.values) else t.values
            for t in (result.cells[name], table)
        )
        missing = 0.0 if sparse.issparse(table.values) else np.nan
        expected = [[missing if n < 0 else row[n] for n in index] for row in plain]
        np.testing.assert_array_equal(found, expected)
        assert (result.cells[name].by, result.cells[name].groups) == (table.by, table.groups)


def check_all(result: Dataset, data: Dataset, rows: Any = None, entities: Any = None) -> None:
    check_rows(result, data, range(data.n_rows) if rows is None else rows)
    check_entities(result, data, range(data.n_entities) if entities is None else entities)


SIZES = st.tuples(st.integers(4, 12), st.integers(2, 5), st.integers(0, 2**32 - 1))


@pytest.mark.slow
@given(SIZES, st.booleans(), st.data())
def test_taking_rows_and_entities_takes_their_columns(
    sizes: tuple[int, int, int], is_sparse: bool, draw: Any
) -> None:
    data = example(*sizes, is_sparse=is_sparse)
    # Recordings stay together only if rows stay in order.
    rows = sorted(draw.draw(st.sets(st.integers(0, data.n_rows - 1), min_size=1)))
    entities = draw.draw(st.lists(st.integers(0, sizes[1] - 1), min_size=1, unique=True))
    for result in (data.take_rows(rows), data[np.isin(np.arange(data.n_rows), rows)]):
        check_all(result, data, rows=rows)
    check_all(data.take_entities(entities), data, entities=entities)
    both = data.take_rows(rows).take_entities(entities)
    check_all(both, data, rows=rows, entities=entities)
    check_all(data.take_entities(entities).take_rows(rows), data, rows=rows, entities=entities)
    thinned = {"rows_left_out": True} if both.rows_left_out else {}
    assert both.report == {**data.report, **thinned}


@given(SIZES, st.sampled_from(["rows", "entries"]), st.booleans())
def test_every_part_of_a_split_has_its_columns(
    sizes: tuple[int, int, int], by: Any, is_sparse: bool
) -> None:
    data = example(*sizes, is_sparse=is_sparse)
    try:
        pieces = data.split(test=0.3, validation=0.3, by=by)
    except DataError:
        assert data.values.nnz < 10 if is_sparse else data.values.size < 10
        return
    for piece in pieces:
        check_all(piece, data, rows=piece.rows["t"])
    if by == "rows":
        assert sorted(t for piece in pieces for t in piece.rows["t"]) == list(range(data.n_rows))


@given(SIZES)
def test_a_difference_has_the_columns_of_the_later_row(sizes: tuple[int, int, int]) -> None:
    data = example(*sizes)
    recordings = data.recordings.tolist()
    later = [t for t in range(1, data.n_rows) if recordings[t] == recordings[t - 1]]
    if later:
        check_all(data.difference(), data, rows=later)


@pytest.mark.slow
@given(SIZES, st.data())
def test_alignment_moves_features_and_cells(sizes: tuple[int, int, int], draw: Any) -> None:
    data = example(*sizes)
    known = draw.draw(st.permutations([*data.entities, "new"]).map(lambda all_: all_[:-1]))
    index = [int(str(label)[1:]) if label != "new" else -1 for label in known]
    check_all(aligned(data, Vocabulary(known)), data, entities=index)
    grown = with_new(data, Vocabulary(known), len(known), absent=0.0)
    places = [-1 if label == "new" else int(str(label)[1:]) for label in grown.entities]
    check_all(grown, data, entities=places)
    order = draw.draw(st.permutations(list(data.entities)))
    moved, _ = in_order(data, Vocabulary(order))
    check_all(moved, data, entities=[int(str(label)[1:]) for label in order])


@given(SIZES, st.booleans())
def test_other_values_keep_everything(sizes: tuple[int, int, int], is_sparse: bool) -> None:
    data = example(*sizes, is_sparse=is_sparse)
    for result in (binarized(data), data._replace(data.values), pickle.loads(pickle.dumps(data))):
        check_all(result, data)
        assert result.report == data.report


def test_a_column_passed_by_its_own_name_replaces_the_one_that_is_carried() -> None:
    data = example(5, 2, 0)
    result = data._replace(data.values, recordings=[4, 4, 4, 5, 5])
    assert result.recordings.tolist() == [4, 4, 4, 5, 5]
    assert result.users.tolist() == data.users.tolist()


CONTEXTS: dict[str, Callable[[], Any]] = {
    "basket": lambda: efemb.PoissonEmbedding(2, random_state=0, max_iter=3),
    "neighbors": lambda: efemb.Embedding(
        2, context=efemb.Neighbors(2), family="gaussian", random_state=0
    ),
    "lagged": lambda: efemb.Embedding(
        2, context=efemb.Lagged(1), family="gaussian", random_state=0, max_iter=3
    ),
}


@pytest.mark.parametrize("kind", CONTEXTS)
def test_all_data_of_a_fit_carry_the_columns(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = example(60, 6, 1, is_sparse=kind == "basket")
    data = data._replace(data.values, positions=np.arange(6.0))
    seen: list[Dataset] = []
    make = Dataset.__init__

    def watch(self: Dataset, *values: Any, **members: Any) -> None:
        make(self, *values, **members)
        seen.append(self)

    monkeypatch.setattr(Dataset, "__init__", watch)
    CONTEXTS[kind]().fit(data)
    assert seen, "there is a hold-out"
    for made in seen:
        check_all(made, data, rows=made.rows["t"])


@pytest.mark.parametrize("member", ["rows", "features", "cells"])
def test_a_checkpoint_tells_other_columns_apart(member: str) -> None:
    data = example(6, 3, 2)
    assert fingerprint(data._content()) == fingerprint(example(6, 3, 2)._content())
    other = {
        "rows": {**data.rows, "week": ["w0", "w1", "w2", "w0", "w1", "w2"]},
        "features": {**data.features, "brand": ["b0", "b1", "B2"]},
        "cells": {"stock": CellTable(np.ones((3, 3)), by="user", groups=[0, 1, 2])},
    }[member]
    changed = data._replace(data.values, **{member: other})
    assert fingerprint(changed._content()) != fingerprint(data._content())


def test_a_checkpoint_of_columns_of_any_type() -> None:
    times = np.array(["2024-01-01", "NaT"], "M8[ns]")
    objects = np.array([(1, 2), pd.NA], dtype=object)
    data = Dataset(np.eye(2), rows={"time": times, "odd": objects})
    assert fingerprint(data._content()) == fingerprint(data._content())


def test_users_row_labels_and_recordings_are_row_columns() -> None:
    data = Dataset(np.eye(2), users=["a", "b"], row_labels=[5, 6], recordings=["x", "x"])
    assert list(data.rows) == ["row", "user", "recording"]
    assert data.users is data.rows["user"]
    assert data.row_labels is data.rows["row"]
    assert data.recordings.tolist() == [0, 0]
    same_columns = Dataset(np.eye(2), rows={"user": ["a", "b"], "recording": [1, 1]})
    assert same_columns.users.tolist() == ["a", "b"]
    with pytest.raises(DataError, match="not contiguous"):
        Dataset(np.eye(3), rows={"recording": [1, 2, 1]})
    with pytest.raises(ParameterError, match=r"users= and rows\['user'\] are the same column"):
        Dataset(np.eye(2), users=["a", "b"], rows={"user": ["a", "b"]})


def test_missing_values_are_kept() -> None:
    data = Dataset(np.eye(2), rows={"week": [None, "w1"], "weight": [np.nan, 1.0]})
    taken = data.take_rows([0])
    assert taken.rows["week"].tolist() == [None]
    assert np.isnan(taken.rows["weight"][0])


TABLE = CellTable([[1.0, 2.0]], by="week", groups=["w0"])


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        ({"rows": {"week": [1, 2, 3]}}, DataError, r"rows\['week'\] has shape \(3,\).* 2 rows"),
        ({"features": {"brand": [1]}}, DataError, r"features\['brand'\] .* 2 entities"),
        ({"rows": {1: [1, 2]}}, InputTypeError, "the name of a column is text, not 1"),
        ({"rows": [1, 2]}, InputTypeError, "rows must map names to columns"),
        ({"cells": [TABLE]}, InputTypeError, "cells must map names to CellTables"),
        ({"cells": {"price": [[1.0]]}}, InputTypeError, "must be a CellTable, not list"),
        ({"cells": {"price": TABLE}}, DataError, r"cells\['price'\]: .*no column 'week'.*none"),
        (
            {"cells": {"price": TABLE}, "rows": {"weeks": [1, 2]}},
            DataError,
            "did you mean 'weeks'. choices: weeks",
        ),
        (
            {"cells": {"price": TABLE}, "rows": {"week": ["w0", "w7"]}},
            DataError,
            r"cells\['price'\]: a row has week='w7'.*1 groups: 'w0'",
        ),
        (
            {"cells": {"p": CellTable([[1.0]], by="week", groups=[1])}, "rows": {"week": [1, 1]}},
            DataError,
            "has 1 entities, but there are 2",
        ),
    ],
)
def test_columns_that_are_refused(
    members: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Dataset(np.eye(2), **members)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CellTable([1.0], by="week", groups=["a"]), DataError, "1-dimensional"),
        (lambda: CellTable([[1.0]], by="week", groups=["a", "b"]), DataError, "1 rows.* 2 groups"),
        (lambda: CellTable([[np.inf]], by="week", groups=["a"]), DataError, "infinite"),
        (lambda: CellTable([[1.0]], by=3, groups=["a"]), InputTypeError, "name of a row column"),
        (lambda: CellTable([[1.0]], by="week", groups="a"), InputTypeError, "sequence of labels"),
        (lambda: CellTable([["x"]], by="week", groups=["a"]), InputTypeError, "must be numbers"),
        (
            lambda: CellTable(sparse.csr_array([[np.nan]]), by="week", groups=["a"]),
            DataError,
            "missing values need a dense one",
        ),
        (lambda: Dataset(np.eye(2)).rows["week"], DataError, "no column 'week' of rows"),
    ],
)
def test_tables_that_are_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def test_groups_of_rows() -> None:
    table = CellTable(np.ones((2, 1)), by="day", groups=["2024-01-01", 7])
    days = np.array([pd.Timestamp("2024-01-01").date(), "7", None, 7.0], dtype=object)
    assert table.codes(days).tolist() == [0, 1, -1, 1]
    assert table.codes(np.array([np.nan, 7.0, np.nan])).tolist() == [-1, 1, -1]
    with pytest.raises(InputTypeError, match="day must hold labels"):
        table.codes(np.array([[1], None], dtype=object)[:1])


def test_the_repr_lists_them() -> None:
    text = repr(example(4, 2, 0))
    assert "users" in text
    assert "row columns week, weight, t" in text
    assert "features n, brand" in text
    assert "cells price by week, stock by user" in text


def test_columns_cannot_be_changed() -> None:
    columns = NamedColumns({"week": np.array([1, 2])}, 2, "rows")
    with pytest.raises(ValueError, match="read-only"):
        columns["week"][0] = 5
    with pytest.raises(TypeError):
        columns["week"] = [3, 4]  # type: ignore[index]
    assert columns.get("month") is None
    assert "month" not in columns
