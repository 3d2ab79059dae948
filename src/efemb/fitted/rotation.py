"""Rotations of vectors that leave every inner product as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from efemb._typing import Floats

MOST_STEPS = 500
TOLERANCE = 1e-6


def varimax(vectors: Floats, advance: Callable[[int], None] = lambda _: None) -> Floats:
    """The vectors (N, K), turned so that the squares in a dimension vary most (Kaiser 1958).

    Maximizes the sum over k of the variance of v_nk^2, by singular value decompositions of its
    gradient. Dimensions come with the largest sum of squares first, and with the sign that makes
    their sum of cubes positive. `advance` is called after each step.
    """
    rotation = np.eye(vectors.shape[1])
    reached = 0.0
    for _ in range(MOST_STEPS):
        turned = vectors @ rotation
        spread = np.square(turned)
        slope = vectors.T @ (turned * (spread - spread.mean(axis=0)))
        left, size, right = np.linalg.svd(slope)
        rotation = left @ right
        if size.sum() <= reached * (1 + TOLERANCE):
            break
        reached = float(size.sum())
        advance(1)
    turned = vectors @ rotation
    order = np.argsort(-np.square(turned).sum(axis=0), kind="stable")
    turned = turned[:, order]
    turned *= np.where((turned**3).sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(turned)
