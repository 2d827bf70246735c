"""Algorithms as one would write them by hand: yardsticks for the speed of the simulator.

UCB-VI and LSVI-UCB in plain Python and NumPy; LDP-OBI with Laplace noise as one plain compiled
loop, with the paper's noise and widths (docs/papers/tabular_ldp.md#ldp-obi,
docs/papers/tabular_ldp.md#precisions), floats throughout, no grid, no release, no exact sums: a
yardstick for speed, not for privacy. Each function returns microseconds per episode.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numba
import numpy as np

from tacit.arrays import Array, IntArray
from tacit.problems.tabular import TabularMDP


def _greedy(Q: Array, rng: np.random.Generator) -> IntArray:
    """Best actions, ties drawn at random."""
    best: IntArray = ((Q >= Q.max(axis=2, keepdims=True)) * rng.random(Q.shape)).argmax(axis=2)
    return best


def _value(problem: TabularMDP, policy: IntArray) -> float:
    """The exact value of a policy."""
    value = np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        value = (problem.R[0] + problem.P[0] @ value)[np.arange(problem.states), policy[h]]
    return float(value @ problem.initial)


def ucb_vi(problem: TabularMDP, episodes: int, seed: int = 0) -> float:
    """UCB-VI: plan, roll out, count, evaluate the policy."""
    rng = np.random.default_rng(seed)
    H, S, A = problem.horizon, problem.states, problem.actions
    P_true, R_true = problem.P[0], problem.R[0]
    visits, rewards, transitions = np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A, S))
    width = 7 * H * math.log(5 * S * A * episodes * H / 0.1)
    Q = np.full((H, S, A), float(H))
    regret, optimum = 0.0, problem.optimal_value()
    began = time.process_time()
    for _ in range(episodes):
        seen = transitions.sum(axis=2)
        P = transitions / np.maximum(seen, 1)[:, :, None]
        early = rewards / np.maximum(visits, 1) + width / np.sqrt(np.maximum(seen, 1e-12))
        late = rewards / np.maximum(visits, 1) + width / np.sqrt(np.maximum(visits, 1e-12))
        V = np.zeros(S)
        for h in reversed(range(H)):
            Q[h] = np.minimum(Q[h], late if h == H - 1 else early + P @ V)
            V = Q[h].max(axis=1)
        policy = _greedy(Q, rng)
        regret += optimum - _value(problem, policy)
        s = rng.choice(S, p=problem.initial)
        for h in range(H):
            a = policy[h, s]
            following = rng.choice(S, p=P_true[s, a])
            visits[s, a] += 1
            rewards[s, a] += R_true[s, a]
            if h < H - 1:
                transitions[s, a, following] += 1
            s = following
    return 1e6 * (time.process_time() - began) / episodes


def lsvi(problem: TabularMDP, episodes: int, seed: int = 0) -> float:
    """LSVI-UCB's first episodes: regress, roll out, remember, evaluate the policy.

    Features are one-hot in (s, a). After episode k every stage regresses on its k transitions.
    """
    rng = np.random.default_rng(seed)
    H, S, A = problem.horizon, problem.states, problem.actions
    P_true, R_true = problem.P[0], problem.R[0]
    phi = np.eye(S * A).reshape(S, A, S * A)
    gram = np.tile(np.eye(S * A), (H, 1, 1))
    seen = np.zeros((H, episodes, S * A))
    rewards = np.zeros((H, episodes))
    following = np.zeros((H, episodes), dtype=np.int64)
    Q = np.full((H, S, A), float(H))
    bonus = 0.1 * H
    regret, optimum = 0.0, problem.optimal_value()
    began = time.process_time()
    for k in range(episodes):
        V = np.zeros(S)
        for h in reversed(range(H)):
            inverse = np.linalg.inv(gram[h])
            targets = rewards[h, :k] + V[following[h, :k]]
            w = inverse @ (seen[h, :k].T @ targets)
            width = np.sqrt(np.einsum("sai,ij,saj->sa", phi, inverse, phi))
            Q[h] = np.clip(phi @ w + bonus * width, 0.0, H)
            V = Q[h].max(axis=1)
        policy = _greedy(Q, rng)
        regret += optimum - _value(problem, policy)
        s = rng.choice(S, p=problem.initial)
        for h in range(H):
            a = policy[h, s]
            seen[h, k] = phi[s, a]
            gram[h] += np.outer(phi[s, a], phi[s, a])
            rewards[h, k] = R_true[s, a]
            s = following[h, k] = rng.choice(S, p=P_true[s, a])
    return 1e6 * (time.process_time() - began) / episodes


def _ldp_obi_episodes(
    P: Array, R: Array, start: int, H: int, epsilon: float, K: int, rng: np.random.Generator
) -> float:
    """Play K episodes; returns the sum of the values of all policies played."""
    S, A = R.shape
    alpha, beta = 2.0, 0.1
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


_compiled: Any = numba.njit(nogil=True, error_model="numpy")(_ldp_obi_episodes)


def ldp_obi_regret(problem: TabularMDP, epsilon: float, K: int, seed: int = 0) -> float:
    """Cumulative regret of one run of the compiled loop."""
    start = int(np.argmax(problem.initial))
    rng = np.random.default_rng(seed)
    played = _compiled(problem.P[0], problem.R[0], start, problem.horizon, epsilon, K, rng)
    return K * problem.optimal_value() - float(played)


def ldp_obi(problem: TabularMDP, K: int, seed: int = 0) -> float:
    """LDP-OBI, once compiled."""
    ldp_obi_regret(problem, 2.0, 10)
    began = time.thread_time()
    ldp_obi_regret(problem, 2.0, K, seed)
    return 1e6 * (time.thread_time() - began) / K
