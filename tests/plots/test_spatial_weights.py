"""spatial_weights: what is zoomed on, and the color and opacity of every edge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import efemb
from efemb.errors import DataError, ParameterError
from efemb.model.contexts.bound.entities import Lists
from efemb.plots import spatial_weights
from efemb.plots.canvas import PALETTES, new_axes
from efemb.plots.spatial_weights import Panels, choose_spread_out, round_down
from plots.models import baskets, neurons


def panels_of(ax: Any) -> list[Any]:
    """The squares; the last child is the key."""
    return ax.child_axes[:-1]


def edges_of(panel: Any) -> LineCollection:
    (found,) = [part for part in panel.collections if isinstance(part, LineCollection)]
    return found


def zoomed_of(ax: Any) -> list[int]:
    return [int(panel.texts[0].get_text().split()[-1]) for panel in panels_of(ax)]


def weights_of(model: Any, n: int) -> dict[int, float]:
    """rho_n . alpha_m by the definition."""
    (part,) = model.lists
    members = part.members[part.ptr[n] : part.ptr[n + 1]]
    rho, alpha = model.parameters.rho, model.parameters.alpha
    size = range(rho.shape[1])
    return {int(m): float(sum(rho[n, k] * alpha[m, k] for k in size)) for m in members}


@pytest.mark.parametrize("palette", ["paper", "colorblind"])
def test_edges_have_the_color_of_their_sign_and_the_opacity_of_their_size(palette: str) -> None:
    model = neurons()
    ax = spatial_weights(model, 3, palette=palette)
    positive, negative, _ = (to_rgb(color) for color in PALETTES[palette])
    zoomed = zoomed_of(ax)
    largest = max(abs(w) for n in zoomed for w in weights_of(model, n).values())
    places = model.positions[:, :2]
    for n, panel in zip(zoomed, panels_of(ax), strict=True):
        lines, weights = edges_of(panel), weights_of(model, n)
        assert len(lines.get_segments()) == len(weights) == 5
        for line, color in zip(lines.get_segments(), lines.get_colors(), strict=True):
            np.testing.assert_allclose(line[0], places[n])
            (m,) = [m for m in weights if np.allclose(places[m], line[1])]
            assert tuple(color[:3]) == pytest.approx(positive if weights[m] > 0 else negative)
            assert color[3] == pytest.approx(abs(weights[m]) / largest)


def test_green_is_positive_and_red_negative_in_the_paper() -> None:
    positive, negative, entity = (to_rgb(color) for color in PALETTES["paper"])
    assert np.argmax(positive) == 1
    assert np.argmax(negative) == 0
    assert np.argmax(entity) == 2


@pytest.mark.slow
def test_every_neuron_is_a_circle_and_every_neighbor_a_dot() -> None:
    model = neurons()
    ax = spatial_weights(model, 2)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), model.positions[:, :2])
    for n, panel in zip(zoomed_of(ax), panels_of(ax), strict=True):
        drawn = [np.asarray(part.get_offsets()) for part in panel.collections]
        members = model.lists[0].members[5 * n : 5 * n + 5]
        small = next(points for points in drawn if len(points) == 5)
        assert {tuple(point) for point in small} == {tuple(model.positions[m, :2]) for m in members}
        x, y = panel.get_xlim(), panel.get_ylim()
        for point in small:
            assert x[0] < point[0] < x[1]
            assert y[0] < point[1] < y[1]


def test_the_strongest_neurons_that_are_apart_are_picked() -> None:
    model = neurons()
    strength = [sum(w**2 for w in weights_of(model, n).values()) for n in range(60)]
    zoomed = zoomed_of(spatial_weights(model, 3))
    assert int(np.argmax(strength)) in zoomed
    places = model.positions[zoomed, :2]
    extent = np.linalg.norm(np.ptp(model.positions[:, :2], axis=0))
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(3, 1)]
    assert gaps.min() >= 0.25 * extent


def test_places_are_spread_out_as_far_as_they_can_be() -> None:
    places = np.array([[0.0, 0], [1, 0], [50, 0], [100, 0]])
    assert choose_spread_out(places, np.array([4.0, 3, 2, 1]), 2) == [0, 2]
    assert choose_spread_out(places, np.array([4.0, 3, 2, 1]), 4) == [0, 1, 2, 3]
    assert choose_spread_out(places, np.ones(4), 9) == [0, 1, 2, 3]


@pytest.mark.slow
def test_neurons_can_be_chosen_by_name() -> None:
    assert sorted(zoomed_of(spatial_weights(neurons(), [7, 3]))) == [3, 7]
    named = neurons(vocabulary=efemb.Vocabulary([f"cell {n}" for n in range(60)]))
    ax = spatial_weights(named, ["cell 9"])
    assert panels_of(ax)[0].texts[0].get_text() == "A: cell 9"


def test_panels_are_in_the_order_of_the_map() -> None:
    model = neurons()
    ax = spatial_weights(model, 3)
    heights = model.positions[zoomed_of(ax), 1]
    assert (np.diff(heights) < 0).all()


@pytest.mark.parametrize("stretch", [(1, 1), (3, 1), (1, 3)], ids=["square", "wide", "high"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 12])
def test_panels_overlap_neither_one_another_nor_the_map(stretch: tuple[int, int], n: int) -> None:
    points = np.random.default_rng(0).uniform(size=(50, 2)) * stretch
    found = Panels(points, n)
    low, high = points.min(axis=0), points.max(axis=0)
    squares = [(x, y, x + found.side, y + found.side) for x, y in found.corners]
    assert len(squares) == n
    for place, (x0, y0, x1, y1) in enumerate(squares):
        assert x0 >= high[0] or y1 <= low[1]
        assert x1 <= found.right + 1e-9
        assert y0 >= found.foot
        for a0, b0, a1, b1 in squares[place + 1 :]:
            assert a0 >= x1 or a1 <= x0 or b0 >= y1 or b1 <= y0


def test_another_view_shows_other_coordinates() -> None:
    model = neurons()
    ax = spatial_weights(model, view=(2, 0))
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), model.positions[:, [2, 0]])


def test_neighbors_below_one_another_are_both_seen() -> None:
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), np.arange(2.0)), axis=-1)
    positions = grid.reshape(-1, 3)
    n, rng = len(positions), np.random.default_rng(0)
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    members = np.argsort(distance, axis=1, kind="stable")[:, 1:8].ravel()
    none = np.zeros(7 * n, dtype=np.int64)
    model = neurons(
        parameters=efemb.model.parameters.Parameters(
            rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
        ),
        positions=positions,
        lists=(Lists(7 * np.arange(n + 1), members, none, none),),
    )
    ax = spatial_weights(model, [24])
    ends = {tuple(line[1].round(6)) for line in edges_of(panels_of(ax)[0]).get_segments()}
    assert len(ends) == 7


def test_edges_to_other_rows_are_not_drawn() -> None:
    model = neurons(10, 2)
    (part,) = model.lists
    lagged = replace(part, offset=part.offset - 1)
    both = neurons(10, 2, lists=(part, lagged))
    assert len(edges_of(panels_of(spatial_weights(both, [0]))[0]).get_segments()) == 2
    with pytest.raises(DataError, match="same row"):
        spatial_weights(neurons(10, 2, lists=(lagged,)))


def test_letters_are_on_map_and_panels() -> None:
    ax = spatial_weights(neurons(400), 4, unit="µm")
    texts = [text.get_text() for text in ax.texts]
    assert set("ABCD") <= set(texts)
    assert [panel.texts[0].get_text()[0] for panel in panels_of(ax)] == list("ABCD")
    assert any(text.endswith(" µm") for text in texts)


def test_every_zoomed_neuron_is_marked_where_it_is() -> None:
    model = neurons(400, p=2)
    places = model.positions[:, :2]
    corners = [places[:, 0].argmin(), places[:, 0].argmax(), places[:, 1].argmax()]
    ax = spatial_weights(model, [*map(int, corners), 7])
    zoomed = places[zoomed_of(ax)]
    letters = [text for text in ax.texts if text.get_text() in ("A", "B", "C", "D")]
    np.testing.assert_array_equal([letter.xy for letter in letters], zoomed)
    marked = [np.asarray(part.get_offsets()) for part in ax.collections[1:]]
    np.testing.assert_array_equal(np.concatenate([one for one in marked if len(one)]), zoomed)


@pytest.mark.parametrize(("most", "wanted"), [(99, 50), (20, 20), (19.9, 10), (0.07, 0.05), (1, 1)])
def test_scale_bars_have_round_lengths(most: float, wanted: float) -> None:
    assert round_down(most) == pytest.approx(wanted)


@pytest.mark.parametrize("stretch", [(1, 1), (4, 1)])
def test_frames_are_joined_to_the_near_corners_of_their_panels(stretch: tuple[int, int]) -> None:
    points = np.random.default_rng(0).uniform(size=(50, 2)) * stretch
    panels, ax = Panels(points, 1), new_axes(None, (6.0, 6.0))
    center, reach = points.mean(axis=0), 0.02
    panel = panels.zoom(ax, 0, center, reach, "A")
    frame, *lines = [line.get_xydata() for line in ax.lines]
    half = (panel.get_xlim()[1] - panel.get_xlim()[0]) / 2
    np.testing.assert_allclose(np.abs(frame - center), half)
    (x, y), side = panels.corners[0], panels.side
    near = [(x, y + side), (x + side, y + side)] if panels.below else [(x, y + side), (x, y)]
    np.testing.assert_allclose([line[1] for line in lines], near)
    for line in lines:
        assert min(np.linalg.norm(frame - line[0], axis=1)) < 1e-9
    # A line leaves its frame at once: its middle is outside.
    assert all((np.abs(line.mean(axis=0) - center) > half).any() for line in lines)


def test_zero_weights_are_drawn_without_opacity() -> None:
    model = neurons()
    model.parameters.alpha[:] = 0
    ax = spatial_weights(model, 1)
    assert not edges_of(panels_of(ax)[0]).get_colors()[:, 3].any()


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="no positions; fit it with positions="):
        spatial_weights(neurons(positions=None))
    with pytest.raises(DataError, match="at least 2 coordinates to be drawn, got 1"):
        spatial_weights(neurons(p=1))
    with pytest.raises(ParameterError, match="not fixed lists"):
        spatial_weights(baskets(positions=np.random.default_rng(0).uniform(size=(40, 2))))
    for view in ((0, 0), (0, 3), (0, 1, 2), (-1, 0)):
        with pytest.raises(ParameterError, match="two distinct integers from 0 to 2"):
            spatial_weights(neurons(), view=view)  # type: ignore[arg-type]
    for number in (0, 13):
        with pytest.raises(ParameterError, match="neurons must be 1 to 12"):
            spatial_weights(neurons(), number)
    with pytest.raises(ParameterError, match="at most 12 neurons can be shown, got 13"):
        spatial_weights(neurons(), list(range(13)))
    with pytest.raises(DataError, match="unknown label 60"):
        spatial_weights(neurons(), [60])
    with pytest.raises(ParameterError, match="did you mean 'colorblind'"):
        spatial_weights(neurons(), palette="colourblind")
