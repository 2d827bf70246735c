"""The fused loop of value-targeted regression: exact or locally randomized sums.

It follows ``driver.drive``: close a batch (noise, sums, release), plan, publish, serve users. Noise
of a batch of n users is drawn once with standard deviation sqrt(n), its exact law; with n = 1, or
without noise, the loop equals the driver bit by bit. Planning reads ``PublicTargets`` only.

Why it is fused: MEASURED
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent, Every
from tacit.features import known_rewards, pairs, value_caps
from tacit.kernels import kernel
from tacit.kernels.mixture import Regression, Widths, Work, value_targeted_induction, work_space
from tacit.kernels.planning import greedy
from tacit.kernels.rollout import Truth, rollout
from tacit.kernels.targets import STEPS, TargetFeatures, TargetScales, add_value_targets
from tacit.kernels.widths import fill_tight, printed_terms, stage_noise
from tacit.planners.targeted import ValueTargetedPlanner
from tacit.planners.widths import PrintedLocal, TightWidths, block_theta, reaches
from tacit.privacy import Exact
from tacit.privacy.local import LocalShaped
from tacit.problems.tabular import TabularMDP
from tacit.simulation.runs import FusedRun
from tacit.simulation.score import Score, record, rescore
from tacit.statistics.targets import FAMILIES, LEAST_SHARE, ValueTargets


class RawTargets(NamedTuple):
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


class Terms(NamedTuple):
    """PublicTargets constants of the run. ``noise_std`` 0 stands for exact sums."""

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


class PublicTargets(NamedTuple):
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
    rule: Terms,
    sizes: tuple[int, int, int, int],
    raw: RawTargets,
    public: PublicTargets,
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
def update_widths(rule: Terms, public: PublicTargets) -> None:
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
    rule: Terms,
    sizes: tuple[int, int, int, int],
    features: TargetFeatures,
    scales: TargetScales,
    declared: Array,
    p_work: Work,
    r_work: Work,
    ties: np.random.Generator,
    rng: np.random.Generator,
    raw: RawTargets,
    public: PublicTargets,
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
        reward = rollout(
            truth, policy, uniforms[row], raw.states[0], raw.actions[0], raw.rewards[0]
        )
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


class ValueTargetedRun(FusedRun):
    """UCRL-VTR, LinOpt-VI and their locally private forms."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        statistic, planner = agent.statistic, agent.planner
        assert isinstance(statistic, ValueTargets) and isinstance(planner, ValueTargetedPlanner)
        H, S, A = pairs(agent.task)
        self._statistic = statistic
        self._declared = np.stack([statistic.longest, statistic.highest])
        p, r = statistic.transitions, statistic.rewards
        self._work = work_space(S * A, p.blocks, p.width), work_space(S * A, r.blocks, r.width)
        self._values = np.zeros((H + 1, S))
        self.rule = _rule(agent, statistic, planner)
        self.raw, self.public = _buffers(agent, statistic, planner)
        shapes = {block.name: block.shape for block in statistic.layout.blocks}
        sizes = [int(np.prod(shapes[name][1:])) if name in shapes else 0 for name in FAMILIES]
        self._sizes = (sizes[0], sizes[1], sizes[2], sizes[3])

    def _episodes(self, uniforms: Array) -> None:
        value_targeted_episodes(
            self.problem.truth,
            uniforms,
            self.rule,
            self._sizes,
            self._statistic.features,
            self._statistic.scales,
            self._declared,
            *self._work,
            self.streams.ties,
            self._noise,
            self.raw,
            self.public,
            self._values,
            self.score,
        )


