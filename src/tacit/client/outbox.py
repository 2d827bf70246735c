"""What a device remembers: the terms it joined, the running episode, and the reports it made.

One small SQLite file, written through to the disk before anything depends on it. When an episode
ends, its clipped answer is stored in the same transaction that forgets the raw steps; when its
report is due and would be taken, the randomized bytes replace the answer, again both or neither.
The number of reports of a task is what limits how often its user takes part, so rows stay when
their bytes are gone. Terms and times of an episode are kept as well, so that nothing need be
fetched before its report is due. Where a task has a rule for people who come back, what is
remembered of a period is two numbers: participations begun, and those that are reported.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.client.errors import AlreadyTookPart, Declined
from tacit.client.participation import ONCE, History, NextParticipation
from tacit.client.report_times import ReportTimes
from tacit.client.schema import SCHEMA, VERSION
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.client.terms import Terms

UNMADE = "unmade"
"""Outcome of a report that was never made."""

DECOY = "decoy"
"""Outcome of what only looks like a report; it is forgotten when the collector has answered."""

_NOTE_CLOCK = """
UPDATE times SET behind = CASE WHEN begun > :now THEN :now END
WHERE CASE WHEN begun > :now THEN behind IS NULL OR behind > :now ELSE behind IS NOT NULL END
"""
_TIMES = "times.begun, times.ends, times.due, times.behind"
_OVER = "this episode is over: its steps were forgotten before"
_LAST = f"SELECT {_TIMES} FROM times JOIN joined ON report_id = task_id"
"""Under the name of a task are the times of its last participation, where the task has a rule."""

_USES = """
SELECT 1 FROM reports WHERE id = :id AND outcome IS NOT :unmade UNION ALL
SELECT 1 FROM answers WHERE report_id = :id UNION ALL
SELECT 1 FROM episodes WHERE report_id = :id
"""
_COST = """
SELECT TOTAL(epsilon * periods), TOTAL(delta * periods) FROM (
    SELECT epsilon, delta, MAX(1, (
        SELECT COUNT(*) FROM periods WHERE periods.task_id = joined.task_id AND reported > 0
    )) AS periods FROM joined WHERE task_id <> ?
)
"""
_REPORTS = f"""
SELECT id, task_id, body, outcome, reason, detail, {_TIMES} FROM reports
JOIN joined USING (task_id) LEFT JOIN times ON report_id = id
WHERE address = ? ORDER BY reports.rowid
"""


@dataclass(frozen=True)
class Delivery:
    """What became of a report.

    Attributes:
        id: of the report.
        task_id: of its task.
        outcome: accepted, duplicate, stale, invalid or refused; "unmade" if it would not have been
            taken, so that nothing was randomized or sent; "decoy" if it was none; None if it is
            not sent yet.
        reason: of a refusal, or why it is not made.
        detail: likewise, in a sentence.
        due: unix time before which the report is held on the device; None if it is not held.
    """

    id: str
    task_id: str
    outcome: str | None
    reason: str | None = None
    detail: str | None = None
    due: float | None = None

    @property
    def counted(self) -> bool:
        """Whether it is in the collector's sums (a duplicate was accepted before)."""
        return self.outcome in ("accepted", "duplicate")


@dataclass(frozen=True)
class StoredEpisode:
    """An episode that was begun, or one that is over and whose report is not made yet.

    Attributes:
        task_id: of its task.
        report_id: of the report it will lead to; of one that leads to none a name on this device,
            or the id of a decoy.
        publication: the policy it runs under, as fetched.
        steps: what happened, raw; of one that is over the clipped answer alone.
        times: when it ends and when its report is due; None of a task without a duration.
        number: of its ticket, where the task has tickets.
        period: in which it began, where the task has a rule for people who come back.
        silent: why nothing of it is reported, in a sentence; None if it is.
    """

    task_id: str
    report_id: str
    publication: dict[str, Any]
    steps: list[Any]
    times: ReportTimes | None
    number: int | None = None
    period: int | None = None
    silent: str | None = None


