"""The collector (local model) or curator (joint model) of one task, behind one small interface."""

from __future__ import annotations

import functools
import hmac
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from tacit._version import __version__
from tacit.errors import InvalidInput
from tacit.task.participation import Participation
from tacit.util.durations import HOUR
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_hash
from tacit_service.config.deployment import Deployment
from tacit_service.config.sections import iso
from tacit_service.http.readiness import LEDGER, NOBODY, Readiness
from tacit_service.intake import task_state
from tacit_service.intake.tickets import TicketIntake
from tacit_service.intake.tokens import Tokens
from tacit_service.intake.uploads import Acceptance, Intake, Mode, PendingReport
from tacit_service.modes.joint import JointMode
from tacit_service.modes.local import LocalMode
from tacit_service.modes.periods import Periods
from tacit_service.planning.loop import Lease
from tacit_service.planning.publications import BatchBoundaries, PublicationStore, timeline
from tacit_service.planning.step import Planning
from tacit_service.planning.verify import Verdict, verify
from tacit_service.responses import (
    IncomingReport,
    SentPolicy,
    Status,
    TakingBody,
    Ticket,
    Token,
    UnknownTask,
    UnknownVersion,
    UploadAnswer,
)
from tacit_service.storage import database as db
from tacit_service.storage import schema as schema
from tacit_service.storage.database import Store
from tacit_service.storage.identity import TaskIdentity, open_identity
from tacit_service.storage.ledger import NODE, DatabaseLedger, charged, statement

Clock = Callable[[], float]
"""Unix time in seconds."""

CHOSEN = (
    "the id of a report of this task follows from the device's token, because the question that it "
    f"answers follows from the id; this id does not. Devices that speak version "
    f"{documents.VERSION} of the protocol do it right: update the app"
)

ANOTHER_PERIOD = (
    "the id of the report is not that of this device's one report in a period that reports are "
    "taken of now: it is too late, the clock of the device is wrong, or the app chose the id itself"
)

CLOCKS = HOUR
"""By how much the clock of a device may differ."""

NO_RULES = (
    "the report does not say by which rules it was made, so nobody can tell whether it means what "
    f"it seems to: devices that speak version {documents.VERSION} of the protocol say it; "
    "update the app"
)

OTHER_RULES = (
    "the report was made by other rules than those of this task: for another layout, or by a "
    "program that follows another version of them. Fetch the task again, and update the app"
)

ANOTHER = (
    "the report was made under another publication of version {version} than the one here: the "
    "service was restored from a copy since, so it cannot be counted"
)


