"""The trivial privatizer: no noise, and it says so."""

from __future__ import annotations

import numpy as np

from tacit.arrays import IntArray
from tacit.kernels.raw import sums
from tacit.privacy.base import Privatizer, Query, Report, Secret, require_room
from tacit.privacy.events import Disclosure, Event, PureEvent
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.release import NoNoise, Release
from tacit.statistics.base import Relation, Statistic
from tacit.task.task import Task


class Exact(Privatizer[Secret]):
    """Releases exact sums. Epsilon is infinite, unless the statistic carries no data at all."""

    absorbs_sums = True

    def __init__(self, statistic: Statistic, task: Task) -> None:
        self.layout = statistic.layout
        if self.layout.size:
            require_room(statistic, task, self.layout.units.min())
        if statistic.sensitivity("l1", Relation.REPLACE_ONE):
            self.event: Event = Disclosure()
            self.guarantee = self.event.guarantee(
                task,
                model="none",
                mechanism="exact",
                accountant="none: no noise was added",
                assumptions=(
                    "the learner is trusted with raw trajectories, and so is everybody who sees a "
                    "policy",
                ),
            )
        else:
            self.event = PureEvent(0.0)
            self.guarantee = self.event.guarantee(
                task,
                model="local",
                mechanism="nothing is collected",
                accountant="exact: the output does not depend on any user",
            )

    def law(self, users: int) -> NoNoise:
        """No noise, however many users."""
        return NoNoise()

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The contribution itself."""
        return Report(contribution.copy())

    def absorb_sums(
        self, secret: Secret, total: IntArray, users: int, publication: Publication, noise: Noise
    ) -> Secret:
        """Add them up."""
        sums.absorb(secret.sums, total)
        secret.users += users
        return secret

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """1 if the two differ at all: nothing is paid for."""
        return float(not np.array_equal(first, second))

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """The sums so far, in natural units."""
        values = np.empty(self.layout.size)
        sums.scale(secret.sums, self.layout.units, values)
        return Release(secret.users, self.layout.views(values), NoNoise(), "none")
