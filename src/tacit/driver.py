"""The one definition of learning: serve users, sum up their reports, release, plan, publish.

The stepwise simulator, a fleet, the service and a user's own agent all follow this loop. Compiled
loops exist beside it for speed and must give bit-equal results (tested).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InvalidInput
from tacit.planners.base import Planner, Streams
from tacit.privacy.base import Privatizer, Query
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import Statistic
from tacit.task import Task
from tacit.trajectory import Trajectory

Users = Callable[[Publication], Trajectory]
"""Somebody who takes part: acts on a publication, and lives through a trajectory."""

Schedule = Callable[[int], int]
"""Number of users to serve before the next publication, given how many were served: public."""


def every_user(served: int) -> int:
    """Plan anew after every user."""
    return 1


def never_again(served: int) -> int:
    """One publication serves everybody."""
    return np.iinfo(np.int64).max


@dataclass(frozen=True)
class CappedBatches:
    """A share of the users so far, but at least ``least`` and at most ``most`` of them."""

    least: int
    most: int
    share: float

    def __call__(self, served: int) -> int:
        """Size of the next batch."""
        return max(self.least, min(int(self.share * served), self.most))


@dataclass(frozen=True)
class GeometricBatches:
    """Publications after 1 user, then after max(t + 1, round(ratio t)) users.

    The number of publications grows with the logarithm of the users (spec linear_jdp, B2).
    """

    ratio: float

    def __call__(self, served: int) -> int:
        """Size of the next batch."""
        return max(1, round(self.ratio * served) - served)

    def times(self, users: int) -> list[int]:
        """After how many users there is a release, the last user excluded: nobody acts on it."""
        found, served = [], self(0)
        while served < users:
            found.append(served)
            served += self(served)
        return found


@dataclass(frozen=True)
class Every:
    """A new publication after every ``users`` users."""

    users: int = 1

    def __call__(self, served: int) -> int:
        """The same number every time."""
        return self.users


@dataclass(frozen=True)
class Geometric:
    """Releases after ``first`` users, then whenever their number has grown by ``growth``.

    Few releases mean little noise per release: the boundaries are first, then last + max(1,
    ceil(growth last) - last), cut at ``total`` (spec mixture_jdp B5).
    """

    first: int
    growth: float
    total: int

    def __call__(self, served: int) -> int:
        """Users until the next boundary."""
        if served < self.first:
            return self.first - served
        return max(1, math.ceil(self.growth * served) - served)

    def boundaries(self) -> list[int]:
        """Numbers of users at which something is released; the last batch is never released."""
        found: list[int] = []
        served = 0
        while True:
            served += self(served)
            if served >= self.total:
                return found
            found.append(served)

    def largest_batch(self) -> int:
        """Users in the largest batch."""
        edges = np.array([0, *self.boundaries(), self.total])
        return int(np.diff(edges).max())


@dataclass(frozen=True)
class BoundAgent:
    """An agent fitted to one task: the parts of the pipeline, plugged together."""

    task: Task
    statistic: Statistic
    privatizer: Privatizer
    planner: Planner
    schedule: Schedule = every_user

    @property
    def guarantee(self) -> Guarantee:
        """What the privatizer guarantees to each of the task's users."""
        return self.privatizer.guarantee


def drive(agent: BoundAgent, users: Users, noise: Noise, streams: Streams) -> Iterator[Publication]:
    """Learn from ``agent.task.users`` users, one after the other; stop exactly there.

    Yields every publication before the users who act on it are served; they are served when the
    next publication is asked for.
    """
    task, privatizer = agent.task, agent.privatizer
    secret = privatizer.init()
    contribution = np.zeros(agent.statistic.layout.size, dtype=np.int64)
    publication: Publication | None = None
    served = 0

    def ask(query: Any) -> Release:
        return privatizer.release(secret, query, noise)

    while served < task.users:
        version = 0 if publication is None else publication.version + 1
        release = privatizer.release(secret, Query(version), noise)
        publication = agent.planner.plan(task, release, ask, publication, streams)
        yield publication
        batch = agent.schedule(served) if publication.users is None else publication.users
        if batch < 1:
            raise InvalidInput(
                f"the schedule asked for {batch} users after {served}, but it must be at least 1"
            )
        for _ in range(min(batch, task.users - served)):
            trajectory = users(publication.for_user(served))
            agent.statistic.contribute(trajectory, publication, served, contribution)
            report = privatizer.encode(contribution, publication, noise)
            secret = privatizer.absorb(secret, report, publication.version)
            served += 1
