"""Groups of documents: planted changes are found, the prior is exact, bad input is named."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import efemb
from efemb.checks.common import check_gradient
from efemb.data.corpus import Corpus
from efemb.data.vocabulary import Vocabulary
from efemb.engine import limits
from efemb.engine.callbacks import Checkpoint
from efemb.engine.optimizers import SGD
from efemb.evaluation import held_out_words
from efemb.model.spec import Spec
from efemb.model.structures.dynamic import Dynamic
from efemb.model.structures.grouped import Grouped

TOPICS, WORDS, RUN = 8, 5, 8  # words of a topic follow one another in runs


def swapped(n_documents: int = 1500, seed: int = 0) -> Corpus:
    """Words of topics; from year 5 on, w0 and w5 have each other's meaning."""
    rng = np.random.default_rng(seed)
    year = np.sort(rng.integers(0, 10, n_documents))
    topic = rng.integers(0, TOPICS, (n_documents, 5)).repeat(RUN, axis=1)
    words = topic * WORDS + rng.integers(0, WORDS, topic.shape)
    late = (year >= 5)[:, None]
    was_first, was_other = late & (words == 0), late & (words == WORDS)
    words[was_first], words[was_other] = WORDS, 0
    starts = np.arange(n_documents + 1) * topic.shape[1]
    rows = {"year": year, "era": np.where(year >= 5, "late", "early")}
    return Corpus(words.ravel(), starts, [f"w{i}" for i in range(TOPICS * WORDS)], rows=rows)


def fit(corpus: Corpus, structure: Any = "per-entity", **options: Any) -> Any:
    options = {"n_components": 8, "max_iter": 10, "early_stopping": False, **options}
    return efemb.BernoulliTextEmbedding(structure=structure, random_state=0, **options).fit(corpus)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return swapped()


@pytest.fixture(scope="module")
def dynamic(corpus: Corpus) -> Any:
    return fit(corpus, Dynamic("year"))


@pytest.fixture(scope="module")
def grouped(corpus: Corpus) -> Any:
    return fit(corpus, Grouped("era"))


@pytest.fixture(scope="module")
def moving(corpus: Corpus) -> Any:
    return fit(corpus, Dynamic("year", contexts=True))


FIRST, OTHER = {f"w{i}" for i in range(1, 5)}, {f"w{i}" for i in range(6, 10)}


def test_a_planted_swap_is_found_in_its_group(grouped: Any, corpus: Corpus) -> None:
    for group, topic in (("early", FIRST), ("late", OTHER)):
        assert set(grouped.similar("w0", n=4, group=group)["label"]) == topic
    early, late = (grouped.of_group(group).parameters.rho for group in ("early", "late"))
    moved = late - early
    assert set(np.argsort(-np.linalg.norm(moved, axis=1))[:2]) == {0, WORDS}
    other = swapped(seed=1)
    assert grouped.score(other) > fit(corpus).score(other) + 0.01


def test_a_planted_swap_is_found_at_its_time(dynamic: Any, corpus: Corpus) -> None:
    for at, topic in ((1, FIRST), (8, OTHER)):
        assert set(dynamic.similar("w0", n=4, at=at)["label"]) == topic
    assert set(dynamic.drift(corpus, n=2)["label"]) == {"w0", "w5"}
    path = dynamic.trajectory("w0", data=corpus)
    assert path["at"][1 + np.argmax(np.diff(path["distance"]))] == 5
    tokens, year = np.asarray(corpus.tokens), np.repeat(corpus.rows["year"], 40)
    assert path["count"].tolist() == [np.sum((tokens == 0) & (year == y)) for y in range(10)]


