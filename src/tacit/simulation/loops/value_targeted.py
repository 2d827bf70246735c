"""The fused loop of value-targeted regression: exact or locally randomized sums.

It follows ``learner.drive``: close a batch (noise, sums, release), plan, publish, serve users.
Noise of a batch of n users is drawn once with standard deviation sqrt(n), its exact law; with n =
1, or without noise, the loop equals the driver bit by bit. Planning reads ``PublicTargets`` only.

Measured beside the segment run in one process: 9 to 11 times as fast with 18 features where every
user gets a plan, 4 times where every 20th does; with 50 features 1.7 and 1.5 times.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, Arrays, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.public.mixture import FamilyRegression, value_targeted_induction
from tacit.kernels.public.planning import greedy
from tacit.kernels.public.widths import fill_paper, fill_tight, stage_noise
from tacit.kernels.raw.rollout import Truth, rollout
from tacit.kernels.raw.targets import (
    TargetFeatures,
    TargetScales,
    TargetSums,
    add_value_targets,
)
from tacit.learner import BoundAgent, Learner
from tacit.planners.vtr import ValueTargetedPlanner
from tacit.planners.widths import (
    PaperExperiment,
    PaperJoint,
    PaperLocal,
    TightWidths,
    WidthRule,
    block_theta,
)
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Exact, Query, ZeroNoise
from tacit.privacy.local.weighted import LocalWeighted, WeightedSecret
from tacit.publication import Publication
from tacit.schedules import Every
from tacit.simulation.runs.base import FusedRun, LoopStreams
from tacit.simulation.score import Score, record, rescore
from tacit.statistics.targets import FAMILIES, LEAST_SHARE, ValueTargets
from tacit.task.features import known_rewards, value_caps
from tacit.task.pairs import Pairs
from tacit.task.task import table_sizes
from tacit.trajectory import Lives

STEP = 1.0 / STEPS
"""Of the grid."""

LEAST = LEAST_SHARE**0.5
"""Share of the declared reach below which nobody clips."""


CONSTANT, TIGHT, THEOREM, EXPERIMENT = range(4)
"""How widths follow from a release: not at all, or as the planner's rule."""


class RawTargets(NamedTuple):
    """What planning may not see: the open batch, and the sums."""

    batch: IntArray
    sums: IntArray
    blocks: TargetSums  # views of batch


class Family(NamedTuple):
    """How the widths of one family follow from its noise: tight roots, or the paper's constants."""

    root: float
    reach: float
    theta: float
    d: int
    paper_theta: float
    most: float
    span: float


class WidthTerms(NamedTuple):
    """Public constants of the run. ``noise_std`` 0 stands for exact sums."""

    noise_std: float
    least: float  # weights are raised to it
    shaped: bool  # whether noise and clipping follow the published reach
    every: int
    sizes: tuple[int, int, int, int]  # cells of one stage, by family
    rule: int  # CONSTANT, TIGHT, THEOREM or EXPERIMENT
    alpha: float
    p: Family
    r: Family


class PublicTargets(NamedTuple):
    """What planning may see: the release, the sum of squared weights, the published values."""

    release: Array
    transitions: FamilyRegression
    rewards: FamilyRegression
    spread: Array  # [4, H] of gram, target, reward gram, reward target
    known_reward: Array
    caps: Array
    pairs: Pairs
    Q: Array
    V: Array
    reach: Array  # [2, H-1], published
    clip: Array  # [2, H-1], what users clip to
    policy: IntArray
    clock: IntArray  # users in the open batch, users in all closed ones


@kernel
def close_targets(
    terms: WidthTerms,
    features: TargetFeatures,
    raw: RawTargets,
    public: PublicTargets,
    rng: np.random.Generator,
) -> None:
    """Randomize the batch as ``LocalWeighted.absorb_sums``, add it to the sums, release them."""
    users, H, at = public.clock[0], public.V.shape[0] - 1, 0
    for family in range(4):
        for h in range(H - 1 if family < 2 else H):
            weight = 1.0
            if family < 2 and terms.shaped:
                share = public.clip[0, h] / features.longest[h]
                other = share if family == 0 else public.clip[1, h] / features.highest[h]
                weight = max(share * other, terms.least)
            cells = terms.sizes[family]
            for _ in range(cells):
                message = raw.batch[at]
                if terms.noise_std > 0.0:
                    scale = terms.noise_std / STEP * weight
                    scale = math.sqrt(users) * scale
                    message += np.int64(np.rint(scale * rng.standard_normal()))
                raw.sums[at] += message
                raw.batch[at] = 0
                public.release[at] = raw.sums[at] * STEP
                at += 1
            if cells > 0:
                public.spread[family, h] += users * (weight * weight)
    public.clock[1] += users
    public.clock[0] = 0


