"""One user's episode in the true problem, from a row of uniform numbers.

An episode uses exactly 1 + 3 H uniforms, whatever happens in it: one for the start state, then for
every step one for the action (used by stochastic policies only), one for the reward, one for the
next state. So two agents run on the same stream meet the same luck (common random numbers).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from tacit.arrays import Array, IndexArray, IntArray, Rows
from tacit.kernels import kernel
from tacit.kernels.sampling import draw, draw_within


class Truth(NamedTuple):
    """The secret arrays of a tabular problem, as rollouts and scoring read them.

    Next states are lists, as ``kernels.public.planning`` describes them. Cumulative distributions
    (``*cdf``) end in exactly 1, so that a uniform below 1 always finds a state of positive
    probability.
    """

    number: IntArray  # of the pair (s, a) [S, A], -1 where there is none
    rows: Rows  # next states of each pair
    P: Array  # their probabilities
    cdf: Array
    rewards: Array  # mean rewards [G', X]
    end_reward: float  # of every step after the end
    bernoulli: bool  # rewards are 0 or 1 with that mean; otherwise the mean itself
    initial: Array  # start law rho [S]
    initial_cdf: Array


def uniforms_per_episode(horizon: int) -> int:
    """Length of the row of uniforms that one episode uses."""
    return 1 + 3 * horizon


@kernel
def cumulate(begin: IntArray, end: IntArray, P: Array, cdf: Array) -> None:
    """Cumulative probabilities of every list of next states, ending in exactly 1."""
    for g in range(begin.shape[0]):
        for x in range(begin.shape[1]):
            total = 0.0
            for i in range(begin[g, x], end[g, x]):
                total += P[i]
                cdf[i] = total
            for i in range(begin[g, x], end[g, x]):
                cdf[i] /= total


@kernel
def reward_of(rewards: Array, bernoulli: bool, h: int, x: int, u: float) -> float:
    """Reward of one step with pair x."""
    mean = rewards[h if rewards.shape[0] > 1 else 0, x]
    if bernoulli:
        return 1.0 if u < mean else 0.0
    return float(mean)


@kernel
def next_of(
    begin: IntArray, end: IntArray, succ: IndexArray, cdf: Array, h: int, x: int, u: float
) -> int:
    """Next state of one step with pair x."""
    g = h if begin.shape[0] > 1 else 0
    return int(succ[draw_within(cdf, begin[g, x], end[g, x], u)])


@kernel
def draw_reward(truth: Truth, h: int, s: int, a: int, u: float) -> float:
    """Reward of one step; that of a step after the end is public and certain."""
    x = truth.number[s, a]
    if x < 0:
        return truth.end_reward
    return reward_of(truth.rewards, truth.bernoulli, h, x, u)


@kernel
def draw_next(truth: Truth, h: int, s: int, a: int, u: float) -> int:
    """Next state of one step; who is in a terminal state stays there."""
    x = truth.number[s, a]
    if x < 0:
        return s
    begin, end, succ = truth.rows
    return next_of(begin, end, succ, truth.cdf, h, x, u)


@kernel
def rollout(
    truth: Truth,
    policy: npt.NDArray[Any],
    u: Array,
    states: IntArray,
    actions: IntArray,
    rewards: Array,
) -> float:
    """Play a policy; fill states [H+1], actions [H], rewards [H].

    It is deterministic [H, S], or given by cumulative action probabilities [H, S, A]: which of them
    is known when the kernel is compiled.

    Returns:
        The sum of the rewards.
    """
    number, (begin, end, succ), _, cdf, means, end_reward, bernoulli, _, initial_cdf = truth
    H = policy.shape[0]
    total = 0.0
    s = draw(initial_cdf, u[0])
    states[0] = s
    for h in range(H):
        if policy.ndim == 2:
            a = policy[h, s]
        else:
            a = draw(policy[h, s], u[3 * h + 1])
        x = number[s, a]
        actions[h] = a
        rewards[h] = end_reward
        if x >= 0:
            rewards[h] = reward_of(means, bernoulli, h, x, u[3 * h + 2])
            s = next_of(begin, end, succ, cdf, h, x, u[3 * h + 3])
        states[h + 1] = s
        total += rewards[h]
    return total
