"""The compiled loop of value-targeted regression: exact or locally randomized sums.

It follows ``driver.drive``: close a batch (noise, sums, release), plan, publish, serve users. Noise
of a batch of n users is drawn once with standard deviation sqrt(n), its exact law; with n = 1 the
loop equals the driver bit by bit. Planning reads ``Public`` only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.kernels import kernel
from tacit.kernels.mixture import Regression, Widths, Work, value_targeted_induction
from tacit.kernels.planning import greedy
from tacit.kernels.rollout import Truth, rollout
from tacit.kernels.targets import TargetFeatures, TargetScales, add_value_targets
from tacit.kernels.widths import fill_tight, printed_terms, stage_noise
from tacit.simulation.loops import Score, record, rescore


class Raw(NamedTuple):
    """What planning may not see: one trajectory, the open batch, the sums."""

    states: IntArray
    actions: IntArray
    rewards: Array
    batch: IntArray
    gram: IntArray  # views of batch
    target: IntArray
    reward_gram: IntArray
    reward_target: IntArray
    sums: IntArray
    values: Array
    x: Array


class Family(NamedTuple):
    """How the widths of one family follow from its noise: tight roots, or printed constants."""

    root: float
    reach: float
    theta: float
    d: int
    printed_theta: float
    most: float
    span: float


class Rule(NamedTuple):
    """Public constants of the run. ``noise_std`` 0 stands for exact sums."""

    noise_std: float
    step: float  # of the grid
    least: float  # weights are raised to it
    public: bool
    floor: float  # least share of the declared reach
    every: int
    printed: bool
    alpha: float
    p: Family
    r: Family


class Public(NamedTuple):
    """What planning may see: the release, the sum of squared weights, the published values."""

    release: Array
    transitions: Regression
    rewards: Regression
    p_widths: Widths
    r_widths: Widths
    spread: Array  # [4, H] of gram, target, reward gram, reward target
    noise: Array  # [2, H] work space
    known_reward: Array
    caps: Array
    weights: Array  # no rows
    Q: Array
    V: Array
    reach: Array  # [2, H-1], published
    clip: Array  # [2, H-1], what users clip to
    policy: IntArray
    clock: IntArray  # users in the open batch, users in all closed ones


@kernel
def close_batch(
    rule: Rule,
    sizes: tuple[int, int, int, int],
    raw: Raw,
    public: Public,
    declared: Array,
    rng: np.random.Generator,
) -> None:
    """Randomize the batch, add it to the sums, release them."""
    users = public.clock[0]
    H = public.V.shape[0] - 1
    at = 0
    for family in range(4):
        stages = H - 1 if family < 2 else H
        for h in range(stages):
            weight = 1.0
            if family < 2 and rule.public:
                share = public.clip[0, h] / declared[0, h]
                other = share if family == 0 else public.clip[1, h] / declared[1, h]
                weight = max(share * other, rule.least)
            cells = sizes[family]
            for _ in range(cells):
                message = raw.batch[at]
                if rule.noise_std > 0.0:
                    scale = rule.noise_std / rule.step * weight
                    scale = math.sqrt(users) * scale
                    message += np.int64(np.rint(scale * rng.standard_normal()))
                raw.sums[at] += message
                raw.batch[at] = 0
                public.release[at] = raw.sums[at] * rule.step
                at += 1
            if cells > 0:
                public.spread[family, h] += users * (weight * weight)
    public.clock[1] += users
    public.clock[0] = 0


@kernel
def update_widths(rule: Rule, public: Public) -> None:
    """Widths of the newest release."""
    transitions, rewards = public.transitions, public.rewards
    H = public.V.shape[0] - 1
    for family in range(2):
        widths = public.p_widths if family == 0 else public.r_widths
        constants = rule.p if family == 0 else rule.r
        if rule.printed:
            shift, radius = printed_terms(
                public.clock[1],
                rule.noise_std,
                constants.d,
                constants.printed_theta,
                constants.most,
                H,
                rule.alpha,
            )
            for h in range(widths.shift.shape[0]):
                widths.shift[h] = shift
                widths.fixed[h] = constants.span * radius
        else:
            regression = transitions if family == 0 else rewards
            stages = widths.shift.shape[0]
            gram = public.noise[0, :stages]
            target = public.noise[1, :stages]
            spread = public.spread
            stage_noise(rule.noise_std, spread[2 * family], regression.gram_factor, gram)
            stage_noise(rule.noise_std, spread[2 * family + 1], regression.target_factor, target)
            fill_tight(
                gram,
                target,
                constants.root,
                constants.reach,
                constants.theta,
                widths.ridge,
                widths.shift,
                widths.fixed,
                widths.direct,
            )


@kernel
def value_targeted_episodes(
    truth: Truth,
    uniforms: Array,
    rule: Rule,
    sizes: tuple[int, int, int, int],
    features: TargetFeatures,
    scales: TargetScales,
    declared: Array,
    p_work: Work,
    r_work: Work,
    ties: np.random.Generator,
    rng: np.random.Generator,
    raw: Raw,
    public: Public,
    values: Array,
    score: Score,
) -> None:
    """One episode per row of ``uniforms``, a new plan after every ``rule.every`` of them."""
    optimum, now, at, checkpoints, regret_curve, reward_curve = score
    policy, clock = public.policy, public.clock
    for row in range(uniforms.shape[0]):
        if clock[0] == rule.every or at[0] == 0:
            if at[0] > 0:
                close_batch(rule, sizes, raw, public, declared, rng)
            update_widths(rule, public)
            value_targeted_induction(
                public.transitions,
                public.p_widths,
                features.phi,
                features.block,
                public.rewards,
                public.r_widths,
                features.varphi,
                features.r_block,
                features.offset,
                public.known_reward,
                public.caps,
                features.centre,
                False,
                public.weights,
                p_work,
                r_work,
                public.Q,
                public.V,
                public.reach,
            )
            for part in range(2):
                for h in range(public.reach.shape[1]):
                    most = declared[part, h]
                    reach = public.reach[part, h] if rule.public else most
                    public.clip[part, h] = min(max(reach, rule.floor * most), most)
            if greedy(public.Q, ties, policy) or at[0] == 0:
                rescore(truth, policy, optimum, values, now)
        reward = rollout(truth, policy, uniforms[row], raw.states, raw.actions, raw.rewards)
        add_value_targets(
            raw.states,
            raw.actions,
            raw.rewards,
            public.V,
            public.clip,
            features,
            scales,
            raw.values,
            raw.x,
            raw.gram,
            raw.target,
            raw.reward_gram,
            raw.reward_target,
        )
        clock[0] += 1
        record(reward, now, at, checkpoints, regret_curve, reward_curve)
