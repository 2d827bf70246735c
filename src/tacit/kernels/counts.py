"""One trajectory -> visit counts and reward sums on an integer grid, clipped."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel


@kernel
def clip_index(index: int, size: int) -> int:
    """The nearest valid index: a bad state or action must not move the bound, or the memory."""
    return min(max(index, 0), size - 1)


@kernel
def clip_reward(reward: float) -> float:
    """Into [0, 1]; NaN counts as 0."""
    return min(max(reward, 0.0), 1.0) if reward == reward else 0.0


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
def add_visits(
    states: IntArray,
    actions: IntArray,
    rewards: Array,
    horizon: int,
    reward: IntArray,
    reward_squares: IntArray,
    visits: IntArray,
    transitions: IntArray,
) -> None:
    """Add R(s,a), R2(s,a), N_r(s,a) [G, S, A] and N_p(s,a,s') [G, S, A, S] of many users (rows).

    At most ``horizon`` steps of each are read. N_p has the first H - 1 transitions
    (docs/papers/tabular_ldp.md#setting). ``reward_squares`` may have no cells (G = 0): then it is
    left out. Rewards and their squares are in units of 1 / STEPS.
    """
    G, S, A = visits.shape
    steps = min(horizon, actions.shape[1], rewards.shape[1], states.shape[1])
    for row in range(states.shape[0]):
        for h in range(steps):
            g = h if G > 1 else 0
            s = clip_index(states[row, h], S)
            a = clip_index(actions[row, h], A)
            r = clip_reward(rewards[row, h])
            reward[g, s, a] += np.int64(r * STEPS + 0.5)
            if reward_squares.shape[0] > 0:
                reward_squares[g, s, a] += np.int64(r * r * STEPS + 0.5)
            visits[g, s, a] += 1
            if h < horizon - 1 and h + 1 < states.shape[1]:
                transitions[g, s, a, clip_index(states[row, h + 1], S)] += 1


@kernel
def add_joint_counts(
    states: IntArray,
    actions: IntArray,
    rewards: Array,
    horizon: int,
    pooled: bool,
    step: int,
    reward_step: float,
    transitions: IntArray,
    reward: IntArray,
) -> None:
    """Add counts of (s, a, s') and sums of r - 1/2 of many users, one trajectory per row.

    Every transition adds ``step`` and every reward (r - 1/2) ``reward_step``, rounded. With one
    table per stage the next state of the last stage, which nobody plans with, counts as state 0.
    ``reward`` may have no cells: then rewards are left out.
    """
    S, A = transitions.shape[1], transitions.shape[2]
    for row in range(states.shape[0]):
        steps = min(horizon, actions.shape[1], states.shape[1] - 1, rewards.shape[1])
        for h in range(steps):
            g = 0 if pooled else h
            s = clip_index(states[row, h], S)
            a = clip_index(actions[row, h], A)
            n = clip_index(states[row, h + 1], S)
            if not pooled and h == horizon - 1:
                n = 0
            transitions[g, s, a, n] += step
            if reward.shape[0] > 0:
                r = clip_reward(rewards[row, h])
                reward[g, s, a] += np.int64(np.rint(reward_step * (r - 0.5)))
