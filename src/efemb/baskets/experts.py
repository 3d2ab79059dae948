"""Experts: distributions over the next item, each a tempered product of the parts' shares.

The log share of expert e is a combination of the logarithms of a few bases (the shares of the
vectors, of the pairs, of popularity, of the customer's history), normalized. `SizeMixture` mixes
experts with weights that depend on the number of items in the basket, as do the coefficients of
products of several bases: scores of pairs add up over the items of a basket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.model.objective import log_sums

BASES = (
    "vectors",
    "pairs",
    "smoothed pairs",
    "popularity",
    "amounts",
    "history",
    "personal vectors",
)
VECTORS, PAIRS, SMOOTHED, POPULARITY, AMOUNTS, HISTORY, PERSONAL = range(len(BASES))
LOG_LINEAR = (VECTORS, SMOOTHED, POPULARITY, AMOUNTS, HISTORY, PERSONAL)
_POWERS = {VECTORS: (0.75, 1.0, 4 / 3), PAIRS: (1.0, 1.5, 2.0, 2.7), POPULARITY: (1.0,)}
_PERSONAL_POWERS = {HISTORY: (0.7, 1.0), PERSONAL: (1.0, 4 / 3)}
KNOTS = (0, 1, 3, 10, 30, 100, 300, 1000)  # items of a context at which weights are fitted
LARGEST_ABSENT_WEIGHT = 3.0  # of a count, where the next item is asked for
NEGLIGIBLE = 0.003  # weight, at every size, below which an expert is dropped
_EM_STEPS, _NEWTON_STEPS, _RIDGE = 1000, 8, 1e-3
_PILOT_QUESTIONS = 600  # for coefficients of all sizes, which those of one size are shrunk to
_SHRUNK_ENTRIES = 5.0  # how many entries that counts for
_SMALL_STEP, _SMALL_CHANGE = 1e-4, 1e-5  # of log-linear coefficients, and of weights
_PRODUCT_STEPS, _SMALL_GAIN = 20, 5e-4  # of the mixture of two products; of its mean log share
_SHARPER = 1.5  # power of the second of two products, where they begin
_SEVERAL_ITEMS, FEWEST_QUESTIONS = 3, 50  # of the contexts that two products are fitted to
# Prior of the weights, in entries: for all experts alike, and for popularity.
_EVEN_ENTRIES, _POPULAR_ENTRIES = 0.1, 2.0


class Questions(NamedTuple):
    """Held-out entries, each with the logarithms of the bases of all entities given its context.

    logs : (n, F, N)
    entity, units, size : (n,) what is asked for, its weight, and the items of its context
    member_cell, member : entities in the contexts, which cannot be the next item
    known : (n,) whether the customer has a history
    bought_cell, bought : entities that the customer has bought before
    """

    logs: Floats
    entity: Ints
    units: Floats
    size: Ints
    member_cell: Ints
    member: Ints
    known: Bools
    bought_cell: Ints
    bought: Ints

    def take(self, chosen: Bools) -> Questions:
        """Some of the questions."""
        place = np.cumsum(chosen) - 1
        kept, past = chosen[self.member_cell], chosen[self.bought_cell]
        return Questions(
            self.logs[chosen],
            self.entity[chosen],
            self.units[chosen],
            self.size[chosen],
            place[self.member_cell[kept]],
            self.member[kept],
            self.known[chosen],
            place[self.bought_cell[past]],
            self.bought[past],
        )

    def about_new(self) -> Bools:
        """Whether the customer has not bought before what is asked for, (n,)."""
        again = self.bought_cell[self.bought == self.entity[self.bought_cell]]
        return np.asarray(np.bincount(again, minlength=len(self.entity)) == 0)


def scope_weights(units: Floats, *, absent: bool) -> Floats:
    """What questions count in the fit: units, as in the paper's score, but few of the next item.

    Else what is bought by the dozen would be recommended before what is bought often.
    """
    return np.minimum(units, LARGEST_ABSENT_WEIGHT) if absent else units


def combine(logs: Floats, coefficients: Floats) -> Floats:
    """Unnormalized log shares of one expert, (n, N); coefficients : (F,), or (n, F) of each."""
    used = np.flatnonzero(np.atleast_2d(coefficients).any(axis=0))
    columns = coefficients[..., used, None].astype(logs.dtype)
    u = logs[:, used[0]] * columns[..., 0, :]
    for i in range(1, len(used)):
        u += logs[:, used[i]] * columns[..., i, :]
    return np.asarray(u)


def log_shares(u: Floats) -> Floats:
    """Normalize rows of unnormalized logarithms."""
    return np.asarray(u - log_sums(u)[:, None].astype(u.dtype))


def own_log_shares(questions: Questions, experts: Floats, near: Floats) -> tuple[Floats, Floats]:
    """Log share of what is asked for in each expert, among all entities and among absent ones.

    Two arrays (n, E); experts : (S, E, F) coefficients at some sizes;  near : (n, S) their weights
    """
    n = len(questions.entity)
    of_all, of_absent = (np.empty((n, experts.shape[1])) for _ in range(2))
    for i in range(experts.shape[1]):
        u = combine(questions.logs, coefficients_near(experts[:, i], near))
        u -= u.max(axis=1, keepdims=True)
        own = u[np.arange(n), questions.entity].astype(np.float64)
        np.exp(u, out=u)
        total = u.sum(axis=1, dtype=np.float64)
        u[questions.member_cell, questions.member] = 0.0
        of_all[:, i] = own - np.log(total)
        of_absent[:, i] = own - np.log(np.maximum(u.sum(axis=1, dtype=np.float64), 1e-300))
    return of_all, of_absent


def coefficients_near(table: Floats, near: Floats) -> Floats:
    """Coefficients of one expert: (F,) if they are the same at all sizes, else (n, F)."""
    return table[0] if (table == table[0]).all() else np.asarray(near @ table)


@dataclass(frozen=True)
class Target:
    """Coefficients that others are shrunk to, and how strongly."""

    coefficients: Floats
    ridge: float


def fit_log_linear(
    questions: Questions, bases: tuple[int, ...], *, absent: bool, prior: Target | None = None
) -> Floats:
    """Coefficients (F,) of the most likely product of powers of some bases, by Newton's method."""
    active = list(bases)
    coefficients = np.zeros(len(BASES))
    coefficients[active] = 1.0 / len(bases) if prior is None else prior.coefficients[active]
    prior = prior or Target(np.zeros(len(BASES)), _RIDGE)
    value, gradient, curvature = expand(questions, coefficients, bases, absent, prior)
    for _ in range(_NEWTON_STEPS):
        step = np.zeros(len(BASES))
        step[active] = np.linalg.solve(curvature, gradient)
        if 0.5 * float(gradient @ step[active]) < _SMALL_STEP:
            break
        while True:
            moved = expand(questions, coefficients + step, bases, absent, prior)
            if moved[0] > value or np.abs(step).max() < _SMALL_STEP:
                break
            step /= 2.0
        if moved[0] < value:
            break
        coefficients = coefficients + step
        value, gradient, curvature = moved
    return coefficients


