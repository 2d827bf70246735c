"""What to ask the next users: the question that is predicted to teach most, most often.

Every question about a step lowers the variance of some estimates; how much that matters depends on
how often the plan meets these states and on how much their next values differ. All of it is
computed from releases.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.noisy_posterior import NoisyCounts
from tacit.kernels.questions import KINDS, MOVE, REWARD, SPREAD, STEP, Weighing

IN_TURN = 0.1
"""Share of the questions that is spread over all steps whatever the prediction."""

TYPICAL = 0.1
"""Variance of a reward around its mean, where it is not known: at most 1/4, often nothing."""


@kernel
def doubt(total: float, noise: float) -> float:
    """What is left of the prior variance 1/4 of a chance after a count of that total and noise."""
    noise += 1e-12
    return SPREAD * noise / (noise + SPREAD * total * total)


@kernel
def stakes(
    counts: NoisyCounts,
    f: Array,
    P: Array,
    V: Array,
    policy: IntArray,
    at_moves: Array,
    at_rewards: Array,
) -> None:
    """Squared doubt in the plan's value that comes from each (g, s, a): [G, S, A], [G', S, A].

    A reward matters as often as it is met, f_h(s); a next-state law in proportion to the spread of
    the values it leads to.
    """
    moves, rewards, moves_variance, rewards_variance, moves_unit, rewards_unit = counts
    H, S = policy.shape
    A = moves.shape[2]
    at_moves[:] = 0.0
    at_rewards[:] = 0.0
    for h in range(H):
        g = h if at_moves.shape[0] > 1 else 0
        r = h if at_rewards.shape[0] > 1 else 0
        for s in range(S):
            a = policy[h, s]
            at_rewards[r, s, a] += f[h, s]
            if h < H - 1 and f[h, s] > 0.0:
                mean = 0.0
                for n in range(S):
                    mean += P[g, s, a, n] * V[h + 1, n]
                spread = 0.0
                for n in range(S):
                    spread += (V[h + 1, n] - mean) ** 2
                at_moves[g, s, a] += f[h, s] * np.sqrt(spread)
    for s in range(S):
        for a in range(A):
            for g in range(at_moves.shape[0]):
                total = 0.0
                for n in range(S):
                    total += moves[g, s, a, n]
                total = max(total, 0.0)
                noise = moves_variance[g, s, a] + moves_unit[g, s, a] * total / S
                at_moves[g, s, a] = (at_moves[g, s, a] * doubt(total, noise)) ** 2
            for g in range(at_rewards.shape[0]):
                total = max(rewards[g, s, a, 0] + rewards[g, s, a, 1], 0.0)
                noise = rewards_variance[g, s, a] + TYPICAL * rewards_unit[g, s, a] * total
                at_rewards[g, s, a] = (at_rewards[g, s, a] * doubt(total, noise)) ** 2


@kernel
def share_questions(
    at_moves: Array,
    at_rewards: Array,
    f: Array,
    policy: IntArray,
    weighing: Weighing,
    asked: Array,
) -> None:
    """Overwrite ``asked`` [3 H] with cumulative shares in proportion to what a question teaches.

    A question about step h tells of state s with precision f^2 / (f / 4 + v) per user, v being the
    noise of its kind. A tenth goes to all steps alike, to the best kind of each.
    """
    H, S = policy.shape
    total = 0.0
    for h in range(H):
        g = h if at_moves.shape[0] > 1 else 0
        r = h if at_rewards.shape[0] > 1 else 0
        for kind in range(KINDS):
            worth = 0.0
            if h < H - 1 or kind == REWARD:
                for s in range(S):
                    d = f[h, s]
                    a = policy[h, s]
                    own = 0 if kind == STEP else 1
                    if kind != REWARD:
                        worth += d * d * at_moves[g, s, a] / (SPREAD * d + weighing.moves[own])
                    if kind != MOVE:
                        worth += d * d * at_rewards[r, s, a] / (SPREAD * d + weighing.rewards[own])
            asked[KINDS * h + kind] = worth
            total += worth
    sum_so_far = 0.0
    for h in range(H):
        best = REWARD if h == H - 1 else STEP
        for kind in range(KINDS):
            if asked[KINDS * h + kind] > asked[KINDS * h + best]:
                best = kind
        for kind in range(KINDS):
            share = asked[KINDS * h + kind] * (1.0 - IN_TURN) / total if total > 0.0 else 0.0
            if kind == best:
                share += IN_TURN / H if total > 0.0 else 1.0 / H
            sum_so_far += share
            asked[KINDS * h + kind] = sum_so_far
