"""One trajectory -> regression sums for linear MDPs on an integer grid, clipped.

Raw data: planning kernels may not import this module.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import GRID, STEPS
from tacit.kernels import kernel
from tacit.kernels.raw.counts import clip_index, clip_reward
from tacit.trajectory import Lives


class Weights(NamedTuple):
    """Factors of the three blocks; public, the planner divides by them."""

    gram: float
    next: float
    reward: float


class CuratedSums(NamedTuple):
    """What a curator adds up, stage by stage."""

    gram: IntArray  # [H, p] packed; p = d keeps the diagonal alone
    table: IntArray  # [H, S, A, S]
    reward: IntArray  # [H, S, A]


@kernel
def add_outer(x: Array, factor: float, row: IntArray) -> None:
    """Add factor x x^T in whole steps: packed, or its diagonal where the row is that short."""
    d = x.shape[0]
    packed = row.shape[0] > d
    root2 = math.sqrt(2.0)
    k = 0
    for i in range(d):
        xi = factor * x[i]
        row[k] += np.int64(np.rint(xi * x[i]))
        k += 1
        if packed:
            for j in range(i + 1, d):
                row[k] += np.int64(np.rint(root2 * xi * x[j]))
                k += 1


@kernel
def add_steps(
    lives: Lives,
    horizon: int,
    phi: Array,
    pooled: bool,
    weights: Weights,
    gram: IntArray,
    following: IntArray,
    reward: IntArray,
) -> None:
    """Add phi phi^T, phi (e_{s'} - 1/S)^T and phi (r - 1/2) of every step of many users (rows).

    What for is said in docs/papers/linear_jdp.md#b2. Blocks have one table per stage, or one for
    all stages (``pooled``): gram [G, p], following [G', d, S], reward [G'', d]. Packed Gram
    matrices have p = d (d + 1) / 2, off-diagonal entries times sqrt 2; p = d keeps the diagonal
    alone (enough where phi is one-hot). A stage beyond the end of a block is left out of it, and so
    is a step whose next state is missing.
    """
    states, actions, rewards = lives
    S, A, d = phi.shape
    H = min(horizon, states.shape[1], actions.shape[1], rewards.shape[1])
    for row in range(states.shape[0]):
        for h in range(H):
            g = 0 if pooled else h
            x = phi[clip_index(states[row, h], S), clip_index(actions[row, h], A)]
            if g < gram.shape[0]:
                add_outer(x, weights.gram * STEPS, gram[g])
            if g < reward.shape[0]:
                centred = weights.reward * STEPS * (clip_reward(rewards[row, h]) - 0.5)
                for i in range(d):
                    reward[g, i] += np.int64(np.rint(centred * x[i]))
            if g < following.shape[0] and h + 1 < states.shape[1]:
                n = clip_index(states[row, h + 1], S)
                for i in range(d):
                    xi = weights.next * STEPS * x[i]
                    away = np.int64(np.rint(-xi / S))
                    for s in range(S):
                        following[g, i, s] += away
                    following[g, i, n] += np.int64(np.rint(xi * (1.0 - 1.0 / S))) - away


@kernel
def weighted_regression(
    table: IntArray, reward: IntArray, phi: Array, values: Array, rewarded: bool, out: Array
) -> None:
    """Sum over pairs (s, a) of phi (R(s, a) + sum_n T(s, a, n) u(n)), in the steps of the tables.

    Args:
        table: T [S, A, S] of one stage.
        reward: R [S, A] of one stage, left out unless ``rewarded``.
        phi: features [S, A, d].
        values: u [S].
        rewarded: whether rewards are part of the sum.
        out: output [d].
    """
    S, A, d = phi.shape
    out[:] = 0.0
    for s in range(S):
        for a in range(A):
            total = float(reward[s, a]) if rewarded else 0.0
            for n in range(S):
                if table[s, a, n] != 0:
                    total += table[s, a, n] * values[n]
            if total != 0.0:
                for i in range(d):
                    out[i] += total * phi[s, a, i]


@kernel
def noisy_answer(
    table: IntArray,
    reward: IntArray,
    phi: Array,
    values: Array,
    stage: int,
    top: float,
    centre: float,
    rewarded: bool,
    noise: IntArray,
    out: Array,
) -> None:
    """sum w phi (r + V(s') - m) of one stage from the tables, put on the grid, plus noise.

    Args:
        table: weights of transitions [H, S, A, S].
        reward: weighted rewards [H, S, A].
        phi: features [S, A, d].
        values: V [S]; NaN counts as 0.
        stage: h, from 0.
        top: V is clipped into [0, top].
        centre: m.
        rewarded: whether r is part of it.
        noise: in whole steps [d].
        out: output [d], in natural units.
    """
    bounded = np.empty(values.shape[0])
    for n in range(values.shape[0]):
        value = values[n] if values[n] > 0.0 else 0.0
        bounded[n] = min(value, top) - centre
    weighted_regression(table[stage], reward[stage], phi, bounded, rewarded, out)
    for i in range(out.shape[0]):
        out[i] = (np.int64(np.rint(out[i])) + noise[i]) * GRID


@kernel
def add_weighted_steps(
    lives: Lives, phi: Array, weights: Array, largest: float, sums: CuratedSums
) -> None:
    """Add w phi phi^T, w at (s, a, s') and w r at (s, a), per stage, of many users (rows).

    Weights w_h(s, a) [H, S, A] are clipped into [0, ``largest``] and put on the grid first, rounded
    down.
    """
    (states, actions, rewards), (gram, table, reward) = lives, sums
    S, A, d = phi.shape
    H = min(weights.shape[0], states.shape[1] - 1, actions.shape[1], rewards.shape[1])
    for row in range(states.shape[0]):
        for h in range(H):
            s = clip_index(states[row, h], S)
            a = clip_index(actions[row, h], A)
            w = weights[h, s, a]
            steps = math.floor(min(max(w, 0.0), largest) * STEPS) if w == w else 0.0
            table[h, s, a, clip_index(states[row, h + 1], S)] += np.int64(steps)
            reward[h, s, a] += np.int64(np.rint(steps * clip_reward(rewards[row, h])))
            add_outer(phi[s, a], steps, gram[h])
