"""The trivial privatizer: no noise, and it says so."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import IntArray
from tacit.kernels import sums
from tacit.privacy.base import Query, Report, Secret, require_room
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise
from tacit.publication import Publication
from tacit.release import NoNoise, Release
from tacit.statistics.base import Relation, Statistic
from tacit.task import Task


class Exact:
    """Releases exact sums. Epsilon is infinite, unless the statistic carries no data at all."""

    absorbs_sums = True

    def __init__(self, statistic: Statistic, task: Task) -> None:
        self.layout = statistic.layout
        if self.layout.size:
            require_room(statistic, task, self.layout.units.min())
        moves = statistic.sensitivity("l1", Relation.REPLACE_ONE)
        self.guarantee = _nothing_collected(task) if moves == 0.0 else _no_privacy(task)

    def law(self, users: int) -> NoNoise:
        """No noise, however many users."""
        return NoNoise()

    def init(self) -> Secret:
        """Zero sums."""
        return Secret(np.zeros(self.layout.size, dtype=np.int64))

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The contribution itself."""
        return Report(contribution.copy())

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Add it up."""
        sums.absorb(secret.sums, report.take())
        secret.users += 1
        return secret

    def absorb_sums(
        self,
        secret: Secret,
        total: IntArray,
        users: int,
        publication: Publication,
        noise: Noise,
    ) -> Secret:
        """The same for what several users contributed, added up before."""
        sums.absorb(secret.sums, total)
        secret.users += users
        return secret

    def moved(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """1 if the two differ at all: nothing is paid for."""
        return float(not np.array_equal(first, second))

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """The sums so far, in natural units."""
        values = np.empty(self.layout.size)
        sums.scale(secret.sums, self.layout.units, values)
        law = self.law(secret.users)
        return Release(secret.users, self.layout.views(values), law, "none")


def _no_privacy(task: Task) -> Guarantee:
    return Guarantee(
        model="none",
        epsilon=math.inf,
        delta=0.0,
        mechanism="exact",
        accountant="none: no noise was added",
        participations=task.participations,
        revealed=task.revealed,
        assumptions=(
            "the learner is trusted with raw trajectories, and so is everybody who sees a policy",
        ),
    )


def _nothing_collected(task: Task) -> Guarantee:
    return Guarantee(
        model="local",
        epsilon=0.0,
        delta=0.0,
        mechanism="nothing is collected",
        accountant="exact: the output does not depend on any user",
        participations=task.participations,
        revealed=task.revealed,
    )
