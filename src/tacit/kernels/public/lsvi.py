"""Least-squares value iteration: determinants, widths and backward regression.

Planning kernels: they see released sums only.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.cholesky import factor_or_floor, solve_lower, solve_transposed


@kernel
def cholesky_logdet(matrix: Array) -> float:
    """log det of a positive definite matrix, NaN for others; ``matrix`` is overwritten."""
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
def factorise(matrices: Array, floor: float, factors: Array) -> None:
    """Lower Cholesky factors [H, d, d] of regularised Gram matrices [H, d, d]."""
    for h in range(matrices.shape[0]):
        factor_or_floor(matrices[h], factors[h], floor)


@kernel
def solve_stage(factors: Array, h: int, y: Array, out: Array) -> None:
    """Lam_h^-1 y; ``out`` may not be ``y``."""
    solve_lower(factors[h], y, out)
    solve_transposed(factors[h], out, out)


@kernel
def feature_widths(factors: Array, phi: Array, widths: Array) -> None:
    """|phi|_{Lam^-1} = |L^-1 phi| [H, S A], all pairs at once."""
    pairs, d = phi.shape
    columns = phi.T.copy()
    z = np.empty((d, pairs))
    for h in range(factors.shape[0]):
        squares = widths[h]
        squares[:] = 0.0
        for i in range(d):
            row = z[i]
            row[:] = columns[i]
            for j in range(i):
                entry = factors[h, i, j]
                other = z[j]
                for p in range(pairs):
                    row[p] -= entry * other[p]
            pivot = factors[h, i, i]
            for p in range(pairs):
                row[p] /= pivot
                squares[p] += row[p] * row[p]
        for p in range(pairs):
            squares[p] = math.sqrt(squares[p])


@kernel
def optimistic_values(
    phi: Array, w: Array, middle: float, widths: Array, bonus: float, top: float, Q: Array, V: Array
) -> None:
    """Q = clip(m + <w, phi> + bonus width, 0, top) and V = max_a Q of a stage."""
    S, A = Q.shape
    for s in range(S):
        V[s] = 0.0
        for a in range(A):
            pair = s * A + a
            value = middle + bonus * widths[pair]
            for i in range(w.shape[0]):
                value += phi[pair, i] * w[i]
            Q[s, a] = min(max(value, 0.0), top)
            V[s] = max(V[s], Q[s, a])


@kernel
def backward_regression(
    factors: Array,
    widths: Array,
    phi: Array,
    table: Array,
    reward: Array,
    bonus: float,
    tops: Array,
    Q: Array,
) -> None:
    """LSVI from the whole table: Q_h = clip(<w_h, phi> + bonus width, 0, top) from the last stage.

    w_h = Lam^-1 sum phi (r + V_{h+1}(s')).

    Args:
        factors: Cholesky factors of Lam [H, d, d].
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
    w = np.empty(d)
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
        solve_stage(factors, h, y, w)
        optimistic_values(phi, w, 0.0, widths[h], bonus, tops[h], Q[h], V)


@kernel
def stretched(packed: Array, ridge: float, matrices: Array, rate: float, work: Array) -> bool:
    """Whether x^T (G + ridge I) x >= rate x^T V x for some x and stage.

    That is: the largest eigenvalue of V^(-1/2) (G + ridge I) V^(-1/2) is at least ``rate``, or,
    without eigenvalues, rate V - G - ridge I is not positive definite.

    Args:
        packed: Gram matrices G [H, p], off-diagonal entries times sqrt 2.
        ridge: added to their diagonals.
        matrices: V, positive definite [H, d, d].
        rate: above 1.
        work: work space [d, d].
    """
    d = work.shape[0]
    root2 = math.sqrt(2.0)
    for h in range(packed.shape[0]):
        k = 0
        for i in range(d):
            work[i, i] = rate * matrices[h, i, i] - (packed[h, k] + ridge)
            k += 1
            for j in range(i + 1, d):
                work[j, i] = rate * matrices[h, j, i] - packed[h, k] / root2
                k += 1
        value = cholesky_logdet(work)
        if not value == value:
            return True
    return False


@kernel
def log_determinants(packed: Array, ridge: float, least: float, work: Array, logdet: Array) -> bool:
    """log det(G + ridge I) of every stage; False if an eigenvalue is not above ``least``.

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
