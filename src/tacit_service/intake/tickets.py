"""Tickets: a participation of a search is counted when it begins, not when it reports.

The return of an episode often is its length, so who reports when, and whether at all, must decide
nothing. A device asks for a ticket before its episode: a number, which decides its direction, of
the open batch. Numbers of a batch are dealt in an order that nobody outside can foresee, so nobody
can wait for one. The id of a ticket is used up with it; asked for again, it has the same number.

A batch is shut by a public rule: all its tickets are out, and the last of them can have reported
(duration, delay and grace, pauses not counted). From then on its reports are stale, and tickets
without a report count as zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tacit.arrays import IntArray
from tacit.streams import stream
from tacit_service.intake import task_state
from tacit_service.intake.task_state import TaskState
from tacit_service.intake.uploads import Intake, PendingReport, Refusal, stale
from tacit_service.planning.publications import BatchBoundaries
from tacit_service.responses import Ticket, Token
from tacit_service.storage import database as db
from tacit_service.storage import schema

FULL, SHUT = "full", "shut"
"""Rows of ``meta``: when the last ticket of which batch went out, and which batch is shut."""

_TABLE = schema.tickets


@functools.lru_cache(maxsize=1)
def _order(root: int, batch: int, size: int) -> IntArray:
    """In which order the numbers of a batch are dealt: the same after every restart."""
    return stream(root, batch, "tickets").permutation(size)


@dataclass(frozen=True, eq=False, repr=False)  # the root is not printed
class TicketIntake(Intake):
    """Gives out tickets, and decides about reports of those who have one: each once, in time."""

    _boundaries: BatchBoundaries
    _root: int

    def take(self, name: str, token: Token | None) -> Ticket:
        """The ticket of an id: a new one, or the one that it has; or why there is none."""
        identity, task_id = bytes.fromhex(name), self._deployment.task_id
        with self._store.write() as connection:
            now, state = db.progress(connection, lock=True), task_state.going(connection)
            known = find(connection, [identity]).get(identity)
            if known is not None and self._open(connection, known, now.version):
                return Ticket(task_id, name, known[0], now.version)
            refusal = self.closed(state) or self._refusal(now)
            if known is not None:
                refusal = "token_spent", "this id was used up by an earlier ticket"
            if refusal is None and not self._use(connection, token):
                most = self._deployment.most_reports
                refusal = "token_spent", f"this token may take part {most} time(s)"
            if refusal is not None:
                return Ticket(task_id, name, None, now.version, *refusal)
            start, end = self._boundaries[now.version], self._boundaries[now.version + 1]
            number = start + int(_order(self._root, now.version, end - start)[now.accepted - start])
            row = {"id": identity, "number": number, "reported": False}
            connection.execute(_TABLE.insert(), row)
            db.set_progress(connection, accepted=now.accepted + 1)
            if now.accepted + 1 == end:
                db.put_meta(connection, FULL, f"{now.version}:{self._clock()!r}")
        return Ticket(task_id, name, number, now.version)

    def _open(self, connection: sa.Connection, known: tuple[int, bool], version: int) -> bool:
        """Whether the report of a ticket would still be taken."""
        number, reported = known
        current = self._boundaries.batch(number) == version and not is_shut(connection, version)
        return current and not reported

    def _refusal(self, now: db.Standing) -> Refusal | None:
        if now.accepted >= now.population:
            return "population_reached", self._full()
        if now.accepted >= self._boundaries[now.version + 1]:
            return (
                "batch_full",
                "everybody who can learn from this policy has begun; the next one is made when "
                "they have reported: try again later",
            )
        return None

    def _full(self) -> str:
        return f"all {self._deployment.task.users} people of this task have begun"

    def _use(self, connection: sa.Connection, token: Token | None) -> bool:
        if self._deployment.unit == "participation":
            return True
        assert token is not None
        return db.use_token(connection, token.id, 1, self._deployment.most_reports) == 1

    def shut(self, version: int) -> bool:
        """Shut the batch of the newest version if its time has come; whether it is shut."""
        d = self._deployment
        with self._store.write() as connection:
            now, state = db.progress(connection, lock=True), task_state.read(connection)
            if now.version != version or is_shut(connection, version):
                return now.version == version
            batch, _, time = (db.read_meta(connection, FULL) or "").partition(":")
            if batch != str(version):
                return False
            passed = state.worked(self._clock()) - state.worked(float(time))
            if passed < d.task.duration + d.delay + d.grace:
                return False
            db.put_meta(connection, SHUT, str(version))
        return True

    def assign(self, entries: Sequence[PendingReport]) -> None:
        """Say of every report whose ticket it is; one without is invalid."""
        with self._store.read() as connection:
            tickets = find(connection, [entry.identity for entry in entries])
        for entry in entries:
            if entry.identity in tickets:
                entry.number = tickets[entry.identity][0]
                entry.version = self._boundaries.batch(entry.number)
            else:
                entry.mark_invalid(
                    "invalid", "this id has no ticket; one is asked for before the episode begins"
                )

    def _oldest(self, connection: sa.Connection, newest: int, state: TaskState) -> int:
        """The open batch's alone."""
        return newest + is_shut(connection, newest)

    def _commit(self, entries: list[PendingReport]) -> int:
        for entry in entries:
            entry.outcome = entry.fault
        with self._store.write() as connection:
            now, state = db.progress(connection, lock=True), task_state.going(connection)
            shut, closed = is_shut(connection, now.version), self.closed(state)
            tickets = find(connection, [entry.identity for entry in entries])
            fresh: dict[bytes, PendingReport] = {}
            for entry in entries:
                if tickets.get(entry.identity, (0, False))[1] or entry.identity in fresh:
                    entry.decide("duplicate")
                elif entry.outcome is None and closed is not None:
                    entry.decide("refused", *closed)
                elif entry.outcome is None and (shut or entry.version != now.version):
                    entry.decide("stale", None, stale(entry.version, now.version))
                elif entry.outcome is None:
                    fresh[entry.identity] = entry
            kept = sorted(fresh.values(), key=lambda entry: entry.number)
            if kept:
                _mark(connection, fresh)
                self._mode.keep(connection, kept)
        for entry in kept:
            entry.decide("accepted")
        return now.version


def find(connection: sa.Connection, ids: Sequence[bytes]) -> dict[bytes, tuple[int, bool]]:
    """Number, and whether a report came, of the ids that have a ticket."""
    tickets: dict[bytes, tuple[int, bool]] = {}
    for some in db.among(_TABLE.c.id, ids):
        for row in connection.execute(sa.select(_TABLE).where(some)):
            tickets[bytes(row.id)] = int(row.number), bool(row.reported)
    return tickets


def is_shut(connection: sa.Connection, version: int) -> bool:
    """Whether the batch that acts on a version takes no report any more."""
    return db.read_meta(connection, SHUT) == str(version)


def _mark(connection: sa.Connection, ids: Iterable[bytes]) -> None:
    for some in db.among(_TABLE.c.id, sorted(ids)):
        connection.execute(_TABLE.update().where(some).values(reported=True))
