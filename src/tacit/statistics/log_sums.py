"""What one person teaches through a log: first visits, outcomes or weighted returns, over a life.

A person is counted over all their episodes together, so the bounds here are of the person and do
not grow with episodes or steps. Proof of the sensitivities: proofs/logs.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels.raw.log_rows import (
    add_logged_outcomes,
    add_logged_returns,
    add_logged_stages,
    add_logged_visits,
    add_weighted_returns,
)
from tacit.statistics.base import Block, Layout, Norm, Relation, block_weights
from tacit.task.task import Task, table_sizes
from tacit.trajectory import Log
from tacit.validate import table_fits

_UNIT = 1.0 / STEPS
PEOPLE, WHOLE = Block("people", (1,), _UNIT), Block("whole", (1,), _UNIT)
RETURNS = Block("returns", (2,), _UNIT)
"""How many people there are, and of how many the first episode was recorded from its first step to
its end; sums of u - 1/2 and u^2 - 1/2 over these, with u in [0, 1] what that episode earned. The
number of people is the same in neighbouring logs: it moves nothing."""


class LogStatistic(ABC):
    """A bounded sum over the people of a log."""

    layout: Layout

    @abstractmethod
    def add(self, log: Log, out: IntArray) -> None:
        """Add the clipped contributions of everybody to ``out``."""

    @abstractmethod
    def moved(self, weights: Mapping[str, float], norm: Norm, replaced: bool) -> float:
        """What one person moves beside people and returns: L1, or the square of L2."""

    def sensitivity(
        self, norm: Norm, relation: Relation, scale: Mapping[str, float] | None = None
    ) -> float:
        """Jointly over all blocks, for any two lives of one person, however many episodes."""
        w = block_weights(self.layout, norm, relation, scale)
        replaced = relation is Relation.REPLACE_ONE
        total = self.moved(w, norm, replaced)
        alone = 0.0 if replaced else w["people"]
        returns = _returns(w.get("whole", 0.0), w.get("returns", 0.0), norm, replaced)
        if norm == "l1":
            return total + alone + returns
        return math.sqrt(total + alone**2 + returns)


def _returns(whole: float, paid: float, norm: Norm, replaced: bool) -> float:
    """What one person moves in ``whole`` and ``returns``: L1, or the square of L2.

    Two whole episodes differ by at most 1 in u and in its square; a whole one and none by 1 in
    ``whole``, and by 1/2 in both.
    """
    alone = whole + paid if norm == "l1" else whole**2 + paid**2 / 2
    both = 2.0 * paid if norm == "l1" else 2.0 * paid**2
    return max(alone, both) if replaced else alone


class _Counted(LogStatistic):
    """What visits and outcomes share.

    Args:
        task: the public task.
        cap: pairs that one person teaches, at most.
        top: the most that an episode earns.
    """

    def __init__(self, task: Task, cap: int, top: float) -> None:
        self.task, self.top = task, top
        self.cap = min(cap, len(task.pairs.action))
        self.places = min(cap, int((np.diff(task.pairs.first) > 0).sum()))

    def _add_returns(self, log: Log, views: Mapping[str, IntArray]) -> None:
        task = self.task
        add_logged_returns(
            *log[:-1],
            task.pairs.number,
            task.horizon,
            task.end_reward,
            self.top,
            views["people"],
            views["whole"],
            views["returns"],
        )


class LoggedVisits(_Counted):
    """Next state and reward of the first visits of at most ``cap`` pairs per person.

    As :class:`~tacit.statistics.first_visits.FirstVisits`, but over all episodes of a person, and
    every pair is asked for. A visit whose next state was not recorded is counted as censored. The
    actions at first visits of states say how actions were chosen.
    """

    def __init__(self, task: Task, cap: int, top: float) -> None:
        super().__init__(task, cap, top)
        X, S = len(task.pairs.action), table_sizes(task)[1]
        table = Block("transitions", (X, S), _UNIT)
        names = ("censored", "totals", "gains", "choices")
        pairs = [Block(name, (X,), _UNIT) for name in names]
        start = Block("starts", (S,), _UNIT)
        self.layout = Layout([table, *pairs, start, PEOPLE, WHOLE, RETURNS])

    def add(self, log: Log, out: IntArray) -> None:
        """Add first visits, start states and returns."""
        views = self.layout.views(out)
        names = ("transitions", "censored", "gains", "totals", "choices", "starts")
        sums = (views[name] for name in names)
        add_logged_visits(*log[:-1], self.task.pairs.number, self.cap, *sums)
        self._add_returns(log, views)

    def moved(self, weights: Mapping[str, float], norm: Norm, replaced: bool) -> float:
        """3 m + m' / 2 + 2 in squared L2 with weights 1, for m pairs and choices in m' states."""
        people, m, places = (2 if replaced else 1), self.cap, self.places
        gain, total, start = (weights[name] for name in ("gains", "totals", "starts"))
        count = max(weights["transitions"], weights["censored"])
        choice = weights.get("choices", 0.0)
        if norm == "l1":
            moved = m * (count + 0.5 * (gain + total)) + places * choice / 2
            return people * (moved + start)
        apart = (gain**2 + total**2) / 4
        if replaced:
            apart = max(apart, gain**2 / 2)
        return people * (m * (count**2 + apart) + places * choice**2 / 4 + start**2)


class LoggedStages(LoggedVisits):
    """All steps of one episode of a person, with one table per stage, as published agents count.

    Args:
        task: the public task.
        top: the most that an episode earns.
    """

    def __init__(self, task: Task, top: float) -> None:
        super().__init__(task, 1, top)
        self.cap = task.horizon  # steps, each in the table of its stage
        (H, S, _), X = table_sizes(task), len(task.pairs.action)
        table_fits("counts of every stage", H, X, S)
        stages = [Block(name, (H, X), _UNIT) for name in ("censored", "totals", "gains")]
        start = Block("starts", (S,), _UNIT)
        table = Block("transitions", (H, X, S), _UNIT)
        self.layout = Layout([table, *stages, start, PEOPLE, WHOLE, RETURNS])

    def add(self, log: Log, out: IntArray) -> None:
        """Add the steps of everybody's first episode, start states and returns."""
        views = self.layout.views(out)
        names = ("transitions", "censored", "gains", "totals", "starts")
        sums = (views[name] for name in names)
        add_logged_stages(*log[:-1], self.task.pairs.number, *sums)
        self._add_returns(log, views)


