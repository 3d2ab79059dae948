"""The objective's terms: one for every observation whose density enters the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oracle.members import (
    Data,
    alpha_row,
    divisor,
    first_slots,
    member_value,
    members,
    nonzero,
    observed,
    rho_row,
)
from oracle.model import Model

Vector = tuple[str, int]  # ("rho" or "alpha", its row)
Pull = tuple[str, int, list[float]]  # a vector and the numbers it is multiplied by


class Term(NamedTuple):
    """x ~ family(u), u_d = head_d . (sum of tail vectors times their numbers) + intercept_d."""

    x: list[float]
    weight: list[float]
    head: Vector
    tail: list[Pull]
    entity: int  # whose intercept


class Choice(NamedTuple):
    """units * (u_chosen - logsumexp of u over the heads), all with one tail."""

    units: float
    chosen: int
    heads: dict[int, Vector]  # entity -> its vector
    tail: list[Pull]


def weights(model: Model, x: Sequence[float], row_weight: float) -> list[float]:
    return [row_weight * (model.zero_weight if number == 0 else 1.0) for number in x]


def context_tail(model: Model, data: Data, recordings: Sequence[int], t: int, n: int) -> list[Pull]:
    """alpha_m with x_m / d for all members; every part is divided by its own d."""
    n_entities = len(data[0])
    tail: list[Pull] = []
    for part, slot in zip(model.parts, first_slots(model.parts), strict=True):
        found = members(part, data, recordings, t, n, slot)
        values = [member_value(part, data[t2][m]) for t2, m, _ in found]
        d = divisor(part, values)
        for (_, m, s), value in zip(found, values, strict=True):
            row = alpha_row(model, s, m, n_entities)
            tail.append(("alpha", row, [number / d for number in value]))
    return tail


def linear_terms(
    model: Model, data: Data, recordings: Sequence[int], row_weights: Sequence[float]
) -> list[Term]:
    """Each observation given its context."""
    terms = []
    for t in range(len(data)):
        for n in range(len(data[t])):
            x = data[t][n]
            if observed(x):
                tail = context_tail(model, data, recordings, t, n)
                w = weights(model, x, row_weights[t])
                terms.append(Term(x, w, ("rho", rho_row(model, n)), tail, n))
    return terms


def reverse_terms(
    model: Model, data: Data, recordings: Sequence[int], row_weights: Sequence[float]
) -> list[Term]:
    """Each member of the context given the observation."""
    n_entities = len(data[0])
    terms = []
    for part, slot in zip(model.parts, first_slots(model.parts), strict=True):
        for t in range(len(data)):
            for n in range(n_entities):
                if not observed(data[t][n]):
                    continue
                if part.kind == "basket":
                    if not nonzero(data[t][n]):
                        continue
                    others = [m for m in range(n_entities) if m != n and observed(data[t][m])]
                    targets = [(t, m, 0) for m in others]
                else:
                    targets = members(part, data, recordings, t, n, slot)
                value = member_value(part, data[t][n])
                d = divisor(part, [value])
                tail: list[Pull] = [("rho", rho_row(model, n), [v / d for v in value])]
                for t2, m, s in targets:
                    x = data[t2][m]
                    head = ("alpha", alpha_row(model, s, m, n_entities))
                    terms.append(Term(x, weights(model, x, row_weights[t]), head, tail, m))
    return terms


def linear_choices(
    model: Model, data: Data, recordings: Sequence[int], row_weights: Sequence[float]
) -> list[Choice]:
    """Every unit of x_tn is a choice among all entities; the context leaves out all of n."""
    choices = []
    for t in range(len(data)):
        heads = {j: ("rho", rho_row(model, j)) for j in range(len(data[t]))}
        for n in range(len(data[t])):
            (x,) = data[t][n]
            if x > 0:
                tail = context_tail(model, data, recordings, t, n)
                choices.append(Choice(row_weights[t] * x, n, heads, tail))
    return choices


def reverse_choices(
    model: Model, data: Data, recordings: Sequence[int], row_weights: Sequence[float]
) -> list[Choice]:
    """Every unit of another item m of the row is a choice among all entities but n."""
    (part,) = model.parts
    choices = []
    for t in range(len(data)):
        for n in range(len(data[t])):
            if data[t][n][0] <= 0:
                continue
            value = member_value(part, data[t][n])
            d = divisor(part, [value])
            tail: list[Pull] = [("rho", rho_row(model, n), [v / d for v in value])]
            others = [j for j in range(len(data[t])) if j != n]
            heads = {j: ("alpha", alpha_row(model, 0, j, len(data[t]))) for j in others}
            for m in others:
                (x,) = data[t][m]
                if x > 0:
                    choices.append(Choice(row_weights[t] * x, m, heads, tail))
    return choices
