"""One trajectory -> sums of tabulated contributions: regression on all next states at once.

What a step contributes depends on (s, a), on s' and on the reward only, so it is looked up in
tables of whole grid steps that were written down before the first user.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.counts import clip_index, clip_reward


class StepTables(NamedTuple):
    """Rows in grid steps; a reward row is ``reward_low`` + r (``reward_high`` - ``reward_low``)."""

    gram: IntArray  # [SA, m]
    target: IntArray  # [SA, S, d]
    reward_gram: IntArray  # [SA, m2]
    reward_low: Array  # [SA, d2]
    reward_high: Array  # [SA, d2]


@kernel
def add_row(row: IntArray, out: IntArray) -> None:
    """Add a row."""
    for i in range(row.shape[0]):
        out[i] += row[i]


@kernel
def add_multi_targets(
    states: IntArray,
    actions: IntArray,
    rewards: Array,
    horizon: int,
    pooled: bool,
    tables: StepTables,
    gram: IntArray,
    target: IntArray,
    reward_gram: IntArray,
    reward_target: IntArray,
) -> None:
    """Add the contributions of many users, one trajectory per row.

    The statistic is that of docs/papers/mixture_jdp.md#b1.
    Blocks have one table for all stages if ``pooled``, else one per stage; then the transition of
    the last stage, which nobody plans with, is left out. Reward blocks may be empty.
    """
    S = tables.target.shape[1]
    A = tables.target.shape[0] // S
    for row in range(states.shape[0]):
        steps = min(horizon, actions.shape[1], states.shape[1] - 1, rewards.shape[1])
        for h in range(steps):
            pair = clip_index(states[row, h], S) * A + clip_index(actions[row, h], A)
            if gram.shape[0] > 0 and (pooled or h < gram.shape[0]):
                g = 0 if pooled else h
                add_row(tables.gram[pair], gram[g])
                add_row(tables.target[pair, clip_index(states[row, h + 1], S)], target[g])
            if reward_gram.shape[0] > 0:
                g = 0 if pooled else h
                r = clip_reward(rewards[row, h])
                add_row(tables.reward_gram[pair], reward_gram[g])
                for i in range(reward_target.shape[1]):
                    low = tables.reward_low[pair, i]
                    step = low + r * (tables.reward_high[pair, i] - low)
                    reward_target[g, i] += np.int64(np.rint(step))
