"""Compiled episode loops for agents that plan after every user; they only call kernels.

Each loop follows ``driver.drive`` step by step: plan from the release, score the policy, serve one
user, absorb the report, release. The raw sums and the release are separate buffers: planning reads
``Public`` only, and only ``sums.scale`` writes there. The loops take their arrays out of the tuples
before the first episode: doing it inside costs twice the time of a whole episode at S = A = H = 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.counts import count_visits
from tacit.kernels.planning import (
    backward_induction,
    greedy,
    optimistic_model,
    policy_values,
    start_value,
)
from tacit.kernels.posterior import Prior, sample_model
from tacit.kernels.rollout import Truth, rollout, rollout_stochastic
from tacit.kernels.sums import absorb, scale


class Blocks(NamedTuple):
    """Views of one flat count vector (contribution or release), by block."""

    reward: Array
    reward_squares: Array
    visits: Array
    transitions: Array


class IntBlocks(NamedTuple):
    """The same for integer vectors."""

    reward: IntArray
    reward_squares: IntArray
    visits: IntArray
    transitions: IntArray


class Raw(NamedTuple):
    """What planning may not see: one trajectory, its contribution, the exact sums."""

    states: IntArray
    actions: IntArray
    rewards: Array
    contribution: IntArray
    blocks: IntBlocks
    sums: IntArray


class Public(NamedTuple):
    """What planning may see: the release, in natural units."""

    units: Array
    release: Array
    blocks: Blocks
    known_reward: Array


class Plan(NamedTuple):
    """Work space of the planner; ``actions`` is the published policy."""

    P: Array
    R: Array
    Q: Array
    V: Array
    actions: IntArray


class Score(NamedTuple):
    """Exact regret so far, and where it is written down.

    ``now`` holds (regret per episode of the current policy, cumulative regret, cumulative reward),
    ``at`` the number of episodes done and of checkpoints passed.
    """

    optimum: float
    now: Array
    at: IntArray
    checkpoints: IntArray
    regret: Array
    reward: Array


@kernel
def record(
    reward: float,
    now: Array,
    at: IntArray,
    checkpoints: IntArray,
    regret_curve: Array,
    reward_curve: Array,
) -> None:
    """Add one episode to the score (its fields), and write it down if this is a checkpoint."""
    now[1] += now[0]
    now[2] += reward
    at[0] += 1
    c = at[1]
    if c < checkpoints.shape[0] and checkpoints[c] == at[0]:
        regret_curve[c] = now[1]
        reward_curve[c] = now[2]
        at[1] = c + 1


@kernel
def rescore(truth: Truth, policy: IntArray, optimum: float, values: Array, now: Array) -> None:
    """Exact regret per episode of a new policy; ``values`` [H+1, S] is work space."""
    policy_values(truth.transitions, truth.rewards, policy, values)
    now[0] = optimum - start_value(truth.initial, values)


@kernel
def ucb_vi_episodes(
    truth: Truth,
    uniforms: Array,
    width: float,
    ties: np.random.Generator,
    raw: Raw,
    public: Public,
    plan: Plan,
    values: Array,
    score: Score,
) -> None:
    """One episode of UCB-VI per row of ``uniforms``; ``plan.Q`` carries over."""
    states, actions, rewards, contribution, (c_reward, c_squares, c_visits, c_next), sums = raw
    units, release, (r_reward, _, r_visits, r_next), known_reward = public
    P, R, Q, V, policy = plan
    optimum, now, at, checkpoints, regret_curve, reward_curve = score
    H = policy.shape[0]
    for row in range(uniforms.shape[0]):
        optimistic_model(r_reward, r_visits, r_next, known_reward, width, P, R)
        backward_induction(P, R, Q, V)
        if greedy(Q, ties, policy) or at[0] == 0:
            rescore(truth, policy, optimum, values, now)
        reward = rollout(truth, policy, uniforms[row], states, actions, rewards)
        count_visits(states, actions, rewards, H, c_reward, c_squares, c_visits, c_next)
        absorb(sums, contribution)
        scale(sums, units, release)
        record(reward, now, at, checkpoints, regret_curve, reward_curve)


@kernel
def psrl_episodes(
    truth: Truth,
    uniforms: Array,
    prior: Prior,
    ties: np.random.Generator,
    posterior: np.random.Generator,
    raw: Raw,
    public: Public,
    plan: Plan,
    values: Array,
    score: Score,
) -> None:
    """One episode of PSRL per row of ``uniforms``."""
    states, actions, rewards, contribution, (c_reward, c_squares, c_visits, c_next), sums = raw
    units, release, (r_reward, r_squares, r_visits, r_next), known_reward = public
    P, R, Q, V, policy = plan
    optimum, now, at, checkpoints, regret_curve, reward_curve = score
    H = policy.shape[0]
    for row in range(uniforms.shape[0]):
        sample_model(r_reward, r_squares, r_visits, r_next, known_reward, prior, posterior, P, R)
        Q[:] = np.inf
        backward_induction(P, R, Q, V)
        if greedy(Q, ties, policy) or at[0] == 0:
            rescore(truth, policy, optimum, values, now)
        reward = rollout(truth, policy, uniforms[row], states, actions, rewards)
        count_visits(states, actions, rewards, H, c_reward, c_squares, c_visits, c_next)
        absorb(sums, contribution)
        scale(sums, units, release)
        record(reward, now, at, checkpoints, regret_curve, reward_curve)


@kernel
def fixed_episodes(
    truth: Truth,
    uniforms: Array,
    policy_cdf: Array,
    states: IntArray,
    actions: IntArray,
    rewards: Array,
    score: Score,
) -> None:
    """One episode of a policy that never changes per row of ``uniforms``; nothing is collected."""
    _, now, at, checkpoints, regret_curve, reward_curve = score
    for row in range(uniforms.shape[0]):
        reward = rollout_stochastic(truth, policy_cdf, uniforms[row], states, actions, rewards)
        record(reward, now, at, checkpoints, regret_curve, reward_curve)