def expand(
    questions: Questions,
    coefficients: Floats,
    bases: tuple[int, ...],
    absent: bool,
    prior: Target,
) -> tuple[float, Floats, Floats]:
    """Penalized mean log share, its gradient and minus its second derivative."""
    weight = questions.units / questions.units.sum()
    u = combine(questions.logs, coefficients)
    if absent:
        u[questions.member_cell, questions.member] = -np.inf
    logs = log_shares(u)
    share = np.exp(logs)
    n = np.arange(len(share))
    features = [questions.logs[:, base] for base in bases]
    own = np.stack([feature[n, questions.entity] for feature in features], axis=1)
    mean, second = np.empty(own.shape), np.empty((len(bases), len(bases)))
    for i, feature in enumerate(features):
        weighted = share * feature  # one at a time: each is as large as the questions' shares
        mean[:, i] = weighted.sum(axis=1, dtype=np.float64)
        for j in range(i, len(features)):
            products = np.einsum("ij,ij->i", weighted, features[j]).astype(np.float64)
            second[i, j] = second[j, i] = float(weight @ products)
    curvature = second - (mean * weight[:, None]).T @ mean
    gap = (coefficients - prior.coefficients)[list(bases)]
    value = float(weight @ logs[n, questions.entity].astype(np.float64))
    return (
        value - 0.5 * prior.ridge * float(gap @ gap),
        weight @ (own - mean) - prior.ridge * gap,
        curvature + prior.ridge * np.eye(len(bases)),
    )


