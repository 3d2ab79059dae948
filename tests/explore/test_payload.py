"""The bytes of a page hold the model: labels as they are, vectors within their rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import efemb
from efemb.explore import prepare
from efemb.explore.colors import color_by_number, kept_neighbors
from efemb.explore.contents import name_topic
from efemb.explore.payload import Payload, Quantized, small_integers
from efemb.explore.prediction import add_prediction
from efemb.model.terms import RowVectors, Term
from efemb.model.terms.base import arrays_of
from explore.scenes import (
    HOSTILE,
    decode,
    plain,
    recording,
    stop_early,
    trips,
    weekly,
    with_terms,
    words,
)

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5))


@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-1e6, 1e6)
    ),
    st.sampled_from([8, 16, 24]),
)
def test_a_rounded_number_is_within_half_a_step(vectors: np.ndarray, bits: int) -> None:
    """One step is the largest number of the row divided by the largest whole number."""
    rounded = Quantized.of(vectors, bits)
    step = np.abs(vectors).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    # The scale and the product are single precision.
    allowed = 0.5 * step + 1.5e-7 * np.abs(vectors) + 1e-37
    assert (np.abs(rounded.restore() - vectors) <= allowed * 1.01).all()
    payload = Payload({"title": "x"}, vectors={"v": rounded})
    np.testing.assert_allclose(decode(payload.encode())[1]["v"], rounded.restore(), rtol=2e-7)


def test_small_integers_keep_their_values() -> None:
    for largest in (3, 40_000, 70_000):
        values = np.array([-1, 0, largest]) if largest != 40_000 else np.array([0, largest])
        np.testing.assert_array_equal(small_integers(values), values)


def test_the_same_model_gives_the_same_bytes() -> None:
    first, second = (
        prepare(plain(), data=trips(), methods="pca").payloads[0].encode() for _ in range(2)
    )
    assert first == second


def test_a_page_holds_the_model() -> None:
    model = plain()
    header, content = decode(prepare(model, data=trips(), methods="pca").payloads[0].encode())
    assert header["labels"][: len(HOSTILE)] == HOSTILE
    assert (header["n"], header["k"], header["noun"]) == (30, 3, "item")
    np.testing.assert_allclose(content["rho"], model.rho_, atol=1e-6 * np.abs(model.rho_).max())
    np.testing.assert_allclose(content["alpha"], model.alpha_, atol=1e-6)
    np.testing.assert_allclose(content["intercept"], model.intercept_)
    np.testing.assert_allclose(content["counts"], (np.asarray(trips().values) > 0).sum(axis=0))
    assert content["map.rho.pca"].shape == content["map.alpha.pca"].shape == (30, 2)
    worst = np.abs(content["rho"] - model.rho_).max()
    assert worst <= header["quantization"]["largest_error"]["rho"] * 1.1 + 1e-9


@pytest.mark.parametrize("question", ["complements", "substitutes"])
def test_pairs_are_answered_for_every_item(question: str) -> None:
    """What Python answers, with numbers rounded to more digits than are shown."""
    header, content = decode(prepare(plain(), data=trips(), methods="pca").payloads[0].encode())
    names = {column["key"]: column.get("names") for column in header["prepared"][question]}
    start, labels = content[f"{question}.start"], list(trips().entities)
    assert len(start) == len(labels) + 1
    options = {"apart": True} if question == "substitutes" else {}
    for item, label in enumerate(labels):
        table = getattr(plain(), question)(label, 10, data=trips(), **options)
        raised = question == "complements"
        expected = [
            row for row in table if (row["score"] > 0 if raised else row["kind"] != "apart")
        ]
        lines = range(start[item], start[item + 1])
        assert [labels[content[f"{question}.code"][i]] for i in lines] == [
            row["label"] for row in expected
        ]
        for i, row in zip(lines, expected, strict=True):
            assert names["kind"][content[f"{question}.kind"][i]] == row["kind"]
            for name in ("score", "together", "lift", "lift_low", "lift_high"):
                assert content[f"{question}.{name}"][i] == pytest.approx(row[name], rel=3e-4)


def test_models_without_counts_labels_or_data() -> None:
    model = stop_early(efemb.PoissonEmbedding(2, max_iter=2, random_state=0), np.eye(6) + 1)
    header, content = decode(prepare(model, methods="pca").payloads[0].encode())
    assert header["labels"] == ["0", "1", "2", "3", "4", "5"]
    assert "complements.lift" not in content
    raised = model.complements(list(range(6)), 5)["score"] > 0
    assert len(content["complements.code"]) == raised.sum() > 0
    assert sorted(content["order"].tolist()) == [0, 1, 2, 3, 4, 5]  # every item can have a label


def test_the_most_frequent_items_are_labeled_first() -> None:
    _, content = decode(prepare(plain(), data=trips(), methods="pca").payloads[0].encode())
    frequencies = (np.asarray(trips().values) > 0).sum(axis=0)[content["order"]]
    assert (np.diff(frequencies) <= 0).all()


def test_terms_are_offered_and_computed() -> None:
    header, content = decode(prepare(with_terms(), methods="pca").payloads[0].encode())
    household, price = header["prediction"]["terms"]
    assert "refused" not in header["prediction"]
    assert (household["kind"], sorted(household["choices"])) == ("choice", list(range(9)))
    assert price["kind"] == "number"
    parameters = with_terms().parameters_.named()
    np.testing.assert_allclose(content["term.0.rows"], parameters["household.rows"], rtol=1e-5)
    np.testing.assert_allclose(
        content["term.0.entities"], parameters["household.entities"], rtol=1e-5
    )


def test_a_part_that_the_page_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the term added more to u than its columns, which a term of single cells does."""
    monkeypatch.setattr(
        RowVectors, "entity_columns", lambda self, arrays, n: 2.0 * arrays["entities"]
    )
    header = Payload({"n": 30})
    model = with_terms().fitted()
    add_prediction(header, model, vectors=True)
    assert "refused" not in header.header["prediction"]  # both sides see the same term
    monkeypatch.setattr("efemb.explore.prediction.arrays_of", halved_arrays)
    add_prediction(header, model, vectors=True)
    assert "parts that a page lacks" in header.header["prediction"]["refused"]


