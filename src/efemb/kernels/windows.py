"""Stochastic steps over windows of text, one document after the other; vectors change in place.

`target` holds the predicting vectors and `bag` the summed ones (exchanged for skip-gram). Each
token has outputs: rows of `target` with a label, 1 for observed words and 0 for noise (or the turns
of a path in a tree). A row of a table is a vector of K numbers followed, in the same cache lines,
by the sum of its squared gradients, its intercept and the sum for it, an offset of u, and the
shrinkage per visit. The step of a row is `step / sqrt(sum of squares)`, shorter with shrinkage;
with gain 0 the sums stay at 1, which is plain SGD. `part` is 1 over the length of a vector; K is
this length rounded up. Kernels return the log-likelihood of the outputs.

The bodies are long on purpose: helpers that take arrays would cost a third of the speed, because
numba counts references to each array that it passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.arithmetic import exponential, logistic
from efemb.kernels.jit import elementwise, inlined
from efemb.kernels.simd import (
    add_products,
    dot,
    dot_of_two,
    enter,
    enter_two,
    mix,
    prefetch,
    replace_scaled,
    scaled_difference,
    update,
    update_two,
)

Array = Any
SQUARES, BIAS, BIAS_SQUARES, OFFSET, SHRINK = 0, 1, 2, 3, 4
EXTRAS = 5  # columns after the vector
AHEAD = 12  # outputs between a prefetch and its use; streams end with as many spare rows
RENEWED = 1024  # positions after which running sums are recomputed, to bound rounding errors
SUM, SLOPES, CONTEXT, SLOPE, NOTHING = 0, 1, 2, 3, 4  # rows of the work space
LEAST = 1e-150


@inlined
def _row_step(table: Array, row: int, K: int, square: Any, step: Any, gain: Any) -> Any:
    """Add the mean square of a gradient to the sum of its row; return the size of the step.

    The gradient of the prior is that at the end of the step, which makes the step shorter: however
    strong the prior is, it moves a row toward zero and never beyond (except by rounding).
    """
    table[row, K + SQUARES] += gain * square
    return step / (np.sqrt(table[row, K + SQUARES]) + step * table[row, K + SHRINK])


@inlined
def _bias_step(table: Array, row: int, K: int, g: Any, gain: Any, step: Any) -> None:
    """Step on the intercept of a row."""
    table[row, K + BIAS_SQUARES] += gain * g * g
    table[row, K + BIAS] += step * g / np.sqrt(table[row, K + BIAS_SQUARES])


@inlined
def _enter_word(
    work: Array, held: Array, j: int, bag: Array, word: int, K: int, further: int
) -> None:
    """Add a word to the running sum; its vector is a sum of two rows if `further` is not 0."""
    if further > 0:
        enter_two(work, SUM, held, j, bag, word, bag, word + further, K)
    else:
        enter(work, SUM, held, j, bag, word, K)


@inlined
def _renew(work: Array, total: int, ring: Array) -> None:
    """Recompute the sum of a ring."""
    for k in range(ring.shape[1]):
        work[total, k] = ring[:, k].sum()


@elementwise
def cbow(
    tokens: Array,
    starts: Array,
    ptr: Array,
    rows: Array,
    labels: Array,
    target: Array,
    bag: Array,
    K: int,
    window: int,
    mean: bool,
    part: Any,
    step: Any,
    gain: Any,
    bias_step: Any,
    compete: bool,
    second: Array | None,
    summed_second: Array | None,
) -> float:
    """The outputs of each token given the sum (or mean) of the words around it.

    Outputs are independent (slope: label - logistic(u)), or `compete` in a softmax. If `second[d]`
    is not 0, the predicting vectors of document d are sums of two rows, and the second one is this
    many rows below the first in `target`; without `second` this code is not compiled. In the same
    way, `summed_second` gives the distance to the second rows of context vectors in `bag`. The
    context vector of a word moves once, by the sum of its slopes, after the last window with it.
    """
    real, value, likely = target.dtype.type, 0.0, 1.0
    n, one = 2 * window + 1, real(1.0)
    held, errors = np.zeros((n, K), target.dtype), np.zeros((n, K), target.dtype)
    work = np.zeros((5, K), target.dtype)
    slope = np.zeros(np.diff(ptr).max(), target.dtype)
    for d in range(len(starts) - 1):
        begin, size = starts[d], starts[d + 1] - starts[d]
        held[:], errors[:], work[:] = real(0.0), real(0.0), real(0.0)
        for j in range(min(window, size)):
            if summed_second is not None:
                _enter_word(work, held, j, bag, tokens[begin + j], K, summed_second[d])
            else:
                enter(work, SUM, held, j, bag, tokens[begin + j], K)
        for t in range(size + window):
            if t % RENEWED == RENEWED - 1:
                _renew(work, SUM, held)
                _renew(work, SLOPES, errors)
            own, came = t % n, (t + window) % n
            if t + window < size:
                word = tokens[begin + t + window]
                if summed_second is not None:
                    _enter_word(work, held, came, bag, word, K, summed_second[d])
                else:
                    enter(work, SUM, held, came, bag, word, K)
                if t + window + 2 < size:
                    prefetch(bag, tokens[begin + t + window + 2])
                    if summed_second is not None:
                        prefetch(bag, tokens[begin + t + window + 2] + summed_second[d])
            else:
                enter(work, SUM, held, came, work, NOTHING, K)
            members = min(t + window, size - 1) - max(t - window, 0) if t < size else 0
            factor = one / real(members) if mean and members > 0 else one
            if t < size:
                square: Any = scaled_difference(work, SUM, held, own, work, CONTEXT, factor, K)
                square *= part
                first, n_outputs = ptr[begin + t], ptr[begin + t + 1] - ptr[begin + t]
                for i in range(n_outputs):
                    row = rows[first + i]
                    prefetch(target, rows[first + i + AHEAD])
                    if second is not None:
                        if second[d] > 0:
                            other = row + second[d]
                            prefetch(target, rows[first + i + AHEAD] + second[d])
                            u = dot_of_two(target, row, target, other, work, CONTEXT, K)
                            u += target[other, K + BIAS]
                        else:
                            u = dot(target, row, work, CONTEXT, K)
                    else:
                        u = dot(target, row, work, CONTEXT, K)
                    slope[i] = u + target[row, K + BIAS] + target[row, K + OFFSET]
                chance = 1.0
                if compete:
                    top, total = slope[0], real(0.0)
                    for i in range(n_outputs):
                        top = max(top, slope[i])
                    for i in range(n_outputs):
                        slope[i] = exponential(slope[i] - top)
                        total += slope[i]
                    chance = slope[0] / total  # the token itself comes first
                    value -= target[
                        rows[first], K + OFFSET
                    ]  # for the softmax over the whole vocabulary
                    for i in range(n_outputs):
                        slope[i] = real(labels[first + i]) - slope[i] / total
                else:
                    for i in range(n_outputs):  # a loop of its own, which vectorizes
                        slope[i] = real(labels[first + i]) - logistic(slope[i])
                    for i in range(n_outputs):
                        chance *= one - abs(slope[i])
                likely *= max(chance, LEAST)
                if likely < LEAST:  # one logarithm for many tokens
                    value += np.log(likely)
                    likely = 1.0
                for i in range(n_outputs):
                    row, g = rows[first + i], slope[i]
                    length = _row_step(target, row, K, g * g * square, step, gain)
                    keep = max(one - length * target[row, K + SHRINK], real(0.0))
                    move = length * g
                    if bias_step > 0:
                        _bias_step(target, row, K, g, gain, bias_step)
                    if second is not None:
                        if second[d] > 0:  # a proximal step shrinks the second rows
                            other = row + second[d]
                            further = _row_step(target, other, K, g * g * square, step, gain) * g
                            update_two(
                                target, row, target, other, work, CONTEXT, work, SLOPE,
                                g, keep, move, further, K,
                            )  # fmt: skip
                            if bias_step > 0:
                                _bias_step(target, other, K, g, gain, bias_step)
                        else:
                            update(target, row, work, CONTEXT, work, SLOPE, g, keep, move, K)
                    else:
                        update(target, row, work, CONTEXT, work, SLOPE, g, keep, move, K)
            replace_scaled(work, SLOPES, errors, own, work, SLOPE, factor, K)
            if t >= window:
                word, j = tokens[begin + t - window], (t - window) % n
                square = scaled_difference(work, SLOPES, errors, j, work, CONTEXT, one, K)
                length = _row_step(bag, word, K, square * part, step, gain)
                keep = max(one - length * bag[word, K + SHRINK], real(0.0))
                mix(bag, word, work, CONTEXT, keep, length, K)
                if summed_second is not None and summed_second[d] > 0:
                    other = word + summed_second[d]
                    length = _row_step(bag, other, K, square * part, step, gain)
                    mix(bag, other, work, CONTEXT, one, length, K)
    return float(value + np.log(likely))


@elementwise
def skipgram(
    tokens: Array,
    starts: Array,
    ptr: Array,
    rows: Array,
    labels: Array,
    target: Array,
    bag: Array,
    K: int,
    window: int,
    reach: Array,
    part: Any,
    step: Any,
    gain: Any,
    bias_step: Any,
) -> float:
    """The outputs of each token given each word around it; these words share the outputs.

    `reach` is the size of the window of each token, at most `window`. All pairs of neighbors and
    outputs are computed at once, and each vector moves once per token.
    """
    real, value = target.dtype.type, 0.0
    one, most = real(1.0), np.diff(ptr).max()
    slope = np.zeros(2 * window * most, target.dtype)
    errors, moved = np.zeros((2 * window, K), target.dtype), np.zeros((1, K), target.dtype)
    around = np.zeros(2 * window, np.int64)
    for d in range(len(starts) - 1):
        begin, end = starts[d], starts[d + 1]
        for t in range(begin, end):
            first, n_outputs, members = ptr[t], ptr[t + 1] - ptr[t], 0
            near = reach[t]
            for place in range(max(t - near, begin), min(t + near + 1, end)):
                if place != t:
                    around[members] = tokens[place]
                    members += 1
            if t + window + 2 < end:
                prefetch(bag, tokens[t + window + 2])
            for j in range(n_outputs):
                row = rows[first + j]
                prefetch(target, rows[first + j + AHEAD])
                extra = target[row, K + BIAS] + target[row, K + OFFSET]
                for i in range(members):
                    slope[j * members + i] = dot(target, row, bag, around[i], K) + extra
            for j in range(n_outputs):
                label = real(labels[first + j])
                for i in range(j * members, (j + 1) * members):
                    slope[i] = label - logistic(slope[i])
            for i in range(members):
                chance = 1.0
                for j in range(n_outputs):
                    chance *= one - abs(slope[j * members + i])
                value += np.log(max(chance, LEAST))
            errors[:] = real(0.0)
            for j in range(n_outputs):
                row, total = rows[first + j], real(0.0)
                moved[:] = real(0.0)
                for i in range(members):
                    g = slope[j * members + i]
                    add_products(moved, 0, errors, i, bag, around[i], target, row, g, K)
                    total += g
                square = dot(moved, 0, moved, 0, K) * part
                length = _row_step(target, row, K, square, step, gain)
                keep = max(one - length * target[row, K + SHRINK], real(0.0))
                mix(target, row, moved, 0, keep, length, K)
                if bias_step > 0:
                    _bias_step(target, row, K, total, gain, bias_step)
            for i in range(members):
                word = around[i]
                square = dot(errors, i, errors, i, K) * part
                length = _row_step(bag, word, K, square, step, gain)
                keep = max(one - length * bag[word, K + SHRINK], real(0.0))
                mix(bag, word, errors, i, keep, length, K)
    return value


@elementwise
def skipgram_apart(
    tokens: Array,
    starts: Array,
    ptr: Array,
    rows: Array,
    labels: Array,
    target: Array,
    bag: Array,
    K: int,
    window: int,
    reach: Array,
    part: Any,
    step: Any,
    gain: Any,
    bias_step: Any,
) -> float:
    """Each token given each word around it; every such pair has outputs of its own.

    `ptr` is over pairs: the words around the first token, those around the second one, and so on.
    Vectors move after each pair, as in word2vec.
    """
    real, value, likely = target.dtype.type, 0.0, 1.0
    one, pair = real(1.0), 0
    slope = np.zeros(max(np.diff(ptr).max(), 1) if len(ptr) > 1 else 1, target.dtype)
    error = np.zeros((1, K), target.dtype)
    for d in range(len(starts) - 1):
        begin, end = starts[d], starts[d + 1]
        for t in range(begin, end):
            near = reach[t]
            if t + window + 2 < end:
                prefetch(bag, tokens[t + window + 2])
            for place in range(max(t - near, begin), min(t + near + 1, end)):
                if place == t:
                    continue
                word, first, n_outputs = tokens[place], ptr[pair], ptr[pair + 1] - ptr[pair]
                pair += 1
                for j in range(n_outputs):
                    row = rows[first + j]
                    prefetch(target, rows[first + j + AHEAD])
                    u: Any = dot(target, row, bag, word, K)
                    slope[j] = u + target[row, K + BIAS] + target[row, K + OFFSET]
                for j in range(n_outputs):  # a loop of its own, which vectorizes
                    slope[j] = real(labels[first + j]) - logistic(slope[j])
                chance = 1.0
                for j in range(n_outputs):
                    chance *= one - abs(slope[j])
                likely *= max(chance, LEAST)
                if likely < LEAST:  # one logarithm for many pairs
                    value += np.log(likely)
                    likely = 1.0
                error[:] = real(0.0)
                size = dot(bag, word, bag, word, K) * part if gain > 0 else real(0.0)
                for j in range(n_outputs):
                    row, g = rows[first + j], slope[j]
                    length = _row_step(target, row, K, g * g * size, step, gain)
                    keep = max(one - length * target[row, K + SHRINK], real(0.0))
                    update(target, row, bag, word, error, 0, g, keep, length * g, K)
                    if bias_step > 0:
                        _bias_step(target, row, K, g, gain, bias_step)
                square = dot(error, 0, error, 0, K) * part if gain > 0 else real(0.0)
                length = _row_step(bag, word, K, square, step, gain)
                keep = max(one - length * bag[word, K + SHRINK], real(0.0))
                mix(bag, word, error, 0, keep, length, K)
    return float(value + np.log(likely))