def test_context_vectors_of_slices_learn_more_of_a_swap(moving: Any, corpus: Corpus) -> None:
    """In the context, too, w0 and w5 mean something else from year 5 on."""
    other, options = swapped(seed=1), {"context": efemb.Window(1)}
    for kind, column in ((Dynamic, "year"), (Grouped, "era")):
        shared = fit(corpus, kind(column), **options)
        both = fit(corpus, kind(column, contexts=True), **options)
        assert both.score(other) > shared.score(other) + 0.002
    first, last = (moving.of_group(year).parameters.alpha for year in (0, 9))
    assert set(np.argsort(-np.linalg.norm(last - first, axis=1))[:2]) == {0, WORDS}
    for at, topic in ((1, FIRST), (8, OTHER)):
        assert set(moving.similar("w0", n=4, at=at)["label"]) == topic
    assert set(moving.drift(corpus, n=2)["label"]) == {"w0", "w5"}


def test_offsets_of_context_vectors_take_the_steps_of_their_documents() -> None:
    """Short steps of the plain kernel on the same draws; every document has words of its own."""
    rng = np.random.default_rng(0)
    kind = np.arange(240) % 3
    words = 10 * kind[:, None] + rng.integers(0, 10, (240, 20))
    labels = np.array(["a", "b", None], dtype=object)[kind]
    names = [f"w{i}" for i in range(30)]
    corpus = Corpus(words.ravel(), np.arange(241) * 20, names, rows={"era": labels})
    begun = fit(corpus, max_iter=2, dtype="float64")
    structure = Grouped("era", 1e-9, min_rows=1, intercepts=False, contexts=True)
    given: dict[str, Any] = {
        "dtype": "float64",
        "max_iter": 1,
        "early_stopping": False,
        "random_state": 1,
    }
    given |= {"optimizer": SGD(1e-6), "intercept": False, "prior": None, "n_jobs": 1}

    def go_on(structure: Any) -> Any:
        estimator = efemb.BernoulliTextEmbedding
        return estimator.from_fitted(begun.fitted(), structure=structure, **given).fit(corpus)

    plain, model = go_on("per-entity"), go_on(structure)
    moved = plain.alpha_ - begun.alpha_
    size = np.abs(moved).max()
    assert_allclose(model.alpha_ - begun.alpha_, moved, atol=0.02 * size)
    for group, own in (("a", slice(0, 10)), ("b", slice(10, 20))):
        offset = model.of_group(group).parameters.alpha - model.alpha_
        expected = np.zeros_like(moved)
        expected[own] = moved[own]
        assert_allclose(offset, expected, atol=0.02 * size)


def test_a_fit_with_moving_contexts_resumes_with_the_same_bits(
    corpus: Corpus, tmp_path: Path
) -> None:
    some, structure = corpus.take(np.arange(0, 1500, 10)), Dynamic("year", contexts=True)
    whole = fit(some, structure, max_iter=4)
    for passes in (2, 4):
        resumed = fit(some, structure, max_iter=passes, callbacks=[Checkpoint(tmp_path / "state")])
    for name, array in whole.parameters_.named().items():
        assert_array_equal(array, resumed.parameters_.named()[name], err_msg=name)


def test_a_plain_model_is_where_groups_may_begin(corpus: Corpus) -> None:
    plain = fit(corpus)

    def go_on(optimizer: Any, passes: int) -> Any:
        options = {"max_iter": passes, "early_stopping": False, "random_state": 0}
        given = {"structure": Dynamic("year"), "optimizer": optimizer, **options}
        return efemb.BernoulliTextEmbedding.from_fitted(plain.fitted(), **given).fit(corpus)

    still = go_on(SGD(1e-9), 1)
    assert_allclose(still.of_group(7).parameters.rho, plain.rho_, atol=1e-4)
    moved = go_on(SGD(0.1, decay="linear"), 5)
    assert set(moved.drift(corpus, n=2)["label"]) == {"w0", "w5"}
    assert moved.score(corpus) > still.score(corpus) + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("structure", [Grouped("era", 1e9), Dynamic("year", precision=1e9)])