def halved_arrays(term: Term, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of a term, but not those that the model has."""
    return {name: array / 2 for name, array in arrays_of(term, arrays).items()}


def test_neurons_have_positions_weights_and_r2() -> None:
    model, frames = recording()
    header, content = decode(prepare(model, data=frames, methods="pca").payloads[0].encode())
    assert header["noun"] == "neuron"
    assert header["maps"][0]["method"] == "positions"
    np.testing.assert_allclose(content["map..positions"], model.positions_, rtol=1e-6)
    table = model.weights(3)
    begin, end = content["weights.start"][3:5]
    of_page = dict(
        zip(content["weights.code"][begin:end], content["weights.weight"][begin:end], strict=True)
    )
    for row in table:
        assert of_page[row["neighbor"]] == pytest.approx(row["weight"], rel=3e-4)
    mean = model.conditional(frames)
    r2 = 1 - np.square(frames - mean).sum(axis=0) / np.square(frames - frames.mean(axis=0)).sum(
        axis=0
    )
    np.testing.assert_allclose(content["r2"], r2, rtol=1e-4)


def test_words_have_noise_and_analogies() -> None:
    header, content = decode(prepare(words(), methods="pca").payloads[0].encode())
    assert header["noun"] == "word"
    assert header["prediction"]["columns"] == ["probability"]
    assert np.isfinite(content["noise"]).all()


def test_kept_neighbors_of_two_models() -> None:
    first, second = plain().fitted(), plain().fitted()
    np.testing.assert_array_equal(kept_neighbors(first, second), 1.0)
    fewer = trips().take_entities(slice(0, 20))
    part = stop_early(efemb.PoissonEmbedding(3, max_iter=3, random_state=1), fewer)
    share = kept_neighbors(first, part.fitted(), 5)
    assert np.isnan(share[20:]).all()
    labels = list(trips().entities)[:20]
    expected = []
    for label in labels:
        near = [set(m.similar(label, 5, where=labels)["label"]) for m in (first, part)]
        expected.append(len(near[0] & near[1]) / 5)
    np.testing.assert_allclose(share[:20], expected)


def test_errors_color_by_uncertainty() -> None:
    model = plain()
    _, content = decode(
        prepare(model, errors=model.laplace(trips()), methods="pca").payloads[0].encode()
    )
    label = list(trips().entities)[4]
    spread = np.sqrt(np.square(model.laplace(trips()).standard_error(label)).sum())
    length = np.linalg.norm(model.vectors()[label])
    assert content["uncertainty"][4] == pytest.approx(spread / length, rel=1e-4)
    with pytest.raises(efemb.DataError, match="one finite number for each of 30 items"):
        prepare(model, errors=[1.0, 2.0], methods="pca").payloads  # noqa: B018


def test_topics_are_named_by_the_beginnings_of_different_labels() -> None:
    milk = [f"MILK WHITE ONLY {size} GAL (private)" for size in (1, 2, 3)]
    assert name_topic([*milk, "EGGS", "x" * 50]) == f"MILK WHITE ONLY, EGGS, {'x' * 20}"


def test_slices_in_a_page() -> None:
    """Vectors and intercepts of every slice, rows of each that hold an item, and what moved."""
    model, data = weekly()
    header, content = decode(prepare(model, data=data, methods="pca").payloads[0].encode())
    assert header["slices"]["labels"] == [0, 1, 2, 3]
    weeks = [model.of_group(week) for week in range(4)]
    rho = np.concatenate([week.parameters.rho for week in weeks])
    np.testing.assert_allclose(content["slices.rho"], rho, atol=1e-5)
    intercepts = np.concatenate([week.parameters.intercept for week in weeks])
    np.testing.assert_allclose(content["slices.intercept"], intercepts, rtol=1e-6)
    moved = np.linalg.norm(weeks[-1].parameters.rho - weeks[0].parameters.rho, axis=1)
    np.testing.assert_allclose(content["drift"], moved, rtol=1e-4)
    assert header["lists"]["drift"]["value"] == "distance"
    ranked = [row["code"] for row in header["lists"]["drift"]["rows"]]
    assert ranked == np.argsort(-content["drift"], kind="stable").tolist()
    week, values = np.asarray(data.rows["week"]), np.asarray(data.values)
    counts = content["trajectory.count"].reshape(-1, 4)
    for number in range(4):
        expected = (values[week == number] > 0).sum(axis=0)
        np.testing.assert_array_equal(counts[:, number], expected)


def test_drift_is_tested_where_errors_are_wanted() -> None:
    model, data = weekly()
    errors = model.of_group(0).laplace(data)
    header, _ = decode(prepare(model, data=data, errors=errors, methods="pca").payloads[0].encode())
    table = model.drift(data, n=30)
    labels = list(trips().entities)
    drift = header["lists"]["drift"]["rows"]
    assert [labels[row["code"]] for row in drift] == table["label"].tolist()
    assert [row["ratio"] for row in drift] == pytest.approx(table["ratio"].tolist())
    small = float(table["q_value"][0])
    assert drift[0]["q_value"] == (f"{small:.2g}" if small >= 1e-4 else "<0.0001")


def test_too_many_slices_are_for_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.explore.slices.MOST_NUMBERS", 100)
    explorer = prepare(weekly()[0], methods="pca")
    header, content = decode(explorer.payloads[0].encode())
    assert "slices" not in header
    assert "average of all groups of 'week'" in header["notes"][-2]
    header, content = decode(explorer.without_vectors().payloads[0].encode())
    assert header["slices"]["labels"] == [0, 1, 2, 3]
    assert "slices.rho" not in content


def test_colors_are_steps_and_groups() -> None:
    groups = {label: "abcdefghi"[i % 9] for i, label in enumerate(trips().entities) if i < 20}
    header, content = decode(prepare(plain(), groups=groups, methods="pca").payloads[0].encode())
    ways = {entry["key"]: entry for entry in header["colorings"]}
    assert next(iter(ways)) == "groups"
    names = [name for name, _ in ways["groups"]["buckets"]]
    assert names == ["other", *"abcdefg"]  # the largest; then in order
    for code, label in enumerate(trips().entities):
        shown = names[content["color.groups"][code]]
        assert shown == (groups[label] if groups.get(label, "z") <= "g" else "other")
    payload = Payload({"n": 71})
    values = np.array([np.nan, *range(70)])
    color_by_number(payload, "x", "x", "x", values)
    places = payload.arrays["color.x"]
    assert places[0] == 0  # unknown
    assert places[1:].tolist() == sorted(places[1:])
    assert set(places[1:]) == set(range(1, 8))
    names = [name for name, _ in payload.header["colorings"][0]["buckets"]]
    assert names[:3] == ["unknown", "up to 10", "11 to 20"]
