"""From a trajectory to what is sent, in two steps: the clipped answer, and the message made of it.

The answer is what stays of an episode until its report is due; noise is added when the message is
made. Which reports there are is said in docs/reference/wire.md; a new kind of them is a class here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.privacy.finite import packing
from tacit.privacy.finite.cell_answers import answer, marked
from tacit.statistics.base import contribution_of
from tacit.statistics.one_step import OneStep
from tacit.statistics.search import RoundedReturn
from tacit.wire import messages
from tacit.wire.report_rules import oracles_of, sliding_of

if TYPE_CHECKING:
    from tacit.arrays import IntArray
    from tacit.privacy.noise import Noise
    from tacit.publication import Publication
    from tacit.task.task import Task
    from tacit.trajectory import Trajectory


class ReportEncoder(ABC):
    """How the reports of one task are made on a device."""

    @abstractmethod
    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """The clipped answer as JSON: all that stays of the steps."""

    def message(self, answer: Any, publication: Publication, coin: int, noise: Noise) -> str:
        """What is sent of an answer: randomized, unless the operator is trusted with it."""
        return str(answer)


class TrajectoryEncoder(ReportEncoder):
    """The trajectory itself, for an operator whom the user trusts."""

    def __init__(self, task: Task) -> None:
        self._horizon = task.horizon

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """All steps, always of one length."""
        return messages.pack_trajectory(lived, self._horizon)


class ReturnEncoder(ReportEncoder):
    """The clipped return of a search itself, for an operator whom the user trusts."""

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """Eight bytes."""
        return messages.pack_return(float(lived.rewards[0]))


def sparse(contribution: IntArray) -> list[list[int]]:
    """Where a contribution is not zero, and what stands there."""
    cells = np.flatnonzero(contribution)
    return [cells.tolist(), contribution[cells].tolist()]


def dense(answer: Any, size: int) -> IntArray:
    """The contribution again."""
    contribution = np.zeros(size, dtype=np.int64)
    contribution[answer[0]] = answer[1]
    return contribution


class CellEncoder(ReportEncoder):
    """One cell of one step, by the randomizer that the rules have for the question asked."""

    def __init__(self, task: Task, rules: Mapping[str, Any]) -> None:
        self._statistic = OneStep(task)
        self._oracles = oracles_of(rules, self._statistic.places)
        worst = max(oracle.epsilon for oracle in self._oracles.values())
        self.epsilon = task.participations * worst

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """The one step that was asked about."""
        return sparse(contribution_of(self._statistic, lived, publication, coin))

    def message(self, answer_: Any, publication: Publication, coin: int, noise: Noise) -> str:
        """The randomizer's row of bits, which is inspected as the collector will."""
        contribution = dense(answer_, self._statistic.layout.size)
        h, kind, mass = marked(self._statistic, contribution)
        assert (h, kind) == self._statistic.question(publication, coin), "made with another coin"
        oracle = self._oracles[kind]
        row = packing.pack(answer(mass, kind, oracle, noise))
        packing.inspect(row, oracle.domain, oracle.ones)
        return messages.pack_message(row)


class NumberEncoder(ReportEncoder):
    """One output of the randomizer that the rules name, about the return in the window."""

    def __init__(self, task: Task, rules: Mapping[str, Any]) -> None:
        self._randomizer = sliding_of(rules)
        self._statistic = RoundedReturn(task, self._randomizer.largest)
        self.epsilon = task.participations * self._randomizer.epsilon

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """To which place the return was rounded."""
        return int(contribution_of(self._statistic, lived, publication, coin)[1])

    def message(self, answer: Any, publication: Publication, coin: int, noise: Noise) -> str:
        """One output."""
        return messages.pack_message(noise.randomize(self._randomizer, int(answer)))
