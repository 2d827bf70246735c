"""One trajectory -> visit counts and reward sums on an integer grid, clipped."""

from __future__ import annotations

import numpy as np

from tacit.arrays import IntArray, VisitTables
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.trajectory import Lives


@kernel
def clip_index(index: int, size: int) -> int:
    """The nearest valid index: a bad state or action must not move the bound, or the memory."""
    return min(max(index, 0), size - 1)


@kernel
def clip_reward(reward: float) -> float:
    """Into [0, 1], as a number of 64 bits; NaN counts as 0."""
    return min(max(float(reward), 0.0), 1.0) if reward == reward else 0.0


@kernel
def add_policy_transitions(states: IntArray, policy: IntArray, out: IntArray) -> None:
    """Add one-hots of (s_h, s_{h+1}) of many users (rows) under a = policy_h(s_h) [H-1, S, A, S].

    The action is that of the policy, whatever the users did; missing steps stay in state 0.
    """
    stages, S, A, _ = out.shape
    length = states.shape[1]
    for row in range(states.shape[0]):
        for h in range(stages):
            s = clip_index(states[row, h], S) if h < length else 0
            n = clip_index(states[row, h + 1], S) if h + 1 < length else 0
            out[h, s, clip_index(policy[h, s], A), n] += 1


@kernel
def clip_pair(first: IntArray, number: IntArray, s: int, a: int) -> int:
    """Number of the pair (s, a), -1 if s is terminal; a forbidden action counts as the first one.

    ``first`` [S + 1] and ``number`` [S, A] are those of ``tacit.task.pairs``.
    """
    if first[s] == first[s + 1]:
        return -1
    x = number[s, clip_index(a, number.shape[1])]
    return int(x) if x >= 0 else int(first[s])


@kernel
def add_visits(
    lives: Lives, horizon: int, first: IntArray, number: IntArray, sums: VisitTables
) -> None:
    """Add R(x), R2(x), N_r(x) [G, X] and N_p(x, s') [G, X, S] of many users (rows), x = (s, a).

    At most ``horizon`` steps of each are read, and none after a terminal state. N_p has the first
    H - 1 transitions (docs/papers/tabular_ldp.md#setting). Rewards and their squares are in units
    of 1 / STEPS.
    """
    states, actions, rewards = lives
    reward, reward_squares, visits, transitions = sums
    G, S = visits.shape[0], transitions.shape[2]
    steps = min(horizon, actions.shape[1], rewards.shape[1], states.shape[1])
    for row in range(states.shape[0]):
        for h in range(steps):
            g = h if G > 1 else 0
            x = clip_pair(first, number, clip_index(states[row, h], S), actions[row, h])
            if x < 0:
                break
            r = clip_reward(rewards[row, h])
            reward[g, x] += np.int64(r * STEPS + 0.5)
            if reward_squares.shape[0] > 0:
                reward_squares[g, x] += np.int64(r * r * STEPS + 0.5)
            visits[g, x] += 1
            if h < horizon - 1 and h + 1 < states.shape[1]:
                transitions[g, x, clip_index(states[row, h + 1], S)] += 1


@kernel
def add_joint_counts(
    lives: Lives,
    horizon: int,
    pooled: bool,
    first: IntArray,
    number: IntArray,
    step: int,
    reward_step: float,
    transitions: IntArray,
    reward: IntArray,
) -> None:
    """Add counts of (x, s') and sums of r - 1/2 of many users, one trajectory per row, x = (s, a).

    Every transition adds ``step`` and every reward (r - 1/2) ``reward_step``, rounded; nothing is
    added after a terminal state. With one table per stage the next state of the last stage, which
    nobody plans with, counts as state 0. ``reward`` may have no cells: then rewards are left out.
    """
    states, actions, rewards = lives
    S = transitions.shape[2]
    for row in range(states.shape[0]):
        steps = min(horizon, actions.shape[1], states.shape[1] - 1, rewards.shape[1])
        for h in range(steps):
            g = 0 if pooled else h
            x = clip_pair(first, number, clip_index(states[row, h], S), actions[row, h])
            if x < 0:
                break
            n = clip_index(states[row, h + 1], S)
            if not pooled and h == horizon - 1:
                n = 0
            transitions[g, x, n] += step
            if reward.shape[0] > 0:
                r = clip_reward(rewards[row, h])
                reward[g, x] += np.int64(np.rint(reward_step * (r - 0.5)))
