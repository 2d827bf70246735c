"""LDP-OBI with Laplace noise as one plain compiled loop: what somebody would write by hand.

Published noise and widths (docs/papers/tabular_ldp.md#ldp-obi,
docs/papers/tabular_ldp.md#precisions), floats throughout, no grid, no release, no exact sums: the
yardstick for the speed of the simulator, not for its privacy.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from tacit.arrays import Array
from tacit.problems.tabular import TabularMDP


def episodes(
    P: Array,
    R: Array,
    start: int,
    H: int,
    epsilon: float,
    alpha: float,
    beta: float,
    K: int,
    rng: np.random.Generator,
) -> float:
    """Play K episodes; returns the sum of the values of all policies played."""
    S, A = R.shape
    b = 6 * H / epsilon
    reward, visits = np.zeros((S, A)), np.zeros((S, A))
    counts = np.zeros((S, A, S))
    Q, V = np.zeros((H, S, A)), np.zeros((H + 1, S))
    policy = np.zeros((H, S), np.int64)
    W = np.zeros((H + 1, S))
    value, total_value = 0.0, 0.0
    for k in range(1, K + 1):
        d = 3 * beta / (2 * np.pi**2 * k**2)
        L1, L2 = np.log(6 * S * A / d), np.log(6 * S * S * A / d)
        c1 = max(np.sqrt(k), L1) * np.sqrt(8 * L1) * b
        c3 = max(np.sqrt(k * S), L2) * np.sqrt(8 * L2) * b
        c4 = c3 / np.sqrt(S)
        lg = np.log(4 * np.pi**2 * S * A * H * float(k) ** 3 / (3 * beta))
        changed = k == 1
        for h in range(H - 1, -1, -1):
            for s in range(S):
                best, choice = -np.inf, 0
                for a in range(A):
                    into = 0.0
                    for n in range(S):
                        into += counts[s, a, n]
                    dr, dp = visits[s, a] + alpha * c1, into + alpha * c3
                    q = float(H - h)
                    if dr > 0 and dp > 0:
                        q = reward[s, a] / dr + np.sqrt(2 * lg / dr) + (alpha + 2) * c1 / dr
                        q += (H - h) * (
                            np.sqrt(14 * S * lg / dp) + (S * c4 + (alpha + 1) * c3) / dp
                        )
                        for n in range(S):
                            q += counts[s, a, n] / dp * V[h + 1, n]
                    Q[h, s, a] = q
                    if q > best:
                        best, choice = q, a
                V[h, s] = min(best, float(H - h))
                if policy[h, s] != choice:
                    policy[h, s] = choice
                    changed = True
        if changed:
            for h in range(H - 1, -1, -1):
                for s in range(S):
                    W[h, s] = R[s, policy[h, s]]
                    for n in range(S):
                        W[h, s] += P[s, policy[h, s], n] * W[h + 1, n]
            value = W[0, start]
        total_value += value
        s = start
        for h in range(H):
            a = policy[h, s]
            reward[s, a] += R[s, a]
            visits[s, a] += 1
            u, n = rng.random(), 0
            while n < S - 1 and u >= P[s, a, n]:
                u -= P[s, a, n]
                n += 1
            if h < H - 1:
                counts[s, a, n] += 1
            s = n
        for s in range(S):
            for a in range(A):
                reward[s, a] += b * (rng.standard_exponential() - rng.standard_exponential())
                visits[s, a] += b * (rng.standard_exponential() - rng.standard_exponential())
                for n in range(S):
                    counts[s, a, n] += b * (rng.standard_exponential() - rng.standard_exponential())
    return total_value


_compiled: Any = numba.njit(nogil=True, error_model="numpy")(episodes)


def regret(problem: TabularMDP, epsilon: float, K: int, seed: int = 0) -> float:
    """Cumulative regret of one run."""
    start = int(np.argmax(problem.initial))
    arguments = (problem.P[0], problem.R[0], start, problem.horizon, epsilon, 2.0, 0.1)
    rng = np.random.default_rng(seed)
    return K * problem.optimal_value() - float(_compiled(*arguments, K, rng))


def microseconds_per_episode(problem: TabularMDP, K: int) -> float:
    """Once compiled."""
    regret(problem, 2.0, 10)
    began = time.thread_time()
    regret(problem, 2.0, K)
    return 1e6 * (time.thread_time() - began) / K