class Collector:
    """One task in one database. Safe to share between threads; one per process.

    Attributes:
        deployment: what is served.
        publications: every publication so far, with what it was learned from.
        tokens: who may send reports, and who may see the ledger.
        ids: who decides the ids of reports: fixed when the database was made.
        rules: how devices make their reports: likewise.
        planning: the planner's single step; :class:`~tacit_service.planning.loop.PlannerLoop`
            runs it.
        clock: unix time; a virtual one in tests.
        steady: seconds that nobody sets; leases and cadence go by it.
        readiness: what is wrong, if something is.
    """

    def __init__(
        self,
        deployment: Deployment,
        store: Store,
        identity: TaskIdentity,
        clock: Clock,
        steady: Clock,
    ) -> None:
        self.deployment = deployment
        root, self.ids, self.rules = identity
        self._made_by = rules_hash(self.rules)
        self.clock, self.steady = clock, steady
        self.readiness = Readiness(store, steady, deployment.stem)
        self._watch = Lease(store, steady)
        seat = functools.partial(messages.seat, task_id=deployment.task_id)
        self.tokens = Tokens(store, clock, seat if self.ids == "token" else None)
        self._store = store
        self.publications = PublicationStore(deployment, store)
        self._boundaries = BatchBoundaries(deployment.bound)
        self._mode: Mode
        if deployment.model == "local":
            self._mode = LocalMode(deployment, self.publications)
        else:
            self._mode = JointMode(deployment, store, self.publications, self._boundaries, clock)
        parts = deployment, store, self._mode, Acceptance(deployment, clock), clock
        self._intake = Intake(*parts)
        if deployment.ticketed:
            self._intake = TicketIntake(*parts, self._boundaries, root)
        self.planning = Planning(
            deployment,
            store,
            self.publications,
            self._mode,
            self._intake,
            self._boundaries,
            root,
            clock,
            steady,
        )

    @classmethod
    def open(
        cls, deployment: Deployment, *, clock: Clock = time.time, steady: Clock | None = None
    ) -> Self:
        """Open the database of a deployment, or make it; refuse one that is not its own."""
        if steady is None:  # a virtual clock is as steady as its owner lets it be
            steady = time.monotonic if clock is time.time else clock
        store = Store(deployment.database)
        try:
            with store.write() as connection:
                schema.migrate(connection)
                deployment, identity = open_identity(connection, deployment)
            collector = cls(deployment, store, identity, clock, steady)
            collector._check()
            if collector._newest() < 0:
                collector.planning.first()
            store.checkpoint()
        except BaseException:
            store.close()
            raise
        return collector

    def describe(self) -> dict[str, Any]:
        """The body of GET /v1/task: everything a device must know before it takes part."""
        d = self.deployment
        return {
            "tacit": __version__,
            "wire": documents.VERSION,
            "task_id": d.task_id,
            "model": d.model,
            **d.terms,
            "labels": d.labels,
            "opens": iso(d.settings.window.opens),
            "closes": iso(d.settings.window.closes),
            "accepted_versions": d.accepted_versions,
            "delay": d.delay,
            "grace": d.grace,
            "keep_reports": d.settings.storage.keep_reports,
            "ids": self.ids,
            "rules": self.rules,
            "restoring": d.restoring,
            "state": self.state().word,
            "guarantee": d.guarantee.to_json(),
        }

    def policy(self, version: int | None = None) -> SentPolicy:
        """The newest publication, or an older one, as it is sent."""
        return self.publications.entry(self._newest() if version is None else version)[1]

    def would_accept(self, version: int) -> TakingBody:
        """The body of GET /v1/taking: public, and the same for everybody who asks."""
        obstacle = self._intake.obstacle(version)
        try:
            name = self.publications.entry(version)[1].hash
        except UnknownVersion:
            name = None
        reason, message = obstacle or (None, None)
        return TakingBody(self.deployment.task_id, version, name, obstacle is None, reason, message)

    def ticket(self, task_id: str, name: str, rules: str | None, token: Token | None) -> Ticket:
        """The body of the answer to POST /v1/tickets: a participation, counted from now on.

        ``rules`` is the hash of those that its report will be made by.
        """
        self._served(task_id, token)
        if rules != self._made_by:
            raise InvalidInput(NO_RULES if rules is None else OTHER_RULES)
        if not isinstance(self._intake, TicketIntake):
            raise InvalidInput("this task has no tickets: its reports are counted as they come")
        messages.report_id(name)
        if token is not None and token.seat is not None:
            periods = self._periods() if self.deployment.by_period else None
            if not self._assigned(token.seat, name, periods):
                raise InvalidInput(CHOSEN if periods is None else ANOTHER_PERIOD)
        with self.readiness.writing():
            return self._intake.take(name, token)

    def upload(
        self, task_id: str | None, reports: list[IncomingReport], token: Token | None
    ) -> UploadAnswer:
        """Decide about every report; what is accepted is durable when this returns."""
        (answer,) = self.settle([self.read(task_id, reports, token)])
        return answer

    def _served(self, task_id: str, token: Token | None) -> None:
        if task_id != self.deployment.task_id:
            raise UnknownTask(
                f"task {task_id[:12]}... is not served here; fetch the task description again"
            )
        if token is None and self.deployment.unit == "user":
            raise InvalidInput("reports of this task need the token of a device")

    def read(
        self, task_id: str | None, reports: list[IncomingReport], token: Token | None
    ) -> list[PendingReport]:
        """The first half of an upload: what can be said of it at once, without the database.

        Where there are tickets a report's id says which task, version and publication it is of.
        """
        d = self.deployment
        if task_id is None and not d.ticketed:
            raise InvalidInput("an upload to this task names it: task_id is missing")
        self._served(d.task_id if task_id is None else task_id, token)
        if not reports:
            raise InvalidInput("an upload holds at least one report")
        if not d.ticketed and any(report.version is None for report in reports):
            raise InvalidInput("reports of this task name the version of their policy")
        entries = [
            PendingReport(
                report, bytes.fromhex(messages.report_id(report.id)), report.version or 0, token
            )
            for report in reports
        ]
        for entry in entries:
            rules = entry.sent.rules
            if d.by_period and rules == messages.DECOY:
                entry.decide("decoy", None, "decoy")  # as long as the answer to a report
                continue
            if token is not None and token.seat is not None and not d.by_period:
                if not self._assigned(token.seat, entry.name):
                    entry.mark_invalid("invalid", CHOSEN)
            if rules is None and d.form != 1 and not d.ticketed:
                entry.mark_invalid("invalid", NO_RULES)
            elif rules not in (None, self._made_by):
                entry.mark_invalid("invalid", OTHER_RULES)
        return entries

    def _assigned(self, seat: bytes, name: str, numbers: range | None = None) -> bool:
        """Whether an id is one of those that a token may use."""
        if numbers is None:
            numbers = range(self.deployment.task.participations)
        return any(hmac.compare_digest(messages.assigned_id(seat, k), name) for k in numbers)

    def _periods(self) -> range:
        """Numbers of the periods that a report which is taken now may have begun in.

        From the moment at which one that comes last began (pauses not counted) to now, with room
        for clocks. Where nobody knows how long an episode takes it may have begun a period ago.
        """
        d, now = self.deployment, self.clock()
        rule = d.task.rule or Participation()
        window = d.task.duration + d.delay + d.grace if d.task.duration else rule.period
        earliest = self.state().worked(now) - window - CLOCKS
        return range(rule.period_at(earliest), rule.period_at(now + CLOCKS) + 1)

    def _check_periods(self, entries: Sequence[PendingReport]) -> None:
        """Note reports whose id is not that of their sender in a period of now."""
        numbers = self._periods()
        for entry in entries:
            seat = None if entry.token is None else entry.token.seat
            if seat is not None and not self._assigned(seat, entry.name, numbers):
                entry.mark_invalid("invalid", ANOTHER_PERIOD)

    def settle(self, uploads: Sequence[list[PendingReport]]) -> list[UploadAnswer]:
        """The second half, of many uploads in one transaction; durable when this returns.

        Decoys are answered, and touch nothing.
        """
        reports = [entry for upload in uploads for entry in upload if entry.outcome is None]
        with self.readiness.writing():
            if self.deployment.by_period:
                self._check_periods(reports)
            self._intake.assign(reports)
            self._decode(reports)
            version = self._intake.settle(reports) if reports else self._newest()
        return [
            UploadAnswer(
                self.deployment.task_id,
                version,
                [entry.outcome for entry in upload if entry.outcome is not None],
            )
            for upload in uploads
        ]

    def _decode(self, reports: Sequence[PendingReport]) -> None:
        """Read messages; what is wrong with one is noted, and said if it is not a duplicate.

        All reports under one publication are read together, which costs little more than reading
        one.
        """
        alike: dict[tuple[int, str | None], list[PendingReport]] = {}
        for entry in reports:
            alike.setdefault((entry.version, entry.sent.publication), []).append(entry)
        for (version, name), entries in alike.items():
            try:
                publication, body = self.publications.entry(version)
                problem = None if name in (None, body.hash) else ANOTHER.format(version=version)
            except UnknownVersion:
                problem = f"version {version} was never published"
            if problem is None:
                self._mode.decode(entries, publication)
                continue
            for entry in entries:
                entry.mark_invalid("stale", problem)

    def guarantee(self) -> dict[str, Any]:
        """The guarantee as JSON, and in plain words."""
        stated = self.deployment.guarantee
        return {"guarantee": stated.to_json(), "statement": stated.statement()}

    def ledger(self) -> dict[str, Any]:
        """Header, entries, spent, remaining and head of the ledger, every line checked again.

        ``charged`` says in words whose budget it is, and what the periods so far cost together.
        """
        return {**statement(self._store), "charged": charged(self.deployment, self._begun())}

    def _begun(self) -> int:
        """Periods so far: those of batches, or since there is a policy to act on."""
        rule = self.deployment.task.rule
        if rule is None or not rule.period:
            return 1
        with self._store.read() as connection:
            if self.deployment.task.lifetime:
                return len(Periods.begun(connection))
            since = timeline(connection)[0].published_at
        return rule.period_at(self.clock()) - rule.period_at(since) + 1

    def status(self) -> Status:
        """Public numbers only."""
        with self._store.read() as connection:
            now, state = db.progress(connection), task_state.read(connection)
            alive = self._watch.held(connection)
            trouble = self.readiness.trouble(connection)
        ledger = statement(self._store)
        if trouble is None and not ledger["verified"]:
            trouble = LEDGER
        if trouble is None and not alive:
            trouble = NOBODY
        missing = self._boundaries[now.version + 1] - now.accepted
        return Status(
            accepted=now.accepted,
            population=now.population,
            version=now.version,
            users=now.served,
            next_batch=0 if now.finished else max(0, missing),
            planner_alive=alive,
            last_published=now.published_at,
            finished=now.finished,
            state=state.word,
            budget={name: ledger.get(name) for name in ("spent", "remaining", "verified")},
            trouble=trouble,
        )

    def state(self) -> task_state.TaskState:
        """Open, paused or closed."""
        with self._store.read() as connection:
            return task_state.read(connection)

    def set_state(self, word: task_state.Word) -> task_state.TaskState:
        """Pause the task, open it again, or close it for good; every process follows at once."""
        return task_state.change(self._store, word, self.clock(), self.deployment.stem)

    def schema(self) -> str:
        """Version of the database's tables."""
        with self._store.read() as connection:
            return schema.revision(connection)

    def lease(self) -> Lease:
        """A claim to the planner's work, not yet made."""
        return Lease(self._store, self.steady)

    def verify(self) -> Verdict:
        """Work every policy out again from kept reports, and compare it with what was sent."""
        return verify(self.planning)

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check(self) -> None:
        """Refuse a database whose secrets were lost or turned back."""
        book = DatabaseLedger(self._store, self.clock)
        if isinstance(self._mode, JointMode):
            self._mode.check()
            book.charge(self.deployment)
            self._mode.check_state()
        else:
            book.spend(book.charge(self.deployment), NODE, replay=True)

    def _newest(self) -> int:
        with self._store.read() as connection:
            return db.progress(connection).version
