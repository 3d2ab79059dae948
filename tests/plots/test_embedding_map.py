"""embedding_map: where points are, which labels are written, and that none covers another."""

from __future__ import annotations

import sys
from functools import partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import rgb_to_hsv, to_hex
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

import efemb
from efemb.errors import DataError, InputTypeError, MissingExtraError, ParameterError
from efemb.fitted import LabeledVectors
from efemb.plots import embedding_map as draw_map
from efemb.plots.canvas import HUES, label_text
from efemb.plots.embedding_map import project_on_principal_axes
from efemb.plots.label_placement import place_labels
from plots.models import baskets

# Most laws hold for any method; principal components are exact and fast.
embedding_map = partial(draw_map, method="pca")
LETTERS = st.text("abcdefghijklmnopqrstuvwxyz WMil", min_size=1, max_size=40)


def points_of(ax: Any) -> np.ndarray:
    """Everything drawn but the rings around labeled points."""
    return np.concatenate([part.get_offsets() for part in ax.collections[:-1]])


def texts_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def boxes_of(ax: Any) -> list[Any]:
    return [text.get_window_extent() for text in ax.texts]


# -- labels -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=20)
@given(
    names=st.lists(LETTERS, min_size=1, max_size=30),
    seed=st.integers(0, 1000),
    dpi=st.sampled_from([50, 72, 100, 150, 230]),
)
def test_no_two_labels_overlap_at_any_resolution(names: list[str], seed: int, dpi: int) -> None:
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.add_subplot()
    points = np.random.default_rng(seed).normal(size=(len(names), 2)) ** 3
    ax.plot(*points.T, "o")
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    drawn = place_labels(ax, points, names, np.arange(len(names)), len(names), size=8)
    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    boxes, frame = boxes_of(ax), ax.get_window_extent()
    assert len(boxes) == len(drawn)
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
        assert frame.y0 <= box.y0
        assert box.y1 <= frame.y1


def test_the_first_of_two_labels_in_one_place_is_written() -> None:
    ax = Figure().add_subplot()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    # One point many times: there are eight sides, and the neighbors of a side are in its way.
    points = np.full((20, 2), 0.5)
    drawn = place_labels(ax, points, [f"name {i}" for i in range(20)], np.arange(20), 20, size=8)
    assert drawn[0] == 0
    assert len(drawn) < 9


@pytest.mark.slow
def test_labels_do_not_cover_labeled_points() -> None:
    ax = embedding_map(baskets(300), labels=80)
    ax.figure.draw_without_rendering()
    rings = ax.transData.transform(ax.collections[-1].get_offsets())
    assert len(rings) == len(ax.texts)
    radius = (np.sqrt(ax.collections[-1].get_sizes()[0]) / 2 + 0.4) * ax.figure.dpi / 72
    for box in boxes_of(ax):
        assert not box.padded(radius).count_contains(rings)


def test_the_most_frequent_are_labeled_first() -> None:
    model = baskets(15)
    order = np.argsort(-model.vocabulary.counts)
    wanted = [label_text(model.vocabulary[int(i)]) for i in order[:3]]
    assert texts_of(embedding_map(model, labels=3)) == wanted


def test_without_counts_the_longest_vectors_are_labeled_first() -> None:
    vectors = LabeledVectors(["a", "b", "c", "d"], np.diag([1.0, 4.0, 3.0, 2.0]))
    assert texts_of(embedding_map(vectors, labels=2, unit=False)) == ["b", "c"]


@pytest.mark.slow
def test_labels_can_be_chosen_by_name() -> None:
    ax = embedding_map(baskets(), labels=["_item_4", "_item_0"])
    assert texts_of(ax) == [" _item_4", " _item_0"]
    assert texts_of(embedding_map(baskets(), labels="_item_4")) == [" _item_4"]


@pytest.mark.slow
def test_where_one_label_has_no_room_the_next_takes_its_place() -> None:
    same = np.concatenate([np.ones((30, 2)), [[1.0, -1.0]]])
    counts = np.arange(31, 0, -1)
    names = [f"a name of some length {i}" for i in range(31)]
    vectors = LabeledVectors(efemb.Vocabulary(names, counts=counts), same)
    assert names[30] in texts_of(embedding_map(vectors, labels=np.int64(20)))
    assert names[30] not in texts_of(embedding_map(vectors, labels=names[:20]))


def test_no_labels_at_all() -> None:
    assert texts_of(embedding_map(baskets(), labels=0)) == []


def test_an_unknown_label_is_refused_and_the_nearest_named() -> None:
    with pytest.raises(DataError, match=r"unknown label '_item_O'.*did you mean"):
        embedding_map(baskets(), labels=["_item_O"])
    with pytest.raises(ParameterError, match="must be >= 0, got -1"):
        embedding_map(baskets(), labels=-1)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("a $x^2$ b", r"a \$x^2\$ b"),
        ("_hidden", " _hidden"),
        ("two\nlines\tand more", "two lines and more"),
        ("nul\0", r"nul\x00"),
        ("x" * 50, "x" * 26 + "…" + "x" * 13),
        (
            "white milk in a carton of one gallon #1029743",
            "white milk in a carton of…llon #1029743",
        ),
        (17, "17"),
    ],
)
def test_labels_are_shown_as_they_are(label: object, shown: str) -> None:
    assert label_text(label) == shown