def test_a_strong_prior_gives_the_plain_model(structure: Any, corpus: Corpus) -> None:
    plain = fit(corpus)
    tight = fit(corpus, type(structure)(**{**structure.get_params(), "intercepts": False}))
    assert_allclose(tight.rho_, plain.rho_, atol=0.02)
    assert_allclose(tight.score(corpus), plain.score(corpus), atol=1e-3)


@pytest.mark.parametrize("contexts", [False, True])
def test_scores_are_those_of_the_models_of_the_groups(contexts: bool, corpus: Corpus) -> None:
    """The mean over all tokens equals the mean over separate calls for each group."""
    grouped = fit(corpus, Grouped("era", contexts=contexts), max_iter=3)
    whole = held_out_words(grouped, corpus)
    assert_allclose(grouped.score(corpus), whole.log_likelihood, rtol=1e-6)
    total = 0.0
    for group in ("early", "late"):
        part = corpus.take(corpus.rows["era"] == group)
        total += part.n_tokens * held_out_words(grouped.of_group(group), part).log_likelihood
    assert_allclose(whole.log_likelihood, total / corpus.n_tokens, rtol=1e-5)
    late = grouped.predict(["w1", "w2"], n=3, era="late")
    assert_array_equal(late["label"], grouped.of_group("late").predict(["w1", "w2"], n=3)["label"])
    of_late = corpus.rows["era"] == "late"
    embedded = grouped.of_group("late").transform(corpus.take(of_late))
    assert_array_equal(grouped.transform(corpus)[of_late], embedded)
    cells = (np.array([3, 40 * 1499]), np.array([0, 7]))
    single = grouped.of_group("late").context_sums(corpus, cells)
    assert_array_equal(grouped.context_sums(corpus, cells)[1], single[1])
    assert np.array_equal(grouped.context_sums(corpus, cells)[0], single[0]) != contexts


@pytest.mark.parametrize("structure", [Grouped("era"), Dynamic("year")])
def test_the_proximal_step_is_the_minimum(structure: Any, corpus: Corpus) -> None:
    """Against a dense solve with the precision matrix of the prior."""
    frozen, rng = structure.freeze(corpus), np.random.default_rng(0)
    n_groups, precision = len(frozen.labels), 3.0
    offsets, weight = rng.normal(size=(n_groups, 4, 3)), rng.uniform(0.1, 9.0, (n_groups, 4))
    steps = np.eye(n_groups)
    if frozen.in_order:
        steps = np.diff(np.eye(n_groups), axis=0)
    solved = frozen.proximal_step(offsets.copy(), weight, precision)
    for n in range(4):
        matrix = np.diag(weight[:, n]) + precision * steps.T @ steps
        expected = np.linalg.solve(matrix, weight[:, n, None] * offsets[:, n])
        assert_allclose(solved[:, n], expected, rtol=1e-10)


@pytest.mark.parametrize("structure", [Grouped("era"), Dynamic("year")])
def test_arrays_hold_the_offsets(structure: Any, corpus: Corpus) -> None:
    frozen, rng = structure.freeze(corpus), np.random.default_rng(0)
    n_groups = len(frozen.labels)
    vectors, shift = rng.normal(size=(n_groups, 4, 3)), rng.normal(size=(n_groups, 4))
    own, common, common_shift = frozen.from_offsets(vectors, shift)
    back = frozen.spread_groups(own, common, common_shift, np.arange(n_groups))
    assert_allclose(back[0], vectors, atol=1e-12)
    assert_allclose(back[1], shift, atol=1e-12)
    moving = type(frozen)(**{**frozen.get_params(), "contexts": True})
    own, common = moving.from_context_offsets(vectors)
    assert_allclose(moving.spread_contexts(own, common, np.arange(n_groups)), vectors, atol=1e-12)


