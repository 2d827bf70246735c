"""A budget of norms for sums that have no cells to count in: what one person adds in a life."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tacit.arrays import IntArray
from tacit.grid import GRID
from tacit.publication import Publication
from tacit.statistics import base
from tacit.task.task import Task
from tacit.trajectory import Attendees, Lives, Trajectory

HAIR = 1e-12
"""Above the relative error of a norm in float64."""


class NormBudget(base.LifetimeStatistic):
    """Another statistic, of which one person adds contributions of total L2 norm B at most.

    B is the largest norm of one participation, so the first one always counts in full; ``often``
    times that, where the rule of the task says so. What would go beyond is scaled down to what is
    left, as a whole: directions stay, weights fall. The sums of two lives are then at most 2 B |C|
    apart through any counter, and less through one with non-negative columns if the statistic says
    how far two contributions may be ``opposed`` (proofs/lifetimes.md).

    Args:
        statistic: what one participation contributes.
        task: the public task.
    """

    memory_size = 0

    def __init__(self, statistic: base.Statistic, task: Task) -> None:
        assert isinstance(statistic, base.BatchStatistic)
        self.inner, self.task = statistic, task
        self.layout = statistic.layout
        often = 1 if task.rule is None else task.rule.often
        largest = often * statistic.sensitivity("l2", base.Relation.ADD_REMOVE_ONE)
        self.budget = math.ceil(largest / GRID)
        """B, in grid steps."""
        own = getattr(statistic, "opposed", None)
        apart = math.sqrt(2.0 * (1.0 + own())) if own else 2.0
        cut = 2.0 * float(np.linalg.norm(self.layout.units))  # one contribution of a life is cut
        self._lives = min(apart * self.budget * GRID + cut, 2.0 * self.budget * GRID)

    def sensitivity(
        self, norm: base.Norm, relation: base.Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Of whole lives at most 2 B, the triangle inequality; weights at their largest."""
        if not self.lifetime:
            return self.inner.sensitivity(norm, relation, scale)
        weights = base.block_weights(self.layout, norm, relation, scale)
        lives = 2 if relation is base.Relation.REPLACE_ONE else 1
        l2 = lives * self.budget * GRID * max(weights.values())
        if relation is base.Relation.REPLACE_ONE and scale is None:
            l2 = self._lives
        return l2 if norm == "l2" else math.sqrt(self.layout.size) * l2

    def largest_cell(self) -> float:
        """What one participation adds to a cell at most: its norm."""
        return self.budget * GRID

    def add_people(
        self, lives: Lives, publication: Publication, coins: IntArray, who: Attendees, out: IntArray
    ) -> None:
        """One contribution after the other, cut to what is left of its person's budget."""
        units, one = self.layout.units, np.zeros(self.layout.size, dtype=np.int64)
        for row, person in enumerate(who.rows):
            one[:] = 0
            alone = Lives(*(part[row : row + 1] for part in lives))
            self.inner.add_many(alone, publication, coins[row : row + 1], one)
            norm = float(np.linalg.norm(one * units)) / GRID * (1.0 + HAIR)
            left = self.budget - int(who.spent[person])
            if norm > left:
                one[:] = np.trunc(one * (left / norm * (1.0 - HAIR))).astype(np.int64)
            out += one
            if not who.forget:
                who.spent[person] += min(math.ceil(norm), left)

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Of one participation."""
        return self.inner.worst_pair()

    def worst_contexts(self) -> Mapping[str, Mapping[str, npt.NDArray[np.float64]]]:
        """Of one participation."""
        inner = self.inner
        return inner.worst_contexts() if isinstance(inner, base.ReadsPublication) else {"": {}}
