"""Which period every batch of a curator is in, and when a new one begins.

The number of a moment is floor(unix seconds / period); without a period everything is in number 0.
A batch, from one release to the next, is in one period as a whole: that of the moment, on the
server's clock, at which its first report is counted. It is written down in the transaction that
counts it, so every process finds the same one, also after a crash; whoever folds a batch compares
it with the batch before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from tacit.learner import BoundAgent
from tacit_service.planning.publications import BatchBoundaries
from tacit_service.storage import database as db

ROW = "periods"
"""Of table ``meta``: from which report on the task is in which period; public."""


class TwoPeriods(Exception):
    """Reports that come together fall into two periods: they are counted one part after another."""


class Begun(NamedTuple):
    """A period that was begun: the number of its first report, and its own."""

    first: int
    number: int


@dataclass(frozen=True, eq=False)
class Periods:
    """The periods of one task whose curator remembers people."""

    _bound: BoundAgent
    _boundaries: BatchBoundaries
    _clock: Callable[[], float]

    @staticmethod
    def begun(connection: sa.Connection) -> list[Begun]:
        """All that have begun, in order."""
        return [Begun(*one) for one in json.loads(db.read_meta(connection, ROW) or "[]")]

    def begin(self, connection: sa.Connection, first: int, count: int) -> bool:
        """Begin a new period if report ``first`` begins a batch and the clock says so.

        The count must be locked. Reports up to ``first + count`` are about to be counted; if a new
        period would begin among them nothing is done, and ``TwoPeriods`` raised.
        """
        begun, number = self.begun(connection), self._number()
        if first >= self._bound.task.users or (begun and number <= begun[-1].number):
            return False
        if not self.opens_batch(first):
            if any(self.opens_batch(k) for k in self._boundaries.between(first, first + count)):
                raise TwoPeriods
            return False
        earlier = [one for one in begun if one.first < first]
        db.put_meta(connection, ROW, json.dumps([*earlier, Begun(first, number)]))
        return True

    def over(self, connection: sa.Connection, accepted: int) -> bool:
        """Whether the newest period is over for good: its batches are full, and its time is up."""
        begun = self.begun(connection)
        ended = bool(begun) and self._number() > begun[-1].number
        return ended and self.opens_batch(accepted)

    def renews(self, connection: sa.Connection, start: int) -> bool:
        """Whether the batch that begins with report ``start`` is the first of a later period."""
        return any(one.first == start for one in self.begun(connection)[1:])

    def opens_batch(self, number: int) -> bool:
        """Whether a batch begins with this report."""
        begins = self._boundaries[self._boundaries.batch(number)] == number
        return begins and not self._bound.plans_again(number)

    def _number(self) -> int:
        rule = self._bound.task.rule
        return 0 if rule is None else rule.period_at(self._clock())
