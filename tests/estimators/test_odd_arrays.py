"""Anything passed as X is read as the numbers that it represents, or raises a typed error."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import efemb
from estimators.samples import baskets, neurons

X = baskets(12)
DATES = np.full((12, 3), "2020", "datetime64[Y]")
NO_DATA: dict[str, Any] = {
    "no entities": np.zeros((5, 0)),
    "no rows": X[:0],
    "one dimension": X[0],
    "a number": np.array(3.0),
    "four dimensions": X[:, :, None, None],
    "text": np.array([["a", "b"], ["c", "d"]], object),
    "complex": X + 1j,
    "complex, sparse": sparse.csr_array(X * 1j),
    "one dimension, sparse": sparse.coo_array(X[0]),
    "structured": np.zeros(3, dtype=[("a", float)]),
    "dates": DATES,
    "durations": DATES - DATES,
    "a matrix": X.view(np.matrix),  # asmatrix would warn of what is tested here
    "ragged": [[1, 2], [3]],
    "a generator": (row for row in X),
    "a set": {1, 2},
    "a dictionary": {"a": [1]},
    "nothing": None,
    "a series": pd.Series([1, 2, 3]),
    "an empty table": pd.DataFrame(),
    "dates in a table": pd.DataFrame(DATES.astype("datetime64[ns]"), columns=list("abc")),
    "dates beside numbers": pd.DataFrame({"a": pd.date_range("2020", periods=2), "b": [1, 2]}),
    "dates in polars": pl.DataFrame({"a": pd.date_range("2020", periods=2), "b": [1, 2]}),
    "a name twice": pd.DataFrame(X[:, :2], columns=["a", "a"]),
    "names and numbers": pd.DataFrame(X[:, :2], columns=["a", 1]),
    "a lazy table that cannot be computed": pl.LazyFrame({"a": ["x"]}).cast(pl.Float64),
}
PRESETS = [efemb.PoissonEmbedding, efemb.GaussianEmbedding]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", NO_DATA)
def test_what_is_no_data(name: str, preset: Any) -> None:
    with pytest.raises(efemb.EfembError) as caught:
        preset(2).fit(NO_DATA[name])
    assert len(str(caught.value)) < 600
    assert isinstance(caught.value, ValueError | TypeError)


def quick(preset: Any) -> Any:
    return preset(2, max_iter=3, early_stopping=False, tol=0.0, random_state=0)


ALIKE: dict[str, Any] = {
    "objects": X.astype(object),
    "decimals": np.vectorize(Decimal, otypes=[object])(X),
    "fractions": np.vectorize(Fraction, otypes=[object])(X),
    "another byte order": X.astype(">f8"),
    "small integers": X.astype(np.int8),
    "large unsigned integers": X.astype(np.uint64),
    "Fortran order": np.asfortranarray(X),
    "backwards in memory": X[::-1, ::-1].copy()[::-1, ::-1],
    "a list": X.tolist(),
    "nothing masked": np.ma.masked_array(X),
    "nullable": pd.DataFrame(X).convert_dtypes(),
    "of arrow": pd.DataFrame(X).convert_dtypes(dtype_backend="pyarrow"),
    "sparse columns": pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X)),
    **{kind: sparse.csr_array(X).asformat(kind) for kind in ("csc", "coo", "lil", "dok", "bsr")},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ALIKE)
def test_the_same_numbers_give_the_same_model(name: str) -> None:
    expected = quick(efemb.PoissonEmbedding).fit(X)
    found = quick(efemb.PoissonEmbedding).fit(ALIKE[name])
    np.testing.assert_allclose(found.embedding_, expected.embedding_, rtol=1e-5)
    assert found.score(ALIKE[name]) == pytest.approx(expected.score(X), rel=1e-5)


NAMES = [f"item {n}" for n in range(X.shape[1])]
TABLE = pa.table(list(X.T), names=NAMES)
TABLES: dict[str, Callable[[], Any]] = {
    "lazy": lambda: pl.DataFrame(X, schema=NAMES).lazy(),
    "reader": lambda: TABLE.to_reader(max_chunksize=7),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_not_in_memory_give_the_same_model(name: str) -> None:
    table = TABLES[name]
    frame = pl.DataFrame(X, schema=NAMES)
    expected = quick(efemb.PoissonEmbedding).fit(frame)
    model = quick(efemb.PoissonEmbedding).fit(table())
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    assert list(model.vocabulary_) == NAMES
    assert model.score(table()) == model.fitted().score(table()) == expected.score(frame)
    assert model.score(table(), unknown="skip") == expected.score(frame)
    np.testing.assert_array_equal(efemb.Dataset(table()).values, X)
    baseline = efemb.baselines.Popularity().fit(table())
    assert baseline.score(table()) == efemb.baselines.Popularity().fit(frame).score(frame)
    assert model.complete(table(), n=1) == expected.complete(frame, n=1)
    held_out = efemb.evaluation.leave_one_out(model, table())
    assert held_out.summary() == efemb.evaluation.leave_one_out(expected, frame).summary()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_masked_is_missing() -> None:
    signals = neurons()
    hidden = np.zeros(signals.shape, bool)
    hidden[3, 2] = hidden[7, 0] = True
    gaps = np.where(hidden, np.nan, signals)
    masked = np.ma.masked_array(np.where(hidden, 99.0, signals), hidden)
    one, two = (quick(efemb.GaussianEmbedding).fit(values) for values in (gaps, masked))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    np.testing.assert_array_equal(efemb.Dataset(masked).values, gaps)
    with pytest.raises(efemb.DataError, match="poisson needs observed values"):
        quick(efemb.PoissonEmbedding).fit(np.ma.masked_array(X, X > 2))
    assert np.isnan(efemb.Dataset(np.ma.masked_array(X.astype(int), X > 2)).values).any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_loaded_model_takes_tables_by_their_names_and_checks_its_data(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=[f"item {n}" for n in range(X.shape[1])])
    model = quick(efemb.PoissonEmbedding).fit(table)
    model.save(tmp_path / "model")
    found = efemb.load(tmp_path / "model")
    expected = model.score(table)
    for same in (table, pl.from_pandas(table), pa.Table.from_pandas(table), X, table.to_numpy()):
        assert found.score(same) == pytest.approx(expected, rel=1e-6)
    turned = table[table.columns[::-1]]
    for other in (turned, pl.from_pandas(turned), pa.Table.from_pandas(turned)):
        for ask in (found.score, found.conditional):
            with pytest.raises(efemb.DataError, match="in the same order"):
                ask(other)
    for bad, rule in ((-X, ">= 0"), (X * np.nan, "observed values"), (X * 1e300, "not exceed")):
        for ask in (found.score, found.conditional):
            with pytest.raises(efemb.DataError, match=rule):
                ask(bad)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_amounts_are_contexts_of_a_model_of_presence_but_not_its_observations() -> None:
    found = quick(efemb.BernoulliEmbedding).fit(np.minimum(X, 1)).fitted()
    assert np.isfinite(found.conditional(X)).all()
    with pytest.raises(efemb.DataError, match=r"numbers >= 0 and <= 1; .* 0 and 1 where only"):
        found.score(X)


def test_sparse_rows_that_are_not_there() -> None:
    """scipy would write past the end of an array while it turns columns into rows."""
    parts = (np.ones(3), np.array([0, 1, 2]), np.array([0, 1, 2, 3]))
    with pytest.raises(efemb.DataError, match="column 2 has an entry in row 2, but there are 2"):
        efemb.PoissonEmbedding(2).fit(sparse.csc_array(parts, shape=(2, 3)))


class Broken:
    """An array of another package whose conversion ends in an error."""

    shape = (3, 3)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self.error


class Anything:
    """Every attribute and every call is itself, as in a mock or a remote proxy."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self


