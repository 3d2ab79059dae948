"""What cannot be judged is refused, by an error that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import efemb
from efemb.evaluation import compare, held_out_entries, leave_fold_out, leave_one_out
from estimators.samples import baskets, neurons
from evaluation.plain import Table, embedding

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Array = Any
X = baskets(20, 5)
LABELS = list("abcde")
COUNTS = embedding(efemb.PoissonEmbedding(2), 5)
LABELED = embedding(efemb.PoissonEmbedding(2), 5, vocabulary=efemb.Vocabulary(LABELS))
BINARY = embedding(efemb.BernoulliEmbedding(2), 5)
REAL = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), tol=10.0, random_state=0).fit(
    neurons(30, 5)
)
UNIFORM = Table(lambda row: np.zeros(5))


def with_value(value: float) -> Array:
    changed = X.copy()
    changed[3, 2] = value
    return changed


@pytest.mark.parametrize(
    ("model", "data", "error", "words"),
    [
        (COUNTS, X[:, :4], efemb.DataError, "entities"),
        (UNIFORM, X[:, :4], efemb.DataError, "other entities"),
        (COUNTS, X[0], efemb.DataError, "rows x entities"),
        (COUNTS, with_value(-1.0), efemb.DataError, "row 3"),
        (COUNTS, with_value(np.nan), efemb.DataError, "NaN"),
        (COUNTS, with_value(np.inf), efemb.DataError, "infinite"),
        (BINARY, X + 1, efemb.DataError, "0 or 1|<= 1"),
        (COUNTS, np.eye(5), efemb.DataError, "no context"),
        (COUNTS, np.zeros((3, 5)), efemb.DataError, "no context"),
        (COUNTS, "no such file.csv", efemb.EfembError, "no such file"),
        (COUNTS, [["a", "b"]], efemb.InputTypeError, "numbers"),
        (REAL, np.full((3, 5), np.nan), efemb.DataError, "missing"),
        (REAL, neurons(4, 4), efemb.DataError, "have 4 entities, the model has 5"),
        ("a model", X, efemb.InputTypeError, "fitted model"),
        (None, X, efemb.InputTypeError, "fitted model"),
        (efemb.PoissonEmbedding(2), X, efemb.ParameterError, "fit"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value,
)
def test_leave_one_out_refuses(model: Any, data: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        leave_one_out(model, data)


def test_text_goes_another_way() -> None:
    words = efemb.Corpus([0, 1, 0, 1], [0, 4], efemb.Vocabulary("ab"))
    with pytest.raises(efemb.ParameterError, match="held_out_words"):
        leave_one_out(COUNTS, words)
    model = embedding(efemb.CBOW(2), 5)
    with pytest.raises(efemb.ParameterError, match="held_out_words"):
        leave_one_out(model, X)


def test_a_model_that_gives_no_number_is_named() -> None:
    broken = Table(lambda row: np.full(5, np.nan))
    with pytest.raises(efemb.DataError, match=r"Table.log_means returned NaN.*row 0"):
        leave_one_out(broken, X)

    class Silent(Table):
        def log_means(self, X: Any, rows: Array, entities: Array) -> Any:
            return iter(())

    with pytest.raises(efemb.DataError, match="returned NaN"):
        leave_one_out(Silent(lambda row: row), X)

    class Wrong:
        family_ = efemb.Gaussian()

        def __init__(self, shape: Any, value: float) -> None:
            self.shape, self.value = shape, value

        def conditional(self, X: Any) -> Array:
            return np.full(self.shape, self.value)

    with pytest.raises(efemb.DataError, match=r"shape \(20,\)"):
        leave_one_out(Wrong((20,), 0.0), X)
    with pytest.raises(efemb.DataError, match="returned nan in row 0, entity 0"):
        leave_one_out(Wrong((20, 5), np.nan), X)

    class Unranked:
        family_ = efemb.Poisson()

        def conditional(self, X: Any) -> Array:
            return np.ones((20, 5))

    with pytest.raises(efemb.InputTypeError, match="log_means"):
        leave_one_out(Unranked(), X)


# -- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [list("abcdf"), list("vwxyz")], ids=["one other", "all others"])
def test_data_of_other_entities_are_refused(labels: list[str]) -> None:
    with pytest.raises(efemb.DataError, match="not those of the model"):
        leave_one_out(LABELED, efemb.Dataset(X, entities=labels))


def test_data_of_fewer_entities_are_refused() -> None:
    with pytest.raises(efemb.DataError, match="lack 'e'"):
        leave_one_out(LABELED, efemb.Dataset(X[:, :4], entities=LABELS[:4]))


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_frames_are_told_apart_by_their_columns(frame: str) -> None:
    plain = leave_one_out(LABELED, X).normalized_log_likelihood()
    turned = pd.DataFrame(X, columns=LABELS)[LABELS[::-1]]
    if frame == "polars":
        turned = pl.from_pandas(turned)
    found = leave_one_out(LABELED, turned).normalized_log_likelihood()
    assert found.value == pytest.approx(plain.value)


def test_labels_in_another_order_through_every_protocol() -> None:
    real = efemb.Dataset(neurons(30, 5), entities=LABELS)
    options: dict[str, Any] = {"max_iter": 3, "random_state": 0}
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), **options).fit(real)
    turned = real.take_entities(np.arange(5)[::-1])
    assert leave_one_out(model, turned).mean_squared_error().value == pytest.approx(
        leave_one_out(model, real).mean_squared_error().value
    )
    counts = efemb.Dataset(sparse.csr_array(X), entities=LABELS)
    train, test = counts.split(test=0.2, seed=0, by="entries")
    expected = held_out_entries(LABELED, train, test).normalized_log_likelihood()
    mixed = test.take_entities([2, 0, 1, 4, 3])
    found = held_out_entries(LABELED, train, mixed).normalized_log_likelihood()
    assert found.value == pytest.approx(expected.value), "entries in another order than X"
    both = train.take_entities([2, 0, 1, 4, 3])
    found = held_out_entries(LABELED, both, mixed).normalized_log_likelihood()
    assert found.value == pytest.approx(expected.value)


def test_models_that_order_entities_differently_are_paired_rightly() -> None:
    data = efemb.Dataset(X, entities=LABELS)
    order = np.array([3, 1, 4, 0, 2])
    turned = data.take_entities(order)
    p = LABELED.parameters
    same = efemb.fitted.FittedEmbedding(
        efemb.model.parameters.Parameters(p.rho[order], p.alpha[order], p.intercept[order]),
        LABELED.spec,
        turned.entities,
    )
    table = compare({"a": LABELED, "b": same}, data)
    assert table["difference"].tolist() == pytest.approx([0.0, 0.0])
    assert table["difference_error"].tolist() == pytest.approx([0.0, 0.0])


def test_the_columns_that_scikit_learn_keeps_are_labels_too() -> None:
    plain = Table(lambda row: np.log([5.0, 4.0, 3.0, 2.0, 1.0]))
    expected = leave_one_out(plain, X).normalized_log_likelihood().value
    plain.feature_names_in_ = np.array(LABELS, dtype=object)  # type: ignore[attr-defined]
    turned = efemb.Dataset(X, entities=LABELS).take_entities([4, 3, 2, 1, 0])
    found = leave_one_out(plain, turned).normalized_log_likelihood()
    assert found.value == pytest.approx(expected)


def test_numbers_and_their_text_are_one_label() -> None:
    model = embedding(efemb.PoissonEmbedding(2), 5, vocabulary=efemb.Vocabulary(range(5)))
    data = efemb.Dataset(X[:, ::-1], entities=[str(n) for n in range(4, -1, -1)])
    assert leave_one_out(model, data).normalized_log_likelihood().value == pytest.approx(
        leave_one_out(model, X).normalized_log_likelihood().value
    )


# -- held-out entries and folds ------------------------------------------------------------------


def test_held_out_entries_refuses() -> None:
    held = np.zeros_like(X)
    held[2, 0] = X[2, 0]
    left = X - held
    with pytest.raises(
        efemb.DataError, match="1 held-out entries are still in X, the first in row"
    ):
        held_out_entries(COUNTS, X, held)
    with pytest.raises(efemb.DataError, match=r"shape \(19, 5\)"):
        held_out_entries(COUNTS, left, held[:19])
    with pytest.raises(efemb.DataError, match="entries is empty"):
        held_out_entries(COUNTS, left, np.zeros_like(X))
    with pytest.raises(efemb.DataError, match="empty without the held-out entries"):
        held_out_entries(COUNTS, np.where(np.arange(20)[:, None] == 2, 0, X), held)
    with pytest.raises(efemb.DataError, match="row 2"):
        held_out_entries(COUNTS, left, -held)
    labeled = efemb.Dataset(left, entities=LABELS)
    with pytest.raises(efemb.DataError, match="not those"):
        held_out_entries(LABELED, labeled, efemb.Dataset(held, entities=list("vwxyz")))
    real = neurons(10, 5)
    with pytest.raises(efemb.DataError, match="still in X"):
        held_out_entries(REAL, real, sparse.csr_array(np.eye(10, 5)))


@pytest.mark.parametrize(
    ("folds", "error"),
    [
        (1, efemb.ParameterError),
        (0, efemb.ParameterError),
        (6, efemb.ParameterError),
        (2.0, efemb.InputTypeError),
        (True, efemb.InputTypeError),
        ("4", efemb.InputTypeError),
    ],
)
def test_folds_are_between_two_and_the_number_of_entities(folds: Any, error: Any) -> None:
    with pytest.raises(error, match="folds"):
        leave_fold_out(REAL, neurons(10, 5), folds=folds)


def test_counts_have_no_folds() -> None:
    with pytest.raises(efemb.ParameterError, match="leave_one_out"):
        leave_fold_out(COUNTS, X)


def test_nothing_but_empty_contexts_is_refused() -> None:
    """Only entity 0 is observed, and it is not in its own context."""
    alone = np.full((6, 5), np.nan)
    alone[:, 0] = 1.0
    with pytest.raises(efemb.DataError, match="every context is empty"):
        leave_one_out(REAL, alone)
    with pytest.raises(efemb.DataError, match="every context is empty"):
        leave_fold_out(REAL, alone, folds=2)


@pytest.mark.parametrize("options", [{"n_words": 0}, {"n_words": 2.5}, {"n_candidates": 0}])
def test_numbers_of_words_are_whole(options: dict[str, Any]) -> None:
    text = efemb.Corpus([0, 1, 0, 1], [0, 4], ["a", "b"])
    model = efemb.CBOW(2, min_count=1, random_state=0).fit(text)
    with pytest.raises(efemb.EfembError, match=f"{next(iter(options))} must be"):
        efemb.evaluation.held_out_words(model, text, **options)


def test_words_need_a_model_and_seeds_are_whole_numbers() -> None:
    with pytest.raises(efemb.InputTypeError, match="needs a text model, got str"):
        efemb.evaluation.held_out_words("x", ["a b"])
    with pytest.raises(efemb.ParameterError, match="seed=-1 must be a whole number"):
        leave_fold_out(REAL, neurons(30, 5), folds=2, seed=-1)
