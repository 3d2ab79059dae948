"""Text models as plain loops over documents, places and words; nothing of the package is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Array = Any
Documents = list[list[int]]
Density = Callable[[int, float], float]


@dataclass(frozen=True)
class Case:
    """A word to be predicted from (slot, word) pairs; slots count places from the left."""

    word: int
    around: list[tuple[int, int]]


@dataclass(frozen=True)
class Point:
    """Parameters: what predicts is rho, or alpha under the reverse conditional."""

    rho: Array
    alpha: Array
    intercept: Array | None = None
    position: Array | None = None


def neighbors(document: Sequence[int], t: int, window: int) -> list[tuple[int, int]]:
    """(slot, word) of the places around t that are inside the document."""
    offsets = [*range(-window, 0), *range(1, window + 1)]
    found = []
    for slot, offset in enumerate(offsets):
        if 0 <= t + offset < len(document):
            found.append((slot, document[t + offset]))
    return found


def cases(documents: Documents, window: int, reverse: bool) -> list[Case]:
    """Each token given its window, or each word around given the token."""
    found = []
    for document in documents:
        for t, word in enumerate(document):
            around = neighbors(document, t, window)
            if reverse:
                found += [Case(other, [(slot, word)]) for slot, other in around]
            else:
                found.append(Case(word, around))
    return found


def predictors(case: Case, point: Point, scale: str, reverse: bool) -> list[float]:
    """u of every word of the vocabulary."""
    heads, tails = (point.alpha, point.rho) if reverse else (point.rho, point.alpha)
    s = [0.0] * tails.shape[1]
    for slot, word in case.around:
        for k in range(len(s)):
            weight = 1.0 if point.position is None else point.position[slot, k]
            s[k] += weight * tails[word, k]
    divisor = len(case.around) if scale == "items" and case.around else 1
    found = []
    for v in range(len(heads)):
        u = 0.0 if point.intercept is None else float(point.intercept[v])
        for k in range(len(s)):
            u += heads[v, k] * s[k] / divisor
        found.append(float(u))
    return found


def bernoulli(x: int, u: float) -> float:
    return -math.log1p(math.exp(-u)) if x else -math.log1p(math.exp(u))


def poisson(x: int, u: float) -> float:
    return x * u - math.exp(u) - math.lgamma(x + 1)


def additive_poisson(x: int, u: float) -> float:
    rate = max(u, 1e-6)
    return x * math.log(rate) - rate - math.lgamma(x + 1)


DENSITIES: dict[str, Density] = {
    "bernoulli": bernoulli,
    "poisson": poisson,
    "additive": additive_poisson,
}


def likelihood(
    listed: list[Case],
    point: Point,
    family: str,
    scale: str,
    reverse: bool,
    zero_weight: Sequence[float] | None = None,
) -> float:
    """Sum of log p over all cases; zeros of word v weigh zero_weight[v]."""
    total = 0.0
    for case in listed:
        u = predictors(case, point, scale, reverse)
        if family == "categorical":
            total += u[case.word] - math.log(sum(math.exp(one) for one in u))
            continue
        density = DENSITIES[family]
        for v, one in enumerate(u):
            weight = 1.0 if v == case.word or zero_weight is None else zero_weight[v]
            total += weight * density(int(v == case.word), one)
    return total


def noise(counts: Sequence[float], power: float = 0.75) -> list[float]:
    """word2vec's distribution."""
    mass = [count**power for count in counts]
    return [one / sum(mass) for one in mass]


def squares(*arrays: Array) -> float:
    return float(sum((array * array).sum() for array in arrays))


# -- steps on drawn outputs ---------------------------------------------------------------------


@dataclass(frozen=True)
class Visit:
    """One change of a row of a table ("target" or "bag")."""

    table: str
    row: int
    gradient: Array
    bias: float = 0.0


@dataclass(frozen=True)
class Outputs:
    """What was drawn: documents and, token by token, (row, label) pairs and reach of its window."""

    documents: Documents
    outputs: list[list[list[tuple[int, int]]]]
    reach: list[list[int]]

    @classmethod
    def of(cls, drawn: Sequence[Array]) -> Outputs:
        tokens, starts, ptr, rows, labels, near = drawn
        documents, outputs, reach = [], [], []
        for begin, end in pairwise(starts):
            documents.append([int(w) for w in tokens[begin:end]])
            reach.append([int(size) for size in near[begin:end]])
            outputs.append(
                [
                    [(int(rows[i]), int(labels[i])) for i in range(ptr[t], ptr[t + 1])]
                    for t in range(begin, end)
                ]
            )
        return cls(documents, outputs, reach)

    @classmethod
    def joined(cls, parts: Sequence[Outputs]) -> Outputs:
        """One after the other."""
        return cls(
            [document for part in parts for document in part.documents],
            [outputs for part in parts for outputs in part.outputs],
            [reach for part in parts for reach in part.reach],
        )


