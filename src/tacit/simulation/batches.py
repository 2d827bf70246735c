"""Users who act on one policy, simulated together: one-cell reports summed in their exact law.

The loop follows ``driver.drive``, but the reports of a batch are not drawn one by one: how many of
its users sit in each cell is counted, and the sum of their reports is drawn from its joint law
(``kernels.finite``). So a run equals a stepwise run in law, not bit by bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.cells import (
    CellEstimates,
    CellSums,
    Chances,
    add_hits,
    cell_index,
    estimate_cells,
    step_reward,
)
from tacit.kernels.counts import REWARD_STEPS
from tacit.kernels.directional import directional_induction, directional_z, mean_model
from tacit.kernels.finite import sum_bits, sum_subsets
from tacit.kernels.noisy_posterior import matched_weights, sample_noisy_model
from tacit.kernels.planning import backward_induction, greedy
from tacit.kernels.rollout import Truth, rollout
from tacit.simulation.loops import Score, rescore


class Sampler(NamedTuple):
    """An oracle as its kernels take it: ``size`` 0 stands for unary encoding."""

    domain: int
    size: int
    blanket: float
    chances: Chances


class Batch(NamedTuple):
    """What is public about the batch, and the raw counts of its users by step and cell.

    ``clock`` holds the number of users still to be served by this policy, and its version.
    """

    policy: IntArray
    weights: IntArray
    clock: IntArray
    counts: IntArray
    users: IntArray


class Schedule(NamedTuple):
    """Batch sizes, as ``CappedBatches`` computes them."""

    least: int
    most: int
    share: float


class Explore(NamedTuple):
    """How the next policy is found: by posterior sampling, or optimistically."""

    optimistic: bool
    bonus_scale: float
    beta: float
    pooled: bool
    floor: float


class Work(NamedTuple):
    """Work space of the planner, and of one trajectory."""

    P: Array
    R: Array
    N: Array
    Q: Array
    V: Array
    y: Array
    f: Array
    values: Array
    states: IntArray
    actions: IntArray
    rewards: Array
    hits: IntArray


@kernel
def next_batch(schedule: Schedule, served: int) -> int:
    """Size of the batch that begins after that many users."""
    return max(schedule.least, min(int(schedule.share * served), schedule.most))


@kernel
def close_batch(
    step: Sampler,
    end: Sampler,
    batch: Batch,
    sums: CellSums,
    rng: np.random.Generator,
    row: IntArray,
) -> None:
    """Draw the summed reports of the batch, step by step, and add them up."""
    policy, weights, _, counts, users = batch
    H = policy.shape[0]
    for h in range(H):
        n = users[h]
        if n == 0:
            continue
        oracle = end if h == H - 1 else step
        held = counts[h, : oracle.domain]
        hits = row[: oracle.domain]
        if oracle.size > 0:
            sum_subsets(held, oracle.size, oracle.blanket, rng, hits)
        else:
            sum_bits(held, n, oracle.chances.p, oracle.chances.q, rng, hits)
        add_hits(hits, n, h, policy, weights, sums)
        held[:] = 0
        users[h] = 0


@kernel
def plan_batch(
    estimates: CellEstimates,
    users: float,
    explore: Explore,
    ties: np.random.Generator,
    posterior: np.random.Generator,
    work: Work,
    batch: Batch,
) -> None:
    """The steps of ``NoisyPosteriorPlanner``, or of ``DirectionalPlanner``."""
    transitions, last, variance, last_variance, first = estimates
    P, R, N, Q, V = work.P, work.R, work.N, work.Q, work.V
    H, S, A = Q.shape
    pooled = explore.pooled
    if explore.optimistic:
        z = directional_z(explore.bonus_scale, explore.beta, (H, S, A), batch.clock[1])
        mean_model(transitions, last, pooled, P, R, N)
        directional_induction(transitions, variance, last_variance, pooled, z, P, R, N, Q, V)
    else:
        sample_noisy_model(
            transitions, last, variance, last_variance, pooled, posterior, work.y, P, R
        )
        Q[:] = np.inf
        backward_induction(P, R, Q, V)
    greedy(Q, ties, batch.policy)
    matched_weights(first, users, P, batch.policy, explore.floor, work.f, batch.weights)


@kernel
def one_cell_episodes(
    truth: Truth,
    uniforms: Array,
    step: Sampler,
    end: Sampler,
    schedule: Schedule,
    drawn: bool,
    explore: Explore,
    ties: np.random.Generator,
    posterior: np.random.Generator,
    rng: np.random.Generator,
    batch: Batch,
    sums: CellSums,
    estimates: CellEstimates,
    work: Work,
    score: Score,
) -> None:
    """One episode of ``tacit-local`` per row of ``uniforms``; a batch may span several calls.

    Users report about all steps in turn, or each about one it draws.
    """
    policy, _, clock, counts, users = batch
    states, actions, rewards = work.states, work.actions, work.rewards
    optimum, now, at, checkpoints, regret_curve, reward_curve = score
    H, S = policy.shape
    gap, regret, earned = now
    done, passed = at
    left = clock[0]
    h = done % H
    for row in range(uniforms.shape[0]):
        if left == 0:
            if done == 0:
                work.Q[:] = 0.0
                greedy(work.Q, ties, policy)
            else:
                close_batch(step, end, batch, sums, rng, work.hits)
                estimate_cells(sums, step.chances, end.chances, H == 1, estimates)
                reporters = float(sums.first_users[0])
                clock[1] += 1
                plan_batch(estimates, reporters, explore, ties, posterior, work, batch)
            rescore(truth, policy, optimum, work.values, now)
            gap = now[0]
            left = next_batch(schedule, done)
        earned += rollout(truth, policy, uniforms[row], states, actions, rewards)
        if drawn:
            h = int(rng.random() * H)
        share = step_reward(rewards, h)
        rho = 1 if share == REWARD_STEPS else 0
        if 0 < share < REWARD_STEPS:
            rho = 1 if rng.random() * REWARD_STEPS < share else 0
        counts[h, cell_index(states[h], rho, states[h + 1], S, h == H - 1)] += 1
        users[h] += 1
        h = h + 1 if h < H - 1 else 0
        left -= 1
        regret += gap
        done += 1
        if passed < checkpoints.shape[0] and checkpoints[passed] == done:
            regret_curve[passed] = regret
            reward_curve[passed] = earned
            passed += 1
    now[1], now[2] = regret, earned
    at[0], at[1] = done, passed
    clock[0] = left
