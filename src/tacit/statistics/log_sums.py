"""What one person teaches through a log: first visits, outcomes or weighted returns, over a life.

A person is counted over all their episodes together, so the bounds here are of the person and do
not grow with episodes or steps. Proof of the sensitivities: proofs/logs.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.raw import log_rows
from tacit.statistics.base import BoundedSum, Layout, Norm, counted, visits_moved
from tacit.task.task import Task, table_sizes
from tacit.trajectory import Log
from tacit.validate import table_fits

PEOPLE, WHOLE, RETURNS = counted("people", 1), counted("whole", 1), counted("returns", 2)
"""How many people there are, and of how many the first episode was recorded from its first step to
its end; sums of u - 1/2 and u^2 - 1/2 over these, with u in [0, 1] what that episode earned. The
number of people is the same in neighbouring logs: it moves nothing."""

TINY = 1e-12
"""The chance of every step of a worst pair: weights beyond any that they are cut to."""


class LogStatistic(BoundedSum):
    """A bounded sum over the people of a log."""

    task: Task

    @abstractmethod
    def add(self, log: Log, out: IntArray) -> None:
        """Add the clipped contributions of everybody to ``out``."""

    @abstractmethod
    def moved(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """What one person moves beside people and returns: L1, or the square of L2."""

    def _sensitivity(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """Jointly over all blocks, for any two lives of one person, however many episodes."""
        total = self.moved(w, norm, replaced)
        alone = 0.0 if replaced else w["people"]
        returns = _returns(w.get("whole", 0.0), w.get("returns", 0.0), norm, replaced)
        if norm == "l1":
            return total + alone + returns
        return math.sqrt(total + alone**2 + returns)

    def worst_pair(self) -> tuple[Log, Log]:
        """Two logs of one person that are as far apart as replace-one allows.

        In one of them every pair has a whole episode that pays all there is; in the other, the
        other way round, one that pays nothing and leads elsewhere. They attain the bound where no
        state in which choices count has a single action.
        """
        order, last = np.lexsort((self.task.pairs.state, self.task.pairs.action)), self._states - 1
        one, two = (np.repeat(x, self.task.horizon) for x in (order, order[::-1]))
        return self._episodes(one, 1.0, 0), self._episodes(two, 0.0, last)

    @property
    def _states(self) -> int:
        return len(self.task.pairs.number)

    def _episodes(self, x: IntArray, reward: float, after: int) -> Log:
        """The log of somebody who does x in whole episodes, one after the other."""
        pairs, step = self.task.pairs, np.arange(len(x)) % self.task.horizon
        paid, leads, chance = (np.full(len(x), value) for value in (reward, after, TINY))
        begin, opens = np.array([0, len(x)]), (step == 0).astype(np.int8)
        return Log(begin, opens, step, pairs.state[x], pairs.action[x], paid, leads, chance)


def _returns(whole: float, paid: float, norm: Norm, replaced: bool) -> float:
    """What one person moves in ``whole`` and ``returns``: L1, or the square of L2.

    Two whole episodes differ by at most 1 in u and in its square; a whole one and none by 1 in
    ``whole``, and by 1/2 in both.
    """
    alone = whole + paid if norm == "l1" else whole**2 + paid**2 / 2
    both = 2.0 * paid if norm == "l1" else 2.0 * paid**2
    return max(alone, both) if replaced else alone


def first_episodes(log: Log, task: Task, top: float) -> tuple[IntArray, Array]:
    """Where everybody's first episode is over, and what it earned / top; see the kernel."""
    ends, shares = np.zeros(log.people, dtype=np.int64), np.zeros(log.people)
    facts = task.pairs.number, task.horizon, task.end_reward, top
    log_rows.first_episodes(log, *facts, ends, shares)
    return ends, shares


def _on_grid(numbers: Array) -> int:
    return int(np.rint(STEPS * numbers).astype(np.int64).sum())


class _Counted(LogStatistic):
    """What visits and outcomes share.

    Args:
        task: the public task.
        cap: pairs that one person teaches, at most.
        max_return: the most that an episode earns.
    """

    def __init__(self, task: Task, cap: int, max_return: float) -> None:
        self.task, self.max_return = task, max_return
        self.cap = min(cap, len(task.pairs.action))
        self.places = min(cap, int((np.diff(task.pairs.first) > 0).sum()))

    def _add_returns(self, log: Log, views: Mapping[str, IntArray]) -> None:
        """1 for every person; for those whose first episode is whole 1, u - 1/2 and u^2 - 1/2.

        u is what the episode earned over the most that one earns, clipped into [0, 1].
        """
        ends, shares = first_episodes(log, self.task, self.max_return)
        u = shares[ends > log.begin[:-1]]
        views["people"][:] += STEPS * log.people
        views["whole"][:] += STEPS * len(u)
        views["returns"][:] += [_on_grid(u - 0.5), _on_grid(u * u - 0.5)]