class Endless:
    """Indexing never ends at a number, so NumPy's conversion would not return."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, _: object) -> Any:
        return self


PRETENDERS: dict[str, tuple[Any, type[efemb.EfembError]]] = {
    "a tensor with a gradient": (Broken(RuntimeError("requires grad")), efemb.InputTypeError),
    "larger than memory": (Broken(MemoryError()), efemb.MemoryEstimateError),
    "a proxy": (Anything(), efemb.InputTypeError),
    "without an end": (Endless(), efemb.InputTypeError),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "Dataset": efemb.Dataset,
    "a model": efemb.PoissonEmbedding(2).fit,
    "a baseline": efemb.baselines.Popularity().fit,
    "BasketEmbedding": efemb.BasketEmbedding(2).fit,
    "read_traces": lambda pretender: efemb.read_traces(pretender, pretender),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("pretender", "error"), PRETENDERS.values(), ids=PRETENDERS)
def test_what_only_pretends_to_be_an_array(
    call: Callable[[Any], Any], pretender: Any, error: type[efemb.EfembError]
) -> None:
    with pytest.raises(error):
        call(pretender)


@pytest.mark.parametrize("source", [Anything(), type, sparse.csr_array(X)])
@pytest.mark.parametrize("read", [efemb.read_text, efemb.CBOW(2).fit])
def test_what_is_not_text(read: Callable[[Any], Any], source: Any) -> None:
    with pytest.raises(efemb.InputTypeError):
        read(source)


@pytest.mark.parametrize("source", [[{"trip": 1, "item": "a"}], [None], [b"a b"]])
def test_lists_that_are_neither_baskets_nor_tables(source: Any) -> None:
    for options in ({"layout": "lines"}, {"basket": "trip", "item": "item"}):
        with pytest.raises(efemb.InputTypeError, match=r"not (dict|NoneType|bytes)"):
            efemb.read_baskets(source, **options)