def propose_experts(
    questions: Questions, sizes: Floats, bases: tuple[int, ...]
) -> tuple[Floats, list[str]]:
    """Coefficients (S, E, F) at some sizes, and names, of the experts that are mixed.

    bases : of the products; those of all items are fitted at each size to the questions near it
    """
    rows, names = [], []
    personal = {base: powers for base, powers in _PERSONAL_POWERS.items() if base in bases}
    for base, exponents in {**_POWERS, **personal}.items():
        for power in exponents:
            rows.append(np.tile(np.eye(len(BASES))[base] * power, (len(sizes), 1)))
            names.append(BASES[base] if len(exponents) == 1 else f"{BASES[base]}^{power:.2g}")
    rows.append(_fit_products(questions, sizes, bases, absent=False))
    names.append("product of all (all items)")
    if HISTORY in bases:  # it leads this product, and new items have two of their own
        weighed = questions._replace(units=scope_weights(questions.units, absent=True))
        rows.append(_fit_products(weighed, sizes, bases, absent=True))
        return np.stack(rows, axis=1), [*names, "product of all (absent items)"]
    # Small contexts say too little to tell what predicts better.
    longer = questions.size >= _SEVERAL_ITEMS
    pilot = _thin_out(questions.take(longer) if longer.sum() >= FEWEST_QUESTIONS else questions)
    products, _ = fit_two_products(pilot, bases)
    rows += [np.tile(product, (len(sizes), 1)) for product in products]
    names += ["first product (absent items)", "second product (absent items)"]
    return np.stack(rows, axis=1), names


def describe_products(parts: list[Questions], bases: tuple[int, ...]) -> str:
    """What absent items are predicted by, and what that was fitted to, in words."""
    if HISTORY in bases:
        return "one product of the parts for each size of the basket, led by the history"
    longest = max(parts, key=lambda part: len(part.entity))
    number = int((longest.size >= _SEVERAL_ITEMS).sum())
    asked = f"{number:,} questions about baskets of {_SEVERAL_ITEMS} or more items"
    if number >= FEWEST_QUESTIONS:
        return f"two products of the parts, fitted to {asked}"
    return (
        f"two products of the parts, fitted to questions about baskets of all sizes: {asked} are "
        f"fewer than {FEWEST_QUESTIONS}"
    )


