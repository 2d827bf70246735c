"""Runs of all users between two publications together, on the driver's learner."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Arrays
from tacit.learner import Learner
from tacit.privacy.local.one_number import OneNumber
from tacit.privacy.noise import SimulatedNoise
from tacit.simulation.runs.base import Run
from tacit.simulation.users import simulated_users
from tacit.statistics.base import BatchStatistic
from tacit.statistics.search import RoundedReturn


class SegmentRun(Run):
    """All users between two publications together; learning is that of ``learner.Learner``.

    Users live through compiled rollouts, ``statistic.add_many`` adds them up, and the privatizer
    absorbs the sum when all are in. Exact sums are those of the driver to the last bit. Users who
    add noise of their own are absorbed in the law of their sum: in bits where a batch is one user.
    """

    learner: Learner

    def _prepare(self) -> None:
        self.learner = self._new_learner(SimulatedNoise(self._noise))
        self.users = simulated_users(self.problem, self._users)
        self.sums = np.zeros(self.agent.statistic.layout.size, dtype=np.int64)
        self._lived = 0

    def advance(self, episodes: int) -> None:
        """Do that many more episodes, publishing when it is time."""
        while episodes > 0:
            if self.learner.left == 0:
                self.publish()
            count = min(episodes, self._to_come(), self.users.rows)
            self._serve(count)
            episodes -= count

    def _to_come(self) -> int:
        """How many more take part under the newest publication.

        Where batches close by the clock, that is whoever comes until it is as late as it would be
        after ``learner.left`` users who come evenly: learning goes by that number alone.
        """
        learner, trace = self.learner, self.people
        if trace is None or not trace.clock:
            return learner.left - self._lived
        share = (learner.served + learner.left) / learner.agent.task.users
        return trace.until(share) - int(self.score.at[0])

    def _serve(self, count: int) -> None:
        """Some of the users of the newest publication; the last of them close the batch."""
        publication, first = self.learner.publication, int(self.score.at[0])
        statistic = self.agent.statistic
        assert publication is not None and isinstance(statistic, BatchStatistic)
        lives = self.users.live(publication.policy, first, count, self.score)
        coins = np.arange(first, first + count)
        if self.learner.memory is None:
            statistic.add_many(lives, publication, coins, self.sums)
        else:
            who = None if self.people is None else self.people.who[first : first + count]
            self.learner.add_people(lives, coins, who, self.sums)
        self._lived += count
        if self._to_come() == 0:
            self.learner.absorb_sums(self.sums, self.learner.left)
            self.sums[:] = 0
            self._lived = 0

    def kept(self) -> Arrays:
        """The sums of the open batch, and how many lived."""
        return {**super().kept(), "sums": self.sums, "lived": np.array(self._lived)}

    def recall(self, arrays: Arrays) -> None:
        """Go on with them."""
        super().recall(arrays)
        self._lived = int(arrays["lived"])


class ReportRun(SegmentRun):
    """As the driver to the last bit: every report is drawn, none is summed up before."""

    def _serve(self, count: int) -> None:
        """Some of the users of the newest publication, each with a report of its own."""
        learner, first = self.learner, int(self.score.at[0])
        statistic, privatizer = self.agent.statistic, self.agent.privatizer
        publication = learner.publication
        assert publication is not None and isinstance(statistic, RoundedReturn)
        assert isinstance(privatizer, OneNumber)
        lives = self.users.live(publication.policy, first, count, self.score)
        people = np.arange(first, first + count)
        places = statistic.shifts(lives, publication, people)
        outputs = privatizer.randomizer.encode_many(places, self._noise)
        privatizer.absorb_outputs(learner.secret, outputs, publication, people, "simulated")
        learner.served += count
        learner.left -= count