class LoggedOutcomes(_Counted):
    """What was earned after the first visits of at most ``cap`` states per person, by action.

    Two numbers per pair instead of one per pair and next state, for tables that are too large for
    transitions: half the number of visits, and the sum of outcomes minus 1/2.
    """

    def __init__(self, task: Task, cap: int, top: float) -> None:
        super().__init__(task, cap, top)
        self.cap = self.places
        X = len(task.pairs.action)
        blocks = [Block(name, (X,), _UNIT) for name in ("outcomes", "visits")]
        self.layout = Layout([*blocks, PEOPLE, WHOLE, RETURNS])

    def add(self, log: Log, out: IntArray) -> None:
        """Add outcomes, visits and returns."""
        views, task = self.layout.views(out), self.task
        add_logged_outcomes(
            *log[:-1],
            task.pairs.number,
            self.cap,
            task.horizon,
            task.end_reward,
            self.top,
            views["outcomes"],
            views["visits"],
        )
        self._add_returns(log, views)

    def moved(self, weights: Mapping[str, float], norm: Norm, replaced: bool) -> float:
        """M in squared L2 with weights 1, for m states.

        A pair that two people count moves its outcome by at most 1 and its visits not at all; one
        that only one of them counts moves both by at most 1/2.
        """
        people, m = (2 if replaced else 1), self.cap
        paid, seen = weights["outcomes"], weights["visits"]
        if norm == "l1":
            return people * m * 0.5 * (paid + seen)
        apart = (paid**2 + seen**2) / 4
        if replaced:
            apart = max(apart, paid**2 / 2)
        return people * m * apart


class WeightedReturns(LogStatistic):
    """Clipped importance weights of a policy times what was won and lost, and their squares.

    Args:
        task: the public task.
        policy: action probabilities [H, S, A] of the policy that is evaluated.
        most: weights above it are cut.
        top: the most that an episode earns.
    """

    layout = Layout([PEOPLE, Block("weighted", (4,), _UNIT)])

    def __init__(self, task: Task, policy: Array, most: float, top: float) -> None:
        self.task, self.policy, self.most, self.top = task, policy, most, top

    def add(self, log: Log, out: IntArray) -> None:
        """Add the four numbers of everybody's first episode."""
        views, task = self.layout.views(out), self.task
        add_weighted_returns(
            *log,
            task.pairs.number,
            self.policy,
            task.end_reward,
            self.top,
            self.most,
            views["people"],
            views["weighted"],
        )

    def moved(self, weights: Mapping[str, float], norm: Norm, replaced: bool) -> float:
        """With a + b <= 1, (1, 0, 1, 0) and (0, 1, 0, 1) are farthest apart."""
        w = weights["weighted"]
        return (4.0 if replaced else 2.0) * (w if norm == "l1" else w**2)
