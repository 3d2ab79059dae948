"""Models that the kernels step on, and their steps as plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.model.parameters import Parameters
from efemb.model.spec import Spec
from engine.windows import plain, samples

TINY, SEED = 1e-7, 4
ZEROS: dict[str, Any] = {
    "negative-sampling": efemb.NegativeSampling(3, "smoothed"),
    "noise-contrastive": efemb.NoiseContrastive(3, "smoothed"),
    "sampled-softmax": efemb.SampledSoftmax(3, "smoothed"),
    "hierarchical": efemb.Hierarchical(),
}
DIRECTIONS = ("sum", "mean", "reverse")
CASES = [
    pytest.param(zeros, how, id=f"{zeros}-{how}")
    for zeros in ZEROS
    for how in DIRECTIONS
    if (zeros, how) != ("sampled-softmax", "reverse")
]


def assert_close(found: Any, expected: Any, name: str = "") -> None:
    """Equal but for the step's own length; numbers that cancel are as exact as the largest."""
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * scale, err_msg=name)


def model(zeros: str, how: str, window: int = 2, **changes: Any) -> Spec:
    context = efemb.Window(window, scale="items" if how == "mean" else "none")
    combine = "reverse" if how == "reverse" else "linear"
    return samples.spec(context, ZEROS[zeros], combine=combine, **changes)


def visits(
    spec: Spec, drawn: plain.Outputs, start: Parameters, counts: Any
) -> tuple[list[plain.Visit], float]:
    """Plain visits and the log-likelihood of everything drawn."""
    offset: Any = 0.0
    if isinstance(spec.zeros, (efemb.NoiseContrastive, efemb.SampledSoftmax)):
        offset = -np.log(spec.zeros.n * np.array(plain.noise(counts)))
    tables = samples.tables(spec, start, offset)
    window: int = spec.context.size  # type: ignore[attr-defined]
    if spec.combine.reverse:
        found: Any = plain.skipgram_visits(drawn, tables)
    else:
        compete = isinstance(spec.zeros, efemb.SampledSoftmax)
        mean = spec.context.scale == "items"
        found = plain.cbow_visits(drawn, tables, window, mean, compete)
    every = list(found)
    value = sum(one for one in every if isinstance(one, float))
    return [one for one in every if isinstance(one, plain.Visit)], value
