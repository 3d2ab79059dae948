"""The vectors of a fitted model, one per entity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from efemb._typing import Floats
from efemb.errors import ParameterError, suggest
from efemb.fitted.labeled import LabeledVectors
from efemb.model.parameters import Parameters

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

Which = Literal["auto", "rho", "alpha", "both"]
WHICH = ("auto", "rho", "alpha", "both")


def labeled_vectors(model: FittedEmbedding, which: Which = "auto") -> LabeledVectors:
    """The vectors of a fitted model with their labels (numbers if it has none).

    Parameters
    ----------
    model : FittedEmbedding
    which : {"auto", "rho", "alpha", "both"}, default="auto"
        Embeddings, context vectors, or both side by side. "auto" is rho, except for a hierarchical
        softmax, where rho belongs to the nodes of the tree and "auto" is alpha.
    """
    if which not in WHICH:
        raise ParameterError(f"unknown vectors {which!r}; {suggest(which, WHICH)}")
    of_nodes = nodes_of(model)
    if which == "auto":
        which = "alpha" if of_nodes == "rho" else "rho"
    cache = model._labeled
    if which not in cache:
        names = ("rho", "alpha") if which == "both" else (which,)
        arrays = [entity_vectors(model, name) for name in names]
        array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
        cache[which] = LabeledVectors(model.entities, array)
    return cache[which]


def nodes_of(model: FittedEmbedding) -> str | None:
    """Which vectors belong to the nodes of a tree, not to entities."""
    if not model.spec.zeros.tree:
        return None
    return "alpha" if model.spec.combine.reverse else "rho"


def entity_vectors(model: FittedEmbedding, name: str) -> Floats:
    """rho or alpha, (N, K): one row per entity, shared ones repeated."""
    if nodes_of(model) == name:
        raise ParameterError(f"{name} of a hierarchical softmax belongs to nodes, not words")
    p, size, structure = model.parameters, model.n_entities, model.spec.structure
    array, side = (p.rho, 0) if name == "rho" else (p.alpha, 1)
    if array.ndim > 2:
        raise ParameterError(
            "this needs one vector per entity, but with vector observations an entity has one for "
            f"each of its {array.shape[2]} numbers"
        )
    rows = structure.sizes(size)[side]
    if len(array) != rows:
        raise ParameterError(
            f"this needs one vector per entity, but here an entity has {len(array) // rows} "
            "context vectors (Lagged contexts have one per offset)"
        )
    return structure.spread(p.rho, p.alpha, size)[side]


def predicting_vectors(model: FittedEmbedding) -> tuple[Floats, Floats]:
    """(target, bag), both (N, K): u of n given m is target_n . bag_m.

    Target is rho and bag alpha, swapped under the reverse conditional; the weights of the positions
    of a window are averaged.
    """
    spec, tied = model.spec, model.spec.structure.tied
    rho = entity_vectors(model, "rho")
    alpha = rho if tied else entity_vectors(model, "alpha")
    target, bag = (alpha, rho) if spec.combine.reverse else (rho, alpha)
    position = model.parameters.position
    return target, bag if position is None else bag * position.mean(axis=0)


def check_inner_products(model: FittedEmbedding) -> None:
    """Refuse questions about rho . alpha where the predictor is not made of inner products."""
    if not model.spec.combine.inner_product:
        raise ParameterError(
            f"with combine={model.spec.combine!r} inner products of embeddings and context vectors "
            "have no meaning: use conditional, predict or what_if"
        )


def flat_vectors(model: FittedEmbedding) -> tuple[Floats, Floats]:
    """(target, bag) of scalar data: target (N, K), bag (N * slots, K), shared ones repeated.

    Weights of the positions of a window are not included.
    """
    from efemb.model.space import ParameterSpace

    p = model.parameters
    if p.rho.ndim > 2:
        raise ParameterError("this needs scalar observations, not vectors of them")
    space = ParameterSpace(model.spec, model.n_entities, model.n_slots, 1, model.n_components)
    factors = space.vectors(Parameters(p.rho, p.alpha))
    return factors.target, factors.bag
