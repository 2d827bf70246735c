"""Planners of learners that do not learn."""

from __future__ import annotations

import numpy as np

from tacit.kernels.planning import backward_induction, greedy
from tacit.planners.base import Ask, Streams, next_version
from tacit.policy import TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task


class UniformPlanner:
    """Every action equally likely, whatever was released."""

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """The uniform policy."""
        policy = uniform_policy(task.horizon, task.sizes["states"], task.sizes["actions"])
        return Publication(next_version(previous), policy)


class OptimalPlanner:
    """The optimum of a problem whose transitions and rewards were revealed in the task."""

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """Plan in the revealed truth."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        Q = np.full((H, S, A), np.inf)
        backward_induction(task.known["transitions"], task.known["reward"], Q, np.empty((H + 1, S)))
        actions = np.zeros((H, S), dtype=np.int64)
        greedy(Q, streams.ties, actions)
        return Publication(next_version(previous), TabularPolicy(actions))