# -- points -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [True, False])
def test_points_are_principal_components(unit: bool) -> None:
    from sklearn.decomposition import PCA

    model = baskets()
    rho = model.parameters.rho
    if unit:
        rho = rho / np.linalg.norm(rho, axis=1, keepdims=True)
    oracle = PCA(2).fit(rho)
    ax = embedding_map(model, unit=unit)
    drawn, wanted = points_of(ax), oracle.transform(rho)
    np.testing.assert_allclose(np.abs(drawn), np.abs(wanted), atol=1e-9)
    first, second = (f"{100 * share:.0f}%" for share in oracle.explained_variance_ratio_)
    assert first in ax.get_xlabel()
    assert second in ax.get_ylabel()


def test_components_do_not_depend_on_the_sign_of_an_axis() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 3))
    flipped = project_on_principal_axes(vectors * [1, -1, 1])[0]
    same = project_on_principal_axes(vectors)[0]
    np.testing.assert_allclose(np.abs(flipped), np.abs(same), atol=1e-12)


def test_one_component_is_drawn_on_a_line() -> None:
    vectors = LabeledVectors(["a", "b", "c"], [[1.0], [2.0], [4.0]])
    drawn = points_of(embedding_map(vectors, unit=False))
    np.testing.assert_allclose(drawn, [[-4 / 3, 0], [-1 / 3, 0], [5 / 3, 0]], atol=1e-12)


def test_equal_vectors_are_drawn_in_one_place() -> None:
    vectors = LabeledVectors(["a", "b", "c"], np.ones((3, 4)))
    assert not points_of(embedding_map(vectors)).any()


def test_scales_are_equal() -> None:
    ax = embedding_map(baskets())
    ax.figure.draw_without_rendering()
    assert ax.get_aspect() == 1.0


def test_context_vectors_can_be_drawn() -> None:
    model = baskets()
    drawn = points_of(embedding_map(model, which="alpha", unit=False))
    wanted = project_on_principal_axes(model.parameters.alpha)[0]
    np.testing.assert_allclose(drawn, wanted, atol=1e-9)


def test_tsne_is_the_same_in_every_run() -> None:
    # Threads that wait for one another take minutes where other tests use the cores.
    with threadpool_limits(1):
        drawn = [points_of(embedding_map(baskets(8), method="tsne", labels=3)) for _ in range(2)]
    assert drawn[0].shape == (8, 2)
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("k", [1, 3])
def test_maps_of_few_dimensions_and_few_entities(k: int) -> None:
    numbers = np.random.default_rng(0).normal(size=(6, k)).astype(np.float32)
    ax = embedding_map(LabeledVectors(list("abcdef"), numbers), method="tsne")
    assert np.isfinite(points_of(ax)).all()


