"""check_structure: maps of a structure and their transposes, for entities and groups of rows."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from efemb._typing import Floats
from efemb.checks.common import STEP, K, check_gradient, check_options
from efemb.data.dataset import Dataset
from efemb.model.contexts.basket import Basket
from efemb.model.priors import Normal
from efemb.model.spec import Spec
from efemb.model.structures import Structure


def check_structure(structure: Structure, n_entities: int, data: Dataset | None = None) -> None:
    """Check that a structure is a map from parameters to vectors, with its transpose.

    Parameters
    ----------
    structure : Structure
    n_entities : int
        A number of entities that the structure is for.
    data : Dataset of counts, optional
        Rows and features of the entities, for a structure that learns from them, for instance
        the columns that define groups of rows; a dozen rows are enough.

    Raises
    ------
    AssertionError
        If options are not stored untouched, `spread` does not return one vector per entity, or
        <spread(a), b> differs from <a, collect(b)> for some a and b. With groups of rows also if
        `collect_groups` (`collect_contexts`) is not the transpose of the derivative of
        `spread_groups` (`spread_contexts`), arrays at 0 do not give every group the shared vectors,
        or the gradient of a fit differs from finite differences or between solvers.

    Examples
    --------
    >>> from efemb import Shared
    >>> check_structure(Shared(rho_of=[0, 0, 1]), 3)
    """
    check_options(structure, Structure)
    if data is not None:
        frozen = structure.freeze(data)
        name = type(structure).__name__
        assert frozen.freeze(data) == frozen, f"{name}: freezing twice changes the structure"
        structure = frozen
    rng, name = np.random.default_rng(0), type(structure).__name__
    n_rho, n_alpha = structure.sizes(n_entities)
    rho = rng.normal(size=(n_rho, K))
    alpha = rho if structure.tied else rng.normal(size=(n_alpha, K))
    vectors = structure.spread(rho, alpha, n_entities)
    for side, array in zip(("embeddings", "context vectors"), vectors, strict=True):
        assert array.shape == (n_entities, K), (
            f"{name}.spread must give {side} of shape {(n_entities, K)}, got {array.shape}"
        )
    b_rho, b_alpha = (rng.normal(size=(n_entities, K)) for _ in range(2))
    left = np.vdot(vectors[0], b_rho) + np.vdot(vectors[1], b_alpha)
    back = structure.collect(b_rho, b_alpha, n_entities)
    arrays = (rho,) if structure.tied else (rho, alpha)
    right = sum(np.vdot(array, gradient) for array, gradient in zip(arrays, back, strict=False))
    message = f"{name}.collect is not the transpose of spread"
    assert_allclose(left, right, rtol=1e-10, err_msg=message)
    if structure.grouped:
        assert data is not None, f"{name} has groups of rows: pass data with {structure.columns}"
        _check_codes(structure, data)
        _check_groups(structure, n_entities)
        for scale in ("none", "items", "total"):
            spec = Spec.resolve(context=Basket(scale), family="poisson", structure=structure)
            check_gradient(spec, data, f"{structure!r} with scale={scale!r}")


def _check_codes(structure: Structure, data: Dataset) -> None:
    name, n_groups, codes = type(structure).__name__, len(structure.labels), structure.codes(data)
    assert codes.shape == (data.n_rows,), f"{name}.codes must give a group for each row"
    assert ((codes >= -1) & (codes < n_groups)).all(), f"{name}.codes must lie in -1 ... G - 1"
    for code, label in enumerate(structure.labels):
        assert structure.code_of(label) == code, f"{name}.code_of({label!r}) is not its place"


def _check_groups(structure: Structure, n: int) -> None:
    name, rng = type(structure).__name__, np.random.default_rng(0)
    n_groups = len(structure.labels)
    layout = structure.arrays(n, K, Normal(1.0))
    zero: dict[str, Floats] = {array.name: np.zeros(array.shape) for array in layout}
    point: dict[str, Floats] = {a.name: rng.normal(0.0, 0.3, a.shape) for a in layout}
    point |= {"(target)": rng.normal(size=(n, K)), "(intercept)": rng.normal(size=n)}
    point["(bag)"] = rng.normal(size=(n, K))
    groups = np.arange(n_groups)[::-1]

    def spread(at: dict[str, Floats]) -> tuple[Floats, ...]:
        own = {key: array for key, array in at.items() if key in zero}
        bag = structure.spread_contexts(own, at["(bag)"], groups)
        return *structure.spread_groups(own, at["(target)"], at["(intercept)"], groups), bag

    message = (
        f"{name}.spread_groups (spread_contexts) with arrays at 0 must give the shared vectors"
    )
    shared = (point[key] for key in ("(target)", "(intercept)", "(bag)"))
    for found, given in zip(spread({**point, **zero}), shared, strict=True):
        assert_allclose(found, np.broadcast_to(given, (n_groups, *given.shape)), err_msg=message)
    direction = {key: rng.normal(size=array.shape) for key, array in point.items()}
    up, down = (
        spread({key: array + step * direction[key] for key, array in point.items()})
        for step in (STEP, -STEP)
    )
    b = [rng.normal(size=array.shape) for array in up]
    left = sum(
        np.vdot(high - low, weight) / (2 * STEP)
        for high, low, weight in zip(up, down, b, strict=True)
    )
    own = {key: point[key] for key in zero}
    back, d_target, d_intercept = structure.collect_groups(own, point["(target)"], groups, *b[:2])
    of_contexts, d_bag = structure.collect_contexts(own, point["(bag)"], groups, b[2])
    gradients = {"(target)": d_target, "(intercept)": d_intercept, "(bag)": d_bag}
    gradients |= {**back, **of_contexts}
    right = sum(np.vdot(direction[key], gradients[key]) for key in direction)
    message = (
        f"{name}.collect_groups (collect_contexts) is not the transpose of the derivative of "
        "spread_groups (spread_contexts)"
    )
    assert_allclose(left, right, rtol=1e-6, err_msg=message)
