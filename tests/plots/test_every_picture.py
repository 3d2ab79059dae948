"""What holds for every picture: where it draws, what it leaves alone, what it refuses."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import efemb
from efemb import plots
from efemb.errors import InputTypeError
from plots.models import OF_A_MODEL, PICTURES, baskets, neurons

EVERY = sorted(PICTURES)


def run_python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_picture_is_tried() -> None:
    assert set(PICTURES) == set(plots.__all__) - {"Page"}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_without_axes_a_figure_of_its_own_is_made(name: str) -> None:
    from matplotlib import pyplot as plt

    before, settings = plt.get_fignums(), dict(mpl.rcParams)
    first, second = PICTURES[name](), PICTURES[name]()
    assert isinstance(first, Axes)
    assert first.figure is not second.figure
    assert plt.get_fignums() == before
    assert dict(mpl.rcParams) == settings


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_it_can_be_saved_in_any_format(name: str) -> None:
    ax = PICTURES[name]()
    for kind in ("png", "svg", "pdf"):
        stream = BytesIO()
        ax.figure.savefig(stream, format=kind)
        assert len(stream.getvalue()) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_given_axes_are_used_and_others_left_alone(name: str) -> None:
    figure = Figure(figsize=(10, 5))
    ax, other = figure.subplots(1, 2)
    n_before = len(other.get_children())
    assert PICTURES[name](ax=ax) is ax
    assert len(other.get_children()) == n_before
    figure.draw_without_rendering()


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_axes_of_a_subfigure_will_do(name: str) -> None:
    figure = Figure(figsize=(10, 5))
    ax = figure.subfigures(1, 2)[1].subplots()
    assert PICTURES[name](ax=ax) is ax
    figure.draw_without_rendering()


@pytest.mark.parametrize("name", EVERY)
def test_something_else_than_axes_is_refused(name: str) -> None:
    with pytest.raises(InputTypeError, match="ax must be matplotlib Axes or None, not Figure"):
        PICTURES[name](ax=Figure())


@pytest.mark.parametrize("name", sorted(OF_A_MODEL))
def test_an_unfitted_estimator_is_refused(name: str) -> None:
    with pytest.raises(NotFittedError):
        OF_A_MODEL[name](efemb.PoissonEmbedding(2))


@pytest.mark.parametrize("name", sorted(OF_A_MODEL))
@pytest.mark.parametrize("wrong", [None, "model", np.ones((3, 2))], ids=["None", "text", "array"])
def test_something_else_than_a_model_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(InputTypeError, match="fitted estimator"):
        OF_A_MODEL[name](wrong)


@pytest.mark.slow
def test_estimators_are_drawn_like_what_they_were_fitted_to() -> None:
    rng = np.random.default_rng(0)
    X, places = rng.normal(size=(30, 12)), rng.uniform(size=(12, 2))
    model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(3), random_state=0)
    model.fit(X, positions=places)
    for draw in (plots.embedding_map, plots.history, plots.similarity, plots.spatial_weights):
        streams = BytesIO(), BytesIO()
        for stream, one in zip(streams, (model, model.fitted()), strict=True):
            draw(one).figure.savefig(stream, format="png")  # type: ignore[operator]
        assert streams[0].getvalue() == streams[1].getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("model", [baskets, neurons], ids=["baskets", "neurons"])
def test_pictures_leave_the_model_as_it_is(model: Any) -> None:
    fitted = model()
    before = fitted.parameters.copy()
    plots.embedding_map(fitted)
    plots.similarity(fitted, 5)
    plots.topics(fitted)
    assert (fitted.parameters.rho == before.rho).all()
    assert (fitted.parameters.alpha == before.alpha).all()


@pytest.mark.slow
def test_without_matplotlib_the_extra_is_named() -> None:
    code = """
import sys
for name in ("matplotlib", "matplotlib.axes", "matplotlib.figure"):
    sys.modules[name] = None
sys.path.insert(0, "tests")
from plots.models import PICTURES
from efemb.errors import MissingExtraError
from efemb.plots import Page
for name, draw in PICTURES.items():
    try:
        draw()
    except MissingExtraError as error:
        assert "pip install 'efemb[plot]'" in str(error), error
    else:
        raise AssertionError(name)
assert "<p>text</p>" in Page("title").paragraph("text").html()
print("done")
"""
    assert run_python(code) == "done\n"


def test_importing_the_pictures_imports_no_heavy_package() -> None:
    code = "import sys, efemb.plots; print(*{name.partition('.')[0] for name in sys.modules})"
    heavy = {"matplotlib", "scipy", "sklearn", "pandas", "numba", "PIL"}
    assert heavy.isdisjoint(run_python(code).split())


@pytest.mark.slow
def test_no_picture_imports_pyplot() -> None:
    code = """
import sys
sys.path.insert(0, "tests")
from plots.models import PICTURES
for draw in PICTURES.values():
    draw().figure.canvas.draw()
print("matplotlib.pyplot" in sys.modules)
"""
    assert run_python(code) == "False\n"
