"""Plots by plotly: the numbers of matplotlib, and labels that are never markup."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import efemb
from efemb import plots
from efemb.table import Table
from plots.models import PICTURES, baskets, neurons, scores


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_every_picture_is_also_a_plotly_figure(name: str) -> None:
    from plotly.graph_objects import Figure

    drawn = PICTURES[name](backend="plotly")
    assert isinstance(drawn, Figure)
    assert len(drawn.data) >= 1
    assert "data" in drawn.to_json()
    with pytest.raises(efemb.ParameterError, match="a plotly figure is always new"):
        PICTURES[name](backend="plotly", ax="any")
    with pytest.raises(efemb.ParameterError, match=r"backend='bokeh' is unknown"):
        PICTURES[name](backend="bokeh")


def bar_widths(ax: Any) -> list[float]:
    return [bar.get_width() for bar in ax.patches]


def test_bars_have_the_same_numbers() -> None:
    flat, drawn = (
        plots.relations(baskets(), "_item_0", 4, backend=backend)
        for backend in ("matplotlib", "plotly")
    )
    np.testing.assert_allclose(drawn.data[0].x, bar_widths(flat))
    ticks = [text.get_text().replace(r"\$", "$") for text in flat.get_yticklabels()]
    assert [text.strip() for text in drawn.layout.yaxis.ticktext] == [
        text.strip() for text in ticks
    ]


def test_maps_and_curves_have_the_same_numbers() -> None:
    flat, drawn = (
        plots.embedding_map(baskets(), labels=0, backend=backend)
        for backend in ("matplotlib", "plotly")
    )
    points = np.asarray(flat.collections[0].get_offsets())
    np.testing.assert_allclose(np.column_stack([drawn.data[0].x, drawn.data[0].y]), points)
    flat, drawn = (
        plots.history(baskets(), backend=backend) for backend in ("matplotlib", "plotly")
    )
    np.testing.assert_allclose(drawn.data[0].y, flat.lines[0].get_ydata())
    drawn = plots.score_curve(scores(), backend="plotly")
    assert [(trace.name, *trace.x) for trace in drawn.data] == [
        ("p-emb", 20, 100),
        ("HPF", 20, 100),
    ]
    np.testing.assert_allclose(drawn.data[1].error_y.array, [0.03, 0.04])
    assert drawn.layout.shapes[0].y0 == -6.0  # popularity has no K


def test_weights_are_drawn_in_space() -> None:
    model = neurons()
    drawn = plots.spatial_weights(model, [3], backend="plotly")
    assert drawn.data[0].type == "scatter3d"
    np.testing.assert_allclose(drawn.data[0].z, model.positions[:, 2])
    assert len(drawn.data) == 1 + len(model.weights(3))


def test_answers_draw_themselves() -> None:
    answer = baskets().similar("_item_0", 6)
    flat, drawn = answer.plot(4), answer.plot(4, backend="plotly")
    np.testing.assert_allclose(bar_widths(flat), answer["similarity"][:4])
    np.testing.assert_allclose(drawn.data[0].x, answer["similarity"][:4])
    assert flat.get_xlabel() == drawn.layout.xaxis.title.text == "similarity"
    counts = answer.plot(value="count", backend="plotly")
    np.testing.assert_allclose(counts.data[0].x, answer["count"])
    several = baskets().similar(["_item_0", "_item_2"], 2).plot(backend="plotly")
    assert all(" | _item_" in name for name in several.layout.yaxis.ticktext)


def test_answers_show_intervals() -> None:
    table = Table({"label": ["a", "b"], "product": [1.0, -1.0], "low": [0.5, -2], "high": [2, 0.0]})
    drawn = table.plot(backend="plotly")
    np.testing.assert_allclose(drawn.data[0].error_x.array, [1.0, 1.0])
    np.testing.assert_allclose(drawn.data[0].error_x.arrayminus, [0.5, 1.0])
    assert drawn.data[0].marker.color[0] != drawn.data[0].marker.color[1]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (Table({"label": ["a"][:0], "x": [0.5][:0]}), {}, "the table has no rows"),
        (Table({"label": ["a"]}), {}, "no column of numbers"),
        (Table({"label": ["a"], "x": [0.5]}), {"value": "label"}, "does not hold numbers"),
        (Table({"label": ["a"], "x": [0.5]}), {"n": 0}, "n must be >= 1"),
    ],
)
def test_answers_that_cannot_be_drawn(table: Table, options: Any, message: str) -> None:
    with pytest.raises(efemb.EfembError, match=message):
        table.plot(**options)


def test_labels_are_not_markup() -> None:
    table = Table({"label": ["<b>bold</b>", "<a href='x'>link</a>"], "score": [0.5, 0.2]})
    assert "<b>" not in table.plot(backend="plotly").to_json().replace("\\u003c", "<")


def test_without_plotly_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(efemb.MissingExtraError, match=r"efemb\[explore\]"):
        plots.history(baskets(), backend="plotly")
