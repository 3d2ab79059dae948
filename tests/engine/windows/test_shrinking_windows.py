"""Windows whose size is drawn for each token, as in word2vec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from engine.windows import plain, samples

ZEROS = {"negative-sampling": efemb.NegativeSampling(2), "hierarchical": efemb.Hierarchical()}


def spec(zeros: str, **changes: Any) -> Any:
    context = efemb.Window(3, scale="none", shrink=True)
    return samples.spec(context, ZEROS[zeros], combine="reverse", **changes)


@pytest.mark.parametrize("zeros", sorted(ZEROS))
def test_steps_are_those_of_the_drawn_windows(zeros: str) -> None:
    text, start = samples.corpus((60, 5, 1, 30)), samples.parameters(5, 3, True)
    run = samples.passes(spec(zeros), text, start.copy(), efemb.engine.optimizers.SGD(1e-7))
    drawn = samples.drawn(run, 3)
    every = plain.skipgram_visits(drawn, samples.tables(spec(zeros), start))
    expected = plain.summed([one for one in every if isinstance(one, plain.Visit)], (5, 3))
    samples.go(run, 3)
    moved = samples.moves(start, run.parameters, 1e-7, True)
    for one, other in zip(moved, expected, strict=True):
        assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_every_size_is_equally_likely_and_drawn_anew() -> None:
    source = samples.streams(samples.corpus((3000,)), efemb.NegativeSampling(1))
    assert set(samples.outputs(source, 0).reach[0]) == {2}
    run = samples.passes(
        spec("negative-sampling"),
        samples.corpus((3000,)),
        samples.parameters(5, 3, True),
        efemb.engine.optimizers.SGD(0.01),
    )
    first, second = (samples.drawn(run, seed).reach[0] for seed in (0, 1))
    assert first != second
    share = np.bincount(first, minlength=4) / 3000
    assert share[0] == 0
    assert_allclose(share[1:], 1 / 3, atol=4 * np.sqrt(2 / 9 / 3000))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zeros": "all"}, "Window.shrink=True. draws the windows of skip-gram"),
        ({"combine": "linear"}, "Window.shrink=True. draws the windows of skip-gram"),
        ({"solver": "rows"}, "solver 'rows' does not draw windows"),
        ({"context": efemb.Window(2, shrink=1)}, "Window.shrink must be True or False"),
    ],
)
def test_shrinking_is_refused_where_nothing_is_drawn(options: Any, message: str) -> None:
    given = {"context": efemb.Window(2, shrink=True), "min_count": 1, **options}
    with pytest.raises((efemb.ParameterError, efemb.errors.InputTypeError), match=message):
        efemb.SkipGram(2, **given).fit(["a b c a b c a"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("options", "shrinks"),
    [({}, True), ({"zeros": "hierarchical"}, True), ({"zeros": "all"}, False)],
)
def test_skip_gram_shrinks_its_windows_where_it_draws(options: Any, shrinks: bool) -> None:
    model = efemb.SkipGram(2, min_count=1, random_state=0, max_iter=2, **options)
    model.fit(["a b c a b c a"] * 5)
    assert model.fitted().spec.context.shrink is shrinks
