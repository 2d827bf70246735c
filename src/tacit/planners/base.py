"""What a planner is: a function of the task and of releases, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.arrays import Array
from tacit.publication import Publication
from tacit.release import Release
from tacit.task import Task

Ask = Callable[[Any], Release]
"""Answered queries: a planner that needs one more number asks for it, and it is charged."""


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


def known_rewards(task: Task) -> Array:
    """Mean rewards [G, S, A] where the task reveals them, NaN where not."""
    if "reward" in task.known:
        return task.known["reward"]
    stages = 1 if task.homogeneous else task.horizon
    return np.full((stages, task.sizes["states"], task.sizes["actions"]), np.nan)
