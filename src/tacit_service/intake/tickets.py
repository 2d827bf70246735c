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

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from tacit.arrays import IntArray
from tacit.streams import stream
from tacit_service.config.deployment import Deployment
from tacit_service.intake import task_state
from tacit_service.intake.uploads import Arrival, Intake, PendingReport, stale
from tacit_service.planning.publications import BatchBoundaries
from tacit_service.responses import Paused, Reason, Ticket, Token
from tacit_service.storage import database as db
from tacit_service.storage import schema
from tacit_service.storage.database import Store

FULL, SHUT = "full", "shut"
"""Rows of ``meta``: when the last ticket of which batch went out, and which batch is shut."""

_TABLE = schema.tickets
Refusal = tuple[Reason, str]


@dataclass(eq=False, repr=False)  # the root is not printed
class Tickets:
    """Gives out tickets, and says which batch is shut."""

    _deployment: Deployment
    _store: Store
    _boundaries: BatchBoundaries
    _root: int
    _clock: Callable[[], float]
    _dealt: tuple[int, IntArray] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, name: str, token: Token | None, closed: Callable[..., Refusal | None]) -> Ticket:
        """The ticket of an id: a new one, or the one that it has; or why there is none."""
        identity, task_id = bytes.fromhex(name), self._deployment.task_id
        with self._store.write() as connection:
            now, state = db.progress(connection, lock=True), task_state.read(connection)
            if state.word == "paused":
                raise Paused("this task is paused by its operator")
            known = find(connection, [identity]).get(identity)
            if known is not None and self._open(connection, known, now.version):
                return Ticket(task_id, name, known[0], now.version)
            refusal = closed(state) or self._refusal(now)
            if known is not None:
                refusal = "token_spent", "this id was used up by an earlier ticket"
            if refusal is None and not self._use(connection, token):
                most = self._deployment.most_reports
                refusal = "token_spent", f"this token may take part {most} time(s)"
            if refusal is not None:
                return Ticket(task_id, name, None, now.version, *refusal)
            start, end = self._boundaries[now.version], self._boundaries[now.version + 1]
            number = start + int(self._order(now.version, end - start)[now.accepted - start])
            row = {"id": identity, "number": number, "reported": False}
            connection.execute(_TABLE.insert(), row)
            db.set_progress(connection, accepted=now.accepted + 1)
            if now.accepted + 1 == end:
                value = f"{now.version}:{self._clock()!r}"
                db.put_named(connection, schema.meta, FULL, value=value)
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
        if self._deployment.settings.population.tokens != "per-device":
            return True
        assert token is not None
        return db.use_token(connection, token.id, 1, self._deployment.most_reports) == 1

    def _order(self, batch: int, size: int) -> IntArray:
        """In which order the numbers of a batch are dealt: the same after every restart."""
        with self._lock:
            if self._dealt is None or self._dealt[0] != batch:
                self._dealt = batch, stream(self._root, batch, "tickets").permutation(size)
            return self._dealt[1]

    def shut(self, version: int) -> bool:
        """Shut the batch of the newest version if its time has come; whether it is shut."""
        d = self._deployment
        with self._store.write() as connection:
            now, state = db.progress(connection, lock=True), task_state.read(connection)
            if now.version != version or is_shut(connection, version):
                return now.version == version
            batch, _, time = _meta(connection, FULL).partition(":")
            if batch != str(version):
                return False
            passed = state.worked(self._clock()) - state.worked(float(time))
            if passed < d.task.duration + d.delay + d.grace:
                return False
            db.put_named(connection, schema.meta, SHUT, value=str(version))
        return True

    def assign(self, uploads: Sequence[Arrival]) -> None:
        """Say of every report whose ticket it is; one without is invalid."""
        entries = [entry for upload in uploads for entry in upload.entries]
        with self._store.read() as connection:
            found = find(connection, [entry.identity for entry in entries])
        for entry in entries:
            if entry.identity in found:
                entry.number = found[entry.identity][0]
                entry.version = self._boundaries.batch(entry.number)
            else:
                entry.mark_invalid(
                    "invalid", "this id has no ticket; one is asked for before the episode begins"
                )


def find(connection: sa.Connection, ids: Sequence[bytes]) -> dict[bytes, tuple[int, bool]]:
    """Number, and whether a report came, of the ids that have a ticket."""
    found: dict[bytes, tuple[int, bool]] = {}
    for start in range(0, len(ids), db.CHUNK):
        chunk = tuple(ids[start : start + db.CHUNK])
        for row in connection.execute(sa.select(_TABLE).where(_TABLE.c.id.in_(chunk))):
            found[bytes(row.id)] = int(row.number), bool(row.reported)
    return found


def is_shut(connection: sa.Connection, version: int) -> bool:
    """Whether the batch that acts on a version takes no report any more."""
    return _meta(connection, SHUT) == str(version)


def _meta(connection: sa.Connection, name: str) -> str:
    column = schema.meta.c
    value = connection.execute(sa.select(column.value).where(column.name == name)).scalar()
    return "" if value is None else str(value)


class TicketIntake(Intake):
    """Decides about reports of people who have tickets: the open batch's, and each once."""

    def obstacle(self, version: int) -> tuple[str, str] | None:
        """Why a report under this version would not be taken now; None if it would."""
        with self._store.read() as connection:
            now, state = db.progress(connection), task_state.read(connection)
            shut = is_shut(connection, version)
        if state.word == "paused":
            return "paused", "this task is paused by its operator"
        if (closed := self.closed(state)) is not None:
            return closed
        if shut or version != now.version:
            return "stale", stale(version, now.version)
        return None

    def _commit(self, group: Sequence[Arrival]) -> int:
        entries = [entry for upload in group for entry in upload.entries]
        for entry in entries:
            entry.outcome = entry.fault
        with self._store.write() as connection:
            now, state = db.progress(connection, lock=True), task_state.read(connection)
            if state.word == "paused":
                raise Paused("this task is paused by its operator")
            shut, closed = is_shut(connection, now.version), self.closed(state)
            found = find(connection, [entry.identity for entry in entries])
            fresh: dict[bytes, PendingReport] = {}
            for entry in entries:
                if found.get(entry.identity, (0, False))[1] or entry.identity in fresh:
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


def _mark(connection: sa.Connection, ids: Iterable[bytes]) -> None:
    ordered = sorted(ids)
    for start in range(0, len(ordered), db.CHUNK):
        chunk = ordered[start : start + db.CHUNK]
        changed = _TABLE.update().where(_TABLE.c.id.in_(chunk)).values(reported=True)
        connection.execute(changed)
