"""New items: items that a customer has not bought before have a mixture of their own.

The mixture of customers is dominated by their history, which carries no information about new
items. It determines the total probability of new items; two products of the parts, fitted among
new items only, determine the share of each. Strong item pairs predict best, otherwise the vectors.
"""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats, Ints
from efemb.baskets.experts import (
    FEWEST_QUESTIONS,
    HISTORY,
    Questions,
    SizeMixture,
    closeness,
    fit_two_products,
    own_log_shares,
    scope_weights,
)
from efemb.model.objective import log_sums

_LEAST = 1e-300
NAMES = ("first product (new items)", "second product (new items)")


def fit_new_items(
    parts: list[Questions], bases: tuple[int, ...], usual: SizeMixture
) -> tuple[SizeMixture | None, dict[str, float], str]:
    """The mixture of new items, its gain in the mean log share of all questions, and the reason.

    bases : of the products;  usual : the mixture of customers
    None if there are few questions, or if its gain on them does not exceed its parameters.
    """
    about = [part.take(part.about_new()) for part in parts]
    longest = max(about, key=lambda part: len(part.entity))
    gains = {"all items": 0.0, "absent items": 0.0}
    number = len(longest.entity)
    asked = f"{number:,} question{'' if number == 1 else 's'} about new items"
    if number < FEWEST_QUESTIONS:
        return None, gains, f"as items bought before: {asked}, fewer than {FEWEST_QUESTIONS}"
    # Among new items the history of a customer is popularity.
    bases = tuple(base for base in bases if base != HISTORY)
    products, weights = fit_two_products(among_new(longest), bases)
    table = weights[None]
    mixture = SizeMixture(products[None], NAMES, np.zeros(1), table, table)
    gained = np.sum([_measure_gains(part, mixture, usual) for part in about], axis=0)
    if gained[1] <= mixture.experts.shape[1] * (len(bases) + 1) - 1:
        return (
            None,
            gains,
            f"as items bought before: a mixture of their own gains little on {asked}",
        )
    units = np.concatenate([part.units for part in parts])
    counted = [scope_weights(units, absent=absent).sum() for absent in (False, True)]
    gains = dict(zip(gains, (gained / counted).tolist(), strict=True))
    return mixture, gains, f"two products of the parts, fitted to {asked}"


def among_new(questions: Questions) -> Questions:
    """The questions among new items: items bought before are excluded like those of the context."""
    return questions._replace(
        member_cell=np.concatenate([questions.member_cell, questions.bought_cell]),
        member=np.concatenate([questions.member, questions.bought]),
    )


def _measure_gains(few: Questions, mixture: SizeMixture, usual: SizeMixture) -> list[float]:
    """Sums over questions about new items of what log shares rise by, in both scopes."""
    among, near = among_new(few), closeness(few.size, usual.sizes)
    alike = np.ones((len(few.entity), 1))  # products do not depend on the size
    own = np.exp(own_log_shares(among, mixture.experts, alike)[1]) @ mixture.of_absent[0]
    within = np.minimum(own_log_shares(among, usual.experts, near)[1], 0.0)
    gains = []
    for logs, absent in zip(own_log_shares(few, usual.experts, near), (False, True), strict=True):
        weights = usual.weights(few.size, absent=absent)
        share, of_new = ((weights * np.exp(each)).sum(axis=1) for each in (logs, logs - within))
        gained = np.log(np.maximum(own * of_new, _LEAST)) - np.log(np.maximum(share, _LEAST))
        gains.append(float(scope_weights(few.units, absent=absent) @ gained))
    return gains


def log_shares_by_kind(
    usual: SizeMixture,
    new_items: SizeMixture | None,
    logs: Floats,
    size: Ints,
    members: tuple[Ints, Ints],
    bought: tuple[Ints, Ints],
    *,
    absent: bool,
) -> Floats:
    """Log shares of all entities, (n, N), or of those outside the contexts, for known customers.

    members, bought : (cell, entity) of what is in the contexts, and of what is not new
    New items together have their share in the mixture `usual`, and each one by `new_items`.
    """
    shares = usual.log_shares(logs, size, members if absent else None)
    if new_items is None:
        return shares
    is_new = np.ones(shares.shape, dtype=bool)
    is_new[members] = is_new[bought] = False
    cells = np.flatnonzero(is_new.any(axis=1))
    cell, entity = np.nonzero(~is_new[cells])
    few = logs[cells] if len(cells) < len(logs) else logs
    own = new_items.log_shares(few, size[cells], (cell, entity))
    u = np.where(is_new[cells], shares[cells], -np.inf)
    own += log_sums(u)[:, None]
    shares[cells] = np.where(is_new[cells], np.maximum(own, np.log(_LEAST)), shares[cells])
    return shares


def explain_share(
    usual: SizeMixture,
    new_items: SizeMixture | None,
    logs: Floats,
    size: Ints,
    members: tuple[Ints, Ints],
    bought: tuple[Ints, Ints],
    entity: int,
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Names and weights of the experts for an entity outside a context, and its share in each.

    The share of a new item is its share among new items times the total of these in `usual`.
    """
    shares = np.exp(usual.expert_log_shares(logs, size, members)[:, 0])
    weights = usual.weights(size, absent=True)[0]
    if new_items is None or (bought[1] == entity).any():
        return usual.names, weights, shares[:, entity]
    shares[:, bought[1]] = 0.0
    of_new = float(weights @ shares.sum(axis=1))
    others = (np.concatenate([members[0], bought[0]]), np.concatenate([members[1], bought[1]]))
    own = np.exp(new_items.expert_log_shares(logs, size, others)[:, 0, entity])
    return new_items.names, new_items.weights(size, absent=True)[0], of_new * own