class LoggedVisits(_Counted):
    """Next state and reward of the first visits of at most ``cap`` pairs per person.

    As :class:`~tacit.statistics.first_visits.FirstVisits`, but over all episodes of a person, and
    every pair is asked for. A visit whose next state was not recorded is counted as censored. The
    actions at first visits of states say how actions were chosen.
    """

    def __init__(self, task: Task, cap: int, max_return: float) -> None:
        super().__init__(task, cap, max_return)
        names = ("censored", "totals", "gains", "choices")
        self.layout = self._visits(names, len(task.pairs.action))

    def _visits(self, names: Sequence[str], *shape: int) -> Layout:
        """Where visits of a table of that shape led, more about them, start states and returns."""
        S = self._states
        blocks = [counted("transitions", *shape, S), *(counted(name, *shape) for name in names)]
        return Layout([*blocks, counted("starts", S), PEOPLE, WHOLE, RETURNS])

    def add(self, log: Log, out: IntArray) -> None:
        """Add first visits, start states and returns."""
        views = self.layout.views(out)
        names = ("transitions", "censored", "gains", "totals", "choices", "starts")
        sums = (views[name] for name in names)
        log_rows.add_logged_visits(log, self.task.pairs.number, self.cap, *sums)
        self._add_returns(log, views)

    def moved(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """3 m + m' / 2 + 2 in squared L2 with weights 1, for m pairs and choices in m' states.

        Two choices are two cells by 1/2 at most, and so are two start states by 1.
        """
        led = max(w["transitions"], w["censored"])
        visits = visits_moved((led, w["gains"], w["totals"]), self.cap, norm, replaced)
        people, places = 1 + replaced, self.places
        choice, start = w.get("choices", 0.0), w["starts"]
        if norm == "l1":
            return visits + people * places * choice / 2 + people * start
        return visits + people * places * choice**2 / 4 + people * start**2


class LoggedStages(LoggedVisits):
    """All steps of one episode of a person, with one table per stage, as published agents count.

    Args:
        task: the public task.
        max_return: the most that an episode earns.
    """

    def __init__(self, task: Task, max_return: float) -> None:
        super().__init__(task, 1, max_return)
        self.cap = task.horizon  # steps, each in the table of its stage
        (H, S, _), X = table_sizes(task), len(task.pairs.action)
        table_fits("counts of every stage", H, X, S)
        self.layout = self._visits(("censored", "totals", "gains"), H, X)

    def add(self, log: Log, out: IntArray) -> None:
        """Add the steps of everybody's first episode, start states and returns."""
        views = self.layout.views(out)
        names = ("transitions", "censored", "gains", "totals", "starts")
        sums = (views[name] for name in names)
        log_rows.add_logged_stages(log, self.task.pairs.number, *sums)
        self._add_returns(log, views)


class LoggedOutcomes(_Counted):
    """What was earned after the first visits of at most ``cap`` states per person, by action.

    Two numbers per pair instead of one per pair and next state, for tables that are too large for
    transitions: half the number of visits, and the sum of outcomes minus 1/2.
    """

    def __init__(self, task: Task, cap: int, max_return: float) -> None:
        super().__init__(task, cap, max_return)
        self.cap = self.places
        X = len(task.pairs.action)
        blocks = [counted(name, X) for name in ("outcomes", "visits")]
        self.layout = Layout([*blocks, PEOPLE, WHOLE, RETURNS])

    def add(self, log: Log, out: IntArray) -> None:
        """Add outcomes, visits and returns."""
        views, task = self.layout.views(out), self.task
        bounds = self.cap, task.horizon, task.end_reward, self.max_return
        sums = views["outcomes"], views["visits"]
        log_rows.add_logged_outcomes(log, task.pairs.number, *bounds, *sums)
        self._add_returns(log, views)

    def moved(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """M in squared L2 with weights 1, for m states: a visit leads nowhere here."""
        return visits_moved((0.0, w["outcomes"], w["visits"]), self.cap, norm, replaced)


class WeightedReturns(LogStatistic):
    """Clipped importance weights of a policy times what was won and lost, and their squares.

    Args:
        task: the public task.
        policy: action probabilities [H, S, A] of the policy that is evaluated.
        most: weights above it are cut.
        max_return: the most that an episode earns.
    """

    layout = Layout([PEOPLE, counted("weighted", 4)])

    def __init__(self, task: Task, policy: Array, most: float, max_return: float) -> None:
        if policy.shape != (shape := table_sizes(task)):
            raise InvalidInput(  # compiled code would read beyond its end
                f"a policy of shape {list(policy.shape)} cannot be weighed against a log of a task "
                f"of [horizon, states, actions] = {list(shape)}"
            )
        self.task, self.policy, self.most, self.max_return = task, policy, most, max_return

    def add(self, log: Log, out: IntArray) -> None:
        """Add a, b, a^2 and b^2 of everybody's first episode: a = w u / most, b = w (1 - u) / most.

        w is its weight, at most ``most``, and u what it earned over the most that one earns.
        """
        views, weights = self.layout.views(out), np.zeros(log.people)
        ends, u = first_episodes(log, self.task, self.max_return)
        log_rows.first_weights(log, self.policy, ends, weights)
        share = np.minimum(weights / self.most, 1.0)
        won, lost = share * u, share * (1.0 - u)
        sums = STEPS * won, STEPS * lost, STEPS * won * won, STEPS * lost * lost
        views["people"][:] += STEPS * log.people
        views["weighted"][:] += [int(each.astype(np.int64).sum()) for each in sums]

    def moved(self, w: dict[str, float], norm: Norm, replaced: bool) -> float:
        """With a + b <= 1, (1, 0, 1, 0) and (0, 1, 0, 1) are farthest apart."""
        weight = w["weighted"]
        return (4.0 if replaced else 2.0) * (weight if norm == "l1" else weight**2)

    def worst_pair(self) -> tuple[Log, Log]:
        """An episode of what the policy likes best in one state, with all paid and with nothing."""
        s, number = self.task.pairs.state[0], self.task.pairs.number
        x = number[s, self.policy[:, s].argmax(axis=1)]
        return self._episodes(x, 1.0, 0), self._episodes(x, 0.0, 0)
