"""Runs on linear systems in compiled segments, bit-equal to the stepwise driver."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.driver import BoundAgent
from tacit.kernels.lq_rollout import normals_per_episode
from tacit.policy import LinearPolicy
from tacit.privacy import Exact, Query, SimulatedNoise
from tacit.privacy.joint import BatchSums, CountedSums
from tacit.problems.lq import LQSystem
from tacit.publication import Publication
from tacit.simulation.lq_loops import (
    Acting,
    Moments,
    idle_segment,
    moments_segment,
    new_life,
    responses_segment,
)
from tacit.simulation.runs import Run, new_score
from tacit.simulation.streams import planner_streams, stream
from tacit.statistics import ControlMoments, InstrumentedResponses, Nothing

_NORMALS = 1 << 14
"""Number of normals drawn at once (128 kB: stays in the cache), whatever the chunk."""


class SegmentRun:
    """The driver's loop with the users between two publications served in compiled code."""

    def __init__(
        self, problem: LQSystem, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
    ) -> None:
        self.problem = problem
        self.agent = agent
        self.score = new_score(problem, checkpoints)
        self._users = stream(root, run, "users")
        self._noise = SimulatedNoise(stream(root, run, "noise"))
        self._streams = planner_streams(root, run)
        self._secret = agent.privatizer.init()
        cells = agent.statistic.layout.size
        self._life = new_life(problem.horizon, problem.states, problem.inputs, cells)
        self._sums = np.zeros(cells, dtype=np.int64)
        columns = normals_per_episode(problem.horizon, problem.states)
        self._normals = np.empty((max(1, _NORMALS // columns), columns))
        self._publication: Publication | None = None
        self._left = 0

    def advance(self, episodes: int) -> None:
        """Do that many more episodes, publishing when it is time."""
        while episodes > 0:
            if self._left == 0:
                self._publish()
            users = min(episodes, self._left)
            self._serve(users)
            self._left -= users
            episodes -= users

    def _publish(self) -> None:
        agent, served = self.agent, int(self.score.at[0])
        version = 0 if self._publication is None else self._publication.version + 1
        release = agent.privatizer.release(self._secret, Query(version), self._noise)
        publication = agent.planner.plan(
            agent.task,
            release,
            lambda query: agent.privatizer.release(self._secret, query, self._noise),
            self._publication,
            self._streams,
        )
        self.score.now[0] = self.score.optimum - self.problem.value(publication.policy)
        batch = agent.schedule(served) if publication.users is None else publication.users
        self._left = min(batch, agent.task.users - served)
        self._publication = publication

    def _serve(self, users: int) -> None:
        assert self._publication is not None
        policy = self._publication.policy
        assert isinstance(policy, LinearPolicy)
        acting = Acting(policy.gains, policy.offsets, policy.amplitude, policy.key)
        left = users
        while left > 0:
            rows = self._normals[:left]
            self._users.standard_normal(out=rows)
            self._segment(self._publication, acting, rows)
            left -= len(rows)
        privatizer = self.agent.privatizer
        assert isinstance(privatizer, Exact | CountedSums | BatchSums)
        privatizer.absorb_sums(self._secret, self._sums, users, self._publication, self._noise)
        self._sums[:] = 0

    def _segment(self, publication: Publication, acting: Acting, rows: Array) -> None:
        statistic, truth, first = self.agent.statistic, self.problem.truth, int(self.score.at[0])
        if isinstance(statistic, ControlMoments):
            clip = Moments(
                statistic.gain, statistic.energy, statistic.weight, statistic.off_diagonal
            )
            moments_segment(truth, acting, first, rows, clip, self._life, self._sums, self.score)
        elif isinstance(statistic, InstrumentedResponses):
            recipe = statistic.recipe(publication)
            responses_segment(
                truth, acting, first, rows, *recipe, self._life, self._sums, self.score
            )
        else:
            idle_segment(truth, acting, first, rows, self._life, self.score)


def control_run(
    problem: object, agent: BoundAgent, root: int, run: int, checkpoints: IntArray
) -> Run | None:
    """The run in segments, if statistic and privatizer are of the kinds that it serves."""
    served = (ControlMoments, InstrumentedResponses, Nothing)
    private = (Exact, CountedSums, BatchSums)
    if (
        type(problem) is not LQSystem
        or type(agent.statistic) not in served
        or type(agent.privatizer) not in private
    ):
        return None
    return SegmentRun(problem, agent, root, run, checkpoints)
