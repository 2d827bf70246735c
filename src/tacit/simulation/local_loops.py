"""Compiled episode loops of learners whose users randomize their own counts.

As in ``loops``, but what is added up are randomized messages: the exact contribution of a user
ends in ``message``, and only messages reach ``raw.sums`` and the release.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.counts import count_visits
from tacit.kernels.finite import debias, respond, round_sums
from tacit.kernels.noise import add_scaled, fill_bounded, fill_gaussian, fill_laplace
from tacit.kernels.obi import BOUNDED, GAUSSIAN, LAPLACE, RESPONSE, CellNoise, Rule, obi_values
from tacit.kernels.planning import backward_induction, greedy
from tacit.kernels.posterior import Prior, sample_model
from tacit.kernels.rollout import Truth, rollout
from tacit.kernels.sums import absorb, scale
from tacit.simulation.loops import Plan, Public, Raw, Score, record, rescore


class Local(NamedTuple):
    """What a user does to a contribution: additive noise in grid steps, or flips of bits.

    ``scales`` and ``factors`` belong to additive noise, ``steps``, ``ones``, ``trials``, ``keep``
    and ``flip`` to randomized response; ``message`` is what is sent.
    """

    kind: int
    scales: Array
    factors: IntArray
    steps: IntArray
    ones: IntArray
    trials: IntArray
    keep: float
    flip: float
    message: IntArray


@kernel
def fill(kind: int, scales: Array, rng: np.random.Generator, message: IntArray) -> None:
    """Additive noise of that kind."""
    if kind == LAPLACE:
        fill_laplace(scales, rng, message)
    elif kind == GAUSSIAN:
        fill_gaussian(scales, rng, message)
    elif kind == BOUNDED:
        fill_bounded(scales, rng, message)
    else:
        message[:] = 0


@kernel
def obi_episodes(
    truth: Truth,
    uniforms: Array,
    noise: CellNoise,
    rule: Rule,
    local: Local,
    ties: np.random.Generator,
    rng: np.random.Generator,
    raw: Raw,
    public: Public,
    plan: Plan,
    values: Array,
    score: Score,
) -> None:
    """One episode of OBI per row of ``uniforms``, with any local randomizer or none."""
    states, actions, rewards, contribution, (c_reward, c_squares, c_visits, c_next), sums = raw
    units, release, (r_reward, _, r_visits, r_next), _ = public
    _, _, Q, V, policy = plan
    optimum, now, at, checkpoints, regret_curve, reward_curve = score
    kind, scales, factors, steps, ones, trials, keep, flip, message = local
    H = policy.shape[0]
    for row in range(uniforms.shape[0]):
        obi_values(r_reward, r_visits, r_next, noise, at[0], rule, Q, V)
        if greedy(Q, ties, policy) or at[0] == 0:
            rescore(truth, policy, optimum, values, now)
        reward = rollout(truth, policy, uniforms[row], states, actions, rewards)
        count_visits(states, actions, rewards, H, c_reward, c_squares, c_visits, c_next)
        if kind == RESPONSE:
            round_sums(contribution, steps, rng, ones)
            respond(ones, trials, keep, flip, rng, message)
            absorb(sums, message)
            debias(sums, trials, at[0] + 1, keep, flip, release)
        else:
            fill(kind, scales, rng, message)
            add_scaled(contribution, factors, message)
            absorb(sums, message)
            scale(sums, units, release)
        record(reward, now, at, checkpoints, regret_curve, reward_curve)


@kernel
def local_psrl_episodes(
    truth: Truth,
    uniforms: Array,
    prior: Prior,
    local: Local,
    ties: np.random.Generator,
    posterior: np.random.Generator,
    rng: np.random.Generator,
    raw: Raw,
    public: Public,
    plan: Plan,
    values: Array,
    score: Score,
) -> None:
    """One episode of LDP-PSRL per row of ``uniforms``, with additive noise."""
    states, actions, rewards, contribution, (c_reward, c_squares, c_visits, c_next), sums = raw
    units, release, (r_reward, r_squares, r_visits, r_next), known_reward = public
    P, R, Q, V, policy = plan
    optimum, now, at, checkpoints, regret_curve, reward_curve = score
    kind, scales, factors, _, _, _, _, _, message = local
    H = policy.shape[0]
    for row in range(uniforms.shape[0]):
        sample_model(r_reward, r_squares, r_visits, r_next, known_reward, prior, posterior, P, R)
        Q[:] = np.inf
        backward_induction(P, R, Q, V)
        if greedy(Q, ties, policy) or at[0] == 0:
            rescore(truth, policy, optimum, values, now)
        reward = rollout(truth, policy, uniforms[row], states, actions, rewards)
        count_visits(states, actions, rewards, H, c_reward, c_squares, c_visits, c_next)
        fill(kind, scales, rng, message)
        add_scaled(contribution, factors, message)
        absorb(sums, message)
        scale(sums, units, release)
        record(reward, now, at, checkpoints, regret_curve, reward_curve)
