"""Uploads: each report once, never one more than the population, durable before the answer.

Uploads that arrive together share one transaction. The order inside it (ids, count, tokens,
content) is the same everywhere, so that transactions of several workers on PostgreSQL cannot block
each other in a circle.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlalchemy as sa

from tacit.errors import InvalidInput
from tacit.learner import Learner
from tacit.privacy.base import Report, Secret
from tacit.publication import Publication
from tacit_service.config.deployment import Deployment
from tacit_service.intake import task_state
from tacit_service.intake.task_state import TaskState
from tacit_service.modes.periods import TwoPeriods
from tacit_service.planning.publications import timeline
from tacit_service.responses import IncomingReport, Outcome, Reason, Token, Unavailable
from tacit_service.storage import database as db
from tacit_service.storage.database import Store

Refusal = tuple[Reason, str]
"""Why nobody's report is taken: a word and a sentence."""

_NOT_ACCEPTED = ("stale", "invalid", "refused")


@dataclass(slots=True, eq=False)
class PendingReport:
    """A report on its way: not yet decided; its number in the task once it is counted.

    ``sent`` is the report as it arrived, ``payload`` what its message says; ``row`` is that of its
    sender among those who are remembered together.
    """

    sent: IncomingReport
    identity: bytes
    version: int
    token: Token | None = None
    number: int = -1
    row: int = -1
    payload: Any = field(repr=False, default=None)
    fault: Outcome | None = None
    outcome: Outcome | None = None

    @property
    def name(self) -> str:
        """Its id, as text."""
        return self.sent.id

    def mark_invalid(self, outcome: Any, detail: str) -> None:
        """Note what is wrong with it in itself."""
        self.fault = Outcome(self.name, outcome, None, detail)

    @property
    def sender(self) -> Token:
        """Whose it is, where everybody has a token of their own."""
        assert self.token is not None
        return self.token

    @contextlib.contextmanager
    def judged(self) -> Iterator[None]:
        """What is found wrong in the block is wrong with this report alone."""
        try:
            yield
        except InvalidInput as error:
            self.mark_invalid("invalid", str(error))

    def decide(self, outcome: Any, reason: Any = None, detail: str | None = None) -> None:
        """Settle what becomes of it."""
        self.outcome = Outcome(self.name, outcome, reason, detail)


class Mode(Protocol):
    """What the two privacy models do differently with a report, from its arrival to a release."""

    def check(self) -> None:
        """Refuse to go on if what this model needs beside the database is not in order."""

    def decode(self, entries: Sequence[PendingReport], publication: Publication) -> None:
        """Read the messages of reports under one publication, noting what is wrong with each."""

    def begin(self, connection: sa.Connection, first: int, count: int) -> None:
        """Begin a new period, if one begins with report ``first``; the count is locked."""

    def keep(self, connection: sa.Connection, entries: list[PendingReport]) -> None:
        """Store accepted reports, ordered by their numbers, as part of what counts them."""

    def renew(self, learner: Learner, connection: sa.Connection, start: int) -> None:
        """Let the learner begin again, if a new period begins with report ``start``."""

    def drop_expired(self) -> None:
        """Forget what is not needed any more, while there is nothing to do."""

    def absorb(self, learner: Learner, connection: sa.Connection, start: int, end: int) -> None:
        """Absorb the reports with numbers in [start, end)."""

    def prepare_release(self, learner: Learner, version: int) -> None:
        """Whatever must be on disk before this version is released."""

    def load(self, connection: sa.Connection) -> Secret | None:
        """The privatizer's saved state, None before the first publication."""

    def save(self, connection: sa.Connection, secret: Secret) -> None:
        """Save it, in the transaction that publishes."""

    def delete_absorbed(self, connection: sa.Connection, end: int) -> None:
        """Delete what was absorbed."""

    def reports(
        self, connection: sa.Connection, start: int, end: int
    ) -> Iterator[tuple[Report, int]]:
        """Kept reports with numbers in [start, end), and the versions they name."""

    def overcounted(self, connection: sa.Connection) -> str:
        """Whether kept reports count a person beyond the rule, as a sentence; else nothing."""

    def restore_noise(self, learner: Learner, connection: sa.Connection, version: int) -> None:
        """Make the learner's next release use stored noise, if the curator added some."""


