"""Optimism along the direction that matters: one width per (s, a) and value function.

Spec tabular_ldp B3, optimistic variant. Where LDP-OBI bounds every noisy cell by itself, here the
noise of the one number that is used, the estimated next value, is bounded.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array
from tacit.kernels import kernel
from tacit.kernels.noisy_posterior import LEAST, project

UNKNOWN = 1e12
"""Value of an action about which nothing is known: above every other, so that it is tried."""


@kernel
def directional_z(bonus_scale: float, beta: float, sizes: tuple[int, int, int], e: int) -> float:
    """Z = c sqrt(2 L), L = ln(4 S A H e (e + 1) / beta), before the e-th update of the policy."""
    H, S, A = sizes
    return bonus_scale * math.sqrt(2.0 * math.log(4.0 * S * A * H * e * (e + 1.0) / beta))


@kernel
def mean_model(transitions: Array, last: Array, pooled: bool, P: Array, R: Array, N: Array) -> None:
    """Projected means: next-state laws P [G, S, A, S], rewards R [G', S, A], totals N [G', S, A].

    Inputs as for ``sample_noisy_model``. A next-state law about which nothing is known is uniform.
    """
    S, A = last.shape[0], last.shape[1]
    for g in range(R.shape[0]):
        final = pooled or g == R.shape[0] - 1
        moves = pooled or g < R.shape[0] - 1
        for s in range(S):
            for a in range(A):
                none = last[s, a, 0] if final else 0.0
                one = last[s, a, 1] if final else 0.0
                if moves:
                    y = P[g, s, a]
                    total = 0.0
                    for n in range(S):
                        y[n] = transitions[g, s, a, 0, n] + transitions[g, s, a, 1, n]
                        total += y[n]
                        none += transitions[g, s, a, 0, n]
                        one += transitions[g, s, a, 1, n]
                    if total > LEAST:
                        project(y, total)
                        y /= total
                    else:
                        y[:] = 1.0 / S
                N[g, s, a] = none + one
                R[g, s, a] = 0.5
                if N[g, s, a] > LEAST:
                    R[g, s, a] = min(max(one / N[g, s, a], 0.0), 1.0)


@kernel
def directional_induction(
    transitions: Array,
    variance: Array,
    last_variance: Array,
    pooled: bool,
    z: float,
    P: Array,
    R: Array,
    N: Array,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, S, A] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = r + z sd(r) + p V_{h+1} + z sd(p V_{h+1}), with
    sd(p V)^2 = [2 v sum_s' (V(s') - p V)^2 + N_p Var_p V] / N_p^2 and, for the reward,
    sd(r)^2 = [((1-r)^2 + r^2) (S v + v_last) + N r (1-r)] / N^2; v is the variance of the noise in
    one cell, N_p the released number of transitions from (s, a), N that of visits.
    """
    H, S, A = Q.shape
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = 0 if pooled else h
        final = h == H - 1
        most = float(H - h)
        for s in range(S):
            best = -np.inf
            for a in range(A):
                noise = last_variance[s, a] if pooled or final else 0.0
                if pooled or not final:
                    noise += S * variance[g, s, a]
                r, visits = R[g, s, a], N[g, s, a]
                value = UNKNOWN
                if visits > LEAST:
                    spread = ((1.0 - r) ** 2 + r * r) * noise + visits * r * (1.0 - r)
                    value = r + z * np.sqrt(spread) / visits
                if not final:
                    moves = 0.0
                    mean = 0.0
                    for n in range(S):
                        moves += transitions[g, s, a, 0, n] + transitions[g, s, a, 1, n]
                        mean += P[g, s, a, n] * V[h + 1, n]
                    if moves > LEAST:
                        loud = 0.0
                        quiet = 0.0
                        for n in range(S):
                            off = (V[h + 1, n] - mean) ** 2
                            loud += off
                            quiet += P[g, s, a, n] * off
                        spread = 2.0 * variance[g, s, a] * loud + moves * quiet
                        value += mean + z * np.sqrt(spread) / moves
                    else:
                        value = UNKNOWN
                Q[h, s, a] = value
                best = max(best, value)
            V[h, s] = min(best, most)
