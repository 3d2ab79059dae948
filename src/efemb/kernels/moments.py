"""Kernels of the moments solver: value and gradient from Gram matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb.kernels.jit import elementwise, kernel, summing

Array = Any


@summing
def gram_gradient(
    first: int,
    last: int,
    ptr: Array,
    members: Array,
    place: Array,
    gram: Array,
    cross: Array,
    target: Array,
    bag: Array,
    intercept: Array,
    g_target: Array,
    g_edges: Array,
    g_intercept: Array,
) -> float:
    """Fit term 2 c'w - w'G w of entities first..last, w = (alpha_m . rho_n for members, b_n).

    g_edges[e] becomes c - G w for the edge of each member; the last coordinate of an entity is its
    intercept. Returns the sum of the fit terms.
    """
    size = target.shape[1]
    total = 0.0
    for n in range(first, last):
        start, degree = ptr[n], ptr[n + 1] - ptr[n]
        w = np.empty(degree + 1, target.dtype)
        for e in range(degree):
            inner = target[n, 0] * 0
            m = members[start + e]
            for k in range(size):
                inner += target[n, k] * bag[m, k]
            w[e] = inner
        w[degree] = intercept[n]
        base = place[n]
        offset = start + n
        for k in range(size):
            g_target[n, k] = 0
        for i in range(degree + 1):
            inner = target[n, 0] * 0
            row = base + i * (degree + 1)
            for j in range(degree + 1):
                inner += gram[row + j] * w[j]
            rest = cross[offset + i] - inner
            total += w[i] * (cross[offset + i] + rest)
            if i == degree:
                g_intercept[n] = rest
            else:
                g_edges[start + i] = rest
                m = members[start + i]
                for k in range(size):
                    g_target[n, k] += rest * bag[m, k]
    return total


@elementwise
def member_gradient(
    first: int,
    last: int,
    ptr: Array,
    owners: Array,
    edges: Array,
    g_edges: Array,
    target: Array,
    g_bag: Array,
) -> None:
    """g_bag[m] = sum over the edges into m of g_edges * rho of their owner (transposed lists)."""
    size = target.shape[1]
    for m in range(first, last):
        for k in range(size):
            g_bag[m, k] = 0
        for p in range(ptr[m], ptr[m + 1]):
            slope = g_edges[edges[p]]
            n = owners[p]
            for k in range(size):
                g_bag[m, k] += slope * target[n, k]


@kernel
def _stiffen(A: Array, ridge: float) -> None:
    """Add the ridge, and a small number that keeps the system regular despite rounding."""
    size = A.shape[0]
    diagonal = 0.0
    for i in range(size):
        diagonal += abs(A[i, i])
    jitter = 8 * np.finfo(A.dtype).eps * diagonal / size
    for i in range(size):
        A[i, i] += ridge + jitter


@kernel
def best_targets(
    first: int,
    last: int,
    ptr: Array,
    members: Array,
    place: Array,
    gram: Array,
    cross: Array,
    bag: Array,
    ridge: float,
    intercept_ridge: float,
    target: Array,
    intercept: Array,
) -> None:
    """Ridge regression of each entity on its members' context vectors, intercept free.

    With W the members' alpha, maximizes 2 c'w - w'G w - ridge |rho|^2 over w = (W rho, b). The
    smaller of two systems is solved: (W'G W + ridge) rho = W'c or rho = W'(G W W' + ridge)^-1 c.
    """
    size = bag.shape[1]
    for n in range(first, last):
        degree = ptr[n + 1] - ptr[n]
        width = degree + 1
        G = gram[place[n] : place[n + 1]].reshape(width, width)
        c = cross[ptr[n] + n : ptr[n + 1] + n + 1]
        free = G[degree, degree] + intercept_ridge
        pull = G[:degree, degree] / free if free > 0 else G[:degree, degree] * 0
        W = np.empty((degree, size), bag.dtype)
        H = np.empty((degree, degree), bag.dtype)
        rest = np.empty(degree, bag.dtype)
        for i in range(degree):
            W[i] = bag[members[ptr[n] + i]]
            rest[i] = c[i] - pull[i] * c[degree]
            for j in range(degree):
                H[i, j] = G[i, j] - pull[i] * G[degree, j]
        V = np.ascontiguousarray(W.T)
        if size <= degree:
            A = np.dot(V, np.dot(H, W))
            _stiffen(A, ridge)
            target[n] = np.linalg.solve(A, np.dot(V, rest))
        elif degree > 0:
            A = np.dot(H, np.dot(W, V))
            _stiffen(A, ridge)
            target[n] = np.dot(V, np.linalg.solve(A, rest))
        else:
            target[n] = 0
        if free > 0:
            through = np.dot(W, target[n])
            total = c[degree]
            for i in range(degree):
                total -= G[degree, i] * through[i]
            intercept[n] = total / free
