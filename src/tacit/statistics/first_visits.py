"""First visits: what one person teaches about a table, however long they stay.

Of pairs, where they led and what they paid; or of states, what the rest of the episode paid: two
numbers per pair, for tables with very many cells.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tacit.arrays import IntArray
from tacit.kernels.raw.first_visits import (
    FirstVisitSums,
    VisitBounds,
    add_first_returns,
    add_first_visits,
)
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics import base
from tacit.task.participation import OFTEN
from tacit.task.task import Task, table_sizes
from tacit.trajectory import Attendees, Lives, Trajectory
from tacit.validate import integer

ASKED, AGAIN = 2, 1
"""Flags of a publication: a pair that is asked for, and one that may be taught again."""


class FirstVisits(base.BoundedSum, base.LifetimeStatistic):
    """Next state and reward of the first visits of at most ``cap`` pairs per person.

    Which pairs count is published ("wanted" [X], see ``kernels.raw.first_visits``). Whether a step
    counts follows from the past of the trajectory and from public flags, so counted next states
    are independent draws of the pair's law, whatever policy, cap and flags do. A counted visit adds
    1 to transitions [X, S], r - 1/2 to gains [X] and 1/2 to totals [X]; start states are counted
    where their law is not declared, rewards where they are not known. Nothing is counted from a
    terminal state on. All stages share one table.

    With a task that bounds lives, ``cap`` and ``often`` hold for all participations of a person
    together, and a start state is counted once. Proof of the sensitivity: proofs/first_visits.md
    and proofs/lifetimes.md.

    Args:
        task: the public task.
        cap: pairs that one person teaches, at most.
        refresh: how many of them may be pairs that are taught again.
        often: c, how often one person teaches a pair, at most.
    """

    def __init__(self, task: Task, cap: int, refresh: int, often: int = 1) -> None:
        H, S, _ = table_sizes(task)
        X = len(task.pairs.action)
        self.task = task
        self.cap, self.refresh = cap, refresh
        self.often = integer(often, "often", low=1, high=OFTEN)
        self.memory_size = X + 1
        self.steps = self.often * min(cap, X)
        if not self.lifetime:
            self.steps = min(H, self.steps)
        """Visits that one person teaches, at most."""
        self.rewards, self.starts = "reward" not in task.known, "initial" not in task.known
        blocks = [base.counted("transitions", X, S), base.counted("totals", X)]
        if self.rewards:
            blocks.append(base.counted("gains", X))
        if self.starts:
            blocks.append(base.counted("starts", S))
        self.layout = base.Layout(blocks)

    @property
    def groups(self) -> IntArray:
        """By cell, its pair; -1 for start states."""
        pairs, S = np.arange(len(self.task.pairs.action)), len(self.task.pairs.number)
        parts = [np.repeat(pairs, S), *[pairs] * (1 + self.rewards)]
        return np.concatenate([*parts, np.full(S if self.starts else 0, -1)])

    @property
    def totals(self) -> IntArray:
        """By pair, the cell that says how often it was counted."""
        X, S = self.layout.blocks[0].shape
        return X * S + np.arange(X)

    def largest_cell(self) -> float:
        """The most that one person adds to a cell."""
        return float(self.often)

    def add_people(
        self, lives: Lives, publication: Publication, coins: IntArray, who: Attendees, out: IntArray
    ) -> None:
        """First visits of pairs that the publication asks for."""
        pairs, views, none = self.task.pairs, self.layout.views(out), np.zeros(0, dtype=np.int64)
        table = self.task.horizon, pairs.first, pairs.number
        wanted = base.context_array(publication, "wanted", pairs.action.shape).astype(np.int64)
        bounds = VisitBounds(self.cap, self.refresh, self.often)
        sums = FirstVisitSums(*(views.get(name, none) for name in FirstVisitSums._fields))
        add_first_visits(lives, *table, wanted, bounds, who, sums)

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """Jointly over all blocks; with weights 1, L2^2 = 3 c min(H, c m) + 2 for start states.

        Two people count n and n' visits of a pair. Its transitions differ by at most n^2 + n'^2 in
        squared L2, its gains by (n + n') / 2 and its totals by |n - n'| / 2: with equal weights the
        squares of the last two add up to (n^2 + n'^2) / 2. Over all pairs n^2 <= c n, and the
        visits of one person are at most min(H, c m).
        """
        seen = (w["transitions"], w.get("gains", 0.0), w["totals"])
        people, start = 1 + replaced, w.get("starts", 0.0)
        if norm == "l1":
            return base.visits_moved(seen, self.steps, norm, replaced) + people * start
        squared = base.visits_moved(seen, self.often * self.steps, norm, replaced)
        return math.sqrt(squared + people * start**2)

    def worst_contexts(self) -> dict[str, dict[str, IntArray]]:
        """Every pair is asked for, or every pair may be taught again."""
        X = len(self.task.pairs.action)
        return {
            "pairs that are asked for": {"wanted": np.full(X, ASKED)},
            "pairs that are taught again": {"wanted": np.full(X, AGAIN)},
        }

    def worst_pair(self) -> tuple[Trajectory, Trajectory]:
        """Of a few trips through the pairs, the two that are farthest apart if all are asked for.

        They attain the bound if c = 1 and there are three states with pairs, or twice as many pairs
        as one person teaches.
        """
        pairs, m = self.task.pairs, max(1, self.steps // self.often)
        orders = np.arange(len(pairs.action)), np.lexsort((pairs.state, pairs.action))
        candidates = [
            (trip(self.task, order[:m], 1.0, end), trip(self.task, other[:m], 0.0, end))
            for order in orders
            for other in (order[::-1], order[:m][::-1], np.roll(order[:m][::-1], 1))
            for end in (0, len(pairs.number) - 1)
        ]
        return max(candidates, key=partial(apart, self))


class FirstReturns(base.BoundedSum, base.LifetimeStatistic):
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
        self.layout = base.Layout([base.counted("returns", X), base.counted("totals", X)])

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
        add_first_returns(lives, *table, *bounds, who, views["returns"], views["totals"])

    def _sensitivity(self, w: dict[str, float], norm: base.Norm, replaced: bool) -> float:
        """Jointly over both blocks; with weights 1, L2^2 is the number of visits that count.

        A pair that both people count moves returns by at most 1, one that only one of them counts
        moves returns and totals by 1/2 each.
        """
        moved = base.visits_moved((0.0, w["returns"], w["totals"]), self.visits, norm, replaced)
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
        candidates = [
            (low, trip(self.task, first[rich[:m] + 1] - 1, 0.0)),
            (low, trip(self.task, first[rich[::-1][:m]], 0.0)),
            (low, trip(self.task, first[rich[:m]], 1.0)),
        ]
        return max(candidates, key=partial(apart, self))


def trip(task: Task, order: IntArray, reward: float, end: int | None = None) -> Trajectory:
    """Round and round through these pairs, and to a state where that ends, or else began."""
    x = np.resize(order, task.horizon)
    states = np.append(task.pairs.state[x], task.pairs.state[x[0]] if end is None else end)
    return Trajectory(states, task.pairs.action[x], np.full(len(x), reward))


def apart(statistic: FirstVisits | FirstReturns, lives: tuple[Trajectory, Trajectory]) -> float:
    """How far apart two contributions are if every pair is asked for."""
    rows, task = np.zeros((2, statistic.layout.size), dtype=np.int64), statistic.task
    wanted = {"wanted": np.full(len(task.pairs.action), ASKED)}
    entry = Publication(0, uniform_policy(*table_sizes(task)), wanted)
    for life, row in zip(lives, rows, strict=True):
        statistic.contribute(life, entry, 0, row)
    return float(np.linalg.norm((rows[1] - rows[0]) * statistic.layout.units))
