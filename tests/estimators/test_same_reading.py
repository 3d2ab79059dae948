"""Estimators, fitted models, loaded models and continued fits read data in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb.inference import laplace

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAMES = list("abcde")
QUICK: dict[str, Any] = {"max_iter": 4, "random_state": 0, "dtype": "float64"}
FORMS = ["estimator", "fitted", "loaded", "resumed"]


def counts(n_rows: int = 60, seed: int = 0) -> Any:
    return np.random.default_rng(seed).poisson([0.3, 0.6, 1.0, 1.5, 2.5], (n_rows, 5)).astype(float)


def forms(model: Any, folder: Path) -> dict[str, Any]:
    model.save(folder / "model")
    loaded = efemb.load(folder / "model")
    resumed = type(model).from_fitted(loaded)
    return dict(zip(FORMS, (model, model.fitted(), loaded, resumed), strict=True))


def fitted_to(X: Any, **options: Any) -> Any:
    return efemb.PoissonEmbedding(2, **QUICK, **options).fit(X)


FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "pyarrow": lambda X, names: pl.DataFrame(X, schema=names).to_arrow(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_columns_in_another_order_are_never_taken_by_their_place(
    make: Any, form: str, tmp_path: Path
) -> None:
    """The columns differ in their means, so that a mixed-up frame would have another score."""
    X = counts()
    known = forms(fitted_to(efemb.Dataset(X, entities=NAMES)), tmp_path)
    model, frame, mixed = known[form], make(X, NAMES), make(X[:, ::-1], NAMES[::-1])
    assert model.score(frame) == pytest.approx(known["estimator"].score(X), rel=1e-12)
    assert_array_equal(model.conditional(frame), known["estimator"].conditional(X))
    assert_array_equal(model.transform(frame), known["estimator"].transform(X))
    for ask in (model.score, model.conditional, model.transform):
        with pytest.raises(efemb.DataError, match=r"'e'.*'a'.*aligned"):
            ask(mixed)
    right = efemb.data.aligned(efemb.Dataset(mixed), model.fitted().vocabulary)
    assert model.score(right) == pytest.approx(model.score(X), rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_fit_to_a_frame_is_as_strict(form: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(counts(), columns=NAMES)
    model = forms(fitted_to(frame), tmp_path)[form]
    model.score(frame)
    for wrong in (frame[NAMES[::-1]], frame.rename(columns={"b": "x"}), frame[NAMES[:4]]):
        with pytest.raises(ValueError, match=r"(?i)feature|column|entities"):
            model.score(wrong)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "labels", [NAMES, [str(i) for i in range(5)], [f"{9 + i}" for i in range(5)]]
)
@pytest.mark.parametrize("source", ["frame", "dataset"])
def test_numbered_columns_are_read_alike_by_scores_and_protocols(
    source: str, labels: list[str], form: str, tmp_path: Path
) -> None:
    """0, 1, ... are places, or labels where the model has them; other numbers are labels."""
    X = counts()
    frame = pd.DataFrame(X, columns=labels)
    model = forms(
        fitted_to(frame if source == "frame" else efemb.Dataset(X, entities=labels)), tmp_path
    )[form]
    numbered = pd.DataFrame(X)
    assert model.score(numbered) == pytest.approx(model.score(frame), rel=1e-12)
    found = efemb.evaluation.leave_one_out(model, numbered).normalized_log_likelihood().value
    assert found == pytest.approx(model.score(frame), rel=1e-9)
    other = pd.DataFrame(X, columns=range(20, 25))
    for ask in (model.score, model.conditional, lambda Y: efemb.evaluation.leave_one_out(model, Y)):
        with pytest.raises(
            efemb.DataError, match="the entities of the data are not those of the model"
        ):
            ask(other)


def test_numbers_that_are_labels_are_never_places() -> None:
    X = counts()
    model = fitted_to(efemb.Dataset(X, entities=[4, 3, 2, 1, 0]))
    mixed = pd.DataFrame(X[:, ::-1])
    for ask in (model.score, model.fitted().score):
        with pytest.raises(efemb.DataError, match="aligned"):
            ask(mixed)
    with pytest.raises(efemb.DataError, match="aligned"):
        model.complements(4, data=mixed)
    found = efemb.evaluation.leave_one_out(model, mixed).normalized_log_likelihood().value
    assert found == pytest.approx(model.score(X), rel=1e-9)


def test_questions_about_pairs_match_names_too() -> None:
    X = counts()
    model = fitted_to(efemb.Dataset(X, entities=NAMES))
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(efemb.DataError, match="aligned"):
        model.complements("a", data=frame[NAMES[::-1]])
    told = model.complements("a", data=frame)
    assert told["count"].tolist() == model.complements("a", data=X)["count"].tolist()


@pytest.mark.parametrize(
    "model",
    [
        efemb.PoissonEmbedding(2, combine="reverse", **QUICK),
        efemb.PoissonEmbedding(2, structure="tied", **QUICK),
        efemb.GaussianEmbedding(2, context=efemb.Lagged((-1, 1), of=efemb.Neighbors(2)), **QUICK),
        efemb.BernoulliEmbedding(2, binarize=True, **QUICK),
    ],
    ids=["reverse", "tied", "lagged", "binarize"],
)
def test_rows_are_embedded_alike(model: Any, tmp_path: Path) -> None:
    X = counts()
    known = forms(model.fit(X), tmp_path)
    for one in known.values():
        assert_array_equal(one.transform(X), model.transform(X))


@pytest.mark.parametrize("form", FORMS)
def test_numbered_columns_are_no_names(form: str, tmp_path: Path) -> None:
    """0, 1, ... is what pandas calls the columns of an array."""
    X = counts()
    model = forms(fitted_to(efemb.Dataset(X, entities=NAMES)), tmp_path)[form]
    assert model.score(pd.DataFrame(X)) == pytest.approx(model.score(X), rel=1e-12)


def test_numbers_can_be_names() -> None:
    X, ids = counts(), [901, 17, 350, 42, 7]
    model = fitted_to(efemb.Dataset(X, entities=ids)).fitted()
    frame = pd.DataFrame(X, columns=ids)
    assert model.score(frame) == pytest.approx(model.score(X), rel=1e-12)
    assert model.score(frame.rename(columns=str)) == pytest.approx(model.score(X), rel=1e-12)
    with pytest.raises(efemb.DataError, match=r"column 0 is 7.*901"):
        model.score(frame[ids[::-1]])


def test_a_second_fit_forgets_the_labels_of_the_first() -> None:
    model = fitted_to(efemb.Dataset(counts(), entities=NAMES))
    other = efemb.Dataset(counts(seed=1), entities=list("vwxyz"))
    model.fit(other, validation=efemb.Dataset(counts(20, seed=2), entities=list("vwxyz")))
    assert model.vocabulary_.labels.tolist() == list("vwxyz")
    with pytest.raises(efemb.DataError, match=r"'a'.*'v'"):
        model.fit(other, validation=efemb.Dataset(counts(20, seed=2), entities=NAMES))


# -- binarize ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("context", ["basket", efemb.Neighbors(2)], ids=["rows", "neighbors"])
def test_what_turns_counts_into_ones_goes_on_doing_so(
    context: Any, form: str, tmp_path: Path
) -> None:
    X = counts()
    ones = (X > 0).astype(float)
    made = efemb.BernoulliEmbedding(2, context=context, binarize=True, **QUICK)
    known = forms(made.fit(efemb.Dataset(X, entities=NAMES)), tmp_path)
    plain = efemb.BernoulliEmbedding(2, context=context, **QUICK)
    plain.fit(efemb.Dataset(ones, entities=NAMES))
    model = known[form]
    assert model.score(X) == pytest.approx(plain.score(ones), rel=1e-9)
    assert_allclose(model.conditional(X), plain.conditional(ones), rtol=1e-9)
    found, expected = (one.predict({"a": 3, "b": 2}) for one in (model, plain))
    told = plain.predict({"a": 1, "b": 1})
    assert found["label"].tolist() == told["label"].tolist()
    assert_allclose(found["mean"], told["mean"], rtol=1e-9)
    assert not np.allclose(expected["mean"], told["mean"], rtol=1e-6)
    some = efemb.evaluation.leave_one_out(model, X)
    rest = efemb.evaluation.leave_one_out(plain, ones)
    assert_allclose(some.log_density, rest.log_density, rtol=1e-9)
    with pytest.raises(efemb.DataError, match="Negative"):
        model.score(-X)


def test_fold_in_and_laplace_of_a_loaded_model_see_ones(tmp_path: Path) -> None:
    X = counts(80)
    data = efemb.Dataset(X, entities=NAMES)
    made = efemb.BernoulliEmbedding(2, binarize=True, **QUICK).fit(data.take_entities(slice(0, 4)))
    made.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert_array_equal(
        loaded.fold_in(data).parameters.rho, made.fold_in(data).parameters.rho, strict=True
    )
    assert loaded.fold_in(data).binarize
    some = data.take_entities(slice(0, 4))
    errors = [laplace(one, some).interval("a", "b").standard_error for one in (made, loaded)]
    assert errors[0] == errors[1]


def test_only_a_model_that_can_binarize_goes_on_from_one() -> None:
    fitted = efemb.BernoulliEmbedding(2, binarize=True, **QUICK).fit(counts()).fitted()
    assert efemb.BernoulliEmbedding.from_fitted(fitted).get_params()["binarize"] is True
    with pytest.raises(efemb.ParameterError, match=r"binarize.*BernoulliEmbedding"):
        efemb.Embedding.from_fitted(fitted)


@pytest.mark.parametrize("form", FORMS)
def test_values_that_the_family_cannot_have_are_refused(form: str, tmp_path: Path) -> None:
    model = forms(fitted_to(counts(), context=efemb.Basket("none")), tmp_path)[form]
    X = counts()
    X[3, 2] = -1.0
    for ask in (model.score, model.conditional):
        with pytest.raises(efemb.DataError, match=r"-1 \(first in row 3"):
            ask(X)
    X[3, 2] = np.nan
    with pytest.raises(efemb.DataError, match=r"NaN \(first in row 3"):
        model.score(X)
