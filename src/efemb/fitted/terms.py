"""Terms: what each member of a context adds to the inner product u of an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.errors import ParameterError
from efemb.fitted.nearest import BLOCK
from efemb.fitted.query_context import Given
from efemb.fitted.vectors import flat_vectors
from efemb.model.contexts.base import or_one
from efemb.model.contexts.basket import Basket
from efemb.model.contexts.bound.entities import Lists
from efemb.model.contexts.window import Window
from efemb.model.huffman import Huffman
from efemb.model.objective import expected_value
from efemb.model.predict import normalizer_of_words

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding


def terms_of(model: FittedEmbedding, given: Given, entity: int) -> tuple[Ints, Floats, Floats]:
    """(place in the context, rho . alpha, contribution to u) of each term of one entity."""
    if model.lists is not None:
        owner, place, product, part = _edges(model, given)
        mine = owner == entity
        return place[mine], product[mine], part[mine]
    place, products, parts, inside = _bag(model, given, np.array([entity]))
    mine = np.flatnonzero(inside[0])
    return place[mine], products[0, mine], parts[0, mine]


def inner_products(model: FittedEmbedding, given: Given) -> Floats:
    """u of every entity: the sum of its terms and its intercept (of nodes, in a tree)."""
    size = model.n_entities
    if model.lists is not None:
        owner, _, _, part = _edges(model, given)
        u: Floats = np.asarray(np.bincount(owner, part, size), np.float64)
    else:
        u = np.empty(size)
        step = max(1, BLOCK // max(1, 4 * len(given.codes)))
        for start in range(0, size, step):
            entities = np.arange(start, min(start + step, size))
            u[entities] = _bag(model, given, entities)[2].sum(axis=1)
    u = np.nan_to_num(u)
    intercept = model.parameters.intercept
    return u if intercept is None else u + intercept


def means(model: FittedEmbedding, u: Floats) -> Floats:
    """E[x | context] of every entity; probabilities where exactly one of them occurs."""
    if is_share(model):
        return shares(model, u)
    return np.asarray(expected_value(model.spec.family, model.spec.link, u))


def is_share(model: FittedEmbedding) -> bool:
    """Whether one entity of all occurs: a word in a gap, a category."""
    return isinstance(model.spec.context, Window) or model.spec.family.name() == "categorical"


def shares(model: FittedEmbedding, u: Floats) -> Floats:
    """Conditional means of all entities over their sum."""
    spec, normalizer = model.spec, None
    counts = None if model.vocabulary is None else model.vocabulary.counts
    if isinstance(spec.context, Window) and counts is not None:
        normalizer = normalizer_of_words(spec, counts)
    if isinstance(normalizer, Huffman):
        return np.asarray(normalizer.probabilities(u[None])[0])
    if normalizer is not None or (spec.family.exponential_mean and spec.link.name() == "identity"):
        u = u if normalizer is None else u + normalizer
        mean = np.exp(u - u.max())
    else:
        mean = np.asarray(expected_value(spec.family, spec.link, u))
        mean = np.maximum(mean, np.finfo(np.float64).tiny)  # all may underflow
    return np.asarray(mean / mean.sum())


def _bag(
    model: FittedEmbedding, given: Given, entities: Ints
) -> tuple[Ints, Floats, Floats, Bools]:
    """Members that count, and for each entity (rows) their products, contributions and presence."""
    context = model.spec.context
    if not isinstance(context, Basket | Window):
        raise ParameterError(
            f"{type(context).__name__} contexts are not told by labels alone: use "
            "conditional(X) with whole rows"
        )
    target, bag = flat_vectors(model)
    place = np.flatnonzero(given.amounts)
    weight = _place_weights(model, len(given.codes))
    codes, amounts = given.codes[place], given.amounts[place]
    members = bag[codes].astype(np.float64)
    members = members if weight is None else members * weight[place]
    amounts = np.ones(len(place)) if context.binary or model.binarize else amounts
    window, scale = isinstance(context, Window), context.scale
    if window and model.spec.combine.reverse:
        scale = "items"  # a word is predicted by each of the others: the mean of what they say
    share = {"items": np.ones(len(place)), "total": amounts}.get(scale, np.zeros(len(place)))
    # An observation is never in its own context; a word may well be in its window.
    inside = np.broadcast_to(window, (len(entities), len(place))) | (codes != entities[:, None])
    products = target[entities].astype(np.float64) @ members.T
    divisor = or_one(inside @ share)[:, None]
    return place, products, products * inside * amounts / divisor, inside


def _place_weights(model: FittedEmbedding, members: int) -> Floats | None:
    """Weights of the members of a positional window: half of them stand before the gap."""
    position = model.parameters.position
    if position is None:
        return None
    if members > len(position):
        raise ParameterError(f"the window holds {len(position)} words, got {members}")
    first = len(position) // 2 - members // 2
    return position[first : first + members]


def _edges(model: FittedEmbedding, given: Given) -> tuple[Ints, Ints, Floats, Floats]:
    """(entity, place in the context, product, contribution) of the edges whose member is given."""
    target, bag = flat_vectors(model)
    place_of = np.full(model.n_entities, -1, dtype=np.int64)
    place_of[given.codes] = np.arange(len(given.codes))
    found: list[tuple[Ints, Ints, Floats, Floats]] = []
    divisors: list[Floats] = []
    for part in _predicting_lists(model):
        if part.offset.any():
            raise ParameterError(
                "contexts of this model reach other rows (Lagged): use conditional(X) with whole "
                "rows"
            )
        edge = np.flatnonzero(place_of[part.members] >= 0)
        owner, member = part.owner[edge], part.members[edge]
        place = place_of[member]
        neighbour = bag[part.slot[edge] * model.n_entities + member].astype(np.float64)
        product = np.einsum("ek,ek->e", target[owner].astype(np.float64), neighbour)
        amount = given.amounts[place]
        binary = part.binary or model.binarize
        amount = (amount != 0).astype(np.float64) if binary else amount
        share = {"items": np.ones(len(edge)), "total": amount}.get(part.scale, np.zeros(len(edge)))
        divisors.append(np.asarray(np.bincount(owner, share, model.n_entities), np.float64))
        found.append((owner, place, product, product * amount))
    if model.spec.combine.reverse:  # one mean over all lists
        divisors = [np.sum(divisors, axis=0)] * len(divisors)
    owner, place, product, term = (np.concatenate(column) for column in zip(*found, strict=True))
    divisor = np.concatenate([of[one[0]] for of, one in zip(divisors, found, strict=True)])
    return owner, place, product, term / or_one(divisor)


def _predicting_lists(model: FittedEmbedding) -> tuple[Lists, ...]:
    """Lists of those that predict each entity."""
    lists = model.lists or ()
    return tuple(part.turned() for part in lists) if model.spec.combine.reverse else lists