@pytest.mark.parametrize(("n", "neighbors"), [(6, 5), (40, 15)])
def test_umap_gets_unit_vectors_and_its_points_are_drawn(
    n: int, neighbors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is an extra; what we hand over and take back is the same without it."""
    seen: dict[str, Any] = {}
    points = np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32)

    class UMAP:
        def __init__(self, **options: Any) -> None:
            seen.update(options)

        def fit_transform(self, vectors: Any) -> Any:
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
            return points

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=UMAP))
    ax = embedding_map(baskets(n), method="umap", seed=7)
    # One thread: with more of them a seed would not give the same map.
    assert seen == {"n_neighbors": neighbors, "random_state": 7, "n_jobs": 1}
    np.testing.assert_array_equal(points_of(ax), points)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("UMAP 1", "UMAP 2")


def test_umap_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'efemb\[umap\]'"):
        embedding_map(baskets(), method="umap")


def test_bad_methods_are_refused() -> None:
    with pytest.raises(ParameterError, match="did you mean 'tsne'"):
        embedding_map(baskets(), method="tnse")
    with pytest.raises(DataError, match="at least 4 entities"):
        embedding_map(baskets(3), method="tsne")


# -- groups -------------------------------------------------------------------------------------


def colors_of(ax: Any) -> dict[str, int]:
    return {
        to_hex(part.get_facecolor()[0]): len(part.get_offsets()) for part in ax.collections[:-1]
    }


def test_groups_have_colors_of_their_own() -> None:
    for missing in (None, float("nan")):  # the latter in a column of pandas
        groups = ["dairy"] * 20 + ["fruit"] * 15 + [missing] * 5
        ax = embedding_map(baskets(), groups=groups, method="pca")
        wanted = {HUES[0].lower(): 20, HUES[1].lower(): 15, "#999999": 5}
        assert colors_of(ax) == wanted
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        assert words == ["dairy", "fruit", "other"]


def test_groups_by_label() -> None:
    ax = embedding_map(baskets(), groups={"_item_0": "even", "_item_2": "even"})
    assert colors_of(ax) == {HUES[0].lower(): 2, "#999999": 38}


@pytest.mark.slow
def test_small_groups_are_put_together() -> None:
    groups = [f"group {i % 10}" for i in range(40)]
    ax = embedding_map(baskets(), groups=groups)
    assert len(ax.get_legend().get_texts()) == len(HUES) + 1
    assert colors_of(ax)["#999999"] == 12


def test_bad_groups_are_refused() -> None:
    with pytest.raises(DataError, match="3 entries for 40 entities"):
        embedding_map(baskets(), groups=["a", "b", "c"])
    with pytest.raises(DataError, match="unknown label"):
        embedding_map(baskets(), groups={"nothing": "a"})
    with pytest.raises(InputTypeError, match="mapping of labels"):
        embedding_map(baskets(), groups="dairy")


@pytest.mark.slow
def test_large_maps_are_pixels_in_vector_files() -> None:
    rng = np.random.default_rng(0)
    vectors = LabeledVectors(efemb.Vocabulary(range(3000)), rng.normal(size=(3000, 3)))
    ax = embedding_map(vectors, labels=5)
    assert ax.collections[0].get_rasterized()
    assert not embedding_map(baskets()).collections[0].get_rasterized()


# -- what a map says by itself ------------------------------------------------------------------


@pytest.mark.slow
def test_few_items_are_drawn_by_tsne_and_many_by_principal_components(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert draw_map(baskets()).get_xlabel() == "t-SNE 1"
    np.testing.assert_array_equal(
        points_of(draw_map(baskets())), points_of(draw_map(baskets(), method="tsne"))
    )
    monkeypatch.setattr(sys.modules["efemb.plots.embedding_map"], "TSNE_BELOW", 10)
    assert "principal component 1" in draw_map(baskets()).get_xlabel()
    assert "principal component" in draw_map(LabeledVectors(list("abc"), np.eye(3))).get_xlabel()


def test_the_title_says_what_is_drawn() -> None:
    model = baskets()
    title = embedding_map(model).get_title()
    for part in (
        f"{model.n_entities} items",
        model.model,
        f"K = {model.n_components}",
        "principal",
    ):
        assert part in title


def contrast_with_white(rgb: Any) -> float:
    """By the definition of WCAG 2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


@pytest.mark.slow
def test_names_of_groups_are_at_their_members_and_cover_nothing_written() -> None:
    rng = np.random.default_rng(0)
    spots = np.array([[0.0, 0, 9], [9.0, 0, 0], [0, 9.0, 0]])
    vectors = np.concatenate([spot + rng.normal(size=(30, 3)) for spot in spots])
    names = ["dairy", "fruit", "bakery"]
    labels = LabeledVectors([f"item {n}" for n in range(90)], vectors)
    ax = embedding_map(labels, groups=np.repeat(names, 30).tolist(), labels=30, unit=False)
    ax.figure.draw_without_rendering()
    bold = [text for text in ax.texts if text.get_fontweight() == "bold"]
    assert [text.get_text() for text in bold] == names
    for text, marks in zip(bold, ax.collections, strict=False):
        hue = rgb_to_hsv(marks.get_facecolor()[0][:3])[0]
        assert rgb_to_hsv(text.get_color())[0] == pytest.approx(hue, abs=0.01)
        assert contrast_with_white(text.get_color()) >= 4.5
        middle = marks.get_offsets().mean(axis=0)
        others = [part.get_offsets().mean(axis=0) for part in ax.collections[:3]]
        distances = [np.linalg.norm(np.array(text.xy) - center) for center in others]
        assert np.linalg.norm(np.array(text.xy) - middle) == min(distances)
    for one, other in combinations(boxes_of(ax), 2):
        assert not one.overlaps(other)


def test_groups_without_a_place_of_their_own_are_in_the_legend_only() -> None:
    vectors = np.random.default_rng(0).normal(size=(80, 3))
    vectors[:20] = [0, 0, 4] + 0.1 * vectors[:20]
    groups = ["island"] * 20 + ["everywhere"] * 60
    items = LabeledVectors(list(range(80)), vectors)
    ax = embedding_map(items, groups=groups, labels=0, unit=False)
    assert texts_of(ax) == ["island"]
    named = {text.get_text() for text in ax.get_legend().get_texts()}
    assert named == {"island", "everywhere"}


def test_labels_are_written_in_full_or_not_at_all() -> None:
    labels = [f"a long name of a product, number {n:02}, 500 grams" for n in range(12)]
    ax = embedding_map(LabeledVectors(labels, np.random.default_rng(0).normal(size=(12, 4))))
    assert texts_of(ax)
    assert set(texts_of(ax)) <= set(labels)
