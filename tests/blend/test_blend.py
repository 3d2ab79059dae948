"""Blends of models: weights on held-out entries, the interface of the models, bad input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

import efemb
from efemb import Blend, Dataset, PoissonEmbedding
from efemb.baselines import Popularity, WeightedMF
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.families import Categorical

HOWS = ["mixture", "log-linear"]
LABELS = [f"item {i}" for i in range(12)]


@pytest.fixture(scope="module")
def parts() -> tuple[Dataset, Dataset, Dataset]:
    """Training, validation and test trips over labeled items."""
    trips = efemb.simulation.simulate(
        "p-emb", n_rows=900, n_entities=12, n_components=2, seed=0
    ).data
    return Dataset(trips.values, entities=LABELS).split(test=0.2, validation=0.2, seed=0)


@pytest.fixture(scope="module")
def models(parts: tuple[Dataset, ...]) -> dict[str, Any]:
    train = parts[0]
    return {
        "vectors": PoissonEmbedding(2, random_state=0).fit(train),
        "factors": WeightedMF(3, random_state=0).fit(train),
        "popularity": Popularity().fit(train),
    }


class Constant:
    """A model of the same shares in every row."""

    def __init__(self, log_means: Any) -> None:
        self.log_mean, self.family = np.asarray(log_means, dtype=float), Categorical()

    def log_means(self, X: Any, rows: Any, entities: Any) -> Iterator[tuple[slice, Any]]:
        yield slice(0, len(rows)), np.tile(self.log_mean, (len(rows), 1))


def shares(model: Any, data: Dataset, row: int, entity: int) -> Any:
    """What a model gives each entity, from its log means of one cell."""
    ((_, logs),) = model.log_means(data, [row], [entity])
    means = np.exp(np.asarray(logs[0], dtype=float))
    return means / means.sum()


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_shares_are_those_of_the_formula(
    how: str, parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    test = parts[2]
    blend = Blend(models, how=how).fit(validation=parts[1])
    rows, entities = np.nonzero(test.values.toarray())
    for row, entity in list(zip(rows, entities, strict=True))[:9]:
        total = np.zeros(12) if how == "mixture" else np.ones(12)
        for name, model in models.items():
            own = shares(model, test, row, entity)
            if how == "mixture":
                sharp = own ** blend.powers_[name]
                total += blend.weights_[name] * sharp / sharp.sum()
            else:
                total *= own ** blend.weights_[name]
        assert_allclose(shares(blend, test, row, entity), total / total.sum(), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_the_score_is_that_of_every_protocol(
    how: str, parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    blend = Blend(models, how=how).fit(validation=parts[1])
    predictions = efemb.evaluation.leave_one_out(blend, parts[2])
    score = blend.score(parts[2])
    assert_allclose(predictions.normalized_log_likelihood().value, score, rtol=1e-9)
    table = efemb.compare({"blend": blend, **models}, parts[2])
    assert_allclose(table["score"][list(table["model"]).index("blend")], score, rtol=1e-9)
    assert 0 < predictions.score("recall@3").value < 1


@pytest.mark.slow
def test_weights_do_better_than_any_model_where_they_were_fitted(
    parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    blend = Blend(models, max_entries=10_000).fit(validation=parts[1])
    alone = {name: model.score(parts[1]) for name, model in models.items()}
    scores = blend.report_["held_out_score"]
    for name, score in alone.items():
        assert_allclose(scores[name], score, rtol=1e-5)
        assert scores["mixture"] >= score - 1e-6
        assert scores["log-linear"] >= score - 1e-4
    assert blend.report_["how"] == blend.how_ == max(HOWS, key=lambda how: scores[how])
    assert_allclose(blend.score(parts[1]), scores[blend.how_], rtol=1e-5)


@pytest.mark.parametrize("how", HOWS)
def test_a_model_twice_gives_the_score_of_the_model(
    how: str, parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    vectors = models["vectors"]
    once = Blend({"a": vectors}, how=how).fit(validation=parts[1])
    twice = Blend({"a": vectors, "b": vectors}, how=how).fit(validation=parts[1])
    assert_allclose(twice.score(parts[2]), once.score(parts[2]), rtol=1e-5)
    power = once.powers_["a"] * once.weights_["a"]
    test = parts[2]
    rows, entities = (ids[:20] for ids in np.nonzero(test.values.toarray()))
    for row, entity in zip(rows, entities, strict=True):
        wanted = shares(vectors, test, row, entity) ** power
        assert_allclose(shares(once, test, row, entity), wanted / wanted.sum(), rtol=1e-5)


@pytest.mark.slow
def test_unfitted_models_are_fitted_to_the_rows_that_are_not_held_out(
    parts: tuple[Dataset, ...],
) -> None:
    given = {"vectors": PoissonEmbedding(2), "popularity": Popularity()}
    blend = Blend(given, validation_fraction=0.25, random_state=3).fit(parts[0])
    rng = np.random.default_rng(3).spawn(3)[0]
    n_rows = parts[0].n_rows
    held = rng.permutation(n_rows)[: n_rows // 4]
    rest = parts[0].take_rows(np.setdiff1d(np.arange(n_rows), held))
    assert_allclose(blend.models_["popularity"].mean_, Popularity().fit(rest).mean_)
    assert blend.report_["fitted"] == ["vectors", "popularity"]
    assert not hasattr(given["popularity"], "mean_")
    again = Blend(given, validation_fraction=0.25, random_state=3).fit(parts[0])
    assert again.weights_ == blend.weights_
    assert_array_equal(again.models_["vectors"].embedding_, blend.models_["vectors"].embedding_)
    other = Blend(given, validation_fraction=0.25, random_state=4).fit(parts[0])
    assert not np.array_equal(
        other.models_["vectors"].embedding_, blend.models_["vectors"].embedding_
    )


def test_unfitted_models_take_all_of_x_where_validation_is_given(
    parts: tuple[Dataset, ...],
) -> None:
    blend = Blend({"a": Popularity(), "b": WeightedMF(2)}).fit(parts[0], validation=parts[1])
    assert_array_equal(blend.models_["a"].mean_, Popularity().fit(parts[0]).mean_)


@pytest.mark.slow
def test_few_entries_are_a_seeded_draw(parts: tuple[Dataset, ...], models: dict[str, Any]) -> None:
    fits = [
        Blend(models, max_entries=50, random_state=s).fit(validation=parts[1]) for s in (0, 0, 1)
    ]
    assert [one.report_["n_entries"] for one in fits] == [50, 50, 50]
    assert fits[0].weights_ == fits[1].weights_
    assert fits[0].weights_ != fits[2].weights_


@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_computed_again(
    parts: tuple[Dataset, ...], models: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Blend(models).fit(validation=parts[1])
    monkeypatch.setattr("efemb.blend.members.CACHED_NUMBERS", 0)
    assert Blend(models).fit(validation=parts[1]).weights_ == kept.weights_


@pytest.mark.slow
@pytest.mark.parametrize("how", HOWS)
def test_models_may_order_their_entities_differently(
    how: str, parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    train, validation, test = parts
    moved = train.take_entities(np.random.default_rng(0).permutation(12))
    odd = {**models, "popularity": Popularity().fit(moved)}
    straight, mixed = (Blend(one, how=how).fit(validation=validation) for one in (models, odd))
    assert mixed.weights_ == straight.weights_
    assert_allclose(mixed.score(test), straight.score(test), rtol=1e-12)
    # Columns without labels are in the order of the blend.
    assert_allclose(mixed.score(test.values), straight.score(test), rtol=1e-12)


@pytest.mark.slow
def test_conditional_shares_are_those_of_single_cells(
    parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    blend = Blend(models, how="mixture").fit(validation=parts[1])
    data = Dataset(csr_array(np.r_[parts[2].values.toarray()[:4], np.ones((1, 12))]))
    wanted = [[shares(blend, data, row, j)[j] for j in range(12)] for row in range(5)]
    wanted = np.array(wanted) / np.sum(wanted, axis=1)[:, None]
    assert_allclose(blend.conditional(data), wanted, rtol=1e-5)


def test_blends_of_blends(parts: tuple[Dataset, ...]) -> None:
    inner = Blend({"mf": WeightedMF(2), "popularity": Popularity()}, how="log-linear")
    outer = Blend({"stack": inner, "vectors": PoissonEmbedding(2)}, how="mixture").fit(parts[0])
    assert set(outer.models_["stack"].weights_) == {"mf", "popularity"}
    assert -3 < outer.score(parts[2]) < 0


def test_a_clone_is_not_fitted_but_has_the_options(parts: tuple[Dataset, ...]) -> None:
    blend = Blend({"a": Popularity(), "b": WeightedMF(2)}, how="mixture").fit(parts[0])
    copy = clone(blend)
    assert copy.how == "mixture"
    assert not hasattr(copy, "weights_")
    with pytest.raises(Exception, match="not fitted"):
        copy.score(parts[2])


def test_a_model_that_excludes_an_entity_does_not_poison_the_blend(
    parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    log_means = np.zeros(12)
    log_means[:6] = -np.inf
    for how in HOWS:
        both = {"half": Constant(log_means), "vectors": models["vectors"]}
        blend = Blend(both, how=how).fit(validation=parts[1])
        assert np.isfinite(blend.score(parts[2]))


def test_a_model_that_says_nothing_has_equal_shares(parts: tuple[Dataset, ...]) -> None:
    blend = Blend({"silent": Constant(np.full(12, -np.inf))}, how="mixture").fit(
        validation=parts[1]
    )
    assert_allclose(blend.score(parts[2]), -np.log(12))


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "error", "match"),
    [
        ({}, ParameterError, "at least one"),
        ([Popularity()], InputTypeError, "mapping of names"),
        ({1: Popularity()}, InputTypeError, "mapping of names"),
        ({"a": Popularity}, InputTypeError, "'a' has no log_means"),
        ({"a": "popularity"}, InputTypeError, "'a' has no log_means"),
    ],
)
def test_models_are_named_models_with_log_means(
    models: Any, error: type[Exception], match: str, parts: tuple[Dataset, ...]
) -> None:
    with pytest.raises(error, match=match):
        Blend(models).fit(parts[0])


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"how": "mixtures"}, ParameterError, "did you mean 'mixture'"),
        ({"validation_fraction": 0}, ParameterError, "must lie in"),
        ({"validation_fraction": "some"}, InputTypeError, "must be a number"),
        ({"max_entries": 0}, ParameterError, ">= 1"),
        ({"max_entries": 1.5}, InputTypeError, "integer"),
        ({"random_state": -1}, ParameterError, ">= 0"),
    ],
)
def test_options_are_checked(
    options: dict[str, Any], error: type[Exception], match: str, parts: tuple[Dataset, ...]
) -> None:
    with pytest.raises(error, match=match):
        Blend({"a": Popularity()}, **options).fit(parts[0])


def test_unfitted_models_need_data(parts: tuple[Dataset, ...], models: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="'a' is not fitted"):
        Blend({**models, "a": Popularity()}).fit(validation=parts[1])


def test_fitted_models_need_data_that_they_have_not_seen(
    parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError, match="'vectors' is fitted already: pass rows"):
        Blend(models).fit(parts[0])
    with pytest.raises(ParameterError, match="'vectors' is fitted already"):
        Blend({"a": Popularity(), **models}).fit(parts[0])


def test_validation_must_not_be_training_data(parts: tuple[Dataset, ...]) -> None:
    train = parts[0]
    with pytest.raises(DataError, match="every entry of validation is also in X"):
        Blend({"a": Popularity()}).fit(train, validation=train)
    named = [f"trip {i}" for i in range(train.n_rows)]
    data = Dataset(train.values, row_labels=named)
    with pytest.raises(DataError, match="share 10 rows, the first is 'trip 90'"):
        Blend({"a": Popularity()}).fit(data[:100], validation=data[90:110])


def test_validation_must_not_be_entries_of_training_rows(parts: tuple[Dataset, ...]) -> None:
    train, held = parts[0].split(test=0.1, by="entries", seed=1)
    with pytest.raises(DataError, match="entries of the rows of X"):
        Blend({"a": Popularity()}).fit(train, validation=held)


def test_models_of_other_entities_are_refused(
    parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    renamed = Dataset(parts[0].values, entities=[*LABELS[:-1], "tea"])
    with pytest.raises(DataError, match="'other' has 'tea' and 0 other entities"):
        Blend({**models, "other": Popularity().fit(renamed)}).fit(validation=parts[1])
    fewer = Popularity().fit(parts[0].values[:, :8])
    with pytest.raises(DataError, match="'other' has 8 entities"):
        Blend({**models, "other": fewer}).fit(validation=parts[1])


def test_models_of_real_numbers_are_refused(parts: tuple[Dataset, ...]) -> None:
    rng = np.random.default_rng(0)
    real = Popularity("gaussian").fit(rng.normal(size=(50, 12)))
    with pytest.raises(ParameterError, match="'real' is a model of real numbers"):
        Blend({"real": real}).fit(validation=parts[1])


def test_entries_without_a_context_are_refused(models: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="no entry has a context"):
        Blend(models).fit(validation=np.eye(12))


def test_a_model_that_diverged_is_named(parts: tuple[Dataset, ...]) -> None:
    for bad in (np.nan, np.inf):
        log_means = np.zeros(12)
        log_means[3] = bad
        with pytest.raises(DataError, match="'broken' are not finite"):
            Blend({"broken": Constant(log_means)}).fit(validation=parts[1])


@pytest.mark.slow
def test_a_failed_fit_leaves_the_blend_as_it_was(
    parts: tuple[Dataset, ...], models: dict[str, Any]
) -> None:
    blend = Blend(models).fit(validation=parts[1])
    before = dict(vars(blend))
    with pytest.raises(DataError):
        blend.fit(validation=np.eye(12))
    assert vars(blend) == before
