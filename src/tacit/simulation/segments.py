"""Runs in segments: all users between two publications live through their episodes in one call.

The parts of the agent do the rest exactly as in ``driver.drive``. Sums of exact contributions are
those of the driver to the last bit. Users who add their own noise are summed in its exact law: the
noise of n users is drawn once, with standard deviation sqrt(n), so a run equals the driver's bit by
bit where a batch is one user, and in law otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent
from tacit.kernels import kernel
from tacit.kernels.rollout import Truth, rollout, rollout_stochastic, uniforms_per_episode
from tacit.policy import Policy, StochasticPolicy, TabularPolicy
from tacit.privacy import Exact, Query, SimulatedNoise
from tacit.privacy.base import Secret
from tacit.privacy.joint import CountedSums
from tacit.privacy.joint.counted import CountedSecret
from tacit.privacy.local import LocalShaped
from tacit.privacy.local.shaped import ShapedSecret
from tacit.privacy.noise import GridLaw
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.publication import Publication
from tacit.release import Release
from tacit.simulation.loops import record
from tacit.simulation.runs import new_score
from tacit.simulation.streams import planner_streams, stream
from tacit.statistics.base import Bulk
from tacit.statistics.counts import JointCounts, PolicyTransitions
from tacit.statistics.multi_target import MultiTargets
from tacit.statistics.targets import ValueTargets

_ROWS = 4096
"""Users per slice at most."""


@kernel
def live(
    truth: Truth,
    uniforms: Array,
    policy: IntArray,
    cdf: Array,
    now: Array,
    at: IntArray,
    checkpoints: IntArray,
    regret: Array,
    reward: Array,
    states: IntArray,
    actions: IntArray,
    rewards: Array,
) -> None:
    """One episode per row of uniforms under a table, or where it is empty under ``cdf``."""
    for row in range(uniforms.shape[0]):
        if policy.shape[0] > 0:
            total = rollout(truth, policy, uniforms[row], states[row], actions[row], rewards[row])
        else:
            total = rollout_stochastic(
                truth, cdf, uniforms[row], states[row], actions[row], rewards[row]
            )
        record(total, now, at, checkpoints, regret, reward)


class SegmentRun:
    """Any agent whose statistic adds up many users and whose privatizer is one of three."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        self.problem = problem
        self.agent = agent
        self.score = new_score(problem, checkpoints)
        self.streams = planner_streams(root, run)
        self._users = stream(root, run, "users")
        self._noise = SimulatedNoise(stream(root, run, "noise"))
        self._secret = agent.privatizer.init()
        self._sums = np.zeros(agent.statistic.layout.size, dtype=np.int64)
        self._publication: Publication | None = None
        self._left = self._batch = 0
        H = problem.horizon
        self._uniforms = np.empty((_ROWS, uniforms_per_episode(H)))
        self._states = np.zeros((_ROWS, H + 1), dtype=np.int64)
        self._actions = np.zeros((_ROWS, H), dtype=np.int64)
        self._rewards = np.zeros((_ROWS, H))
        self._policy = np.zeros((0, problem.states), dtype=np.int64)
        self._cdf = np.zeros((0, problem.states, problem.actions))

    def advance(self, episodes: int) -> None:
        """Serve that many more users, publishing when it is time."""
        while episodes > 0:
            if self._left == 0:
                self._publish()
            count = min(episodes, self._left, _ROWS)
            self._serve(count)
            episodes -= count
            self._left -= count

    def _publish(self) -> None:
        agent, served = self.agent, int(self.score.at[0])
        if self._publication is not None:
            _absorb(agent, self._secret, self._sums, self._batch, self._publication, self._noise)
            self._sums[:] = 0
        version = 0 if self._publication is None else self._publication.version + 1
        release = self._ask(Query(version))
        self._publication = agent.planner.plan(
            agent.task, release, self._ask, self._publication, self.streams
        )
        policy = self._publication.policy
        self._set(policy)
        self.score.now[0] = self.score.optimum - self.problem.value(policy)
        self._batch = self._left = min(agent.schedule(served), agent.task.users - served)

    def _ask(self, query: Any) -> Release:
        return self.agent.privatizer.release(self._secret, query, self._noise)

    def _set(self, policy: Policy) -> None:
        self.problem.check_policy(policy)
        if isinstance(policy, TabularPolicy):
            self._policy = policy.actions
        elif isinstance(policy, StochasticPolicy):
            self._policy, self._cdf = self._policy[:0], cumulative(policy.probabilities)

    def _serve(self, count: int) -> None:
        uniforms = self._uniforms[:count]
        self._users.random(out=uniforms)
        lived = self._states[:count], self._actions[:count], self._rewards[:count]
        _, now, at, checkpoints, regret, reward = self.score
        live(
            self.problem.truth,
            uniforms,
            self._policy,
            self._cdf,
            now,
            at,
            checkpoints,
            regret,
            reward,
            *lived,
        )
        assert isinstance(self.agent.statistic, Bulk) and self._publication is not None
        self.agent.statistic.add_many(*lived, self._publication, self._sums)


_STATISTICS = (JointCounts, MultiTargets, PolicyTransitions, ValueTargets)
_PRIVATIZERS = (Exact, CountedSums, LocalShaped)


def segment_run(
    problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
) -> SegmentRun | None:
    """A run in segments if the agent's parts allow it; exact types, as for compiled loops."""
    if type(agent.statistic) in _STATISTICS and type(agent.privatizer) in _PRIVATIZERS:
        return SegmentRun(problem, agent, root, run, checkpoints)
    return None


def _absorb(
    agent: BoundAgent,
    secret: Secret,
    total: IntArray,
    users: int,
    publication: Publication,
    noise: SimulatedNoise,
) -> None:
    """Fold the contributions of a whole batch into the secret state, noise included."""
    privatizer = agent.privatizer
    secret.users += users
    if isinstance(privatizer, CountedSums):
        assert isinstance(secret, CountedSecret)
        secret.sums += total * privatizer.factors
        secret.open += users
    elif isinstance(privatizer, LocalShaped):
        assert isinstance(secret, ShapedSecret)
        weights = privatizer.weights(publication)
        cells = np.flatnonzero(weights > 0.0)
        drawn = np.empty(len(cells), dtype=np.int64)
        law = privatizer.grid_law(weights)
        noise.fill(GridLaw("gaussian", math.sqrt(users) * law.scales), drawn)
        secret.sums[cells] += total[cells] * privatizer.factors[cells] + drawn
        secret.spread += users * weights**2
        secret.source = noise.source
    else:
        secret.sums += total
