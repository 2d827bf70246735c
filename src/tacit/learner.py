"""The one definition of learning: serve users, sum up their reports, release, plan, publish.

The stepwise simulator, a fleet, the service and a user's own agent all follow this loop. The
simulator's other runs exist beside it for speed; docs/architecture.md#way says which of them equal
it bit by bit and which in law (tested).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import InvalidInput, OverBudget
from tacit.planners.base import Planner, Streams
from tacit.privacy.base import Privatizer, Query, Report, Secret
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics.base import LifelongStatistic, Memory, Statistic, lifelong
from tacit.task.task import Task
from tacit.trajectory import Lives, Trajectory, together

Users = Callable[[Publication], Trajectory]
"""Somebody who takes part: acts on a publication, and lives through a trajectory."""

Schedule = Callable[[int], int]
"""Number of users to serve before the next publication, given how many were served: public."""


FINAL_DRAWS = 32
"""Models that the policy left in the end is planned in the mean of, by planners that draw them."""


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
class Every:
    """A new publication after every ``users`` users."""

    users: int = 1

    def __call__(self, served: int) -> int:
        """The same number every time."""
        return self.users


@dataclass(frozen=True)
class Geometric:
    """Releases after ``first`` users, then whenever their number has grown by ``growth``.

    Few releases mean little noise per release; their number grows with the logarithm of the users.
    The next one after t users is at t + max(least, whole(growth t) - t): rounded up in
    docs/papers/mixture_jdp.md#b5, to the nearest in docs/papers/linear_jdp.md#b2.
    """

    first: int
    growth: float
    least: int = 1
    whole: Callable[[float], int] = math.ceil

    def __call__(self, served: int) -> int:
        """Users until the next release, never less than ``least`` after one."""
        if served < self.first:
            return self.first - served
        return max(self.least, self.whole(self.growth * served) - served)

    def times(self, users: int) -> list[int]:
        """After how many users there is a release, the last user excluded: nobody acts on it."""
        found, served = [], self(0)
        while served < users:
            found.append(served)
            served += self(served)
        return found

    def largest_batch(self, users: int) -> int:
        """Users in the largest batch."""
        return int(np.diff([0, *self.times(users), users]).max())


@dataclass(frozen=True)
class Several:
    """Several publications for every release: plan again without one.

    Attributes:
        times: after how many users there is a release, from 0 to the last user, increasing.
        plans: publications between two releases, at most; each is for as many users as the others.
        least: users of a publication, at least.
    """

    times: tuple[int, ...]
    plans: int
    least: int = 1

    def number(self, served: int) -> int:
        """Number of the newest release after so many users."""
        return bisect.bisect_right(self.times, served) - 1

    def __call__(self, served: int) -> int:
        """Users until the next publication."""
        i = self.number(served)
        if i == len(self.times) - 1:
            return 1
        start, users = self.times[i], self.times[i + 1] - self.times[i]
        many = 1 if i == 0 else max(1, min(self.plans, users // self.least))
        done = (served - start) * many // users + 1
        return start + -(-users * done // many) - served


@dataclass(frozen=True)
class AtLeast:
    """Another schedule, but no batch smaller than ``least``."""

    schedule: Schedule
    least: int

    def __call__(self, served: int) -> int:
        """Size of the next batch."""
        return max(self.least, self.schedule(served))


@dataclass(frozen=True)
class BoundAgent:
    """An agent fitted to one task: the parts of the pipeline, plugged together."""

    task: Task
    statistic: Statistic
    privatizer: Privatizer[Any]
    planner: Planner
    schedule: Schedule = every_user

    @property
    def guarantee(self) -> Guarantee:
        """What the privatizer guarantees to each of the task's users."""
        return self.privatizer.guarantee

    @property
    def counts_everybody(self) -> bool:
        """Whether the last users are an item of the counter like all others, and not its close."""
        return isinstance(self.schedule, Several)

    def release_number(self, version: int, served: int) -> int:
        """Number of the release that a version is planned on, after so many users."""
        schedule = self.schedule
        return schedule.number(served) if isinstance(schedule, Several) else version

    def plans_again(self, served: int) -> bool:
        """Whether what is planned after so many users is planned on a release made before."""
        return isinstance(self.schedule, Several) and served not in self.schedule.times


