"""Common checks of the options of ingredients, and of gradients of models made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from efemb._typing import Floats
from efemb.data.dataset import Dataset
from efemb.engine.solvers.choice import make_solver
from efemb.engine.threads import workers
from efemb.model.ingredient import Ingredient
from efemb.model.parameters import Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec

STEP = 1e-6  # of finite differences
K = 2  # length of vectors


def check_options(ingredient: Any, kind: type[Ingredient]) -> None:
    """Check that options are stored untouched, and that they rebuild an equal ingredient."""
    assert not isinstance(ingredient, type), (
        f"got the class {ingredient.__name__}: pass an object, such as {ingredient.__name__}()"
    )
    name = type(ingredient).__name__
    assert isinstance(ingredient, kind), f"{name} is not a {kind.__name__}"
    options = ingredient.get_params(deep=False)
    again = type(ingredient)(**options)
    assert again == ingredient, f"{name}(**get_params()) differs from the original"
    assert isinstance(repr(ingredient), str)
    if hasattr(ingredient, "check"):
        ingredient.check()


def check_same_shape(result: Any, like: Floats, what: str) -> None:
    """Check that an elementwise method returns finite floats in the shape of its argument."""
    assert np.shape(result) == like.shape, (
        f"{what} must return shape {like.shape}, got {np.shape(result)}"
    )
    assert np.isfinite(result).all(), f"{what} returned NaN or infinite numbers"


def check_gradient(spec: Spec, data: Dataset, label: str) -> None:
    """Check that solvers agree, and that the gradient is the derivative of the objective."""
    space = ParameterSpace(spec, data.n_entities, 1, 1, K)
    rng, bound = np.random.default_rng(1), spec.context.bind(data)
    at = Parameters.from_named({a.name: rng.normal(0, 0.3, a.shape) for a in space.layout})

    def value_and_gradient(point: Parameters, solver: str) -> tuple[float, Parameters]:
        with workers(1) as pool:
            made = make_solver(solver, bound, spec, pool, dtype=np.float64)
            value, gradient = made.value_and_gradient(space.vectors(point))
        return value, space.pull_back(point, gradient)

    value, gradient = value_and_gradient(at, "rows")
    other, same = value_and_gradient(at, "generic")
    assert_allclose(value, other, rtol=1e-9, err_msg=f"{label}: the solvers differ")
    for name, array in gradient.named().items():
        message = f"{label}: gradients of {name} differ between the solvers"
        assert_allclose(array, same.named()[name], rtol=1e-6, atol=1e-8, err_msg=message)
    for name in space.of_terms:
        index = np.unravel_index(np.abs(gradient.terms[name]).argmax(), at.terms[name].shape)
        ends = []
        for step in (STEP, -STEP):
            moved = at.copy()
            moved.terms[name][index] += step
            ends.append(value_and_gradient(moved, "rows")[0])
        message = f"{label}: the gradient of {name} is not the derivative of the objective"
        slope = (ends[0] - ends[1]) / (2 * STEP)
        assert_allclose(gradient.terms[name][index], slope, rtol=1e-4, atol=1e-6, err_msg=message)
