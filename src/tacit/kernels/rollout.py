"""One user's episode in the true problem, from a row of uniform numbers.

An episode uses exactly 1 + 3 H uniforms, whatever happens in it: one for the start state, then for
every step one for the action (used by stochastic policies only), one for the reward, one for the
next state. So two agents run on the same stream meet the same luck (common random numbers).
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.draws import draw


class Truth(NamedTuple):
    """The secret arrays of a tabular problem, as rollouts and scoring read them.

    Cumulative distributions (``*_cdf``) end in exactly 1, so that a uniform below 1 always finds a
    state of positive probability.
    """

    transitions: Array  # P [G, S, A, S]
    transitions_cdf: Array
    rewards: Array  # mean rewards [G', S, A]
    bernoulli: bool  # rewards are 0 or 1 with that mean; otherwise the mean itself
    initial: Array  # start law rho [S]
    initial_cdf: Array


def uniforms_per_episode(horizon: int) -> int:
    """Length of the row of uniforms that one episode uses."""
    return 1 + 3 * horizon


@kernel
def draw_reward(truth: Truth, h: int, s: int, a: int, u: float) -> float:
    """Reward of one step."""
    mean = truth.rewards[h if truth.rewards.shape[0] > 1 else 0, s, a]
    if truth.bernoulli:
        return 1.0 if u < mean else 0.0
    return float(mean)


@kernel
def draw_next(truth: Truth, h: int, s: int, a: int, u: float) -> int:
    """Next state of one step."""
    g = h if truth.transitions_cdf.shape[0] > 1 else 0
    return draw(truth.transitions_cdf[g, s, a], u)


@kernel
def rollout(
    truth: Truth, policy: IntArray, u: Array, states: IntArray, actions: IntArray, rewards: Array
) -> float:
    """Play the deterministic policy [H, S]; fill states [H+1], actions [H], rewards [H].

    Returns:
        The sum of the rewards.
    """
    H = policy.shape[0]
    total = 0.0
    states[0] = draw(truth.initial_cdf, u[0])
    for h in range(H):
        s = states[h]
        a = policy[h, s]
        actions[h] = a
        rewards[h] = draw_reward(truth, h, s, a, u[3 * h + 2])
        states[h + 1] = draw_next(truth, h, s, a, u[3 * h + 3])
        total += rewards[h]
    return total


@kernel
def rollout_stochastic(
    truth: Truth, policy_cdf: Array, u: Array, states: IntArray, actions: IntArray, rewards: Array
) -> float:
    """The same for a stochastic policy given by cumulative action probabilities [H, S, A]."""
    H = policy_cdf.shape[0]
    total = 0.0
    states[0] = draw(truth.initial_cdf, u[0])
    for h in range(H):
        s = states[h]
        a = draw(policy_cdf[h, s], u[3 * h + 1])
        actions[h] = a
        rewards[h] = draw_reward(truth, h, s, a, u[3 * h + 2])
        states[h + 1] = draw_next(truth, h, s, a, u[3 * h + 3])
        total += rewards[h]
    return total
