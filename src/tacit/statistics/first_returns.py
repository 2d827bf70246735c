"""Returns from first visits of states: two numbers per pair, for tables with very many cells."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tacit.arrays import IntArray
from tacit.kernels.raw.first_visits import add_first_returns
from tacit.publication import Publication
from tacit.statistics.base import (
    Attendees,
    Layout,
    LifetimeStatistic,
    Norm,
    counted,
    visits_moved,
)
from tacit.statistics.first_visits import apart, trip
from tacit.task.task import Task
from tacit.trajectory import Lives, Trajectory


class FirstReturns(LifetimeStatistic):
    """What the rest of the episode paid, from the first visits of at most ``cap`` states on.

    It is booked on the pair that was played there: (return / largest, clipped to [0, 1]) - 1/2 to
    returns [X], and 1/2 to totals [X]. The action at the first visit of a *state* is drawn by the
    behaviour alone, so actions of a state are compared at the same moments of an episode; at the
    first visits of pairs, rare actions would be seen later, with less left to earn.

    With a task that bounds lives, a state counts once in all participations of a person. Proof of
    the sensitivity: proofs/first_visits.md and proofs/lifetimes.md.

    Args:
        task: the public task; the largest of its ``returns`` is what they are clipped to.
        cap: states that one person teaches, at most: the first ones.
    """

    def __init__(self, task: Task, cap: int) -> None:
        X, alive = len(task.pairs.action), int(np.count_nonzero(np.diff(task.pairs.first)))
        self.task, self.cap = task, cap
        self.memory_size = len(task.pairs.first) - 1
        self.visits = min(cap, alive) if self.lifetime else min(task.horizon, cap, alive)
        """Visits that one person teaches, at most."""
        self.layout = Layout([counted("returns", X), counted("totals", X)])

    @property
    def groups(self) -> IntArray:
        """By cell, its pair."""
        return np.tile(self.totals - len(self.totals), 2)

    @property
    def totals(self) -> IntArray:
        """By pair, the cell that says how often it was counted."""
        X = len(self.task.pairs.action)
        return np.arange(X, 2 * X)

    def largest_cell(self) -> float:
        """The most that one person adds to a cell."""
        return 0.5

    def add_people(
        self, lives: Lives, publication: Publication, coins: IntArray, who: Attendees, out: IntArray
    ) -> None:
        """First visits of states."""
        task, views = self.task, self.layout.views(out)
        table = task.horizon, task.pairs.first, task.pairs.number
        bounds = self.cap, task.end_reward, task.returns[1]
        known = who.rows, who.taught, who.spent
        sums = views["returns"], views["totals"]
        add_first_returns(*lives, *table, *bounds, *known, who.forget, *sums)

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Jointly over both blocks; with weights 1, L2^2 is the number of visits that count.

        A pair that both people count moves returns by at most 1, one that only one of them counts
        moves returns and totals by 1/2 each.
        """
        moved = visits_moved((0.0, w["returns"], w["totals"]), self.visits, norm, replaced)
        return moved if norm == "l1" else math.sqrt(moved)

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Of a few trips through the states, the two that are farthest apart.

        They attain the bound where as many states as count have a second action, or there are twice
        as many states, or the last state that counts leaves steps enough to earn everything.
        """
        first, m = self.task.pairs.first, self.visits
        alive = np.flatnonzero(np.diff(first))
        rich = alive[np.argsort(-np.diff(first)[alive], kind="stable")]
        low = trip(self.task, first[rich[:m]], 0.0)
        ways = [
            (low, trip(self.task, first[rich[:m] + 1] - 1, 0.0)),
            (low, trip(self.task, first[rich[::-1][:m]], 0.0)),
            (low, trip(self.task, first[rich[:m]], 1.0)),
        ]
        return max(ways, key=partial(apart, self))