class Acceptance:
    """Which versions of the policy a report may name, by time or by number.

    A device that fetched version v did so before version v + 1 was published, and its report is due
    at most duration + delay later. So a task with a duration takes v until

        (moment v + 1 was published) + duration + delay + grace

    on the server's clock without its pauses, however many versions have come out since. Without a
    duration nobody knows how long an episode takes, and the newest ``accepted_versions`` are taken.

    Times of publications never change, so they are remembered.
    """

    def __init__(self, deployment: Deployment, clock: Callable[[], float]) -> None:
        self._versions = deployment.accepted_versions
        self._window = deployment.task.duration + deployment.delay + deployment.grace
        self._clock = clock
        self._published: list[float] = []
        self._lock = threading.Lock()

    def oldest(self, connection: sa.Connection, newest: int, state: TaskState) -> int:
        """The oldest version that a report may name now."""
        if self._versions is not None:
            return newest - self._versions + 1
        with self._lock:
            if len(self._published) <= newest:
                for _, _, time in timeline(connection, len(self._published) - 1):
                    # Never decreasing: a clock that was set back makes no version end sooner.
                    self._published.append(max([time, *self._published[-1:]]))
            since = state.worked(self._clock()) - self._window
            still = bisect.bisect_left(self._published, since, key=state.worked)
            return max(0, min(still - 1, newest))


_OPEN = TaskState()


class _NotPlain(Exception):
    """Ends a transaction that has to be done carefully."""


