"""Planning of tacit-local on noisy counts: optimism along the direction that matters, and asking.

Optimism has one width per (s, a) and value function, the optimistic form of
docs/papers/tabular_ldp.md#b3: where LDP-OBI bounds every noisy cell by itself, here the noise of
the one number that is used, the estimated next value, is bounded.

The next users are asked the question that is predicted to teach most, most often. Every question
about a step lowers the variance of some estimates; how much that matters depends on how often the
plan meets these states and on how much their next values differ. All of it is computed from
releases.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Array, IntArray, Rows
from tacit.kernels import kernel
from tacit.kernels.public.posterior import LEAST_TOTAL, NoisyCounts, project
from tacit.kernels.public.questions import KINDS, MOVE, OWN_VARIANCE, REWARD, STEP, Weighing

UNKNOWN = 1e12
"""Value of an action about which nothing is known: above every other, so that it is tried."""


@kernel
def directional_z(bonus_scale: float, beta: float, sizes: tuple[int, int, int], e: int) -> float:
    """z = c sqrt(2 L), L = ln(4 S A H e (e + 1) / beta), before the e-th update of the policy."""
    H, S, A = sizes
    return bonus_scale * math.sqrt(2.0 * math.log(4.0 * S * A * H * e * (e + 1.0) / beta))


@kernel
def mean_model(counts: NoisyCounts, P: Array, R: Array) -> None:
    """Projected means: next-state laws P [G, X, S] and rewards R [G', X].

    Inputs as for ``sample_noisy_model``. Where nothing is known the law is uniform, the reward 1/2.
    """
    moves, rewards = counts.moves, counts.rewards
    G, X, S = P.shape
    for x in range(X):
        for g in range(G):
            y = P[g, x]
            total = 0.0
            for n in range(S):
                y[n] = moves[g, x, n]
                total += y[n]
            if total > LEAST_TOTAL:
                project(y, total)
                y /= total
            else:
                y[:] = 1.0 / S
        for g in range(R.shape[0]):
            total = rewards[g, x, 0] + rewards[g, x, 1]
            R[g, x] = 0.5
            if total > LEAST_TOTAL:
                R[g, x] = min(max(rewards[g, x, 1] / total, 0.0), 1.0)


@kernel
def directional_induction(
    counts: NoisyCounts,
    z: float,
    first: IntArray,
    P: Array,
    R: Array,
    end_reward: float,
    Q: Array,
    V: Array,
) -> None:
    """Fill Q [H, X] (not clipped: the policy is its argmax) and V = min(H-h+1, max_a Q).

    Q_h = r + z sd(r) + p V_{h+1} + z sd(p V_{h+1}), with
    sd(p V)^2 = [v sum_s' (V(s') - p V)^2 + u N Var_p V] / N^2 and
    sd(r)^2 = [v' ((1-r)^2 + r^2) + u' N' r (1-r)] / N'^2; N and N' are the weighted numbers of
    moves and rewards at (s, a), v and v' the variances of the noise in one of their cells, u and u'
    the weights of the visits behind them. A terminal state, which has no pairs, pays
    ``end_reward`` for every step that is left.
    """
    moves, rewards, moves_variance, rewards_variance, moves_unit, rewards_unit = counts
    H, S = Q.shape[0], P.shape[2]
    for s in range(S):
        V[H, s] = 0.0
    for h in range(H - 1, -1, -1):
        g = h if P.shape[0] > 1 else 0
        k = h if R.shape[0] > 1 else 0
        for s in range(S):
            if first[s] == first[s + 1]:
                V[h, s] = (H - h) * end_reward
                continue
            best = -np.inf
            for x in range(first[s], first[s + 1]):
                r = R[k, x]
                total = rewards[k, x, 0] + rewards[k, x, 1]
                value = UNKNOWN
                if total > LEAST_TOTAL:
                    spread = ((1.0 - r) ** 2 + r * r) * rewards_variance[k, x]
                    spread += r * (1.0 - r) * rewards_unit[k, x] * total
                    value = r + z * np.sqrt(spread) / total
                if h < H - 1:
                    total = 0.0
                    mean = 0.0
                    for n in range(S):
                        total += moves[g, x, n]
                        mean += P[g, x, n] * V[h + 1, n]
                    if total > LEAST_TOTAL:
                        squares = 0.0
                        variance = 0.0
                        for n in range(S):
                            off = (V[h + 1, n] - mean) ** 2
                            squares += off
                            variance += P[g, x, n] * off
                        spread = moves_variance[g, x] * squares
                        spread += moves_unit[g, x] * total * variance
                        value += mean + z * np.sqrt(spread) / total
                    else:
                        value = UNKNOWN
                Q[h, x] = value
                best = max(best, value)
            V[h, s] = min(best, float(H - h))


EVEN_SHARE = 0.1
"""Share of the questions that is spread over all steps whatever the prediction. Not measured:
others."""

USUAL_REWARD_VARIANCE = 0.1
"""Variance of a reward around its mean, where it is not known: at most 1/4, often nothing."""


@kernel
def remaining_variance(total: float, noise: float) -> float:
    """What is left of the prior variance 1/4 of a chance after a count of that total and noise."""
    noise += 1e-12
    return OWN_VARIANCE * noise / (noise + OWN_VARIANCE * total * total)


@kernel
def stakes(
    counts: NoisyCounts,
    f: Array,
    number: IntArray,
    rows: Rows,
    P: Array,
    V: Array,
    policy: IntArray,
    at_moves: Array,
    at_rewards: Array,
) -> None:
    """Squared error of the plan's value that may come from each pair: [G, X], [G', X].

    A reward matters as often as it is met, f_h(s); a next-state law in proportion to the spread of
    the values it leads to, over the next states that are listed. About a terminal state nothing is
    left to learn.
    """
    begin, end, succ = rows
    moves, rewards, moves_variance, rewards_variance, moves_unit, rewards_unit = counts
    H, S = policy.shape
    at_moves[:] = 0.0
    at_rewards[:] = 0.0
    for h in range(H):
        g = h if at_moves.shape[0] > 1 else 0
        r = h if at_rewards.shape[0] > 1 else 0
        for s in range(S):
            x = number[s, policy[h, s]]
            if x < 0:
                continue
            at_rewards[r, x] += f[h, s]
            if h < H - 1 and f[h, s] > 0.0:
                low, high = np.uint64(begin[g, x]), np.uint64(end[g, x])
                mean = 0.0
                for i in range(low, high):
                    mean += P[i] * V[h + 1, succ[i]]
                spread = 0.0
                for i in range(low, high):
                    spread += (V[h + 1, succ[i]] - mean) ** 2
                at_moves[g, x] += f[h, s] * np.sqrt(spread)
    for x in range(moves.shape[1]):
        for g in range(at_moves.shape[0]):
            total = 0.0
            for i in range(np.uint64(begin[g, x]), np.uint64(end[g, x])):
                total += moves[g, x, succ[i]]
            total = max(total, 0.0)
            noise = moves_variance[g, x] + moves_unit[g, x] * total / (end[g, x] - begin[g, x])
            at_moves[g, x] = (at_moves[g, x] * remaining_variance(total, noise)) ** 2
        for g in range(at_rewards.shape[0]):
            total = max(rewards[g, x, 0] + rewards[g, x, 1], 0.0)
            noise = rewards_variance[g, x] + USUAL_REWARD_VARIANCE * rewards_unit[g, x] * total
            at_rewards[g, x] = (at_rewards[g, x] * remaining_variance(total, noise)) ** 2


@kernel
def share_questions(
    at_moves: Array,
    at_rewards: Array,
    f: Array,
    number: IntArray,
    policy: IntArray,
    weighing: Weighing,
    asked: Array,
) -> None:
    """Overwrite ``asked`` [3 H] with cumulative shares in proportion to what a question teaches.

    A question about step h tells of state s with precision f^2 / (f / 4 + v) per user, v being the
    noise of its kind. A tenth goes to all steps alike, to the best kind of each; where some states
    are terminal, to each step as far as it is predicted to be lived.
    """
    H, S = policy.shape
    total = 0.0
    lived = 0.0
    ends = False
    for s in range(S):
        ends = ends or number[s, policy[0, s]] < 0
    for h in range(H):
        for s in range(S):
            lived += f[h, s] if number[s, policy[h, s]] >= 0 else 0.0
        g = h if at_moves.shape[0] > 1 else 0
        r = h if at_rewards.shape[0] > 1 else 0
        for kind in range(KINDS):
            gain = 0.0
            if h < H - 1 or kind == REWARD:
                for s in range(S):
                    d = f[h, s]
                    x = number[s, policy[h, s]]
                    if x < 0:
                        continue
                    own = 0 if kind == STEP else 1
                    if kind != REWARD:
                        variance = OWN_VARIANCE * d + weighing.moves[own]
                        gain += d * d * at_moves[g, x] / variance
                    if kind != MOVE:
                        variance = OWN_VARIANCE * d + weighing.rewards[own]
                        gain += d * d * at_rewards[r, x] / variance
            asked[KINDS * h + kind] = gain
            total += gain
    sum_so_far = 0.0
    for h in range(H):
        best = REWARD if h == H - 1 else STEP
        for kind in range(KINDS):
            if asked[KINDS * h + kind] > asked[KINDS * h + best]:
                best = kind
        spread = EVEN_SHARE if total > 0.0 else 1.0
        turn = spread / H
        if ends and lived > 0.0:
            turn = 0.0
            for s in range(S):
                turn += spread * f[h, s] / lived if number[s, policy[h, s]] >= 0 else 0.0
        for kind in range(KINDS):
            share = asked[KINDS * h + kind] * (1.0 - EVEN_SHARE) / total if total > 0.0 else 0.0
            if kind == best:
                share += turn
            sum_so_far += share
            asked[KINDS * h + kind] = sum_so_far