def _rule(agent: BoundAgent, statistic: ValueTargets, planner: ValueTargetedPlanner) -> Terms:
    task, rule, privatizer = agent.task, planner.rule, agent.privatizer
    p, r = statistic.transitions, statistic.rewards
    assert isinstance(agent.schedule, Every)
    most = float(value_caps(task)[0])
    families = []
    for f, span, top in ((p, 1.0, most), (r, r.span, 1.0)):
        roots = (0.0, 0.0)
        if isinstance(rule, TightWidths):
            roots = rule.roots(task, f.width, f.blocks)
        families.append(
            Family(*roots, block_theta(f), f.dimension, f.theta_norm / span, top, float(span))
        )
    noisy = isinstance(privatizer, LocalShaped)
    return Terms(
        noise_std=privatizer.noise_std if isinstance(privatizer, LocalShaped) else 0.0,
        step=1.0 / STEPS,
        least=privatizer.least if isinstance(privatizer, LocalShaped) else 0.0,
        public=statistic.shape.public and noisy,
        floor=LEAST_SHARE**0.5,
        every=int(agent.schedule.users),
        printed=isinstance(rule, PrintedLocal),
        alpha=float(rule.beta) if isinstance(rule, PrintedLocal) else 1.0,
        p=families[0],
        r=families[1],
    )


def _buffers(
    agent: BoundAgent, statistic: ValueTargets, planner: ValueTargetedPlanner
) -> tuple[RawTargets, PublicTargets]:
    task, layout = agent.task, statistic.layout
    H, S, A = pairs(task)
    p, r = statistic.transitions, statistic.rewards
    batch, release = np.zeros(layout.size, dtype=np.int64), np.zeros(layout.size)
    sent, seen = layout.views(batch), layout.views(release)
    none, no_rewards = np.zeros((0, 1, 1), dtype=np.int64), np.zeros((0, r.blocks, 1))
    raw = RawTargets(
        np.zeros((1, H + 1), dtype=np.int64),
        np.zeros((1, H), dtype=np.int64),
        np.zeros((1, H)),
        batch,
        sent["gram"],
        sent["target"],
        sent.get("reward_gram", none),
        sent.get("reward_target", none),
        np.zeros(layout.size, dtype=np.int64),
        np.zeros(S),
        np.zeros(p.width),
    )
    u = planner.units
    p_widths, r_widths = _widths(agent, planner)
    public = PublicTargets(
        release,
        Regression(seen["gram"], seen["target"], u.gram, u.target, u.off),
        Regression(
            seen.get("reward_gram", no_rewards),
            seen.get("reward_target", no_rewards),
            u.reward_gram,
            u.reward_target,
            u.off,
        ),
        p_widths,
        r_widths,
        np.zeros((4, H)),
        np.zeros((2, H)),
        known_rewards(task),
        value_caps(task),
        np.zeros((0, S, A)),
        np.zeros((H, S, A)),
        np.zeros((H + 1, S)),
        np.zeros((2, H - 1)),
        np.zeros((2, H - 1)),
        np.zeros((H, S), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    return raw, public


def _widths(agent: BoundAgent, planner: ValueTargetedPlanner) -> tuple[Widths, Widths]:
    """Widths with everything but the noise terms, which the loop fills in."""
    task, p, r, rule = agent.task, planner.transitions, planner.rewards, planner.rule
    p_reach, r_reach = reaches(task, p, r)
    if isinstance(rule, TightWidths):
        return (
            rule.blank(task, p.width, p.blocks, *p_reach),
            rule.blank(task, r.width, r.blocks, *r_reach),
        )
    assert isinstance(rule, PrintedLocal)

    def flat(stages: int) -> Widths:
        zero: Array = np.zeros(stages)
        unbounded = np.full(stages, np.inf)
        return Widths(
            float(rule.bonus_scale),
            1.0,
            zero,
            zero.copy(),
            0.0,
            zero.copy(),
            zero.copy(),
            unbounded,
        )

    return flat(task.horizon - 1), flat(task.horizon)


def knows(agent: BoundAgent) -> bool:
    """Whether the loop has the planner's widths for this noise."""
    assert isinstance(agent.planner, ValueTargetedPlanner)
    rule = type(agent.planner.rule)
    noisy = type(agent.privatizer) is not Exact
    return rule is TightWidths or (rule is PrintedLocal and noisy)