@dataclass(frozen=True, eq=False, repr=False)
class Intake:
    """Decides about reports as they come, one transaction for all that come together."""

    _deployment: Deployment
    _store: Store
    _mode: Mode
    _accepted: Acceptance
    _clock: Callable[[], float]

    def assign(self, entries: Sequence[PendingReport]) -> None:
        """Say of reports that do not name it which version they are of."""

    def shut(self, version: int) -> bool:
        """Whether nobody who acts on a version, the newest, can report any more: let it be so."""
        return True

    def settle(self, entries: list[PendingReport]) -> int:
        """Decide about every entry; durable when this returns. The newest version is returned.

        If the database broke the transaction off it is tried again: each try starts anew. If a new
        period begins among the entries, one half of them is settled after the other.
        """
        try:
            try:
                return self._commit(entries)
            except Unavailable:
                return self._commit(entries)
        except TwoPeriods:
            middle = len(entries) // 2
            self.settle(entries[:middle])
            return self.settle(entries[middle:])

    def obstacle(self, version: int) -> tuple[str, str] | None:
        """Why a report under this version would not be taken now; None if it would."""
        with self._store.read() as connection:
            now, state = db.progress(connection), task_state.read(connection)
            oldest = self._oldest(connection, now.version, state)
        if state.word == "paused":
            return "paused", task_state.PAUSED
        if (closed := self.closed(state)) is not None:
            return closed
        if now.accepted >= now.population and not self._deployment.ticketed:
            return "population_reached", self._full()
        if not oldest <= version <= now.version:
            return "stale", stale(version, now.version)
        return None

    def _oldest(self, connection: sa.Connection, newest: int, state: TaskState) -> int:
        """The oldest version that a report may name now."""
        return self._accepted.oldest(connection, newest, state)

    def _commit(self, entries: list[PendingReport]) -> int:
        for entry in entries:
            entry.outcome = entry.fault
        version = None
        if self.closed() is None:
            version = self._commit_plain(entries)
        return self._commit_carefully(entries) if version is None else version

    def _commit_plain(self, entries: list[PendingReport]) -> int | None:
        """The common case: everything is new, sound, current, and fits. None if it is not so."""
        ids = {entry.identity for entry in entries}
        if len(ids) < len(entries) or any(entry.fault is not None for entry in entries):
            return None
        try:
            with self._store.write() as connection:
                counted = db.count_all(connection, list(ids))
                if counted is None:
                    raise _NotPlain
                accepted, version, row = counted
                state = task_state.parse(row)
                oldest = self._oldest(connection, version, state)
                late = any(not oldest <= entry.version <= version for entry in entries)
                if late or state.word != "open":
                    raise _NotPlain
                self._mode.begin(connection, accepted - len(entries), len(entries))
                if not self._use_all_tokens(connection, entries):
                    raise _NotPlain
                self._keep(connection, accepted - len(entries), entries)
        except _NotPlain:
            return None
        for entry in entries:
            entry.decide("accepted")
        return version

    def _keep(self, connection: sa.Connection, first: int, entries: list[PendingReport]) -> None:
        for number, entry in enumerate(entries, first):
            entry.number = number
        self._mode.keep(connection, entries)

    def _use_all_tokens(self, connection: sa.Connection, entries: list[PendingReport]) -> bool:
        if self._deployment.unit == "participation":
            return True
        wanted = Counter(entry.sender.id for entry in entries)
        return db.use_all_tokens(connection, wanted, self._deployment.most_reports)

    def _commit_carefully(self, group: list[PendingReport]) -> int:
        with self._store.write() as connection:
            now, state = db.progress(connection), task_state.going(connection)
            oldest = self._oldest(connection, now.version, state)
            waiting = self._judge(group, now, oldest, self.closed(state))
            fresh = db.insert_ids(connection, [e.identity for e in waiting]) if waiting else set()
            for entry in waiting:
                if entry.identity not in fresh:
                    entry.decide("duplicate")
            refused = self._use_tokens(connection, group)
            entries = [entry for entry in group if entry.outcome is None]
            if entries:
                first, room = db.admit(connection, len(entries))
                # it changed before we held the lock
                if task_state.read(connection).word != state.word:
                    raise Unavailable("the task was paused or closed at this moment")
                for entry in entries[room:]:
                    entry.decide("refused", "population_reached", self._full())
                refused += entries[room:]
                if room:
                    self._keep(connection, first, entries[:room])
            db.forget_ids(connection, [entry.identity for entry in refused])
            self._recognise(connection, group)
        for entry in entries:
            if entry.outcome is None:
                entry.decide("accepted")
        return now.version

    def _judge(
        self, group: list[PendingReport], now: db.Standing, oldest: int, closed: Refusal | None
    ) -> list[PendingReport]:
        """Settle what can be settled without the database; the first of equal ids goes on."""
        waiting: dict[bytes, PendingReport] = {}
        for entry in group:
            if entry.identity in waiting:
                entry.decide("duplicate")
            elif closed is not None:
                entry.decide("refused", *closed)
            elif now.accepted >= now.population:
                entry.decide("refused", "population_reached", self._full())
            elif entry.outcome is None and not oldest <= entry.version <= now.version:
                entry.decide("stale", None, stale(entry.version, now.version))
            elif entry.outcome is None:
                waiting[entry.identity] = entry
        return list(waiting.values())

    def closed(self, state: TaskState = _OPEN) -> Refusal | None:
        """Why no report is taken at all now; None if reports are."""
        time, window = self._clock(), self._deployment.settings.window
        if window.opens is not None and time < window.opens:
            return "not_open", "this task does not take reports yet"
        ended = window.closes is not None and time >= window.closes
        if ended or state.word == "closed":
            return "closed", "this task no longer takes reports"
        return None

    def _full(self) -> str:
        return f"all {self._deployment.task.users} reports of this task have arrived"

    def _use_tokens(
        self, connection: sa.Connection, group: list[PendingReport]
    ) -> list[PendingReport]:
        """Count reports against their device's token; those beyond are refused."""
        if self._deployment.unit == "participation":
            return []
        now, most = db.progress(connection, lock=True), self._deployment.most_reports
        by_token: dict[int, list[PendingReport]] = {}
        waiting = [entry for entry in group if entry.outcome is None]
        for entry in waiting:
            by_token.setdefault(entry.sender.id, []).append(entry)
        if waiting:
            self._mode.begin(connection, now.accepted, len(waiting))
        rule = self._deployment.task.rule
        often = f"{most} report(s)" + (" in a period" if rule is not None and rule.period else "")
        refused: list[PendingReport] = []
        for token, entries in sorted(by_token.items()):
            room = db.use_token(connection, token, len(entries), most)
            for entry in entries[room:]:
                entry.decide("refused", "token_spent", f"this token may send {often}")
            refused += entries[room:]
        return refused

    @staticmethod
    def _recognise(connection: sa.Connection, group: list[PendingReport]) -> None:
        """A report that was accepted earlier is a duplicate, whatever else could be said of it."""
        uncounted = [e for e in group if e.outcome and e.outcome.outcome in _NOT_ACCEPTED]
        seen = db.known_ids(connection, [entry.identity for entry in uncounted])
        for entry in uncounted:
            if entry.identity in seen:
                entry.decide("duplicate")


def runs(entries: list[PendingReport]) -> Iterator[list[PendingReport]]:
    """Stretches of consecutive numbers, which are stored together."""
    for _, run in itertools.groupby(enumerate(entries), lambda pair: pair[1].number - pair[0]):
        yield [entry for _, entry in run]


def stale(version: int, newest: int) -> str:
    """Why a report under this version is not taken."""
    if version > newest:
        return f"version {version} has not been published; the newest is {newest}"
    return f"reports under version {version} are no longer taken; fetch version {newest}"
