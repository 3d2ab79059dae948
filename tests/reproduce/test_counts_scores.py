"""Tables of scores: means, paired differences and verdicts, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from efemb.reproduce.claims import (
    HOLDS,
    NOT,
    PARTLY,
    UNCLEAR,
    Check,
    Gap,
    format_gap,
    format_number,
    judge_gaps,
)
from efemb.reproduce.counts_fits import Task
from efemb.reproduce.counts_models import PAPER, RIVAL, Recipe
from efemb.reproduce.counts_report import draw_scores, tabulate_like_paper
from efemb.reproduce.counts_scores import claim_above, collect_rows, compare_rows, tabulate_scores
from efemb.reproduce.jobs import Job, Later, Outcome
from efemb.reproduce.published import Printed

ROW = [0, 0, 1, 2]
X = [1.0, 2.0, 1.0, 1.0]


def outcome(log_share, seed=0, rows=ROW, x=X, rising=False):
    """A finished job with given log-shares."""
    log_share, x = np.array(log_share), np.array(x)
    figures = {
        "score": float(log_share @ x / x.sum()),
        "standard_error": 0.1,
        "by_entry": float(log_share.mean()),
        "recall@10": 0.5,
        "rising": rising,
    }
    arrays = {"row": np.array(rows), "entity": np.arange(len(rows)), "x": x, "log_share": log_share}
    job = Job("movies", "a job", {"seed": seed}, lambda: ({}, {}))
    return Outcome(job, figures, arrays, 1.0)


def task(name, k=20, seed=0, most_rows=None, group=PAPER):
    recipe = Recipe(name, group, "", lambda *_: None)
    return Task("movies", recipe, k, seed, Later(dict), {}, most_rows=most_rows)


def made():
    """p-emb and HPF on two splits."""
    tasks = [
        task("p-emb"),
        task("p-emb", seed=1),
        task("HPF", group=RIVAL),
        task("HPF", seed=1, group=RIVAL),
    ]
    outcomes = [
        outcome([-5.0, -5.0, -5.0, -5.0]),
        outcome([-6.0, -6.0, -6.0, -6.0], 1),
        outcome([-5.5, -5.0, -5.5, -5.0], rising=True),
        outcome([-6.0, -6.5, -6.0, -6.5], 1),
    ]
    return collect_rows(tasks, outcomes)


def test_rows_gather_splits_and_average_them():
    first, second = made()
    assert first.key == ("p-emb", 20)
    assert first.score == pytest.approx(-5.5)
    assert second.score == pytest.approx((-5.2 - 6.3) / 2)


def test_gap_is_paired_per_unit_with_rows_as_draws():
    first, second = made()
    found = compare_rows(first, second)
    # Split 0: units gain .5, 0, .5, 0 of five; split 1: 0, .5 twice, 0, .5.
    assert found.value == pytest.approx((0.2 + 0.3) / 2)
    sums, units = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.5]]), np.array([3.0, 1.0, 1.0])
    errors = [
        np.sqrt((((s - m * units) / 5) ** 2).sum()) for s, m in zip(sums, (0.2, 0.3), strict=True)
    ]
    assert found.error == pytest.approx(np.hypot(*errors) / 2)
    assert found.least == pytest.approx(0.2)


def test_gap_of_a_model_that_saw_fewer_rows_is_on_those():
    full = collect_rows([task("p-emb")], [outcome([-5.0, -5.0, -1.0, -1.0])])[0]
    part = collect_rows(
        [task("HPF", most_rows=1)], [outcome([-6.0, -6.0], rows=[0, 0], x=[1.0, 2.0])]
    )[0]
    assert compare_rows(full, part).value == pytest.approx(1.0)
    assert compare_rows(part, full).value == pytest.approx(-1.0)


def test_score_table_sets_the_figures_side_by_side():
    printed = {("p-emb", 20): Printed(-5.691, 0.006)}
    found = tabulate_scores(made(), printed, {("HPF", 20): -5.706})
    assert found[0]["paper"] == -5.691
    assert np.isnan(found[0]["difference"])
    assert found[1]["difference"] == pytest.approx(-0.25)
    assert found[1]["independent"] == -5.706
    assert found["rising"].tolist() == ["", "yes"]


def test_printed_table_reads_as_the_paper():
    printed = {("p-emb", 20): Printed(-5.691, 0.006)}
    first, second = tabulate_like_paper(made(), printed)
    assert first["paper (20)"] == "−5.691±.006"
    assert first["gain (20)"] == "–"
    assert second["ours (20)"] == "−5.750±.100↑"
    assert second["gain (20)"].startswith("−0.250±")


def test_the_picture_has_every_model_and_arrows_for_what_is_off_it():
    printed = {("p-emb", 20): Printed(-5.4, 0.006), ("HPF", 20): Printed(-70.0, 0.1)}
    ax = draw_scores(made(), printed)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["HPF", "p-emb"]
    assert [text.get_text() for text in ax.texts] == ["◂ −70.00"]


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([Gap(0.1, 0.01, 0.1), Gap(0.2, 0.01, 0.1)], HOLDS),
        ([Gap(0.1, 0.01, 0.1), Gap(-0.2, 0.01, -0.2)], PARTLY),
        ([Gap(-0.1, 0.01, -0.1), Gap(0.01, 0.02, 0.0)], NOT),
        ([Gap(0.01, 0.02, 0.0)], UNCLEAR),
    ],
)
def test_verdicts_follow_the_differences(gaps, verdict):
    assert judge_gaps(gaps) == verdict


def test_a_claim_is_turned_around_by_the_figures():
    rows = made()
    sentence = "p-emb outperforms HPF"
    (holds,) = claim_above(rows, "p-emb", "HPF", sentence)
    (turned,) = claim_above(rows, "HPF", "p-emb", sentence)
    assert holds.verdict != turned.verdict
    assert "+0.250" in holds.figure
    assert claim_above(rows, "p-emb", "not there", sentence) == []


def test_numbers_are_written_as_in_the_paper():
    assert format_number(-5.6911, 0.0061) == "−5.691 ± .006"
    assert format_number(float("nan")) == "–"
    assert format_gap(Gap(0.0312, 0.004, 0.0)) == "+0.031 ± .004"


def test_a_check_is_met_at_its_bound():
    assert Check("score", -5.68, -5.68).met
    assert not Check("score", -5.69, -5.68).met
