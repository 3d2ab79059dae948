"""What holds for the options of every ingredient."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.model.ingredient import Ingredient

STEP = 1e-6  # of finite differences


def check_options(ingredient: Any, kind: type[Ingredient]) -> None:
    """Options are stored untouched, and an ingredient made from them is the same."""
    name = type(ingredient).__name__
    assert isinstance(ingredient, kind), f"{name} is not a {kind.__name__}"
    options = ingredient.get_params(deep=False)
    again = type(ingredient)(**options)
    assert again == ingredient, f"{name}(**get_params()) differs from the original"
    assert isinstance(repr(ingredient), str)
    ingredient.check() if hasattr(ingredient, "check") else None


def check_same_shape(result: Any, like: Floats, what: str) -> None:
    """An elementwise method returns an array of floats of the shape of its argument."""
    assert np.shape(result) == like.shape, (
        f"{what} must return shape {like.shape}, got {np.shape(result)}"
    )
    assert np.isfinite(result).all(), f"{what} returned NaN or infinite numbers"
