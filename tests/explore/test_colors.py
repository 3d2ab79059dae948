"""Colors that everyone can tell apart, on white and on black."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from efemb.explore.colors import HUES, MARKS, REST, STEPS
from efemb.explore.page import page_file

# Machado, Oliveira and Fernandes (2009), severity 1: what a color looks like, in linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
EASILY_TOLD = 8.0  # CIE 1976; 2.3 is just noticeable


def linear(color: str) -> np.ndarray:
    parts = np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(color: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a color as somebody sees it."""
    xyz = TO_XYZ @ np.clip(np.asarray(VISION[vision]) @ linear(color), 0, 1) / WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(first: str, second: str, vision: str) -> float:
    return float(np.linalg.norm(lab(first, vision) - lab(second, vision)))


def contrast(first: str, second: str) -> float:
    """By the rule of WCAG 2."""
    low, high = sorted(float(TO_XYZ[1] @ linear(color)) for color in (first, second))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISION)
def test_colors_differ(vision: str) -> None:
    for first, second in itertools.combinations((*HUES, REST), 2):
        assert distance(first, second, vision) >= 2 * EASILY_TOLD
    for first, second in itertools.combinations(STEPS, 2):
        assert distance(first, second, vision) >= EASILY_TOLD


@pytest.mark.parametrize("vision", VISION)
def test_marks_differ(vision: str) -> None:
    """Some kinds share a color: a similar item and a positive weight, for example."""
    marks = set(MARKS.values())
    assert marks <= set(HUES)
    for first, second in itertools.combinations(marks, 2):
        assert distance(first, second, vision) >= 2 * EASILY_TOLD


def test_points_are_visible_in_both_themes() -> None:
    papers = re.findall(r"--paper: (#\w{6})", page_file("style.css"))
    assert len(papers) == 2
    for paper, color in itertools.product(papers, (*HUES, REST, *STEPS)):
        assert contrast(paper, color) >= 1.5
