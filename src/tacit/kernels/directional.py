"""Optimism along the direction that matters: one width per (s, a) and value function.

The optimistic form of docs/papers/tabular_ldp.md#b3. Where LDP-OBI bounds every noisy cell by
itself, here the noise of the one number that is used, the estimated next value, is bounded.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.noisy_posterior import LEAST, NoisyCounts, project

UNKNOWN = 1e12
"""Value of an action about which nothing is known: above every other, so that it is tried."""


@kernel
def directional_z(bonus_scale: float, beta: float, sizes: tuple[int, int, int], e: int) -> float:
    """Z = c sqrt(2 L), L = ln(4 S A H e (e + 1) / beta), before the e-th update of the policy."""
    H, S, A = sizes
    return bonus_scale * math.sqrt(2.0 * math.log(4.0 * S * A * H * e * (e + 1.0) / beta))


@kernel
def mean_model(counts: NoisyCounts, P: Array, R: Array) -> None:
    """Projected means: next-state laws P [G, S, A, S] and rewards R [G', S, A].

    Inputs as for ``sample_noisy_model``. Where nothing is known the law is uniform, the reward 1/2.
    """
    moves, rewards = counts.moves, counts.rewards
    G, S, A, _ = P.shape
    for s in range(S):
        for a in range(A):
            for g in range(G):
                y = P[g, s, a]
                total = 0.0
                for n in range(S):
                    y[n] = moves[g, s, a, n]
                    total += y[n]
                if total > LEAST:
                    project(y, total)
                    y /= total
                else:
                    y[:] = 1.0 / S
            for g in range(R.shape[0]):
                total = rewards[g, s, a, 0] + rewards[g, s, a, 1]
                R[g, s, a] = 0.5
                if total > LEAST:
                    R[g, s, a] = min(max(rewards[g, s, a, 1] / total, 0.0), 1.0)


@kernel
def directional_induction(
    counts: NoisyCounts, z: float, P: Array, R: Array, Q: Array, V: Array
) -> None:
    """Fill Q [H, S, A] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = r + z sd(r) + p V_{h+1} + z sd(p V_{h+1}), with
    sd(p V)^2 = [v sum_s' (V(s') - p V)^2 + u N Var_p V] / N^2 and
    sd(r)^2 = [v' ((1-r)^2 + r^2) + u' N' r (1-r)] / N'^2; N and N' are the weighted numbers of
    moves and rewards at (s, a), v and v' the variances of the noise in one of their cells, u and u'
    the weights of the visits behind them.
    """
    moves, rewards, moves_variance, rewards_variance, moves_unit, rewards_unit = counts
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if P.shape[0] > 1 else 0
        k = h if R.shape[0] > 1 else 0
        for s in range(S):
            best = -np.inf
            for a in range(A):
                r = R[k, s, a]
                total = rewards[k, s, a, 0] + rewards[k, s, a, 1]
                value = UNKNOWN
                if total > LEAST:
                    spread = ((1.0 - r) ** 2 + r * r) * rewards_variance[k, s, a]
                    spread += r * (1.0 - r) * rewards_unit[k, s, a] * total
                    value = r + z * np.sqrt(spread) / total
                if h < H - 1:
                    total = 0.0
                    mean = 0.0
                    for n in range(S):
                        total += moves[g, s, a, n]
                        mean += P[g, s, a, n] * V[h + 1, n]
                    if total > LEAST:
                        loud = 0.0
                        quiet = 0.0
                        for n in range(S):
                            off = (V[h + 1, n] - mean) ** 2
                            loud += off
                            quiet += P[g, s, a, n] * off
                        spread = moves_variance[g, s, a] * loud
                        spread += moves_unit[g, s, a] * total * quiet
                        value += mean + z * np.sqrt(spread) / total
                    else:
                        value = UNKNOWN
                Q[h, s, a] = value
                best = max(best, value)
            V[h, s] = min(best, float(H - h))
