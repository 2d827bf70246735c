"""Determinants of regularised Gram matrices, as the switching rule of LSVI-UCB++ tests them.

A planning kernel: it sees released matrices only.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel


@kernel
def cholesky_logdet(matrix: Array) -> float:
    """Log det of a positive definite matrix, NaN for others; ``matrix`` is overwritten."""
    d = matrix.shape[0]
    total = 0.0
    for j in range(d):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0.0:
            return np.nan
        root = math.sqrt(pivot)
        total += math.log(pivot)
        matrix[j, j] = root
        for i in range(j + 1, d):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / root
    return total


@kernel
def feature_widths(weights: Array, phi: Array, widths: Array) -> None:
    """|phi|_{Lam^-1} [H, S A] from Phi Lam^-1 [H, S A, d]."""
    H, pairs, d = weights.shape
    for h in range(H):
        for p in range(pairs):
            square = 0.0
            for i in range(d):
                square += weights[h, p, i] * phi[p, i]
            widths[h, p] = math.sqrt(max(square, 0.0))


@kernel
def backward_regression(
    weights: Array,
    widths: Array,
    phi: Array,
    table: Array,
    reward: Array,
    bonus: float,
    tops: Array,
    Q: Array,
) -> None:
    """LSVI from the whole table: Q_h = clip(phi^T w_h + bonus width, 0, top) from the last stage.

    w_h = Lam^-1 sum phi (r + V_{h+1}(s')).

    Args:
        weights: Phi Lam^-1 [H, S A, d].
        widths: |phi|_{Lam^-1} [H, S A].
        phi: features [S A, d].
        table: weights of transitions [H, S, A, S].
        reward: weighted rewards [H, S, A].
        bonus: factor of the width.
        tops: where Q_h is cut [H].
        Q: output [H, S, A].
    """
    H, S, A = Q.shape
    d = phi.shape[1]
    V = np.zeros(S)
    y = np.empty(d)
    for h in range(H - 1, -1, -1):
        y[:] = 0.0
        for s in range(S):
            for a in range(A):
                total = reward[h, s, a]
                for n in range(S):
                    total += table[h, s, a, n] * V[n]
                if total != 0.0:
                    for i in range(d):
                        y[i] += total * phi[s * A + a, i]
        for s in range(S):
            best = 0.0
            for a in range(A):
                value = bonus * widths[h, s * A + a]
                for i in range(d):
                    value += weights[h, s * A + a, i] * y[i]
                Q[h, s, a] = min(max(value, 0.0), tops[h])
                best = max(best, Q[h, s, a])
            V[s] = best


@kernel
def optimistic_stage(
    weights: Array,
    answer: Array,
    middle: float,
    residual: Array,
    widths: Array,
    bonus: float,
    top: float,
    Q: Array,
    V: Array,
) -> None:
    """Q = clip(m + phi^T Lam^-1 y - m residual + bonus width, 0, top) and V = max_a Q of a stage.

    Args:
        weights: Phi Lam^-1 [S A, d].
        answer: y [d], the noisy sum of phi (r + V(s') - m).
        middle: m.
        residual: phi^T Lam^-1 (Lam - G) v [S A].
        widths: |phi|_{Lam^-1} [S A].
        bonus: factor of the width.
        top: where Q is cut.
        Q: output [S, A].
        V: output [S].
    """
    S, A = Q.shape
    for s in range(S):
        V[s] = 0.0
        for a in range(A):
            pair = s * A + a
            value = middle * (1.0 - residual[pair]) + bonus * widths[pair]
            for i in range(answer.shape[0]):
                value += weights[pair, i] * answer[i]
            Q[s, a] = min(max(value, 0.0), top)
            V[s] = max(V[s], Q[s, a])


@kernel
def log_determinants(packed: Array, ridge: float, least: float, work: Array, logdet: Array) -> bool:
    """Log det(G + ridge I) of every stage; False if an eigenvalue is not above ``least``.

    Args:
        packed: Gram matrices [H, p], off-diagonal entries times sqrt 2.
        ridge: added to the diagonal.
        least: what every eigenvalue must exceed for the result to be used.
        work: work space [d, d].
        logdet: output [H]; complete only if True is returned.
    """
    H = packed.shape[0]
    d = work.shape[0]
    root2 = math.sqrt(2.0)
    for h in range(H):
        for attempt in range(2):
            shift = ridge - least if attempt == 0 else ridge
            k = 0
            for i in range(d):
                work[i, i] = packed[h, k] + shift
                k += 1
                for j in range(i + 1, d):
                    work[j, i] = packed[h, k] / root2
                    k += 1
            value = cholesky_logdet(work)
            if not value == value:
                return False
            logdet[h] = value
            if least == 0.0:
                break
    return True
