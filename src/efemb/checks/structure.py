"""check_structure: `spread` and `collect` are an adjoint pair."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from efemb.checks.common import check_options
from efemb.model.structures import Structure

K = 3


def check_structure(structure: Structure, n_entities: int) -> None:
    """Check that a structure is a linear map with its transpose.

    Parameters
    ----------
    structure : Structure
    n_entities : int
        A number of entities that the structure is for.

    Raises
    ------
    AssertionError
        If options are not stored untouched, `spread` does not give one vector per entity, or
        <spread(a), b> differs from <a, collect(b)> for some a and b.

    Examples
    --------
    >>> from efemb import Shared
    >>> check_structure(Shared(rho_of=[0, 0, 1]), 3)
    """
    check_options(structure, Structure)
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
    right = sum(np.vdot(array, one) for array, one in zip(arrays, back, strict=False))
    message = f"{name}.collect is not the transpose of spread"
    assert_allclose(left, right, rtol=1e-10, err_msg=message)
