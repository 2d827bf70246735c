"""Compiled episode loops for agents that plan after every user; they only call kernels.

Each loop follows ``driver.drive`` step by step: plan from the release, score the policy, serve one
user, absorb the report, release. The raw sums and the release are separate buffers: planning reads
``release`` and its views only, and only ``sums.scale`` writes there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.counts import count_visits
from tacit.kernels.optimism import optimistic_model
from tacit.kernels.planning import backward_induction, greedy, policy_values, start_value
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
def record(score: Score, reward: float) -> None:
    """Add one episode to the score, and write it down if this is a checkpoint."""
    score.now[1] += score.now[0]
    score.now[2] += reward
    score.at[0] += 1
    c = score.at[1]
    if c < score.checkpoints.shape[0] and score.checkpoints[c] == score.at[0]:
        score.regret[c] = score.now[1]
        score.reward[c] = score.now[2]
        score.at[1] = c + 1


@kernel
def rescore(truth: Truth, actions: IntArray, values: Array, score: Score) -> None:
    """Exact regret per episode of a new policy; ``values`` [H+1, S] is work space."""
    policy_values(truth.transitions, truth.rewards, actions, values)
    score.now[0] = score.optimum - start_value(truth.initial, values)


@kernel
def serve(truth: Truth, actions: IntArray, u: Array, raw: Raw, public: Public) -> float:
    """One user: trajectory, contribution, sums, release. Returns the user's total reward."""
    reward = rollout(truth, actions, u, raw.states, raw.actions, raw.rewards)
    blocks = raw.blocks
    count_visits(
        raw.states,
        raw.actions,
        raw.rewards,
        actions.shape[0],
        blocks.reward,
        blocks.reward_squares,
        blocks.visits,
        blocks.transitions,
    )
    absorb(raw.sums, raw.contribution)
    scale(raw.sums, public.units, public.release)
    return reward


@kernel
def plan_ucb_vi(public: Public, width: float, ties: np.random.Generator, plan: Plan) -> bool:
    """The planner of UCB-VI; tells whether the policy changed. ``plan.Q`` carries over."""
    blocks = public.blocks
    optimistic_model(
        blocks.reward, blocks.visits, blocks.transitions, public.known_reward, width, plan.P, plan.R
    )
    backward_induction(plan.P, plan.R, plan.Q, plan.V)
    return greedy(plan.Q, ties, plan.actions)


@kernel
def plan_psrl(
    public: Public,
    prior: Prior,
    ties: np.random.Generator,
    posterior: np.random.Generator,
    plan: Plan,
) -> bool:
    """The planner of PSRL; tells whether the policy changed."""
    blocks = public.blocks
    sample_model(
        blocks.reward,
        blocks.reward_squares,
        blocks.visits,
        blocks.transitions,
        public.known_reward,
        prior,
        posterior,
        plan.P,
        plan.R,
    )
    plan.Q[:] = np.inf
    backward_induction(plan.P, plan.R, plan.Q, plan.V)
    return greedy(plan.Q, ties, plan.actions)


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
    """One episode of UCB-VI per row of ``uniforms``."""
    for row in range(uniforms.shape[0]):
        changed = plan_ucb_vi(public, width, ties, plan)
        if changed or score.at[0] == 0:
            rescore(truth, plan.actions, values, score)
        record(score, serve(truth, plan.actions, uniforms[row], raw, public))


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
    for row in range(uniforms.shape[0]):
        changed = plan_psrl(public, prior, ties, posterior, plan)
        if changed or score.at[0] == 0:
            rescore(truth, plan.actions, values, score)
        record(score, serve(truth, plan.actions, uniforms[row], raw, public))


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
    for row in range(uniforms.shape[0]):
        record(
            score, rollout_stochastic(truth, policy_cdf, uniforms[row], states, actions, rewards)
        )
