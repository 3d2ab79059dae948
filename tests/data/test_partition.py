"""Laws of `split`: the documented permutation, and parts that make up the whole."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import efemb
from efemb.baselines import NeighborRidge
from efemb.data import Dataset, split
from efemb.errors import DataError, ParameterError


def counts(kind: Any = sparse.csr_array, shape: tuple[int, ...] = (40, 7)) -> Dataset:
    values = np.random.default_rng(5).poisson(0.8, shape).astype(float)
    return Dataset(kind(values), row_labels=np.arange(shape[0]))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", [0, 3])
def test_rows(kind: Any, seed: int) -> None:
    data = counts(kind)
    train, validation, test = data.split(test=0.2, validation=0.1, seed=seed)
    order = np.random.default_rng(seed).permutation(40)
    assert test.row_labels.tolist() == sorted(order[:8])
    assert validation.row_labels.tolist() == sorted(order[8:12])
    assert train.row_labels.tolist() == sorted(order[12:])
    whole = data.values if kind is np.asarray else data.values.toarray()
    part = test.values if kind is np.asarray else test.values.toarray()
    np.testing.assert_array_equal(part, whole[sorted(order[:8])])


def test_two_parts_without_validation_and_whole_numbers_as_sizes() -> None:
    parts = split(counts(), test=0.05)
    assert [part.n_rows for part in parts] == [38, 2]
    assert [part.n_rows for part in split(counts(), test=5, validation=2)] == [33, 2, 5]


@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_entries_of_sparse_data(validation: float) -> None:
    data = counts()
    whole = data.values.toarray()
    parts = data.split(test=0.3, validation=validation, seed=1, by="entries")
    assert len(parts) == (3 if validation else 2)
    rows, columns = np.nonzero(whole)
    order = np.random.default_rng(1).permutation(len(rows))
    held = order[: int(0.3 * len(rows))]
    expected = np.zeros_like(whole)
    expected[rows[held], columns[held]] = whole[rows[held], columns[held]]
    np.testing.assert_array_equal(parts[-1].values.toarray(), expected)
    np.testing.assert_array_equal(sum(part.values.toarray() for part in parts), whole)
    assert sum(part.values.nnz for part in parts) == data.values.nnz
    assert all(part.shape == data.shape for part in parts)


@pytest.mark.parametrize("shape", [(12, 5), (12, 5, 2)])
def test_entries_of_dense_data(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).normal(size=shape)
    values[3, 1] = np.nan
    train, test = Dataset(values).split(test=0.25, by="entries")
    seen = [~np.isnan(part.values) for part in (train, test)]
    assert not (seen[0] & seen[1]).any()
    np.testing.assert_array_equal(seen[0] | seen[1], ~np.isnan(values))
    together = np.where(seen[0], train.values, test.values)
    np.testing.assert_array_equal(together, values)
    per_cell = seen[1] if len(shape) == 2 else seen[1].all(axis=2)
    assert per_cell.sum() == int(0.25 * 59)
    if len(shape) == 3:
        np.testing.assert_array_equal(seen[1].all(axis=2), seen[1].any(axis=2))


def test_parts_keep_the_other_properties() -> None:
    data = Dataset(np.ones((20, 2)), entities=["a", "b"], recordings=np.repeat([0, 1], 10))
    for part in data.split(test=0.5):
        assert list(part.entities) == ["a", "b"]
        assert part.recordings is not None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": "row"}, ParameterError, "did you mean 'rows'"),
        ({"test": -0.1}, ParameterError, "test=-0.1"),
        ({"test": 1.5}, ParameterError, "test=1.5"),
        ({"validation": float("nan")}, ParameterError, "validation=nan"),
        ({"test": 0.0}, DataError, "0 for test"),
        ({"test": 0.001}, DataError, "0 for test"),
        ({"test": 0.5, "validation": 0.001}, DataError, "0 for validation"),
        ({"test": 0.6, "validation": 0.6}, DataError, "every part needs at least one"),
        ({"test": 41}, DataError, r"and a whole number such as test=1 counts rows"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        counts().split(**options)


def frames(n_rows: int = 200, **options: Any) -> Dataset:
    values = np.random.default_rng(0).normal(size=(n_rows, 3))
    return Dataset(values, **options)


def test_blocks_are_stretches_and_become_recordings() -> None:
    data = frames(rows={"time": np.arange(200)})
    train, held, test = data.split(test=0.2, validation=0.1, by="blocks", seed=3)
    assert (train.n_rows, held.n_rows, test.n_rows) == (140, 20, 40)
    times = np.concatenate([part.rows["time"] for part in (train, held, test)])
    assert sorted(times) == list(range(200))
    for part in (train, held, test):
        assert not part.rows_left_out
        follows = part.recordings[1:] == part.recordings[:-1]
        assert np.array_equal(follows, np.diff(part.rows["time"]) == 1)
    again = data.split(test=0.2, validation=0.1, by="blocks", seed=3)[2]
    assert np.array_equal(again.values, test.values)


def test_blocks_do_not_cross_recordings() -> None:
    data = frames(recordings=np.repeat([4, 9], [30, 170]))
    for part in data.split(test=0.3, by="blocks"):
        marked = np.isin(part.values[:, 0], data.values[:30, 0])
        same = part.recordings[1:] == part.recordings[:-1]
        assert not (same & (marked[1:] != marked[:-1])).any()


def test_time_takes_the_last_rows() -> None:
    data = frames(rows={"week": np.repeat(np.arange(10), 20)[::-1]})
    train, held, test = data.split(test=0.1, validation=0.2, by="time")
    assert np.array_equal(np.concatenate([p.values for p in (train, held, test)]), data.values)
    assert (train.n_rows, held.n_rows, test.n_rows) == (140, 40, 20)
    train, held, test = data.split(test=2, validation=1, by="time", column="week")
    assert [sorted(set(p.rows["week"].tolist())) for p in (held, test)] == [[7], [8, 9]]
    train, test = data.split(test=0.11, by="time", column="week")  # whole weeks
    assert sorted(set(test.rows["week"].tolist())) == [8, 9]


@pytest.mark.parametrize(
    ("form", "last"),
    [
        ("%d.%m.%Y", None),
        ("%m/%d/%y", None),
        ("%b %d", None),
        ("%Y-%m-%d", "2011-03-02"),
        ("%Y/%m/%d %H:00", "2011/03/02 00:00"),
        ("week %W", "week 09"),
    ],
)
def test_text_of_times_sorts_by_time_or_is_refused(form: str, last: str | None) -> None:
    days = [datetime(2011, 1, 2) + timedelta(days=n) for n in range(60)]
    text = np.array([day.strftime(form) for day in days], dtype=object)
    data = efemb.Dataset(np.arange(120.0).reshape(60, 2), rows={"day": text})
    if last is None:
        with pytest.raises(efemb.DataError, match="does not sort by time; write dates as"):
            data.split(test=1, by="time", column="day")
        assert data.split(test=1, by="groups", column="day")[1].n_rows >= 1
        return
    _, test = data.split(test=1, by="time", column="day")
    assert set(test.rows["day"].tolist()) == {last}
    assert test.values[-1, 0] == 118.0


def test_groups_stay_together() -> None:
    labels = np.random.default_rng(1).choice(["a", "b", "c", "d", "e"], 200)
    data = frames(rows={"fish": labels})
    train, test = data.split(test=0.4, by="groups", column="fish", seed=2)
    order = np.random.default_rng(2).permutation(5)[:2]
    assert set(test.rows["fish"].tolist()) == {"abcde"[i] for i in order}
    assert not set(test.rows["fish"].tolist()) & set(train.rows["fish"].tolist())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"by": "frames"}, ParameterError, "by='frames' is unknown"),
        ({"by": "groups"}, ParameterError, "needs column="),
        ({"by": "groups", "column": "fsh"}, DataError, "no row column 'fsh'.*fish"),
        ({"by": "rows", "column": "fish"}, ParameterError, "applies to by='groups'"),
        ({"by": "groups", "column": "fish", "test": 2}, DataError, "of 2 groups give 0"),
        ({"by": "groups", "column": "gaps"}, DataError, "no value in 1 rows .first in row 3"),
        ({"by": "time", "test": 1.5}, ParameterError, "fraction"),
    ],
)
def test_bad_splits(options: dict[str, Any], error: type[Exception], words: str) -> None:
    gaps: list[Any] = ["x"] * 20
    gaps[3] = None
    data = frames(20, rows={"fish": ["a", "b"] * 10, "gaps": gaps})
    with pytest.raises(error, match=words):
        data.split(**options)


def test_rows_that_are_left_out_are_remembered_where_lags_matter() -> None:
    data = frames(60)
    assert not data.take_rows(slice(10, 40)).rows_left_out
    assert not frames(60, recordings=np.repeat([0, 1], 30)).take_rows([0, 1, 30, 31]).rows_left_out
    thinned, rest = data.split(test=0.2)
    assert thinned.rows_left_out
    context = efemb.Lagged([-1])
    for model in (efemb.GaussianEmbedding(2, context=context), NeighborRidge(context)):
        with pytest.raises(DataError, match="by='blocks'"):
            model.fit(thinned)
        model.fit(data)
        with pytest.raises(DataError, match="by='blocks'"):
            model.conditional(rest)


def test_blocks_keep_what_lags_know() -> None:
    """An autoregression of .8: the residual variance is .36."""
    rng = np.random.default_rng(0)
    X = np.zeros((800, 10))
    for t in range(1, len(X)):
        X[t] = 0.8 * X[t - 1] + 0.6 * rng.normal(size=10)
    train, test = Dataset(X).split(test=0.2, by="blocks")
    model = efemb.GaussianEmbedding(4, context=efemb.Lagged([-1]), random_state=0).fit(train)
    error = ((model.conditional(test) - test.values) ** 2).mean()
    assert error < 0.42