@pytest.mark.parametrize("contexts", [False, True])
def test_bits_do_not_depend_on_threads_and_files(
    contexts: bool, dynamic: Any, moving: Any, corpus: Corpus, tmp_path: Path
) -> None:
    model = moving if contexts else dynamic
    again = fit(corpus, Dynamic("year", contexts=contexts), n_jobs=2)
    assert_array_equal(again.rho_, model.rho_)
    model.save(tmp_path / "model")
    loaded = efemb.load(tmp_path / "model")
    assert loaded.score(corpus) == model.score(corpus)
    for name in ("rho", "alpha"):
        of_slice = (getattr(one.of_group(7).parameters, name) for one in (loaded, model))
        assert_array_equal(*of_slice)


OF_TEXT = [
    Grouped("era", min_rows=1),
    Dynamic("year"),
    Grouped("era", min_rows=1, contexts=True),
    Grouped("era", min_rows=1, amortized=True),
    Dynamic("year", contexts=True),
]


@pytest.mark.parametrize("structure", OF_TEXT)
def test_the_full_gradient_is_that_of_the_objective(structure: Any, corpus: Corpus) -> None:
    """By finite differences, with all words as zeros: the rows solver, group by group."""
    words = Vocabulary([f"w{i}" for i in range(6)])
    small = Corpus(np.arange(36) * 5 % 6, [0, 9, 20, 36], words)
    small = small.with_rows({"era": ["late", "early", None], "year": [1, 2, 4]})
    frozen = structure.freeze(small)
    spec = Spec.resolve(context=efemb.Window(2), family="bernoulli", zeros="all", structure=frozen)
    check_gradient(spec, small, repr(structure))


