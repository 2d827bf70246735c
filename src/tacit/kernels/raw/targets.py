"""One trajectory -> regression sums of linear mixtures on the integer grid, clipped.

Value-targeted sums, and sums for regression on all next states at once: what a step contributes to
those depends on (s, a), on s' and on the reward only, so it is looked up in tables of whole grid
steps that were written down before the first user.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.public.mixture import middle, mixed, norm
from tacit.kernels.raw.counts import clip_index, clip_reward
from tacit.trajectory import Lives


class TargetScales(NamedTuple):
    """What the contribution of a stage is multiplied by: contribution = scale * natural."""

    gram: Array
    target: Array
    reward_gram: Array
    reward_target: Array
    off: float


class TargetFeatures(NamedTuple):
    """Public features, with the largest |phi_V| and |V - mid| that a stage may have."""

    phi: Array
    block: IntArray
    varphi: Array
    r_block: IntArray
    offset: float
    centre: bool
    caps: Array  # [H+1]
    longest: Array  # [H-1]
    highest: Array  # [H-1]


class TargetSums(NamedTuple):
    """What steps add to, stage by stage; blocks may be empty: then they are left out."""

    gram: IntArray
    target: IntArray
    reward_gram: IntArray
    reward_target: IntArray


@kernel
def add_packed(x: Array, scale: float, off: float, out: IntArray) -> None:
    """Add scale x x^T, packed, rounded to the grid."""
    at = 0
    for i in range(x.shape[0]):
        for j in range(i):
            out[at] += np.int64(np.rint(scale * off * x[i] * x[j] * STEPS))
            at += 1
        out[at] += np.int64(np.rint(scale * x[i] * x[i] * STEPS))
        at += 1


@kernel
def add_vector(x: Array, scale: float, out: IntArray) -> None:
    """Add scale x, rounded to the grid."""
    for i in range(x.shape[0]):
        out[i] += np.int64(np.rint(scale * x[i] * STEPS))


@kernel
def clipped_values(V: Array, cap: float, out: Array) -> None:
    """V entry by entry into [0, cap], whatever was published; NaN counts as 0."""
    for s in range(V.shape[0]):
        out[s] = min(max(V[s], 0.0), cap) if V[s] == V[s] else 0.0


@kernel
def add_value_targets(
    lives: Lives,
    V: Array,
    reach: Array,
    features: TargetFeatures,
    scales: TargetScales,
    values: Array,
    x: Array,
    sums: TargetSums,
) -> None:
    """Add x x^T, x y, varphi varphi^T and varphi r of many users (rows) to the blocks.

    See docs/papers/mixture_jdp.md#setting.
    x = phi_V(s_h, a_h) is clipped to the norm ``reach[0, h]`` and y = V(s_{h+1}) - mid to
    ``reach[1, h]``, both at most the declared bounds: the caller adds noise in proportion, so any
    published reach is safe. V is clipped entry by entry first. Stage H has no transition data.
    ``values`` [S] and ``x`` [w] are work space.
    """
    states, actions, rewards = lives
    gram, target, reward_gram, reward_target = sums
    phi, block, varphi, r_block, offset, centre, caps, longest, highest = features
    H = caps.shape[0] - 1
    S = phi.shape[1]
    A = phi.shape[0] // S
    steps = min(H, actions.shape[1], rewards.shape[1], states.shape[1])
    for row in range(states.shape[0]):
        for h in range(steps):
            pair = clip_index(states[row, h], S) * A + clip_index(actions[row, h], A)
            if reward_gram.shape[0] > 0:
                b = r_block[pair]
                y = clip_reward(rewards[row, h]) - offset
                add_packed(varphi[pair], scales.reward_gram[h], scales.off, reward_gram[h, b])
                add_vector(varphi[pair], scales.reward_target[h] * y, reward_target[h, b])
            if h < H - 1 and h + 1 < states.shape[1]:
                b = block[pair]
                clipped_values(V[h + 1], caps[h + 1], values)
                mid = middle(values, centre)
                mixed(phi[pair], values, mid, x)
                length = norm(x)
                most = min(reach[0, h], longest[h])
                if length > most:
                    for i in range(x.shape[0]):
                        x[i] *= most / length
                most = min(reach[1, h], highest[h])
                y = min(max(values[clip_index(states[row, h + 1], S)] - mid, -most), most)
                add_packed(x, scales.gram[h], scales.off, gram[h, b])
                add_vector(x, scales.target[h] * y, target[h, b])


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
    lives: Lives, horizon: int, pooled: bool, tables: StepTables, sums: TargetSums
) -> None:
    """Add the contributions of many users, one trajectory per row.

    The statistic is that of docs/papers/mixture_jdp.md#b1.
    Blocks have one table for all stages if ``pooled``, else one per stage; then the transition of
    the last stage, which nobody plans with, is left out.
    """
    states, actions, rewards = lives
    gram, target, reward_gram, reward_target = sums
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
