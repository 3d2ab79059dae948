"""history, score_curve, reliability, change_points: numbers that are drawn, marks and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.plots import change_points, history, reliability, score_curve
from efemb.table import Table
from plots.models import HISTORY, baskets, changes, frequencies, scores


def line_of(ax: Any, place: int = 0) -> list[list[float]]:
    return [list(axis) for axis in ax.lines[place].get_data()]


def legend_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -- history ------------------------------------------------------------------------------------


def test_passes_without_a_validation_score_are_left_out() -> None:
    ax = history(baskets())
    assert line_of(ax) == [[1, 3, 4], [-3.0, -2.0, -2.5]]
    assert ax.get_xlabel() == "pass over the data"
    assert ax.get_ylabel() == "validation score"


def test_the_best_validation_score_is_marked() -> None:
    ax = history(baskets())
    assert ax.collections[0].get_offsets().tolist() == [[3.0, -2.0]]
    assert legend_of(ax) == ["best −2"]


def test_objective_against_seconds() -> None:
    ax = history(baskets(), value="objective", against="seconds")
    assert line_of(ax) == [[0.5, 1.0, 1.5, 2.0], [-30.0, -20.0, -15.0, -12.0]]
    assert ax.get_xlabel() == "time (s)"
    assert not ax.collections


def test_models_without_held_out_data_show_the_objective() -> None:
    bare = [{**one, "validation": None} for one in HISTORY]
    assert history(baskets(history=bare)).get_ylabel() == "objective"
    with pytest.raises(DataError, match="no validation; the model was fitted without"):
        history(baskets(history=bare), value="validation")


def test_several_models_have_lines_of_their_own() -> None:
    ax = history({"one $x$": baskets(), "two": baskets(history=HISTORY[:1])})
    assert len(ax.lines) == 2
    assert legend_of(ax) == [r"one \$x\$: best −2", "two: best −3"]
    assert len({line.get_color() for line in ax.lines}) == 2


def test_both_have_an_axis_each() -> None:
    ax = history(baskets(), value="both")
    other = [one for one in ax.figure.axes if one is not ax]
    assert line_of(ax)[1] == [-3.0, -2.0, -2.5]
    assert line_of(other[0])[1] == [-30.0, -20.0, -15.0, -12.0]
    with pytest.raises(ParameterError, match="takes a single model"):
        history({"a": baskets(), "b": baskets()}, value="both")


def test_bad_histories_are_refused() -> None:
    with pytest.raises(DataError, match="has no objective"):
        history(baskets(history=[]))
    with pytest.raises(DataError, match="history of 'b' has no validation"):
        history({"a": baskets(), "b": baskets(history=[])}, value="validation")
    with pytest.raises(DataError, match="no model to draw"):
        history({})
    with pytest.raises(ParameterError, match="did you mean 'objective'"):
        history(baskets(), value="objectiv")
    with pytest.raises(ParameterError, match="choices: pass, seconds"):
        history(baskets(), against="hours")


# -- score_curve --------------------------------------------------------------------------------


def test_each_model_has_a_line_over_k_in_order() -> None:
    ax = score_curve(scores())
    containers = ax.containers
    assert len(containers) == 2
    drawn = [[list(axis) for axis in one.lines[0].get_data()] for one in containers]
    assert drawn == [[[20, 100], [-5.7, -5.6]], [[20, 100], [-5.8, -5.9]]]
    assert legend_of(ax) == ["p-emb", "HPF", "popularity"]


def test_lengths_may_have_the_name_that_score_grid_gives_them() -> None:
    table = scores()
    columns = {"n_components" if name == "k" else name: table[name] for name in table.columns}
    ax = score_curve(Table(columns))
    assert [list(one.lines[0].get_xdata()) for one in ax.containers] == [[20, 100], [20, 100]]


def test_bars_are_one_standard_error_up_and_down() -> None:
    ax = score_curve(scores())
    for container, errors in zip(ax.containers, ([0.02, 0.01], [0.03, 0.04]), strict=True):
        y = np.asarray(container.lines[0].get_ydata(), dtype=float)
        (bars,) = container.lines[2]
        for segment, score, error in zip(bars.get_segments(), y, errors, strict=True):
            np.testing.assert_allclose(segment[:, 1], [score - error, score + error])


def test_a_model_without_k_is_a_level() -> None:
    ax = score_curve(scores())
    (level,) = [line for line in ax.lines if list(line.get_ydata()) == [-6.0, -6.0]]
    assert list(level.get_xdata()) == [0, 1]  # the whole width


def test_everything_is_inside_the_limits() -> None:
    ax = score_curve(scores())
    ax.figure.draw_without_rendering()
    low, high = ax.get_ylim()
    assert low < -6.0
    assert high > -5.59
    left, right = ax.get_xlim()
    assert left < 20
    assert right > 100
    assert [text.get_text() for text in ax.get_xticklabels()] == ["20", "100"]
    assert ax.get_xscale() == "log"


def test_bars_of_several_models_at_one_k_are_apart() -> None:
    ax = score_curve(scores())
    ax.figure.draw_without_rendering()
    places = [
        one.lines[0].get_transform().transform(np.column_stack(one.lines[0].get_data()))[0, 0]
        for one in ax.containers
    ]
    assert abs(places[0] - places[1]) > 2


def test_columns_have_any_names() -> None:
    table = Table({"size": [1, 2], "error": [3.0, 2.0], "name": ["a", "a"]})
    ax = score_curve(table, x="size", y="error", by="name", error=None, x_label="c")
    assert ax.get_xlabel() == "c"
    assert ax.get_ylabel() == "error"
    assert ax.get_xscale() == "linear"
    assert not ax.containers[0].has_yerr


def test_missing_scores_are_left_out() -> None:
    table = Table({"k": [1, 2, 1], "score": [1.0, np.nan, np.nan], "model": ["a", "a", "b"]})
    ax = score_curve(table)
    assert len(ax.containers) == 1
    assert legend_of(ax) == ["a"]


def test_only_levels() -> None:
    table = Table({"k": [None, None], "score": [1.0, 2.0], "model": ["a", "b"]})
    ax = score_curve(table)
    assert len(ax.lines) == 2
    styles = {line.get_linestyle() for line in ax.lines}
    assert len(styles) == 2
    assert "-" not in styles


def test_bad_tables_are_refused() -> None:
    with pytest.raises(InputTypeError, match="draws a Table, not dict"):
        score_curve({"k": [1]})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"no column 'scores'; did you mean 'score'"):
        score_curve(scores(), y="scores")
    with pytest.raises(DataError, match="column 'model' must hold numbers"):
        score_curve(scores(), y="model")
    with pytest.raises(DataError, match="no finite score"):
        score_curve(Table({"k": [1], "score": [np.nan], "model": ["a"]}))


# -- reliability --------------------------------------------------------------------------------


def test_groups_with_hits_are_drawn_beside_the_diagonal() -> None:
    ax = reliability({"a": frequencies(), "b": frequencies()})
    assert line_of(ax) == [[0.004, 1.0], [0.004, 1.0]]
    assert line_of(ax, 1) == [[0.004, 0.03, 0.2], [0.005, 0.025, 0.22]]
    assert legend_of(ax) == ["calibrated", "a", "b"]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    bars = ax.collections[0].get_segments()
    assert bars[0][1][1] == pytest.approx(0.005 + np.sqrt(0.005 / 2000))


def test_what_has_no_reliability_is_refused() -> None:
    with pytest.raises(InputTypeError, match="BasketEmbedding or its table"):
        reliability(baskets())
    with pytest.raises(InputTypeError, match="BasketEmbedding or its table"):
        reliability(scores())
    with pytest.raises(DataError, match="at least one"):
        reliability({})
    with pytest.raises(DataError, match="nothing to draw"):
        reliability(Table({"predicted": [0.1], "observed": [0.0], "n": [10]}))


# -- change points --------------------------------------------------------------------------------


@pytest.mark.slow
def test_slices_are_in_the_order_of_time_and_sure_ones_are_filled() -> None:
    ax = change_points(changes())
    stems = ax.collections[0].get_segments()
    assert [(stem[1][0], stem[1][1]) for stem in stems] == [(2.0, 2.0), (6.0, 9.0), (7.0, 30.0)]
    sure, unsure = ax.collections[1:]
    assert sure.get_offsets().tolist() == [[6.0, 9.0], [7.0, 30.0]]
    assert unsure.get_offsets().tolist() == [[2.0, 2.0]]
    assert sure.get_facecolor().tolist() != unsure.get_facecolor().tolist()
    assert [text.get_text() for text in ax.texts] == ["7"]


def test_dates_are_in_order_and_without_a_change_nothing_is_named() -> None:
    at = np.array(["2020-03", "2019-11"], dtype=object)
    table = Table({"at": at, "statistic": [3.0, 1.0], "p_value": [0.3, 0.9]})
    ax = change_points(table)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2019-11", "2020-03"]
    assert len(ax.collections) == 2
    assert not ax.texts


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"table": "no table"}, InputTypeError),
        ({"table": Table({"at": [1]})}, InputTypeError),
        ({"table": Table({"at": [], "statistic": [], "p_value": []})}, DataError),
        ({"level": 1.0}, ParameterError),
        ({"level": True}, InputTypeError),
    ],
)
def test_bad_change_points_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        change_points(**{"table": changes(), **options})
