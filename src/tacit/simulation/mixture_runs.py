"""Runs of value-targeted regression in its compiled loop."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent, Every
from tacit.features import known_rewards, value_caps
from tacit.kernels.mixture import Regression, Widths, work_space
from tacit.kernels.rollout import uniforms_per_episode
from tacit.kernels.targets import STEPS
from tacit.planners.vtr import ValueTargetedPlanner
from tacit.planners.widths import PrintedLocal, TightWidths, block_theta, reaches
from tacit.privacy import Exact
from tacit.privacy.local import LocalShaped
from tacit.problems.tabular import TabularMDP
from tacit.simulation import mixture_loops
from tacit.simulation.mixture_loops import Family, Public, Raw, Rule
from tacit.simulation.runs import new_score
from tacit.simulation.streams import planner_streams, stream
from tacit.statistics.targets import FAMILIES, LEAST_SHARE, ValueTargets
from tacit.task import table_sizes

_ROWS = 512


class ValueTargetedRun:
    """UCRL-VTR, LinOpt-VI and their locally private forms."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        statistic, planner = agent.statistic, agent.planner
        assert isinstance(statistic, ValueTargets) and isinstance(planner, ValueTargetedPlanner)
        self.problem = problem
        self.score = new_score(problem, checkpoints)
        self.streams = planner_streams(root, run)
        self._users, self._noise = stream(root, run, "users"), stream(root, run, "noise")
        H, S, A = table_sizes(agent.task)
        self._statistic = statistic
        self._uniforms = np.empty((_ROWS, uniforms_per_episode(H)))
        self._declared = np.stack([statistic.longest, statistic.highest])
        p, r = statistic.transitions, statistic.rewards
        self._work = work_space(S * A, p.blocks, p.width), work_space(S * A, r.blocks, r.width)
        self._values = np.zeros((H + 1, S))
        self.rule = _rule(agent, statistic, planner)
        self.raw, self.public = _buffers(agent, statistic, planner)
        shapes = {block.name: block.shape for block in statistic.layout.blocks}
        sizes = [int(np.prod(shapes[name][1:])) if name in shapes else 0 for name in FAMILIES]
        self._sizes = (sizes[0], sizes[1], sizes[2], sizes[3])

    def advance(self, episodes: int) -> None:
        """Do that many more episodes."""
        while episodes > 0:
            uniforms = self._uniforms[:episodes]
            self._users.random(out=uniforms)
            mixture_loops.value_targeted_episodes(
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
            episodes -= len(uniforms)


def _rule(agent: BoundAgent, statistic: ValueTargets, planner: ValueTargetedPlanner) -> Rule:
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
    return Rule(
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
) -> tuple[Raw, Public]:
    task, layout = agent.task, statistic.layout
    H, S, A = table_sizes(task)
    p, r = statistic.transitions, statistic.rewards
    batch, release = np.zeros(layout.size, dtype=np.int64), np.zeros(layout.size)
    sent, seen = layout.views(batch), layout.views(release)
    none, no_rewards = np.zeros((0, 1, 1), dtype=np.int64), np.zeros((0, r.blocks, 1))
    raw = Raw(
        np.zeros(H + 1, dtype=np.int64),
        np.zeros(H, dtype=np.int64),
        np.zeros(H),
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
    public = Public(
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


def value_targeted_run(
    problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
) -> ValueTargetedRun | None:
    """The compiled run, if the agent is made of exactly these parts."""
    parts = (type(agent.statistic), type(agent.planner), type(agent.schedule))
    if parts != (ValueTargets, ValueTargetedPlanner, Every):
        return None
    assert isinstance(agent.planner, ValueTargetedPlanner)
    rule = type(agent.planner.rule)
    if type(agent.privatizer) not in (Exact, LocalShaped):
        return None
    if rule is PrintedLocal and type(agent.privatizer) is Exact:
        return None
    if rule not in (TightWidths, PrintedLocal):
        return None
    return ValueTargetedRun(problem, agent, root, run, checkpoints)
