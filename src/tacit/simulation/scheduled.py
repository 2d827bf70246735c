"""Runs whose publications are far apart: the pipeline's own parts at every publication, and one
compiled call for all users in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent
from tacit.policy import TabularPolicy
from tacit.privacy import Query, SimulatedNoise
from tacit.privacy.joint.counted import CountedSecret
from tacit.problems.tabular import TabularMDP
from tacit.publication import Publication
from tacit.release import Release
from tacit.simulation.linear_loops import linear_segment
from tacit.simulation.runs import new_score
from tacit.simulation.streams import planner_streams, stream
from tacit.kernels.rollout import uniforms_per_episode
from tacit.statistics.linear import LinearSums

_UNIFORMS = 1 << 14


class ScheduledRun:
    """The driver, with the users of one publication served together. Bit-equal to it."""

    def __init__(
        self, problem: TabularMDP, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        self.problem = problem
        self.agent = agent
        self.score = new_score(problem, checkpoints)
        self.streams = planner_streams(root, run)
        self._noise = SimulatedNoise(stream(root, run, "noise"))
        self._users = stream(root, run, "users")
        columns = uniforms_per_episode(problem.horizon)
        self._uniforms = np.empty((max(1, _UNIFORMS // columns), columns))
        self._secret = agent.privatizer.init()
        self._publication: Publication | None = None
        self._left = 0
        H = problem.horizon
        self._states = np.zeros(H + 1, dtype=np.int64)
        self._actions = np.zeros(H, dtype=np.int64)
        self._rewards = np.zeros(H)

    def advance(self, episodes: int) -> None:
        """Do that many more episodes."""
        while episodes > 0:
            if self._left == 0:
                self._publish()
            count = min(episodes, self._left, len(self._uniforms))
            uniforms = self._uniforms[:count]
            self._users.random(out=uniforms)
            self._serve(uniforms)
            self._left -= count
            episodes -= count

    def _publish(self) -> None:
        agent, served = self.agent, int(self.score.at[0])
        privatizer = agent.privatizer

        def ask(query: Any) -> Release:
            return privatizer.release(self._secret, query, self._noise)

        version = 0 if self._publication is None else self._publication.version + 1
        release = ask(Query(version))
        self._publication = agent.planner.plan(
            agent.task, release, ask, self._publication, self.streams
        )
        self.score.now[0] = self.score.optimum - self.problem.value(self._publication.policy)
        self._left = agent.schedule(served)

    def _serve(self, uniforms: Array) -> None:
        statistic, secret = self.agent.statistic, self._secret
        assert isinstance(statistic, LinearSums) and isinstance(secret, CountedSecret)
        assert self._publication is not None
        policy = self._publication.policy
        assert isinstance(policy, TabularPolicy)
        views = statistic.layout.views(secret.sums)
        linear_segment(
            self.problem.truth, uniforms, policy.actions, statistic.phi, statistic.weights,
            views["gram"], views["next"], views["reward"],
            self._states, self._actions, self._rewards, self.score,
        )
        secret.users += len(uniforms)
        secret.open += len(uniforms)
