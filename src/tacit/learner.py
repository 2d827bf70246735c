"""The one definition of learning: serve users, sum up their reports, release, plan, publish.

The stepwise simulator, a fleet, the service and a user's own agent all follow this loop. The
simulator's other runs exist beside it for speed; docs/architecture.md#way says which of them equal
it bit by bit and which in law (tested).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.arrays import IntArray
from tacit.errors import BudgetExceeded, InvalidInput
from tacit.planners.base import Planner, Streams
from tacit.privacy.base import Privatizer, Query, Report, Secret
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.release import Release
from tacit.schedules import PlansPerRelease, Schedule, every_user
from tacit.statistics.base import LifetimeStatistic, Memory, Statistic, bounds_lifetimes
from tacit.task.task import Task
from tacit.trajectory import Lives, Trajectory, together

Users = Callable[[Publication], Trajectory]
"""Somebody who takes part: acts on a publication, and lives through a trajectory."""


FINAL_DRAWS = 32
"""Models that the policy left in the end is planned in the mean of, by planners that draw them."""


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
    def lifetime(self) -> LifetimeStatistic:
        """The statistic, where it bounds what a person teaches in all their participations."""
        statistic: Any = self.statistic
        assert isinstance(statistic, LifetimeStatistic)
        return statistic

    @property
    def counts_everybody(self) -> bool:
        """Whether the last users are an item of the counter like all others, and not its close."""
        return isinstance(self.schedule, PlansPerRelease)

    def release_number(self, version: int, served: int) -> int:
        """Number of the release that a version is planned on, after so many users."""
        schedule = self.schedule
        return schedule.number(served) if isinstance(schedule, PlansPerRelease) else version

    def plans_again(self, served: int) -> bool:
        """Whether what is planned after so many users is planned on a release made before."""
        return isinstance(self.schedule, PlansPerRelease) and served not in self.schedule.times


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
        if bounds_lifetimes(agent.statistic):
            self.memory = agent.lifetime.memory(people or agent.task.users)

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
        except BudgetExceeded:
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

    def add_people(
        self, lives: Lives, coins: IntArray, who: IntArray | None, out: IntArray
    ) -> None:
        """Add what users of the newest publication teach to ``out``, and remember it.

        ``who`` says who they are: by default nobody came before.
        """
        assert self.publication is not None and self.memory is not None
        people = self.memory.of(coins if who is None else who)
        self.agent.lifetime.add_people(lives, self.publication, coins, people, out)

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
