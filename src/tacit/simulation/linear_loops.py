"""Users who act on one policy, served in one compiled call: their sums are added up exactly.

Only integers are added, so the result does not depend on how users are grouped, and equals the
stepwise driver bit by bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.linear_sums import Weights, add_steps, add_weighted_steps
from tacit.kernels.lsvi import log_determinants
from tacit.kernels.noise import fill_gaussian
from tacit.kernels.rollout import Truth, rollout
from tacit.simulation.loops import Score, record


class Life(NamedTuple):
    """One trajectory."""

    states: IntArray
    actions: IntArray
    rewards: Array


class Tables(NamedTuple):
    """Exact sums behind the wall: Gram matrices of the open batch, and the tables."""

    gram: IntArray  # [H, p]
    table: IntArray  # [H, S, A, S]
    reward: IntArray  # [H, S, A]


class TreeStream(NamedTuple):
    """The tree counter of the Gram matrices, as ``counters.Tree`` lays it out.

    ``clock`` holds the number of prefixes released. ``prefix`` is the release, in natural units.
    """

    blocks: IntArray  # [levels, H p], exact
    public: IntArray  # [levels, H p], published
    scales: Array
    noise: IntArray
    item: IntArray
    prefix: Array
    unit: float
    clock: IntArray


class Rule(NamedTuple):
    """The switching rule: all of it public. ``due`` is set to 1 when the planner must be called."""

    ridge: float
    least: float
    log_rate: float
    base: Array
    work: Array
    logdet: Array
    due: IntArray


@kernel
def additive_segment(
    truth: Truth,
    uniforms: Array,
    policy: IntArray,
    phi: Array,
    pooled: bool,
    weights: Weights,
    gram: IntArray,
    following: IntArray,
    reward: IntArray,
    life: Life,
    score: Score,
) -> None:
    """One episode per row of ``uniforms``, all under one policy; sums of ``LinearSums``."""
    states, actions, rewards = life
    _, now, at, checkpoints, regret_curve, reward_curve = score
    for row in range(uniforms.shape[0]):
        total = rollout(truth, policy, uniforms[row], states, actions, rewards)
        add_steps(states, actions, rewards, phi, pooled, weights, gram, following, reward)
        record(total, now, at, checkpoints, regret_curve, reward_curve)


@kernel
def curated_segment(
    truth: Truth,
    uniforms: Array,
    policy: IntArray,
    phi: Array,
    weights: Array,
    largest: float,
    tables: Tables,
    life: Life,
    score: Score,
) -> None:
    """The same for ``CuratedTransitions``."""
    states, actions, rewards = life
    gram, table, reward = tables
    _, now, at, checkpoints, regret_curve, reward_curve = score
    for row in range(uniforms.shape[0]):
        total = rollout(truth, policy, uniforms[row], states, actions, rewards)
        add_weighted_steps(states, actions, rewards, phi, weights, largest, gram, table, reward)
        record(total, now, at, checkpoints, regret_curve, reward_curve)


@kernel
def look(packed: Array, rule: Rule) -> bool:
    """Whether the planner has to be called: a determinant has grown, or a matrix needs repair."""
    rule.due[0] = 1
    if not log_determinants(packed, rule.ridge, rule.least, rule.work, rule.logdet):
        return True
    for h in range(rule.base.shape[0]):
        if rule.logdet[h] - rule.base[h] >= rule.log_rate:
            return True
    rule.due[0] = 0
    return False


@kernel
def next_prefix(stream: TreeStream, gram: IntArray, rng: np.random.Generator) -> int:
    """Draw the noise of the next node and compute the prefix it completes; nothing is stored.

    Returns the level of the node. ``item`` then holds its exact sum.
    """
    blocks, public, scales, noise, item, prefix, unit, clock = stream
    t = clock[0] + 1
    fill_gaussian(scales, rng, noise)
    flat = gram.reshape(item.shape[0])
    item[:] = flat
    level = 0
    while (t >> level) & 1 == 0:
        item += blocks[level]
        level += 1
    noise += item
    for i in range(item.shape[0]):
        total = noise[i]
        for upper in range(level + 1, blocks.shape[0]):
            if (t >> upper) & 1:
                total += public[upper, i]
        prefix[i] = total * unit
    noise -= item
    return level


@kernel
def keep_prefix(stream: TreeStream, gram: IntArray, level: int) -> None:
    """Store the node and start the next batch."""
    stream.blocks[level] = stream.item
    stream.public[level] = stream.item + stream.noise
    stream.clock[0] += 1
    gram[:] = 0


@kernel
def adaptive_segment(
    truth: Truth,
    uniforms: Array,
    users: int,
    policy: IntArray,
    phi: Array,
    weights: Array,
    largest: float,
    tables: Tables,
    stream: TreeStream,
    rule: Rule,
    switches: bool,
    rng: np.random.Generator,
    life: Life,
    score: Score,
) -> int:
    """Episodes under one policy until a switch is due; a noisy prefix after each.

    Returns the number of rows used. If a switch is due after the last of them, the node's noise is
    drawn but the node is not stored: the caller does it, with that noise, and plans.
    """
    states, actions, rewards = life
    gram, table, reward = tables
    _, now, at, checkpoints, regret_curve, reward_curve = score
    packed = stream.prefix.reshape(gram.shape)
    for row in range(uniforms.shape[0]):
        total = rollout(truth, policy, uniforms[row], states, actions, rewards)
        add_weighted_steps(states, actions, rewards, phi, weights, largest, gram, table, reward)
        record(total, now, at, checkpoints, regret_curve, reward_curve)
        if at[0] == users:
            return row + 1
        level = next_prefix(stream, gram, rng)
        if switches and look(packed, rule):
            return row + 1
        keep_prefix(stream, gram, level)
    return len(uniforms)


@kernel
def exact_segment(
    truth: Truth,
    uniforms: Array,
    users: int,
    policy: IntArray,
    phi: Array,
    weights: Array,
    largest: float,
    tables: Tables,
    prefix: Array,
    unit: float,
    rule: Rule,
    switches: bool,
    life: Life,
    score: Score,
) -> int:
    """The same without noise: exact Gram matrices after each user (``lsvi-ucb++``)."""
    states, actions, rewards = life
    gram, table, reward = tables
    _, now, at, checkpoints, regret_curve, reward_curve = score
    for row in range(uniforms.shape[0]):
        total = rollout(truth, policy, uniforms[row], states, actions, rewards)
        add_weighted_steps(states, actions, rewards, phi, weights, largest, gram, table, reward)
        record(total, now, at, checkpoints, regret_curve, reward_curve)
        if at[0] == users:
            return row + 1
        for h in range(gram.shape[0]):
            for k in range(gram.shape[1]):
                prefix[h, k] = gram[h, k] * unit
        if switches and look(prefix, rule):
            return row + 1
    return len(uniforms)
