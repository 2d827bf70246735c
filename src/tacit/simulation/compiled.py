"""Which agents have a compiled loop, and their runs.

The choice is by the exact types of the agent's parts: a subclass or a part of the user's own goes
through the stepwise driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import isfunction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent, CappedBatches, every_user, never_again
from tacit.kernels.posterior import NoisyCounts
from tacit.kernels.questions import KINDS, WEIGHT_STEPS, Weighing
from tacit.kernels.rollout import uniforms_per_episode
from tacit.planners import (
    DirectionalPlanner,
    NoisyPosteriorPlanner,
    ObiPlanner,
    OptimalPlanner,
    PosteriorPlanner,
    UcbViPlanner,
    UniformPlanner,
)
from tacit.planners.base import rewards_or_nan
from tacit.planners.obi import cell_noise
from tacit.planners.tacit_local import FLOOR
from tacit.policy import StochasticPolicy, TabularPolicy
from tacit.privacy import Exact, Privatizer, Query, Silence
from tacit.privacy.finite import Oracle, SubsetSelection
from tacit.privacy.local import DrawnCell, LocalAdditive, LocalResponse, OneCell
from tacit.privacy.local.additive import GRID
from tacit.privacy.local.one_cell import chances
from tacit.privacy.shuffle import Shuffled
from tacit.problems.linear import LinearMDP
from tacit.problems.mixture import LinearMixtureMDP
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.simulation import batches, local_loops, loops
from tacit.simulation.local_loops import Local
from tacit.simulation.loops import Blocks, IntBlocks, Plan, Public, Raw
from tacit.simulation.lq_runs import control_run
from tacit.simulation.mixture_runs import value_targeted_run
from tacit.simulation.runs import Run, new_score
from tacit.simulation.scheduled import linear_run
from tacit.simulation.segments import segment_run
from tacit.simulation.streams import planner_streams, stream
from tacit.statistics import EachStep, Nothing, OneStep, VisitCounts
from tacit.statistics.linear import CuratedTransitions, LinearSums

_UNIFORMS = 1 << 14
"""Number of uniforms drawn at once (128 kB: stays in the cache), whatever the chunk."""


class _CompiledRun(ABC):
    """What all compiled runs share: the users' stream, cut into rows of one episode each."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        self.problem = problem
        self.agent = agent
        self.score = new_score(problem, checkpoints)
        self.streams = planner_streams(root, run)
        self._users = stream(root, run, "users")
        columns = uniforms_per_episode(problem.horizon)
        self._uniforms = np.empty((max(1, _UNIFORMS // columns), columns))

    def advance(self, episodes: int) -> None:
        """Do that many more episodes, in slices that bound memory."""
        while episodes > 0:
            uniforms = self._uniforms[:episodes]
            self._users.random(out=uniforms)
            self._episodes(uniforms)
            episodes -= len(uniforms)

    @abstractmethod
    def _episodes(self, uniforms: Array) -> None:
        """One episode per row of uniforms: the compiled loop of this run."""


class _LearningRun(_CompiledRun):
    """Buffers of a learner on visit counts that plans after every user."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        H, S, A = problem.horizon, problem.states, problem.actions
        layout = agent.statistic.layout
        contribution = np.zeros(layout.size, dtype=np.int64)
        release = np.zeros(layout.size)
        self.raw = Raw(
            states=np.zeros(H + 1, dtype=np.int64),
            actions=np.zeros(H, dtype=np.int64),
            rewards=np.zeros(H),
            contribution=contribution,
            blocks=IntBlocks(**_blocks(agent.statistic, contribution)),
            sums=np.zeros(layout.size, dtype=np.int64),
        )
        self.public = Public(
            units=layout.units,
            release=release,
            blocks=Blocks(**_blocks(agent.statistic, release)),
            known_reward=rewards_or_nan(agent.task),
        )
        stages = 1 if agent.task.homogeneous else H
        self.plan = Plan(
            P=np.zeros((stages, S, A, S)),
            R=np.zeros(self._reward_shape(stages)),
            Q=np.full((H, S, A), float(H)),
            V=np.zeros((H + 1, S)),
            actions=np.zeros((H, S), dtype=np.int64),
        )
        self.values = np.zeros((H + 1, S))

    def _reward_shape(self, stages: int) -> tuple[int, int, int]:
        return stages, self.problem.states, self.problem.actions


def _blocks(statistic: Any, flat: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Views by block, with an empty table of squares where none are kept."""
    views = dict(statistic.layout.views(flat))
    if "reward_squares" not in views:
        _, S, A = views["visits"].shape
        views["reward_squares"] = np.zeros((0, S, A), dtype=flat.dtype)
    return views


class UcbViRun(_LearningRun):
    """UCB-VI."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        assert isinstance(agent.planner, UcbViPlanner)
        self._width = agent.planner.width(agent.task)

    def _reward_shape(self, stages: int) -> tuple[int, int, int]:
        return self.problem.horizon, self.problem.states, self.problem.actions

    def _episodes(self, uniforms: Array) -> None:
        loops.ucb_vi_episodes(
            self.problem.truth,
            uniforms,
            self._width,
            self.streams.ties,
            self.raw,
            self.public,
            self.plan,
            self.values,
            self.score,
        )


class PsrlRun(_LearningRun):
    """PSRL."""

    def _episodes(self, uniforms: Array) -> None:
        assert isinstance(self.agent.planner, PosteriorPlanner)
        loops.psrl_episodes(
            self.problem.truth,
            uniforms,
            self.agent.planner.prior,
            self.streams.ties,
            self.streams.posterior,
            self.raw,
            self.public,
            self.plan,
            self.values,
            self.score,
        )


class _LocalRun(_LearningRun):
    """The same buffers, but sums and release are of messages that users randomized."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        mechanism = agent.privatizer
        if isinstance(mechanism, LocalAdditive):
            self.public = self.public._replace(units=np.full(mechanism.layout.size, GRID))
        self._cell = cell_noise(mechanism.law(1))
        self._local = _local(mechanism, self._cell.kind, agent.statistic.layout.size)
        self._noise = stream(root, run, "noise")


def _local(mechanism: Privatizer, kind: int, size: int) -> Local:
    """What the users of a randomizer do; parts that it does not have stay empty.

    All arrays are fresh and writable, so that one compiled loop serves every randomizer.
    """
    none, message = np.zeros(0, dtype=np.int64), np.zeros(size, dtype=np.int64)
    if isinstance(mechanism, LocalResponse):
        bits, ones = mechanism.randomizer.bits, np.zeros(size, dtype=np.int64)
        steps, trials = mechanism.randomizer.steps.copy(), mechanism.randomizer.trials.copy()
        return Local(kind, np.zeros(0), none, steps, ones, trials, bits.p, bits.q, message)
    scales, factors = np.zeros(0), np.ones(size, dtype=np.int64)
    if isinstance(mechanism, LocalAdditive):
        scales, factors = mechanism.noise_law.scales.copy(), mechanism.factors.copy()
    return Local(kind, scales, factors, none, none, none, 1.0, 0.0, message)


class ObiRun(_LocalRun):
    """LDP-OBI with any randomizer, and OBI without one."""

    def _episodes(self, uniforms: Array) -> None:
        assert isinstance(self.agent.planner, ObiPlanner)
        local_loops.obi_episodes(
            self.problem.truth,
            uniforms,
            self._cell,
            self.agent.planner.rule,
            self._local,
            self.streams.ties,
            self._noise,
            self.raw,
            self.public,
            self.plan,
            self.values,
            self.score,
        )


class LocalPsrlRun(_LocalRun):
    """LDP-PSRL."""

    def _episodes(self, uniforms: Array) -> None:
        assert isinstance(self.agent.planner, PosteriorPlanner)
        local_loops.local_psrl_episodes(
            self.problem.truth,
            uniforms,
            self.agent.planner.prior,
            self._local,
            self.streams.ties,
            self.streams.posterior,
            self._noise,
            self.raw,
            self.public,
            self.plan,
            self.values,
            self.score,
        )


class FixedRun(_CompiledRun):
    """An agent that publishes once and collects nothing."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        noise = Silence()
        secret = agent.privatizer.init()
        release = agent.privatizer.release(secret, Query(0), noise)
        policy = agent.planner.plan(
            agent.task,
            release,
            lambda query: agent.privatizer.release(secret, query, noise),
            None,
            self.streams,
        ).policy
        self.score.now[0] = self.score.optimum - problem.value(policy)
        self._cdf = _policy_cdf(policy, problem.actions)
        H = problem.horizon
        self._states = np.zeros(H + 1, dtype=np.int64)
        self._actions = np.zeros(H, dtype=np.int64)
        self._rewards = np.zeros(H)

    def _episodes(self, uniforms: Array) -> None:
        loops.fixed_episodes(
            self.problem.truth,
            uniforms,
            self._cdf,
            self._states,
            self._actions,
            self._rewards,
            self.score,
        )


class OneCellRun(_CompiledRun):
    """tacit-local, batch by batch."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        super().__init__(problem, agent, root, run, checkpoints)
        H, S, A = problem.horizon, problem.states, problem.actions
        mechanism, schedule = agent.privatizer, agent.schedule
        if isinstance(mechanism, Shuffled):
            mechanism = mechanism.local  # shuffling changes no sum, and batches open when full
        assert isinstance(mechanism, OneCell) and isinstance(schedule, CappedBatches)
        moves, rewards = mechanism.layout.blocks[0].shape, mechanism.layout.blocks[1].shape
        largest = 2 * S * S
        joint, move, reward = (_sampler(oracle) for oracle in mechanism.oracles)
        self._oracles = joint, move, reward
        self._schedule = batches.Schedule(schedule.least, schedule.most, schedule.share)
        self._sums = mechanism.cell_sums(mechanism.init().sums)
        self._released = NoisyCounts(
            moves=np.zeros(moves),
            rewards=np.zeros(rewards),
            moves_variance=np.zeros(moves[:3]),
            rewards_variance=np.zeros(rewards[:3]),
            moves_unit=np.zeros(moves[:3]),
            rewards_unit=np.zeros(rewards[:3]),
        )
        self._first = np.zeros(S)
        self._batch = batches.Batch(
            policy=np.zeros((H, S), dtype=np.int64),
            occupancy=np.full((H, S), WEIGHT_STEPS, dtype=np.int64),
            asked=np.zeros(KINDS * H),
            clock=np.zeros(3, dtype=np.int64),
            counts=np.zeros((KINDS * H, largest), dtype=np.int64),
            users=np.zeros(KINDS * H, dtype=np.int64),
        )
        self._work = batches.Work(
            P=np.zeros(moves),
            R=np.zeros(rewards[:3]),
            Q=np.zeros((H, S, A)),
            V=np.zeros((H + 1, S)),
            y=np.zeros(S),
            f=np.zeros((H, S)),
            at_moves=np.zeros(moves[:3]),
            at_rewards=np.zeros(rewards[:3]),
            values=np.zeros((H + 1, S)),
            states=np.zeros(H + 1, dtype=np.int64),
            actions=np.zeros(H, dtype=np.int64),
            rewards=np.zeros(H),
            hits=np.zeros(largest, dtype=np.int64),
        )
        self._drawn = isinstance(mechanism, DrawnCell)
        self._explore = _explore(agent, mechanism.weighing)
        self._noise = stream(root, run, "noise")

    def _episodes(self, uniforms: Array) -> None:
        batches.one_cell_episodes(
            self.problem.truth,
            uniforms,
            *self._oracles,
            self._schedule,
            self._drawn,
            self._explore,
            self.streams.ties,
            self.streams.posterior,
            self._noise,
            self._batch,
            self._sums,
            self._released,
            self._first,
            self._work,
            self.score,
        )


def _explore(agent: BoundAgent, weighing: Weighing) -> batches.Explore:
    planner = agent.planner
    if isinstance(planner, DirectionalPlanner):
        scale, beta = float(planner.bonus_scale), float(planner.beta)
        asks = planner.weighing is not None
        return batches.Explore(True, scale, beta, weighing, asks, FLOOR)
    return batches.Explore(False, 0.0, 0.0, weighing, True, FLOOR)


def _sampler(oracle: Oracle) -> batches.Sampler:
    size = oracle.size if isinstance(oracle, SubsetSelection) else 0
    blanket = oracle.blanket if isinstance(oracle, SubsetSelection) else 0.0
    return batches.Sampler(oracle.domain, size, blanket, chances(oracle))


def _policy_cdf(policy: object, actions: int) -> Array:
    if isinstance(policy, StochasticPolicy):
        return cumulative(policy.probabilities)
    assert isinstance(policy, TabularPolicy)
    return cumulative(np.eye(actions)[policy.actions])


_LOOPS: dict[tuple[object, ...], type[_CompiledRun]] = {
    (VisitCounts, Exact, UcbViPlanner, every_user): UcbViRun,
    (VisitCounts, Exact, PosteriorPlanner, every_user): PsrlRun,
    (VisitCounts, Exact, ObiPlanner, every_user): ObiRun,
    (VisitCounts, LocalAdditive, ObiPlanner, every_user): ObiRun,
    (VisitCounts, LocalResponse, ObiPlanner, every_user): ObiRun,
    (VisitCounts, LocalAdditive, PosteriorPlanner, every_user): LocalPsrlRun,
    (OneStep, OneCell, NoisyPosteriorPlanner, CappedBatches): OneCellRun,
    (OneStep, OneCell, DirectionalPlanner, CappedBatches): OneCellRun,
    (OneStep, Shuffled, DirectionalPlanner, CappedBatches): OneCellRun,
    (EachStep, Shuffled, DirectionalPlanner, CappedBatches): OneCellRun,
    (Nothing, Exact, UniformPlanner, never_again): FixedRun,
    (Nothing, Exact, OptimalPlanner, never_again): FixedRun,
}


def compiled_run(
    problem: object, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
) -> Run | None:
    """The compiled run of this problem and agent, or None if there is none."""
    if not isinstance(problem, TabularMDP):
        return control_run(problem, agent, root, run, checkpoints)
    if type(problem) not in (TabularMDP, LinearMDP, LinearMixtureMDP):
        return None
    if type(agent.statistic) in (LinearSums, CuratedTransitions):
        return linear_run(problem, agent, root, run, checkpoints)
    schedule = agent.schedule if isfunction(agent.schedule) else type(agent.schedule)
    parts = (type(agent.statistic), type(agent.privatizer), type(agent.planner), schedule)
    make = _LOOPS.get(parts)
    if make is not None:
        return make(problem, agent, root, run, checkpoints)
    fast = value_targeted_run(problem, agent, root, run, checkpoints)
    return fast or segment_run(problem, agent, root, run, checkpoints)