@dataclass(frozen=True)
class Tables:
    """The vectors that predict and those that are summed."""

    target: Array
    bag: Array
    bias: Array
    offset: Array


def logistic(u: float) -> float:
    return 1.0 / (1.0 + math.exp(-u))


def slopes(
    wanted: list[tuple[int, int]], s: Array, tables: Tables, compete: bool
) -> tuple[list[float], float]:
    """d log p / du of each output, and log p of all (competing: the exact softmax's, estimated)."""
    u = [float(tables.target[row] @ s) + tables.bias[row] + tables.offset[row] for row, _ in wanted]
    if compete:
        total = sum(math.exp(one) for one in u)
        found = [label - math.exp(one) / total for one, (_, label) in zip(u, wanted, strict=True)]
        first = wanted[0][0]
        return found, u[0] - tables.offset[first] - math.log(total)
    found = [label - logistic(one) for one, (_, label) in zip(u, wanted, strict=True)]
    return found, sum(bernoulli(label, one) for one, (_, label) in zip(u, wanted, strict=True))


def cbow_visits(
    drawn: Outputs, tables: Tables, window: int, mean: bool, compete: bool
) -> Iterator[Visit | float]:
    """Visits in the order of the text, and the log-likelihood of each token.

    A context vector is visited once for each token of its word, by all its windows together.
    Tokens without a context count too, by their intercept.
    """
    for document, outputs in zip(drawn.documents, drawn.outputs, strict=True):
        back = [np.zeros(tables.bag.shape[1]) for _ in document]
        for t, wanted in enumerate(outputs):
            places = [p for p in range(t - window, t + window + 1) if p != t]
            places = [p for p in places if 0 <= p < len(document)]
            divisor = len(places) if mean and places else 1
            s = sum((tables.bag[document[p]] for p in places), np.zeros(tables.bag.shape[1]))
            found, value = slopes(wanted, s / divisor, tables, compete)
            yield value
            for g, (row, _) in zip(found, wanted, strict=True):
                yield Visit("target", row, g * s / divisor, g)
                for p in places:
                    back[p] += g * tables.target[row] / divisor
        for word, gradient in zip(document, back, strict=True):
            yield Visit("bag", word, gradient)


def skipgram_visits(drawn: Outputs, tables: Tables) -> Iterator[Visit | float]:
    """Each token's outputs given every single word within its reach."""
    texts = zip(drawn.documents, drawn.outputs, drawn.reach, strict=True)
    for document, outputs, reach in texts:
        for t, wanted in enumerate(outputs):
            around = [word for _, word in neighbors(document, t, reach[t])]
            pairs = [slopes(wanted, tables.bag[word], tables, False) for word in around]
            yield from (value for _, value in pairs)
            for j, (row, _) in enumerate(wanted):
                move = np.zeros(tables.bag.shape[1])
                for word, (found, _) in zip(around, pairs, strict=True):
                    move += found[j] * tables.bag[word]
                yield Visit("target", row, move, sum(found[j] for found, _ in pairs))
            for word, (found, _) in zip(around, pairs, strict=True):
                back = sum(
                    g * tables.target[row] for g, (row, _) in zip(found, wanted, strict=True)
                )
                yield Visit("bag", word, np.asarray(back))


def summed(visits: list[Visit], shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Gradients of target, bag and bias."""
    found = {"target": np.zeros(shape), "bag": np.zeros(shape)}
    bias = np.zeros(shape[0])
    for visit in visits:
        found[visit.table][visit.row] += visit.gradient
        bias[visit.row] += visit.bias
    return found["target"], found["bag"], bias


def adagrad(
    visits: list[Visit], shape: tuple[int, int], epsilon: float
) -> tuple[Array, Array, Array]:
    """Moves of Adagrad with one sum a row (the mean square of its gradient), over its step."""
    moved = {"target": np.zeros(shape), "bag": np.zeros(shape)}
    sums = {"target": np.full(shape[0], epsilon), "bag": np.full(shape[0], epsilon)}
    bias, bias_sums = np.zeros(shape[0]), np.full(shape[0], epsilon)
    for visit in visits:
        row = visit.row
        sums[visit.table][row] += (visit.gradient**2).mean()
        moved[visit.table][row] += visit.gradient / math.sqrt(sums[visit.table][row])
        if visit.table == "target":
            bias_sums[row] += visit.bias**2
            bias[row] += visit.bias / math.sqrt(bias_sums[row])
    return moved["target"], moved["bag"], bias