@kernel
def update_widths(terms: WidthTerms, public: PublicTargets) -> None:
    """Widths of the newest release."""
    std, spread, H = terms.noise_std, public.spread, public.V.shape[0] - 1
    for family in range(2):
        f = terms.p if family == 0 else terms.r
        widths = public.transitions.widths if family == 0 else public.rewards.widths
        _, ridge, shift, _, _, _, fixed, direct = widths
        if terms.rule >= THEOREM:
            users, theta, alpha = public.clock[1], f.paper_theta, terms.alpha
            experiment = terms.rule == EXPERIMENT
            fill_paper(users, std, f.d, theta, f.most, H, alpha, f.span, experiment, shift, fixed)
        elif terms.rule == TIGHT:
            sums = public.transitions.sums if family == 0 else public.rewards.sums
            stages = shift.shape[0]
            gram, target = np.empty(stages), np.empty(stages)
            stage_noise(std, spread[2 * family], sums.gram_factor, gram)
            stage_noise(std, spread[2 * family + 1], sums.target_factor, target)
            fill_tight(gram, target, f.root, f.reach, f.theta, ridge, shift, fixed, direct)


@kernel
def set_clips(terms: WidthTerms, features: TargetFeatures, public: PublicTargets) -> None:
    """What users clip to: the published reach within the declared bounds, or these."""
    for part in range(2):
        declared = features.longest if part == 0 else features.highest
        for h in range(declared.shape[0]):
            reach = public.reach[part, h] if terms.shaped else declared[h]
            public.clip[part, h] = min(max(reach, LEAST * declared[h]), declared[h])


@kernel
def value_targeted_episodes(
    truth: Truth,
    uniforms: Array,
    terms: WidthTerms,
    features: TargetFeatures,
    scales: TargetScales,
    streams: LoopStreams,
    raw: RawTargets,
    public: PublicTargets,
    score: Score,
) -> None:
    """One episode per row of ``uniforms``, a new plan after every ``terms.every`` of them."""
    optimum, now, at = score[:3]
    policy, clock, ties, rng = public.policy, public.clock, streams.ties, streams.noise
    H, S, A = public.Q.shape
    states, actions = np.empty((1, H + 1), dtype=np.int64), np.empty((1, H), dtype=np.int64)
    rewards, true_values, greedy_only = np.empty((1, H)), np.zeros((H + 1, S)), np.zeros((0, S, A))
    values, x = np.empty(S), np.empty(features.phi.shape[2])
    lives = Lives(states, actions, rewards)
    first, of_state, action, _ = public.pairs
    Q = np.empty((H, action.shape[0]))
    for row in range(uniforms.shape[0]):
        if clock[0] == terms.every or at[0] == 0:
            if at[0] > 0:
                close_targets(terms, features, raw, public, rng)
            update_widths(terms, public)
            value_targeted_induction(
                public.transitions,
                public.rewards,
                features.offset,
                public.known_reward,
                public.caps,
                features.centre,
                greedy_only,
                public.Q,
                public.V,
                public.reach,
            )
            set_clips(terms, features, public)
            for h in range(H):
                for pair in range(action.shape[0]):
                    Q[h, pair] = public.Q[h, of_state[pair], action[pair]]
            if greedy(first, action, Q, ties, policy) or at[0] == 0:
                rescore(truth, policy, optimum, true_values, now)
        reward = rollout(truth, policy, uniforms[row], states[0], actions[0], rewards[0])
        add_value_targets(lives, public.V, public.clip, features, scales, values, x, raw.blocks)
        clock[0] += 1
        record(reward, score)