@dataclass(frozen=True)
class StoredReport:
    """A report that was made: what became of it, its bytes while they matter, and its times."""

    delivery: Delivery
    body: bytes | None
    times: ReportTimes | None

    def held(self, now: float) -> bool:
        """Whether it must not be sent yet."""
        return self.body is not None and self.times is not None and self.times.held(now)


class Outbox:
    """The device's memory.

    Args:
        path: of the file; None keeps everything in memory, for simulated people.
    """

    def __init__(self, path: str | Path | None) -> None:
        if path is not None:
            path = Path(path).expanduser()
            try:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as error:
                raise InvalidInput(f"the outbox {path} cannot be opened: {error}") from None
        self._lock = threading.RLock()
        name, shared = ":memory:" if path is None else path, {"check_same_thread": False}
        self._db = sqlite3.connect(name, timeout=30.0, isolation_level=None, **shared)
        try:
            for pragma in ("synchronous=FULL", "fullfsync=ON", "secure_delete=ON"):
                self._db.execute(f"PRAGMA {pragma}")
            self._open()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InvalidInput(f"{path} is not the outbox of a device: {error}") from None

    def _open(self) -> None:
        with self._change():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > VERSION:
                raise InvalidInput(
                    f"the outbox has version {version}, but this program knows {VERSION}; update it"
                )
            for added in SCHEMA[version:]:
                for statement in added.split(";"):
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version={VERSION}")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _change(self) -> Iterator[None]:
        """A transaction that is on the disk when it is over, or never happened."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _rows(self, query: str, *values: Any, **named: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(query, named or values).fetchall()

    def join(self, terms: Terms, address: str) -> None:
        """Remember the terms; a task that changed its terms under the same name is declined."""
        name, stated = terms.name, terms.guarantee
        known_as = terms.task_id, address, name, terms.document
        with self._change():
            for known, where in self._rows(
                "SELECT task_id, address FROM joined WHERE name = ?", name
            ):
                if known != terms.task_id and where == address:
                    raise Declined(
                        f"the terms of {name!r} at {address} have changed since this device "
                        "joined; a task with new terms needs a new name and the user's consent"
                    )
            self._db.execute(
                "INSERT INTO joined VALUES (?, ?, ?, ?, ?, ?, -1, ?) "
                "ON CONFLICT (task_id) DO UPDATE SET description = excluded.description",
                (*known_as, stated.epsilon, stated.delta, json.dumps(terms.description)),
            )

    def description(self, task_id: str) -> dict[str, Any] | None:
        """A task that was joined, as fetched; None if an older program joined it."""
        ((text,),) = self._rows("SELECT description FROM joined WHERE task_id = ?", task_id)
        return None if text is None else dict(json.loads(text))

    def knows(self, address: str) -> bool:
        """Whether a task of this collector was joined."""
        return bool(self._rows("SELECT 1 FROM joined WHERE address = ?", address))

    def set_address(self, task_id: str, address: str) -> None:
        """A task that was joined, if it was, is found at another address now."""
        self._rows("UPDATE joined SET address = ? WHERE task_id = ?", address, task_id)

    def spent_elsewhere(self, task_id: str) -> tuple[float, float]:
        """Epsilon and delta of all other tasks that were joined, anew for every period reported."""
        ((epsilon, delta),) = self._rows(_COST, task_id)
        return float(epsilon), float(delta)

    def history(self, task_id: str, period: int) -> History:
        """What this device did in a task with a rule, and in one period of it."""
        rows = self._rows(
            "SELECT begun, reported FROM periods WHERE task_id = ? AND period = ?", task_id, period
        )
        last = self._rows(f"{_LAST} WHERE task_id = ?", task_id)
        begun, reported = rows[0] if rows else (0, 0)
        return History(begun, reported, self.periods(task_id), _times(last[0]) if last else None)

    def periods(self, task_id: str) -> int:
        """In how many periods something was reported of a task with a rule, or will be."""
        ((count,),) = self._rows(
            "SELECT COUNT(*) FROM periods WHERE task_id = ? AND reported > 0", task_id
        )
        return int(count)

    def last(self, address: str) -> list[ReportTimes | None]:
        """Times of the last participations in tasks with a rule, of a collector."""
        return [_times(row) for row in self._rows(f"{_LAST} WHERE address = ?", address)]

    def note_version(self, task_id: str, version: int) -> None:
        """Note the newest policy; an older one than seen before is declined."""
        with self._change():
            ((newest,),) = self._rows("SELECT newest FROM joined WHERE task_id = ?", task_id)
            if version < newest:
                raise Declined(
                    f"the collector offers policy {version}, but this device has seen {newest}; it "
                    "may have been restored from an old copy"
                )
            self._db.execute("UPDATE joined SET newest = ? WHERE task_id = ?", (version, task_id))

    def uses(self, report_id: str) -> bool:
        """Whether a report of that id was made, or an episode will lead to it."""
        return bool(self._rows(_USES, id=report_id, unmade=UNMADE))

    def refuse_more(self, task_id: str, participations: int) -> None:
        """Raise if every participation of a task is used, by reports made or still to be."""
        ((made,),) = self._rows(
            "SELECT COUNT(*) FROM reports WHERE task_id = ? AND outcome IS NOT ?", task_id, UNMADE
        )
        ((waiting,),) = self._rows("SELECT COUNT(*) FROM answers WHERE task_id = ?", task_id)
        if made + waiting >= participations:
            times = "once" if participations == 1 else f"{participations} times"
            raise AlreadyTookPart(
                f"the guarantee covers a user who takes part {times}, and this device has done so"
            )

    def note_clock(self, now: float) -> None:
        """Note a clock that stands before the beginning of an episode, or does so no longer."""
        self._rows(_NOTE_CLOCK, now=now)

    def times(self, report_id: str) -> ReportTimes | None:
        """Of one episode, or of its report."""
        rows = self._rows(f"SELECT {_TIMES} FROM times WHERE report_id = ?", report_id)
        return _times(rows[0]) if rows else None

    def running(self, address: str) -> list[StoredEpisode]:
        """Running episodes of a collector, oldest first; there is one, if any."""
        return self._episodes("episodes", "steps", "address", address)

    def episode(self, task_id: str) -> StoredEpisode | None:
        """The running episode of a task."""
        return next(iter(self._episodes("episodes", "steps", "task_id", task_id)), None)

    def begin(self, saved: StoredEpisode, turn: NextParticipation = ONCE) -> None:
        """Store a new episode and its times.

        Where the task has a rule it counts in its period from now on, whatever becomes of it.
        """
        with self._change():
            self._keep_episode("episodes", saved, saved.steps)
            if saved.times is not None:
                self._keep(saved.report_id, saved.times)
            if turn.period is None:
                return
            if self.history(saved.task_id, turn.period).begun != turn.before:
                raise AlreadyTookPart(
                    "another program has just begun a participation with this outbox"
                )
            self._db.execute(
                "INSERT INTO periods VALUES (:task, :period, 1, :reported) ON CONFLICT DO UPDATE "
                "SET begun = begun + 1, reported = reported + :reported",
                {"task": saved.task_id, "period": turn.period, "reported": turn.silent is None},
            )
            now = turn.begun
            self._keep(saved.task_id, saved.times or ReportTimes(now, now, now))

    def _keep(self, name: str, times: ReportTimes) -> None:
        row = name, times.begun, times.ends, times.due
        self._db.execute("INSERT OR REPLACE INTO times VALUES (?, ?, ?, ?, NULL)", row)

    def save(self, report_id: str, steps: list[Any]) -> None:
        """Store what happened in a running episode."""
        with self._change():
            saved = "UPDATE episodes SET steps = ? WHERE report_id = ?"
            self._change_one(_OVER, saved, json.dumps(steps), report_id)

    def end(self, ended: StoredEpisode, answer: Any, participations: int) -> None:
        """Keep the answer of an episode and forget its raw steps, both or neither."""
        with self._change():
            if ended.period is None:  # else it was counted when it began
                self.refuse_more(ended.task_id, participations)
            self._forget_steps(ended)
            self._keep_episode("answers", ended, answer)

    def forget(self, ended: StoredEpisode) -> None:
        """Forget an episode that is over and of which nothing is reported."""
        with self._change():
            self._forget_steps(ended)
            self._forget_times(ended.report_id)

    def _change_one(self, otherwise: str, query: str, *values: str) -> None:
        """Change one row; ``otherwise`` says what it means that there is none."""
        if self._db.execute(query, values).rowcount != 1:
            raise InvalidInput(otherwise)

    def _forget_steps(self, ended: StoredEpisode) -> None:
        self._change_one(_OVER, "DELETE FROM episodes WHERE report_id = ?", ended.report_id)

    def waiting(self, address: str) -> list[StoredEpisode]:
        """Episodes that are over and whose reports are not made, with their answers."""
        return self._episodes("answers", "answer", "address", address)

    def _episodes(self, table: str, lived: str, column: str, value: str) -> list[StoredEpisode]:
        query = f"""
            SELECT task_id, kept.report_id, publication, {lived}, {_TIMES}, number, period, silent
            FROM {table} AS kept JOIN joined USING (task_id) LEFT JOIN times USING (report_id)
            WHERE {column} = ? ORDER BY kept.rowid
        """
        return [
            StoredEpisode(
                task, name, json.loads(policy), json.loads(kept), _times(row[:4]), *row[4:]
            )
            for task, name, policy, kept, *row in self._rows(query, value)
        ]

    def _keep_episode(self, table: str, saved: StoredEpisode, lived: Any) -> None:
        row = saved.task_id, saved.report_id, json.dumps(saved.publication), json.dumps(lived)
        rest = saved.number, saved.period, saved.silent
        self._db.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, *rest))

    def store(self, waiting: StoredEpisode, body: bytes) -> None:
        """Keep a randomized report, or a decoy, and forget its answer, both or neither."""
        outcome = None if waiting.silent is None else DECOY
        with self._change():
            self._forget_answer(waiting)
            self._add(Delivery(waiting.report_id, waiting.task_id, outcome), body)

    def drop(self, waiting: StoredEpisode, reason: str, detail: str) -> None:
        """Forget an answer that nobody would take; what is said about it is kept.

        Its period costs nothing then. Of a decoy nothing is kept.
        """
        with self._change():
            self._forget_answer(waiting)
            if waiting.silent is not None:
                self._forget_times(waiting.report_id)
                return
            self._add(Delivery(waiting.report_id, waiting.task_id, UNMADE, reason, detail), None)
            if waiting.period is not None:
                less = "UPDATE periods SET reported = reported - 1 WHERE task_id = ? AND period = ?"
                self._db.execute(less, (waiting.task_id, waiting.period))

    def _forget_answer(self, waiting: StoredEpisode) -> None:
        made = "this report was made before"
        self._change_one(made, "DELETE FROM answers WHERE report_id = ?", waiting.report_id)

    def _forget_times(self, report_id: str) -> None:
        self._db.execute("DELETE FROM times WHERE report_id = ?", (report_id,))

    def _add(self, by: Delivery, body: bytes | None) -> None:
        self._db.execute(
            "INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body, outcome = excluded.outcome, "
            "reason = excluded.reason, detail = excluded.detail",
            (by.id, by.task_id, body, by.outcome, by.reason, by.detail),
        )

    def reports(self, address: str) -> list[StoredReport]:
        """Every report to a collector, oldest first."""
        return [
            StoredReport(Delivery(*row[:2], *row[3:6]), row[2], _times(row[6:]))
            for row in self._rows(_REPORTS, address)
        ]

    def settle(self, delivery: Delivery, *, final: bool) -> None:
        """Note what the collector said; after a final word the bytes are no longer needed."""
        self._rows(
            "UPDATE reports SET outcome = ?, reason = ?, detail = ?, "
            "body = CASE WHEN ? THEN NULL ELSE body END WHERE id = ?",
            *(delivery.outcome, delivery.reason, delivery.detail, final, delivery.id),
        )

    def forget_decoy(self, report_id: str) -> None:
        """Forget a decoy that the collector has answered."""
        with self._change():
            self._db.execute("DELETE FROM reports WHERE id = ?", (report_id,))
            self._forget_times(report_id)


def _times(row: Sequence[Any]) -> ReportTimes | None:
    return None if row[0] is None else ReportTimes(*row)