class Learner:
    """Where learning stands between two publications, and its two moves: publish and absorb.

    The simulator makes one and keeps it; the service saves ``secret``, ``publication`` and
    ``served``, and goes on from them after a restart.

    Args:
        agent: the parts of the pipeline.
        noise: what the privatizer draws from at a release.
        secret: where the privatizer stands; from the beginning if left out.
        publication: the newest one, None before the first.
        served: users absorbed so far.
        people: how many there are, where they are remembered: one per participation if left out.

    Attributes:
        memory: what people have taught, where that is bounded over all their participations.
        left: users of the newest publication who are still to come.
        learned: users whose data are in the newest publication.
    """

    def __init__(
        self,
        agent: BoundAgent,
        noise: Noise,
        *,
        secret: Secret | None = None,
        publication: Publication | None = None,
        served: int = 0,
        people: int | None = None,
    ) -> None:
        self.agent = agent
        self.noise = noise
        self.secret = agent.privatizer.init() if secret is None else secret
        self.publication = publication
        self.served = served
        self.left = 0
        self.learned = self.secret.users
        self.release: Release | None = None
        self.memory: Memory | None = None
        if lifelong(agent.statistic):
            self.memory = self._lifelong.memory(people or agent.task.users)

    def publish(self, streams: Streams) -> Publication:
        """Release what was absorbed if it is time, plan, and put up the next entry.

        After the last user nothing is left to explore for, so models are averaged, not drawn.
        """
        version = 0 if self.publication is None else self.publication.version + 1
        if self.served >= self.agent.task.users:
            streams = streams._replace(draws=FINAL_DRAWS)
        self.release = self._ask(Query(self.agent.release_number(version, self.served)))
        if not self.agent.plans_again(self.served):
            self.learned = self.secret.users
        self.publication = self.agent.planner.plan(
            self.agent.task, self.release, self._ask, self.publication, streams
        )
        self.left = self.due()
        return self.publication

    def conclude(self, streams: Streams) -> Publication:
        """Plan once more when the last user has reported: the policy that is left in the end.

        The release it is planned on is part of what every guarantee is computed for. Answered
        questions may all have been used up; then the newest publication stays.
        """
        assert self.publication is not None
        try:
            return self.publish(streams)
        except OverBudget:
            return self.publication

    def due(self) -> int:
        """How many users the newest publication is for, cut at the task's last user."""
        chosen = None if self.publication is None else self.publication.users
        batch = self.agent.schedule(self.served) if chosen is None else chosen
        if batch < 1:
            raise InvalidInput(
                f"the schedule asked for {batch} users after {self.served}, but it must be at "
                "least 1"
            )
        return min(batch, self.agent.task.users - self.served)

    def renew(self) -> None:
        """A new period begins with the next batch: everybody's budget is whole again."""
        self.agent.privatizer.renew(self.secret)
        if self.memory is not None:
            self.memory.clear()

    def serve(self, users: Users, person: int | None = None) -> None:
        """The next user of the newest publication: lives, contributes, reports, is absorbed.

        ``person`` says who it is, where people are remembered: by default nobody came before.
        """
        publication, agent = self.publication, self.agent
        assert publication is not None
        trajectory = users(publication.for_user(self.served))
        if self.memory is None:
            agent.statistic.contribute(trajectory, publication, self.served, self._contribution)
        else:
            who = None if person is None else np.array([person])
            self._contribution[:] = 0
            coins = np.array([self.served])
            self.add_people(together([trajectory]), coins, who, self._contribution)
        report = agent.privatizer.encode(self._contribution, publication, self.noise)
        self.absorb(report, publication.version)

    @property
    def _lifelong(self) -> LifelongStatistic:
        statistic: Any = self.agent.statistic
        assert isinstance(statistic, LifelongStatistic)
        return statistic

    def add_people(
        self, lives: Lives, coins: IntArray, who: IntArray | None, out: IntArray
    ) -> None:
        """Add what users of the newest publication teach to ``out``, and remember it.

        ``who`` says who they are: by default nobody came before.
        """
        assert self.publication is not None and self.memory is not None
        people = coins if who is None else who
        self._lifelong.add_people(lives, self.publication, coins, people, self.memory, out)

    @cached_property
    def _contribution(self) -> IntArray:
        """What one user contributes, overwritten by the next one."""
        return np.zeros(self.agent.statistic.layout.size, dtype=np.int64)

    def absorb(self, report: Report, version: int) -> None:
        """Fold one user's report in, made under that version of the publication."""
        self.secret = self.agent.privatizer.absorb(self.secret, report, version)
        self.served += 1
        self.left -= 1

    def absorb_sums(self, total: IntArray, users: int) -> None:
        """Fold in what ``users`` users of the newest publication contributed, added up."""
        assert self.publication is not None
        self.secret = self.agent.privatizer.absorb_sums(
            self.secret, total, users, self.publication, self.noise
        )
        self.served += users
        self.left -= users

    def _ask(self, query: Any) -> Release:
        return self.agent.privatizer.release(self.secret, query, self.noise)


def drive(agent: BoundAgent, users: Users, noise: Noise, streams: Streams) -> Iterator[Publication]:
    """Learn from ``agent.task.users`` users, one after the other; stop exactly there.

    Yields every publication before the users who act on it are served; they are served when the
    next publication is asked for.
    """
    learner = Learner(agent, noise)
    while learner.served < agent.task.users:
        yield learner.publish(streams)
        while learner.left > 0:
            learner.serve(users)