def test_the_way_out_of_too_many_groups_is_true_for_text(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of each document do not fit; a small network of each, with exact zeros, does."""
    own = corpus.with_rows({"document": np.arange(corpus.n_documents)})
    monkeypatch.setattr(limits, "available_memory", lambda: 3_000_000)
    way_out = r"larger min_count.*Grouped\('document', amortized=True\) with zeros='all'"
    with pytest.raises(efemb.MemoryEstimateError, match=way_out):
        fit(own, Grouped("document", min_rows=1))
    network = Grouped("document", min_rows=1, amortized=True, hidden=1)
    with pytest.warns(Warning, match="max_iter"):
        model = fit(own, network, zeros="all", max_iter=1)
    assert len(model.report_["groups"]) == own.n_documents


def test_amortized_groups_of_text_find_a_change_of_meaning(corpus: Corpus) -> None:
    network = Grouped("era", amortized=True, hidden=16)
    with pytest.warns(Warning, match="max_iter"):
        model = fit(corpus, network, zeros="all", max_iter=20)
    for era, first in (("early", 0), ("late", WORDS)):
        closest = set(model.similar("w0", n=WORDS - 1, group=era)["label"])
        assert closest <= {f"w{i}" for i in range(first, first + WORDS)}


@pytest.mark.parametrize("contexts", [False, True])
def test_steps_of_shared_vectors_are_a_part_of_those_of_offsets(
    contexts: bool, corpus: Corpus
) -> None:
    """After short steps of a fitted model; 0 keeps what groups share."""
    begun = fit(corpus, max_iter=2, dtype="float64", intercept=True)
    structure = Grouped("era", 1e-9, min_rows=1, contexts=contexts)
    some = corpus.take(np.arange(0, 1500, 10))

    def moved(shared: float) -> tuple[Any, Any]:
        options: dict[str, Any] = {
            "optimizer": SGD(1e-6, shared=shared),
            "max_iter": 1,
            "n_jobs": 1,
        }
        model = efemb.BernoulliTextEmbedding.from_fitted(
            begun.fitted(),
            structure=structure,
            early_stopping=False,
            random_state=1,
            dtype="float64",
            **options,
        ).fit(some)
        parameters, own = model.fitted().parameters, model.of_group("late").parameters
        arrays = ("rho", "alpha", "intercept")
        shares = [
            getattr(parameters, name) - getattr(begun.fitted().parameters, name) for name in arrays
        ]
        return shares, own.rho - parameters.rho

    (whole, offset), (part, same), (none, still) = (moved(shared) for shared in (1.0, 0.1, 0.0))
    for each, tenth, nothing in zip(whole, part, none, strict=True):
        size = np.abs(each).max()
        assert_allclose(tenth, 0.1 * each, atol=0.001 * size)
        assert_allclose(nothing, 0.0, atol=1e-6 * size)
    for other in (same, still):
        assert_allclose(other, offset, atol=0.001 * np.abs(offset).max())


@pytest.mark.parametrize("data", ["text", "rows"])
def test_steps_of_shared_vectors_need_groups_of_text(data: str, corpus: Corpus) -> None:
    estimator = efemb.BernoulliTextEmbedding if data == "text" else efemb.PoissonEmbedding
    model = estimator(2, optimizer=SGD(0.01, shared=0.1))
    with pytest.raises(efemb.ParameterError, match=r"needs a text model with structure=Grouped"):
        model.fit(corpus if data == "text" else np.eye(6) + 1)


def test_operations_carry_the_columns_of_documents(corpus: Corpus) -> None:
    some = corpus.take([3, 1400])
    assert some.rows["era"].tolist() == ["early", "late"]
    assert pickle.loads(pickle.dumps(some)).rows["year"].tolist() == some.rows["year"].tolist()
    assert_array_equal(corpus.subsampled(1e-2).rows["year"], corpus.rows["year"])
    long = Corpus(np.arange(4000) % 7, [0, 2000, 4000], range(7), rows={"name": ["a", "b"]})
    for part in long.split(test=0.3):
        for i, name in enumerate(part.rows["name"]):
            assert name in ("a", "b")
            assert part.starts[i + 1] > part.starts[i]
    names = np.concatenate([part.rows["name"] for part in long.split(test=0.3)])
    assert set(names) == {"a", "b"}


def test_unknown_groups_have_the_shared_vectors(grouped: Any, corpus: Corpus) -> None:
    known = corpus.take(np.arange(10))
    other = known.with_rows({"era": ["unheard", None] * 5})
    assert grouped.score(other) != grouped.score(known)
    assert np.isfinite(grouped.score(other))


@pytest.mark.parametrize(
    ("structure", "options", "match"),
    [
        (Grouped("author"), {}, r"'author', which the data lack .*corpus.with_rows"),
        (Grouped("era", min_rows=9999), {}, "lower min_rows"),
        (Grouped("era", amortized=True), {}, "a vector per word, or zeros='all'"),
        (Grouped("era"), {"combine": "reverse"}, "no groups"),
        (Grouped("era", contexts=True, amortized=True), {}, "networks compute embeddings only"),
        (
            Dynamic("year", contexts=True),
            {"context": efemb.Window(2, positional=True)},
            "leave out contexts=True",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    structure: Any, options: Any, match: str, corpus: Corpus
) -> None:
    with pytest.raises(efemb.EfembError, match=match):
        fit(corpus, structure, **options)


def test_bad_questions_are_refused(grouped: Any, dynamic: Any, corpus: Corpus) -> None:
    bare = Corpus(corpus.tokens, corpus.starts, corpus.vocabulary)
    with pytest.raises(efemb.DataError, match=r"'era', which the data lack \(columns: none\)"):
        grouped.score(bare)
    with pytest.raises(efemb.ParameterError, match="'medieval' is not a group"):
        grouped.similar("w0", group="medieval")
    with pytest.raises(efemb.ParameterError, match="not a time of 'year'"):
        dynamic.similar("w0", at="noon")
    with pytest.raises(efemb.ParameterError, match="no slices of time"):
        grouped.drift(corpus)
    with pytest.raises(efemb.ParameterError, match="drift"):
        dynamic.change_points("w0", corpus)
    with pytest.raises(efemb.ParameterError, match="similar_groups"):
        grouped.differs(corpus)
    with pytest.raises(efemb.ParameterError, match="leave it out"):
        held_out_words(grouped, corpus, n_candidates=5)
    with pytest.raises(efemb.DataError, match=r"rows\['year'\] has shape"):
        corpus.with_rows({"year": [1]})
