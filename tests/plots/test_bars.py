"""topics and relations: lengths and colors of bars, and their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.plots import relations, topics
from efemb.plots.canvas import GRAY, PALETTES, label_text
from efemb.table import Table
from fitted.toys import goods
from plots.models import baskets

POSITIVE, NEGATIVE, _ = PALETTES["colorblind"]


def bars_of(ax: Any) -> list[tuple[float, str]]:
    return [(bar.get_width(), to_hex(bar.get_facecolor()).upper()) for bar in ax.patches]


def texts_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


# -- topics -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_panel_a_dimension_with_the_largest_values() -> None:
    model = baskets()
    alpha, labels = model.parameters.alpha, model.vocabulary.labels
    panels = topics(model, n=3).child_axes
    assert [panel.get_title(loc="left") for panel in panels] == [f"topic {k}" for k in range(4)]
    for k, panel in enumerate(panels):
        best = sorted(range(len(labels)), key=lambda n: -alpha[n, k])[:3]
        np.testing.assert_allclose([width for width, _ in bars_of(panel)], alpha[best, k])
        names = [label_text(labels[n]) for n in best]
        numbers = [f"{alpha[n, k]:.2f}" for n in best]
        assert texts_of(panel) == [
            text for pair in zip(names, numbers, strict=True) for text in pair
        ]


def test_negative_numbers_have_another_color() -> None:
    table = Table({"topic": [0, 0], "label": ["a", "b"], "value": [-2.0, 1.0]})
    (panel,) = topics(table).child_axes
    assert bars_of(panel) == [(2.0, NEGATIVE), (1.0, POSITIVE)]
    assert texts_of(panel) == ["a", "−2.00", "b", "1.00"]


def test_options_reach_the_query() -> None:
    model = baskets()
    found = model.topics(4, topic=[2], by="magnitude", vectors="embedding")
    (panel,) = topics(model, [2], 4, by="magnitude", vectors="embedding").child_axes
    widths = [width for width, _ in bars_of(panel)]
    np.testing.assert_allclose(widths, np.abs(found["value"]))


def test_panels_have_one_scale_and_do_not_overlap() -> None:
    ax = topics(baskets(), n=3)
    assert len({panel.get_xlim() for panel in ax.child_axes}) == 1
    ax.figure.draw_without_rendering()
    boxes = [panel.get_window_extent() for panel in ax.child_axes]
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])


def test_long_names_end_before_their_numbers() -> None:
    table = Table({"topic": [0, 0], "label": ["W" * 90, "i"], "value": [1.0, 0.5]})
    ax = topics(table)
    for dpi in (72, 100, 200):
        ax.figure.set_dpi(dpi)
        ax.figure.draw_without_rendering()
        (panel,) = ax.child_axes
        name, number, *_ = (text.get_window_extent() for text in panel.texts)
        assert name.x1 < number.x0
    assert texts_of(panel)[0].endswith("…")
    assert texts_of(panel)[2] == "i"


def test_numbers_stand_beside_their_bars() -> None:
    table = Table({"topic": [0] * 3, "label": list("abc"), "value": [-123.0, 110.0, 99.9]})
    (panel,) = (ax := topics(table)).child_axes
    ax.figure.draw_without_rendering()
    for bar, number in zip(panel.patches, panel.texts[1::2], strict=True):
        assert bar.get_window_extent().x1 < number.get_window_extent().x0


def test_bad_topics_are_refused() -> None:
    with pytest.raises(DataError, match="numbered from 0 to 3"):
        topics(baskets(), 4)
    with pytest.raises(DataError, match="1 to 60 topics can be drawn, got 61"):
        topics(Table({"topic": np.arange(61), "label": ["a"] * 61, "value": np.ones(61)}))
    with pytest.raises(InputTypeError, match="a Table is drawn as it is"):
        topics(Table({"topic": [0], "label": ["a"], "value": [1.0]}), by="value")
    with pytest.raises(DataError, match="no column 'topic'"):
        topics(Table({"label": ["a"], "value": [1.0]}))
    with pytest.raises(ParameterError, match="palette='blue' is unknown"):
        topics(baskets(), palette="blue")


# -- relations ----------------------------------------------------------------------------------


def test_bars_are_inner_products_of_complements_and_substitutes() -> None:
    model = baskets()
    p = model.parameters
    item = model.vocabulary.index_of("_item_4")
    products = p.rho @ p.alpha[item]
    ax = relations(model, "_item_4", 3)
    widths = [width for width, _ in bars_of(ax)]
    assert widths == sorted(widths, reverse=True)
    others = np.delete(products, item)
    np.testing.assert_allclose(widths[:3], np.sort(others)[:-4:-1])
    names = [text.get_text() for text in ax.get_yticklabels()]
    by_name = {
        label_text(label, 34): value
        for label, value in zip(model.vocabulary, products, strict=True)
    }
    np.testing.assert_allclose(widths, [by_name[name] for name in names])
    assert ax.get_title(loc="left") == "given _item_4"


def test_labels_that_differ_in_the_middle_stay_apart() -> None:
    names = [f"lowfat yogurt of the {kind} kind in a pack of six" for kind in ("first", "other")]
    ax = relations(Table({"label": names, "given": ["milk"] * 2, "score": [1.0, 2.0]}))
    shown = [text.get_text() for text in ax.get_yticklabels()]
    assert len(set(shown)) == 2
    assert all(len(text) < 50 for text in shown)


def test_colors_tell_what_a_bar_is() -> None:
    table = Table(
        {
            "label": ["a", "b", "c"],
            "score": [-1.0, -2.0, -3.0],
            "kind": ["substitute", "substitute", "apart"],
        }
    )
    ax = relations(table)
    assert bars_of(ax) == [(-1.0, NEGATIVE), (-2.0, NEGATIVE), (-3.0, GRAY)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "substitute",
        "other contexts",
    ]


def test_pairs_are_colored_by_sign_and_named_by_both() -> None:
    table = Table({"label": ["a", "b"], "given": ["c", "d"], "score": [2.0, -1.0]})
    ax = relations(table, palette="paper")
    positive, negative, _ = PALETTES["paper"]
    assert bars_of(ax) == [(2.0, positive.upper()), (-1.0, negative.upper())]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a | c", "b | d"]
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["more probable", "less probable"]


def test_intervals_are_drawn() -> None:
    table = Table({"label": ["a", "b"], "score": [2.0, 1.0], "low": [1.5, 0.5], "high": [3.0, 1.2]})
    (bars,) = relations(table).containers[1].lines[2]
    drawn = [segment[:, 0].tolist() for segment in bars.get_segments()]
    np.testing.assert_allclose(drawn, [[1.5, 3.0], [0.5, 1.2]])


def test_an_entity_is_drawn_once_where_there_are_few() -> None:
    ax = relations(baskets(5), "_item_0", 10)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert len(names) == len(set(names)) == 4


def test_bad_relations_are_refused() -> None:
    with pytest.raises(DataError, match="unknown label '_item_O'"):
        relations(baskets(), "_item_O")
    with pytest.raises(InputTypeError, match="pass its label, not None"):
        relations(baskets())
    with pytest.raises(InputTypeError, match="pass its label, not \\["):
        relations(baskets(), ["_item_0"])
    table = Table({"label": ["a"], "score": [1.0]})
    with pytest.raises(InputTypeError, match="a Table is drawn as it is"):
        relations(table, "a")
    with pytest.raises(DataError, match="nothing to draw"):
        relations(table[:0])
    with pytest.raises(DataError, match="no column 'score'"):
        relations(Table({"label": ["a"]}))


def test_what_is_less_probable_is_no_complement_where_there_are_few() -> None:
    """A list of complements that is longer than there are any goes on below zero."""
    fitted = goods()
    ax = relations(fitted, "soap", 5)
    drawn = {bar.get_width(): to_hex(bar.get_facecolor()) for bar in ax.patches}
    (complement,) = {color for width, color in drawn.items() if width > 0}
    assert complement not in {color for width, color in drawn.items() if width < 0}
    assert len(drawn) == 5