class ValueTargetedRun(FusedRun):
    """UCRL-VTR, LinOpt-VI and their locally private forms."""

    def _prepare(self) -> None:
        agent = self.agent
        statistic, planner = agent.statistic, agent.planner
        assert isinstance(statistic, ValueTargets) and isinstance(planner, ValueTargetedPlanner)
        self._statistic = statistic
        self.terms = _terms(agent, statistic, planner)
        self.raw, self.public = _raw(statistic), _public(agent, planner)

    @staticmethod
    def knows(agent: BoundAgent) -> bool:
        """Whether the loop has the planner's widths for this noise."""
        assert isinstance(agent.planner, ValueTargetedPlanner)
        rule = type(agent.planner.rule)
        constant = rule in (PaperExperiment, PaperJoint) and type(agent.privatizer) is Exact
        return rule in (TightWidths, PaperLocal) or constant

    def _episodes(self, uniforms: Array) -> None:
        value_targeted_episodes(
            self.problem.truth,
            uniforms,
            self.terms,
            self._statistic.features,
            self._statistic.scales,
            self._draws,
            self.raw,
            self.public,
            self.score,
        )

    def kept(self) -> Arrays:
        """What the loop carries on; the rest is worked out again with the next plan."""
        names = ("release", "spread", "Q", "V", "reach", "clip", "policy", "clock")
        public = {name: getattr(self.public, name) for name in names}
        return {"batch": self.raw.batch, "sums": self.raw.sums, **public}

    def _stand(self) -> Learner:
        terms, public = self.terms, self.public
        version = -(-int(self.score.at[0]) // terms.every) - 1
        if public.clock[0] > 0:
            close_targets(terms, self._statistic.features, self.raw, public, self._noise)
        last = Publication(version, TabularPolicy(public.policy))
        learner = self._learner(self.raw.sums, int(public.clock[1]), last)
        secret, H = learner.secret, self.problem.horizon
        if isinstance(secret, WeightedSecret):
            parts = zip(public.spread, (H - 1, H - 1, H, H), terms.sizes, strict=True)
            spread = [np.repeat(part[:stages], cells) for part, stages, cells in parts]
            secret.spread[:] = np.concatenate(spread)
        return learner


def _terms(agent: BoundAgent, statistic: ValueTargets, planner: ValueTargetedPlanner) -> WidthTerms:
    task, rule, privatizer = agent.task, planner.rule, agent.privatizer
    p, r = statistic.transitions, statistic.rewards
    assert isinstance(agent.schedule, Every)
    families = []
    for f, span, top in ((p, 1.0, float(value_caps(task)[0])), (r, float(r.span), 1.0)):
        tight = rule.roots(task, f.width, f.blocks) if isinstance(rule, TightWidths) else (0.0, 0.0)
        families.append(Family(*tight, block_theta(f), f.dimension, f.theta_norm / span, top, span))
    shapes = {block.name: block.shape for block in statistic.layout.blocks}
    sizes = [int(np.prod(shapes[name][1:])) if name in shapes else 0 for name in FAMILIES]
    noisy, noise_std, least = False, 0.0, 0.0
    if isinstance(privatizer, LocalWeighted):
        noisy, noise_std, least = True, privatizer.noise_std, privatizer.least
    return WidthTerms(
        noise_std=noise_std,
        least=least,
        shaped=statistic.shape.public and noisy,
        every=int(agent.schedule.users),
        sizes=(sizes[0], sizes[1], sizes[2], sizes[3]),
        rule=_rule(rule),
        alpha=float(rule.beta) if isinstance(rule, PaperLocal) else 1.0,
        p=families[0],
        r=families[1],
    )


def _rule(rule: WidthRule) -> int:
    if isinstance(rule, PaperLocal):
        return THEOREM if rule.radius == "theorem" else EXPERIMENT
    return TIGHT if isinstance(rule, TightWidths) else CONSTANT


def _raw(statistic: ValueTargets) -> RawTargets:
    batch = np.zeros(statistic.layout.size, dtype=np.int64)
    views, none = statistic.layout.views(batch), np.zeros((0, 1, 1), dtype=np.int64)
    blocks = TargetSums(*(views.get(name, none) for name in FAMILIES))
    return RawTargets(batch, np.zeros_like(batch), blocks)


def _public(agent: BoundAgent, planner: ValueTargetedPlanner) -> PublicTargets:
    """Before the first user: widths of an empty release, whose noise terms the loop fills in."""
    task, layout = agent.task, agent.statistic.layout
    H, S, A = table_sizes(task)
    release = np.zeros(layout.size)
    empty = agent.privatizer.release(agent.privatizer.init(), Query(0), ZeroNoise())
    return PublicTargets(
        release,
        *planner.regressions(task, empty, layout.views(release)),
        np.zeros((4, H)),
        known_rewards(task),
        value_caps(task),
        task.pairs,
        np.zeros((H, S, A)),
        np.zeros((H + 1, S)),
        np.zeros((2, H - 1)),
        np.zeros((2, H - 1)),
        np.zeros((H, S), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