def _thin_out(questions: Questions) -> Questions:
    """Evenly spread questions, few enough for coefficients of all sizes."""
    step = max(1, -(-len(questions.entity) // _PILOT_QUESTIONS))
    return questions.take(np.arange(len(questions.entity)) % step == 0)


def _fit_products(
    questions: Questions, sizes: Floats, bases: tuple[int, ...], *, absent: bool
) -> Floats:
    """Coefficients (S, F) of products at some sizes, shrunk to those for all sizes together."""
    pooled = fit_log_linear(_thin_out(questions), bases, absent=absent)
    near, table = closeness(questions.size, sizes), []
    for i in range(len(sizes)):
        close = near[:, i] > 0
        if not close.any():
            table.append(pooled)
            continue
        those = questions.take(close)
        those = those._replace(units=those.units * near[close, i])
        prior = Target(pooled, _SHRUNK_ENTRIES / float(near[:, i].sum()))
        table.append(fit_log_linear(those, bases, absent=absent, prior=prior))
    return np.array(table)


def fit_two_products(questions: Questions, bases: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Coefficients (2, F) and weights (2,) of the most likely mixture of products of powers.

    Among absent items, by expectation maximization. The products begin unequally sharp; one ends
    up relying on the pairs, which predict best where they are strong, the other on the vectors.
    """
    questions = questions._replace(units=scope_weights(questions.units, absent=True))
    counted = questions.units / questions.units.mean()
    first = fit_log_linear(questions, bases, absent=True)
    products = moved = np.stack([first, _SHARPER * first])
    near, weights, mean = np.ones((len(counted), 1)), np.full(2, 0.5), -np.inf
    for _ in range(_PRODUCT_STEPS):
        own = own_log_shares(questions, moved[None], near)[1]
        joint = np.maximum(np.exp(own) * weights, 1e-300)
        last, mean = mean, float(counted @ np.log(joint.sum(axis=1)) / counted.sum())
        if mean > last:
            products = moved
        if mean - last < _SMALL_GAIN:
            break
        blame = counted[:, None] * joint / joint.sum(axis=1, keepdims=True)
        weights = (blame.sum(axis=0) + _EVEN_ENTRIES) / (counted.sum() + 2 * _EVEN_ENTRIES)
        moved = np.stack(
            [
                _newton_step(questions._replace(units=units), product, bases)
                for units, product in zip(blame.T, products, strict=True)
            ]
        )
    return products, weights


def _newton_step(questions: Questions, product: Floats, bases: tuple[int, ...]) -> Floats:
    """The coefficients after one step toward the largest mean log share of absent items, (F,)."""
    prior = Target(np.zeros(len(BASES)), _RIDGE)
    _, gradient, curvature = expand(questions, product, bases, True, prior)
    moved = product.copy()
    moved[list(bases)] += np.linalg.solve(curvature, gradient)
    return moved


@dataclass(frozen=True)
class SizeMixture:
    """Mixtures of experts for contexts of any size.

    experts : (S, E, F) coefficients;  names : (E,)
    sizes : (S,) ascending sizes of contexts at which coefficients and weights are known
    of_all, of_absent : (S, E) weights, among all entities and among those outside the context
    """

    experts: Floats
    names: tuple[str, ...]
    sizes: Floats
    of_all: Floats
    of_absent: Floats

    @classmethod
    def fit(cls, parts: list[Questions], bases: tuple[int, ...] = LOG_LINEAR) -> SizeMixture:
        """The most likely weights, at each size by the questions whose contexts are near it.

        bases : of the products of experts
        """
        return cls.fit_and_score(parts, bases)[0]

    @classmethod
    def fit_and_score(
        cls, parts: list[Questions], bases: tuple[int, ...]
    ) -> tuple[SizeMixture, dict[str, float]]:
        """The same, and the mean log share of the questions, weighed as in the fit."""
        size = np.concatenate([part.size for part in parts])
        sizes = _known_sizes(size)
        longest = max(parts, key=lambda part: len(part.entity))
        experts, names = propose_experts(longest, sizes, bases)
        shares = [own_log_shares(part, experts, closeness(part.size, sizes)) for part in parts]
        units = np.concatenate([part.units for part in parts])
        near, owns, tables = closeness(size, sizes), [], []
        for scope in (0, 1):
            own = np.concatenate([share[scope] for share in shares])
            counted = near * scope_weights(units, absent=scope == 1)[:, None]
            close = near > 0
            tables.append(
                [
                    _mixture_weights(own[at], each[at])
                    for at, each in zip(close.T, counted.T, strict=True)
                ]
            )
            owns.append(own)
        of_all, of_absent = np.array(tables)
        used = np.maximum(of_all.max(axis=0), of_absent.max(axis=0)) >= NEGLIGIBLE
        of_all, of_absent = (
            each[:, used] / each[:, used].sum(axis=1, keepdims=True) for each in (of_all, of_absent)
        )
        kept = tuple(name for name, is_used in zip(names, used, strict=True) if is_used)
        mixture = cls(experts[:, used], kept, sizes, of_all, of_absent)
        return mixture, {
            name: _mean_log(near @ table, own[:, used], scope_weights(units, absent=absent))
            for name, table, own, absent in (
                ("all items", of_all, owns[0], False),
                ("absent items", of_absent, owns[1], True),
            )
        }

    def weights(self, size: Ints, *, absent: bool) -> Floats:
        """Weights of the experts for contexts of some sizes, (n, E)."""
        table = self.of_absent if absent else self.of_all
        return np.asarray(closeness(size, self.sizes) @ table)

    def expert_log_shares(self, logs: Floats, size: Ints, members: tuple[Ints, Ints]) -> Floats:
        """Log shares of the entities outside the contexts in each expert, (E, n, N)."""
        each, near = [], closeness(size, self.sizes)
        for i in range(len(self.names)):
            u = combine(logs, coefficients_near(self.experts[:, i], near))
            u[members] = -np.inf
            each.append(log_shares(u))
        return np.array(each)

    def log_shares(
        self, logs: Floats, size: Ints, members: tuple[Ints, Ints] | None = None
    ) -> Floats:
        """Log shares of all entities, (n, N); with `members`, of those outside the contexts."""
        weights = self.weights(size, absent=members is not None)
        total = np.zeros((len(logs), logs.shape[2]))
        near = closeness(size, self.sizes)
        for i in range(len(self.names)):
            cells = np.flatnonzero(weights[:, i] > 0)
            if len(cells):
                coefficients = coefficients_near(self.experts[:, i], near[cells])
                u = combine(logs[cells] if len(cells) < len(logs) else logs, coefficients)
                if members is not None:
                    place = np.full(len(logs), -1)
                    place[cells] = np.arange(len(cells))
                    of_cell = place[members[0]]
                    u[of_cell[of_cell >= 0], members[1][of_cell >= 0]] = -np.inf
                total[cells] += weights[cells, i, None] * np.exp(log_shares(u))
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(total, 1e-300) if members is None else total)


def _mean_log(weights: Floats, own: Floats, counted: Floats) -> float:
    """Mean logarithm of a mixture; weights, own : (n, E), the latter logarithms."""
    shares = np.einsum("ne,ne->n", weights, np.exp(own))
    return float(counted @ np.log(np.maximum(shares, 1e-300)) / counted.sum())


def _known_sizes(size: Ints) -> Floats:
    """Sizes with enough questions near them to fit weights."""
    counts = closeness(size, np.array(KNOTS, dtype=float)).sum(axis=0)
    known = np.array(KNOTS)[counts >= 20]
    return np.array(known if len(known) else [int(np.median(size))], dtype=float)


def closeness(size: Ints, sizes: Floats) -> Floats:
    """Weights (n, S) of linear interpolation in log(1 + size); sizes beyond the ends are theirs."""
    position, knots = np.log1p(np.asarray(size, dtype=float)), np.log1p(sizes)
    unit = np.eye(len(sizes))
    return np.stack([np.interp(position, knots, row) for row in unit], axis=1)


def _mixture_weights(own: Floats, units: Floats) -> Floats:
    """Weights of the largest posterior: EM from equal ones; own : (n, E) log shares."""
    n_experts = own.shape[1]
    prior = np.full(n_experts, _EVEN_ENTRIES)
    prior[POPULARITY_EXPERT] += _POPULAR_ENTRIES
    shares = np.exp(own - own.max(axis=1, keepdims=True, initial=-np.inf))
    entries = units / max(float(units.mean()), 1e-300) if units.any() else units
    weights = np.full(n_experts, 1.0 / n_experts)
    for _ in range(_EM_STEPS):
        moved = weights * (entries @ (shares / np.maximum(shares @ weights, 1e-300)[:, None]))
        moved = (moved + prior) / (moved.sum() + prior.sum())
        change = np.abs(moved - weights).max()
        weights = moved
        if change < _SMALL_CHANGE:
            break
    return np.asarray(weights)


POPULARITY_EXPERT = sum(len(powers) for base, powers in _POWERS.items() if base != POPULARITY)
