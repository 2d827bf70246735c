"""What a planner is: a function of the task and of releases, and of nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.arrays import Array, IntArray
from tacit.kernels.planning import greedy
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task, table_sizes

Ask = Callable[[Any], Release]
"""Answered queries: a planner that needs one more number asks for it, and it is charged."""


Context = Mapping[str, npt.NDArray[Any]]
"""What is published beside a policy."""


class Streams(NamedTuple):
    """The planner's own randomness, one generator per purpose."""

    ties: np.random.Generator
    posterior: np.random.Generator


class Planner(Protocol):
    """Plans the next publication.

    It may not reach a trajectory, a statistic, a privatizer or a problem: ``test_architecture.py``
    follows its imports, and the planner contract checks its behaviour.
    """

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """The next entry of the billboard.

        Args:
            task: what was public from the start.
            release: the newest release.
            ask: for answered queries, each of which is charged.
            previous: the last publication, None before the first.
            streams: ties are drawn uniformly from ``streams.ties``.
        """


def next_version(previous: Publication | None) -> int:
    """Versions count from 0."""
    return 0 if previous is None else previous.version + 1


def greedy_actions(Q: Array, streams: Streams) -> IntArray:
    """The best action of every step and state [H, S], ties drawn."""
    actions = np.zeros(Q.shape[:2], dtype=np.int64)
    greedy(Q, streams.ties, actions)
    return actions


class ValuePlanner(ABC):
    """Planners of tables that play greedily: a subclass works out how good actions look."""

    def plan(
        self,
        task: Task,
        release: Release,
        ask: Ask,
        previous: Publication | None,
        streams: Streams,
    ) -> Publication:
        """The policy that is greedy in the values."""
        Q, context = self.values(task, release, previous, streams)
        policy = TabularPolicy(greedy_actions(Q, streams))
        return Publication(next_version(previous), policy, context)

    @abstractmethod
    def values(
        self, task: Task, release: Release, previous: Publication | None, streams: Streams
    ) -> tuple[Array, Context]:
        """Q [H, S, A], and what is published beside the policy."""


def rewards_or_nan(task: Task) -> Array:
    """Mean rewards [G, S, A] where the task reveals them, NaN where not."""
    if "reward" in task.known:
        return task.known["reward"]
    _, S, A = table_sizes(task)
    return np.full((1 if task.homogeneous else task.horizon, S, A), np.nan)


def least_count(reached: Callable[[int], bool], most: int | None = None) -> int | None:
    """The least count at which a condition that stays true once true holds; None above most."""
    high = 1
    while not reached(high):
        high *= 2
        if most is not None and high > most:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
