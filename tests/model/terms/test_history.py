"""History: by its definition as a loop, and never from the row itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import efemb
from efemb.baselines import PersonalPopularity
from efemb.model.terms import History

N = 6


def trips(n_rows: int = 60, seed: int = 0, **columns: Any) -> efemb.Dataset:
    """Trips of four households over some weeks."""
    rng = np.random.default_rng(seed)
    rows = {
        "household": rng.choice(["a", "b", "c", "d"], n_rows),
        "week": rng.integers(0, 9, n_rows).astype(float),
    }
    return efemb.Dataset(csr_array(rng.poisson(0.8, (n_rows, N)) * 1.0), rows={**rows, **columns})


def loop(
    train: efemb.Dataset, data: efemb.Dataset, itself: Any, decay: float | None, timed: bool
) -> Any:
    """log(1 + h / (kappa pi)) by the definition; itself[t] is the training row that t is."""
    X, Y = train.values.toarray(), data.values.toarray()
    share = X.sum(axis=0) / X.sum()
    result = np.zeros(Y.shape)
    sources = [(train, X, s) for s in range(len(X))]
    if timed:
        sources += [(data, Y, s) for s in range(len(Y)) if itself[s] is None]
    for t in range(len(Y)):
        h = np.zeros(N)
        for source, values, s in sources:
            if source.rows["household"][s] != data.rows["household"][t]:
                continue
            if source is train and itself[t] == s:
                continue
            age = data.rows["week"][t] - source.rows["week"][s]
            if timed and not age > 0:
                continue
            h += values[s] * (1.0 if decay is None else np.exp(-age / decay))
        known = share > 0
        result[t, known] = np.log1p(h[known] / (7.0 * share[known]))
    return result


@pytest.mark.parametrize(("time", "decay"), [(None, None), ("week", None), ("week", 2.5)])
@pytest.mark.parametrize("same", [True, False], ids=["training rows", "other rows"])
def test_cells_are_those_of_the_definition(
    time: str | None, decay: float | None, same: bool
) -> None:
    train, other = trips(), trips(30, seed=1)
    data = train if same else other
    term = History("household", decay, time, kappa=7.0).freeze(train)
    bound = term.bind(data)
    rows = np.array([5, 5, 0, 17, 29, 11])
    itself = list(range(60)) if same else [None] * 30
    expected = loop(train, data, itself, decay, time is not None)
    cells = bound.cells({"coefficient": np.array([2.0])}, rows).products
    dense = np.zeros((len(rows), N))
    dense[cells.row, cells.ids] = cells.values
    assert_allclose(dense, 2.0 * expected[rows], rtol=1e-6, atol=1e-7)
    one = bound.cells({"coefficient": np.array([2.0])}, rows[3:4]).products  # without SciPy
    dense = np.zeros(N)
    dense[one.ids] = one.values
    assert_allclose(dense, 2.0 * expected[17], rtol=1e-6, atol=1e-7)


def test_training_rows_are_known_by_content_or_by_label() -> None:
    """In another order, as dense data, and with the label of another row."""
    train = trips()
    order = np.random.default_rng(2).permutation(60)
    arrays = {"coefficient": np.ones(1)}
    term = History("household").freeze(train)
    shuffled = term.bind(train.take_rows(order)).cells(arrays, np.arange(60)).products
    straight = term.bind(train).cells(arrays, order).products
    assert_array_equal(shuffled.values, straight.values)
    names = {"row": np.arange(60)}
    labeled = History("household").freeze(trips(**names))
    others = {"row": np.arange(60) + 100}
    itself = labeled.bind(trips(**names)).cells(arrays, np.arange(60)).products
    another = labeled.bind(trips(**others)).cells(arrays, np.arange(60)).products
    assert itself.values.sum() < another.values.sum()


def test_held_out_entries_are_not_in_the_history_of_their_own_row() -> None:
    """The rows that validation masks in a fit are known by all that they hold."""
    data = trips(200)
    model = efemb.PoissonEmbedding(1, random_state=0, terms=[History("household", kappa=7.0)])
    from efemb.engine.holdout import hold_out
    from efemb.engine.solvers.choice import Setup
    from efemb.engine.threads import workers

    spec = model._spec().freeze_terms(data)
    with workers(1) as pool:
        setup = Setup("rows", spec, pool, np.float64, 0)
        split = hold_out(spec.context.bind(data), 0.2, None, setup, np.random.default_rng(0))
    assert split.bound.data.values.nnz < data.values.nnz
    (_, bound), arrays = split.solver.side.terms[0], {"coefficient": np.ones(1)}
    rows = np.arange(200)
    expected = spec.terms[0].bind(data).cells(arrays, rows).products
    assert_array_equal(bound.cells(arrays, rows).products.values, expected.values)


def repeat_buyers(n_rows: int = 900) -> efemb.Dataset:
    """Households that buy the same few items over and over."""
    rng = np.random.default_rng(4)
    household = rng.integers(0, 40, n_rows)
    favorite = rng.random((40, 30)) < 0.12
    rate = np.where(favorite[household], 1.0, 0.02)
    labels = [f"item {n}" for n in range(30)]
    return efemb.Dataset(rng.poisson(rate).astype(float), entities=labels, rows={"user": household})


@pytest.mark.parametrize(
    "make",
    [
        efemb.PoissonEmbedding,
        efemb.CategoricalEmbedding,
        efemb.BernoulliEmbedding,
        efemb.AdditivePoissonEmbedding,
    ],
)
def test_a_fit_learns_who_buys_again(make: Any) -> None:
    options = {"binarize": True} if make is efemb.BernoulliEmbedding else {}
    train, test = repeat_buyers().split(test=0.3, seed=0)
    plain = make(2, random_state=0, **options).fit(train)
    model = make(2, random_state=0, terms=[History("user", kappa=20.0)], **options).fit(train)
    assert model.score(test) > plain.score(test) + 0.5
    if make in (efemb.PoissonEmbedding, efemb.AdditivePoissonEmbedding):
        counting = PersonalPopularity(kappa=20.0).fit(train)
        assert model.score(test) > counting.score(test) - 0.02  # there is nothing else to learn
    strangers = efemb.Dataset(test.values, rows={"user": np.full(test.n_rows, 999)})
    assert model.score(strangers) == pytest.approx(plain.score(test), abs=0.3)


def test_questions_know_the_household(tmp_path: Path) -> None:
    data = repeat_buyers()
    model = efemb.PoissonEmbedding(2, random_state=0, terms=[History("user", kappa=20.0)]).fit(data)
    user = 7
    mine = np.asarray(data.values[data.rows["user"] == user]).sum(axis=0)
    usual = [f"item {n}" for n in np.argsort(-mine)[:3]]
    answer = model.complete({"item 0": 1}, n=6, user=user)
    assert len(set(usual) & {"item 0", *answer["label"]}) >= 2
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert list(loaded.complete({"item 0": 1}, n=6, user=user)["label"]) == list(answer["label"])
    stranger = model.complete({"item 0": 1}, n=6, user="nobody")
    assert list(stranger["label"]) != list(answer["label"])


@pytest.mark.parametrize(
    ("options", "columns", "error", "rule"),
    [
        ({"decay": 3.0}, {}, efemb.ParameterError, "needs time="),
        ({"kappa": 0.0}, {}, efemb.ParameterError, "kappa must be > 0"),
        ({"time": 3}, {}, efemb.InputTypeError, "time must be a name"),
        ({"prior": "half-normal"}, {}, efemb.ParameterError, "signed"),
        ({"time": "day"}, {}, efemb.DataError, "'day', which the data lack .*'household', 'week'"),
        ({"time": "week"}, {"week": ["x"] * 60}, efemb.DataError, "numbers or dates"),
        ({}, {"household": np.arange(60)}, efemb.DataError, "no household has two training rows"),
    ],
)
def test_bad_histories_are_refused(options: Any, columns: Any, error: Any, rule: str) -> None:
    model = efemb.PoissonEmbedding(1, terms=[History("household", **options)])
    with pytest.raises(error, match=rule):
        model.fit(trips(**columns))


def test_signed_data_have_no_history() -> None:
    values = np.array([[1.0, -2.0], [0.5, 1.0], [1.0, 1.0]])
    data = efemb.Dataset(values, rows={"household": ["a", "a", "a"]})
    with pytest.raises(efemb.DataError, match="row 0 has -2"):
        History("household").freeze(data)


def test_dates_are_times_in_days() -> None:
    days = np.array(["2024-01-01", "2024-01-03", "NaT"], dtype="datetime64[D]")
    data = efemb.Dataset(np.eye(3), rows={"household": ["a"] * 3, "day": days})
    term = History("household", decay=2.0, time="day", kappa=3.0).freeze(data)
    cells = term.bind(data).cells({"coefficient": np.ones(1)}, np.arange(3)).products
    dense = np.zeros((3, 3))
    dense[cells.row, cells.ids] = cells.values
    assert_allclose(dense[1], [np.log1p(np.exp(-1.0)), 0.0, 0.0], rtol=1e-6)
    assert_allclose(dense[2], [np.log1p(np.exp(-1.0)), np.log1p(1.0), 0.0], rtol=1e-6)
