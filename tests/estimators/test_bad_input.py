"""Bad input: a typed error that names the place and the way out, and no half-fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import efemb
from estimators.samples import baskets, neurons

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
P, B, C, A = (
    efemb.PoissonEmbedding,
    efemb.BernoulliEmbedding,
    efemb.CategoricalEmbedding,
    efemb.AdditivePoissonEmbedding,
)
G = efemb.GaussianEmbedding


def put(X: Any, value: float, row: int = 17, entity: int = 3) -> Any:
    X = X.copy()
    X[row, entity] = value
    return X


def frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"item {n}" for n in range(X.shape[1])])


POSITIONS = np.random.default_rng(0).random((6, 2))
BAD_DATA: dict[str, tuple[Any, Any, str]] = {
    "NaN counts": (P(2), put(baskets(), np.nan), r"entity 3.*row 17|row 17.*entity 3"),
    "infinite counts": (P(2), put(baskets(), np.inf), r"row 17.*entity 3|entity 3.*row 17"),
    "negative counts": (P(2), put(baskets(), -1), r"entity 3 has -1 \(first in row 17"),
    "fractions": (P(2), put(baskets(), 0.5), r"has 0.5 \(first in row 17.*allow_real=True"),
    "fractions, sparse": (
        A(2),
        sparse.csr_array(put(baskets(), 0.5)),
        r"entity 3 has 0.5 \(first in row 17.*allow_real=True",
    ),
    "fractions, frame": (C(2), frame(put(baskets(), 0.5)), r"'item 3' has 0.5.*row 17"),
    "two for Bernoulli": (
        B(2),
        put(np.minimum(baskets(), 1), 2),
        r"0 or 1; entity 3 has 2 \(first in row 17.*binarize=True",
    ),
    "infinite reals": (G(2), put(neurons(), -np.inf), r"row 17, entity 3"),
    "zero rows": (P(2), np.empty((0, 8)), r"0 sample"),
    "one row": (P(2), baskets(1), r"at least 2 rows|n_samples"),
    "one entity": (P(2), np.ones((9, 1)), r"at least 2 entities"),
    "only empty rows": (P(2), np.zeros((9, 4)), r"every row is empty"),
    "baskets of one item": (P(2), np.eye(9), r"larger rows"),
    "every neuron constant": (G(2), np.ones((30, 4)), r"constant"),
    "a neuron never observed": (G(2), put(neurons(), np.nan, slice(None), 4), r"first: 4"),
    "one dimension": (P(2), baskets()[0], r"2D array"),
    "text": (P(2), np.array([["a", "b"], ["c", "d"]]), r"float"),
    "nothing": (P(2), None, r"2D array|None"),
}
BAD_ARGUMENTS: dict[str, tuple[Any, Any, str]] = {
    "K = 0": (P(0), {}, r"n_components must lie between 1 and"),
    "K < 0": (P(-3), {}, r"n_components must lie between 1 and"),
    "K huge": (P(10**9), {}, r"n_components must lie between 1 and"),
    "K a fraction": (P(2.5), {}, r"n_components must be an integer between 1 and .*, got 2.5"),
    "max_iter = 0": (P(2, max_iter=0), {}, r"max_iter"),
    "max_iter < 0": (P(2, max_iter=-3), {}, r"max_iter"),
    "max_iter a fraction": (P(2, max_iter=2.5), {}, r"max_iter"),
    "tol text": (P(2, tol="small"), {}, r"tol"),
    "tol negative": (P(2, tol=-1.0), {}, r"tol"),
    "n_iter_no_change = 0": (P(2, n_iter_no_change=0), {}, r"n_iter_no_change"),
    "validation_fraction = 1": (P(2, validation_fraction=1.0), {}, r"validation_fraction"),
    "validation_fraction text": (P(2, validation_fraction="a"), {}, r"validation_fraction"),
    "callbacks no list": (P(2, callbacks=print), {}, r"callbacks"),
    "callbacks not callable": (P(2, callbacks=[3]), {}, r"callbacks"),
    "negative weights": (P(2), {"sample_weight": -np.ones(60)}, r"sample_weight"),
    "weights NaN": (P(2), {"sample_weight": np.full(60, np.nan)}, r"sample_weight"),
    "weights all zero": (P(2), {"sample_weight": np.zeros(60)}, r"sample_weight"),
    "weights too few": (P(2), {"sample_weight": np.ones(5)}, r"sample_weight.*60 rows"),
    "validation of other entities": (P(2), {"validation": np.ones((5, 3))}, r"3 features"),
    "validation without pairs": (P(2), {"validation": np.eye(8)}, r"validation.*two or more"),
    "validation negative": (P(2), {"validation": -baskets()}, r"poisson needs"),
    "positions NaN": (G(2), {"positions": put(POSITIONS, np.nan, 2, 0)}, r"positions.*2"),
    "positions infinite": (G(2), {"positions": put(POSITIONS, np.inf, 2, 0)}, r"positions.*2"),
    "positions twice": (G(2), {"positions": POSITIONS[[0, 1, 2, 3, 4, 1]]}, r"1, 5.*share"),
    "positions too few": (G(2), {"positions": POSITIONS[:5]}, r"5 rows.*6 entities"),
    "k + 1 > N": (G(2, context=efemb.Neighbors(6)), {}, r"at least 7 entities.*use k <= 5"),
}
UNKNOWN: dict[str, tuple[Any, str]] = {
    "context": (P(2, context="baskt"), r"did you mean 'basket'\?.*neighbors"),
    "family": (P(2, family="poison"), r"did you mean 'poisson'\?.*gaussian"),
    "link": (P(2, link="logs"), r"did you mean 'log'\?.*identity"),
    "prior": (P(2, prior="normale"), r"did you mean 'normal'\?.*half-normal"),
    "zeros": (P(2, zeros="sample"), r"did you mean 'sampled'\?.*all"),
    "structure": (P(2, structure="tide"), r"did you mean 'tied'\?.*shared"),
    "combine": (P(2, combine="revers"), r"did you mean 'reverse'\?.*linear"),
    "optimizer": (P(2, optimizer="adagrads"), r"did you mean 'adagrad'\?.*lbfgs"),
    "solver": (P(2, solver="row"), r"did you mean 'rows'\?.*moments"),
    "scale": (P(2, context=efemb.Basket("totals")), r"did you mean 'total'\?.*items"),
    "sigma2": (G(2, family=efemb.Gaussian("learn")), r"learned"),
}
COMBINATIONS: dict[str, Any] = {
    "log link, normal prior": A(2, prior="normal"),
    "Bernoulli, log link": B(2, link="log", prior=None),
    "softmax, softplus": C(2, link="softplus"),
    "softmax on neighbors": C(2, context=efemb.Neighbors(2)),
    "softmax, sampled zeros": C(2, zeros=efemb.Sampled(3)),
    "softmax, weight of zeros": C(2, zero_weight=0.1),
    "softmax, weighted zeros": C(2, zeros=efemb.All(0.1)),
    "sampled zeros of neighbors": P(2, context=efemb.Neighbors(2), zeros=efemb.Sampled(3)),
    "tied, two priors": P(2, structure="tied", prior=("normal", "half-normal")),
    "tied, two precisions": P(2, structure="tied", prior=(efemb.Normal(1), efemb.Normal(2))),
    "tied, several slots": P(2, structure="tied", context=efemb.Lagged((-1, 1))),
    "penalty without intercept": P(2, intercept=False, intercept_prior="normal"),
    "positive penalty on a signed intercept": P(2, intercept_prior="half-normal"),
    "rows on neighbors": P(2, context=efemb.Neighbors(2), solver="rows"),
    "moments on baskets": P(2, solver="moments"),
    "moments on counts": P(2, context=efemb.Neighbors(2), solver="moments"),
    "reverse of explicit lists": P(
        2, context=efemb.Explicit(np.zeros(481, int), []), combine="reverse"
    ),
    "shared vectors of other entities": P(2, structure=efemb.Shared([0, 1, 1])),
}


def refused(model: Any, X: Any, match: str, **arguments: Any) -> Exception:
    """Fit must raise, and leave the estimator as it was: unfitted."""
    before = dict(model.__dict__)
    with pytest.raises((ValueError, TypeError), match=match) as caught:
        model.fit(X, **arguments)
    assert model.__dict__ == before
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    return caught.value


# These are said by scikit-learn, before the data reach us.
BY_SCIKIT_LEARN = ("zero rows", "one dimension", "text", "nothing", "validation of other entities")


@pytest.mark.parametrize("case", sorted(BAD_DATA))
def test_bad_data_are_refused(case: str) -> None:
    model, X, match = BAD_DATA[case]
    error = refused(model, X, match)
    assert isinstance(error, efemb.EfembError) or case in BY_SCIKIT_LEARN


@pytest.mark.parametrize("case", sorted(BAD_ARGUMENTS))
def test_bad_arguments_are_refused(case: str) -> None:
    model, arguments, match = BAD_ARGUMENTS[case]
    X = neurons() if isinstance(model, G) else baskets()
    error = refused(model, X, match, **arguments)
    assert isinstance(error, efemb.EfembError) or case in BY_SCIKIT_LEARN


@pytest.mark.parametrize("case", sorted(UNKNOWN))
def test_unknown_names_list_the_choices_and_the_nearest(case: str) -> None:
    model, match = UNKNOWN[case]
    error = refused(model, neurons() if isinstance(model, G) else baskets(), match)
    assert isinstance(error, efemb.ParameterError)


@pytest.mark.parametrize("case", sorted(COMBINATIONS))
def test_ingredients_that_do_not_go_together_are_refused(case: str) -> None:
    model = COMBINATIONS[case]
    X = np.minimum(baskets(), 1) if isinstance(model, B) else baskets()
    error = refused(model, X, r"\w+ \w+")
    assert isinstance(error, efemb.EfembError)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_an_earlier_fit_is_kept(how: str) -> None:
    model = P(2, random_state=0, max_iter=3).fit(baskets())
    kept, score = model.embedding_, model.score(baskets())
    for X, match in (
        (put(baskets(), -1), "poisson needs"),
        (np.eye(8), "only one entity"),
        (efemb.Dataset(np.full((4, 8), np.nan)), "poisson needs"),
    ):
        with pytest.raises(efemb.DataError, match=match):
            getattr(model, how)(X)
        assert model.embedding_ is kept
        assert model.n_features_in_ == 8
        assert model.score(baskets()) == score


@pytest.mark.parametrize("method", ["transform", "score", "conditional", "fitted"])
def test_an_unfitted_estimator_says_so(method: str) -> None:
    arguments = () if method == "fitted" else (baskets(),)
    with pytest.raises(NotFittedError):
        getattr(P(2), method)(*arguments)


@pytest.mark.parametrize("method", ["transform", "score", "conditional"])
def test_predictions_check_their_data_too(method: str) -> None:
    model = P(2, random_state=0, max_iter=3).fit(baskets())
    for X, match in ((put(baskets(), -1), "poisson needs"), (np.ones((5, 3)), "features")):
        with pytest.raises(ValueError, match=match):
            getattr(model, method)(X)
    with pytest.raises(efemb.DataError, match=r"have 3 entities, the model has 8$"):
        getattr(model, method)(efemb.Dataset(np.ones((5, 3))))


def test_data_of_other_labels_are_told_the_way_to_those_of_the_model() -> None:
    labels = [f"item {i}" for i in range(8)]
    model = P(2, random_state=0, max_iter=3).fit(efemb.Dataset(baskets(), entities=labels))
    other = efemb.Dataset(sparse.csr_array(baskets(n_entities=9)), entities=["new", *labels])
    for asked in (model, model.fitted()):
        with pytest.raises(efemb.DataError, match=r"efemb\.data\.aligned\(data, vocabulary\)"):
            asked.score(other)
        assert np.isfinite(asked.score(efemb.data.aligned(other, model.vocabulary_)))


def test_an_empty_basket_is_dropped_and_counted() -> None:
    X = baskets()
    model = P(2, random_state=0, max_iter=5, early_stopping=False, dtype="float64")
    plain = model.fit(X).embedding_
    gaps = model.fit(np.insert(X, [0, 7, 60], 0.0, axis=0))
    assert gaps.report_["empty_rows_dropped"] == 3
    assert_array_equal(gaps.embedding_, plain)
    weight = np.insert(np.full(60, 2.0), [0, 7, 60], 5.0)
    weighted = model.fit(np.insert(X, [0, 7, 60], 0.0, axis=0), sample_weight=weight).embedding_
    assert_array_equal(weighted, model.fit(X, sample_weight=np.full(60, 2.0)).embedding_)


@pytest.mark.slow
@pytest.mark.parametrize("make", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("preset", [P, A, B, C])
def test_an_all_zero_column_is_kept_and_reported(preset: Any, make: Any) -> None:
    X = np.insert(np.minimum(baskets(), 1), 3, 0.0, axis=1)
    model = preset(2, random_state=0).fit(make(X))
    assert model.report_["unused_entities"] == [3]
    assert model.embedding_.shape == (9, 2)
    assert all(np.isfinite(array).all() for array in model.parameters_.arrays())
    means = model.conditional(X)
    assert means[:, 3].max() < means[:, [0, 1]].min(), "what never occurs is not expected"


def test_the_vectors_of_an_unused_entity_stay_at_the_prior() -> None:
    X = np.insert(baskets(), 3, 0.0, axis=1)
    model = P(2, random_state=0, early_stopping=False, dtype="float64", max_iter=3000).fit(X)
    # Nothing ever has it in a context, so only the prior speaks: its context vector goes to 0.
    assert np.abs(model.context_[3]).max() < 0.02 * np.abs(model.context_).max() + 1e-3


def test_offsets_beyond_every_recording_are_refused() -> None:
    data = efemb.Dataset(neurons(60), recordings=np.repeat([0, 1, 2], 20))
    for context in (efemb.Lagged((-20,)), efemb.Neighbors(2) + efemb.Lagged((-1, 30))):
        with pytest.raises(efemb.DataError, match="reaches beyond every recording: of 60 rows"):
            G(2, context=context).fit(data)
    G(2, context=efemb.Lagged((-19,)), max_iter=3).fit(data)


def test_a_constant_neuron_is_kept_and_reported() -> None:
    X = np.insert(neurons(), 2, 4.0, axis=1)
    model = G(2, random_state=0).fit(X)
    assert model.report_["constant_entities"] == [2]
    assert_array_equal(model.embedding_[2], 0.0)
    assert model.vectors().similar(2, 3)["similarity"].tolist() == [0.0] * 3
    pairs = np.random.default_rng(0).normal(size=(50, 6, 2))
    pairs[:, 2] = 1.5
    assert_array_equal(G(2, random_state=0).fit(pairs).embedding_[2], 0.0)
    assert np.isfinite(model.score(X))
    assert_array_equal(np.isfinite(model.conditional(X)), True)


@pytest.mark.parametrize("preset", [P, A, C, G])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_counts_of_1e30_are_refused_with_their_place(preset: Any, dtype: str) -> None:
    X = put(neurons() if preset is G else baskets(), 1e30)
    model = preset(2, dtype=dtype)
    error = refused(model, X, r"entity 3 has 1e\+30 \(first in row 17.*scale the data")
    assert isinstance(error, efemb.DataError)


def test_64_bit_indices_are_the_same_data() -> None:
    short = sparse.csr_array(baskets())
    wide = sparse.csr_array(
        (short.data, short.indices.astype(np.int64), short.indptr.astype(np.int64)),
        shape=short.shape,
    )
    model = P(2, random_state=0, max_iter=4)
    for zeros in ("all", efemb.Sampled(4)):
        model.set_params(zeros=zeros)
        assert_array_equal(model.fit(wide).embedding_, model.fit(short).embedding_)


def test_odd_labels_are_kept_as_they_are() -> None:
    labels = ["é", "日本", "a\nb", 'q"uo"te', "c,d", 2.5, 7, "x" * 100_000]
    data = efemb.Dataset(baskets(), entities=labels)
    model = P(2, random_state=0, max_iter=2).fit(data)
    assert list(model.vocabulary_.labels) == labels
    # The place of a bad value is named by its label, and a huge label does not hide the message.
    error = refused(P(2), efemb.Dataset(put(baskets(), -1, 5, 7), entities=labels), r"row 5")
    assert len(str(error)) < 1000


def test_a_table_of_transactions_is_told_apart_from_a_matrix() -> None:
    table = pd.DataFrame({"trip": [1, 1, 2], "product": ["a", "b", "a"]})
    with pytest.raises(efemb.DataError, match=r"'product' holds text.*read_baskets"):
        efemb.PoissonEmbedding(2).fit(table)


def test_a_sum_of_contexts_reads_as_it_is_written() -> None:
    both = efemb.Neighbors(2) + efemb.Lagged((-1, 1))
    assert repr(both) == "Neighbors(k=2) + Lagged(offsets=(-1, 1))"
