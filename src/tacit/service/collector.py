"""The collector (local model) or curator (joint model) of one task, behind one small interface."""

from __future__ import annotations

import functools
import hmac
import json
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import sqlalchemy as sa

from tacit import wire
from tacit._version import __version__
from tacit.errors import InvalidInput
from tacit.service import schema, states
from tacit.service import store as db
from tacit.service.answers import (
    IncomingReport,
    PolicyBody,
    Refused,
    Status,
    Taking,
    Token,
    UnknownTask,
    UnknownVersion,
    UploadAnswer,
)
from tacit.service.deployment import Deployment, Ids
from tacit.service.intake import Acceptance, Intake, Mode, PendingReport, Upload
from tacit.service.joint import JointMode
from tacit.service.ledger import NODE, DatabaseLedger, statement
from tacit.service.local import LocalMode
from tacit.service.planning import LEASE, Lease, Planning
from tacit.service.publishing import Billboard, Edges
from tacit.service.readiness import LEDGER, NOBODY, Readiness
from tacit.service.settings import iso
from tacit.service.store import Store
from tacit.service.tokens import Tokens
from tacit.service.verify import Verdict, verify

Clock = Callable[[], float]
"""Unix time in seconds."""

TERMS = "terms"
"""Row of ``meta``: every term of the file as it was when the database was made."""

CHOSEN = (
    "the id of a report of this task follows from the device's token, because the question that it "
    f"answers follows from the id; this id does not. Devices that speak version {wire.VERSION} of "
    "the protocol do it right: update the app"
)

ANOTHER = (
    "the report was made under another publication of version {version} than the one here: the "
    "service was restored from a copy since, so it cannot be counted"
)


class Collector:
    """One task in one database. Safe to share between threads; one per process.

    Attributes:
        deployment: what is served.
        billboard: every publication so far, with what it was learned from.
        tokens: who may send reports, and who may see the ledger.
        ids: who decides the ids of reports: fixed when the database was made.
        planning: the planner's single step; :class:`~tacit.service.planning.PlannerLoop` runs it.
        clock: unix time; a virtual one in tests.
        steady: seconds that nobody sets; leases and cadence go by it.
        readiness: what is wrong, if something is.
    """

    def __init__(
        self,
        deployment: Deployment,
        store: Store,
        root: int,
        ids: Ids,
        clock: Clock,
        steady: Clock,
    ) -> None:
        self.deployment = deployment
        self.clock, self.steady = clock, steady
        self.readiness = Readiness(store, steady, deployment.stem)
        self._watch = Lease(store, steady)
        self.ids = ids
        seat = functools.partial(wire.seat, task_id=deployment.task_id)
        self.tokens = Tokens(store, clock, seat if ids == "token" else None)
        self._store = store
        self.billboard = Billboard(deployment, store)
        self._edges = Edges(deployment.bound)
        self._mode: Mode
        if deployment.model == "local":
            self._mode = LocalMode(deployment, self.billboard)
        else:
            self._mode = JointMode(deployment, store, self.billboard, self._edges, clock)
        accepted = Acceptance(deployment, clock)
        self._intake = Intake(deployment, store, self._mode, accepted, clock)
        self.planning = Planning(
            deployment, store, self.billboard, self._mode, self._edges, root, clock, steady
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
                root, ids = _claim(connection, deployment)
            collector = cls(deployment, store, root, ids, clock, steady)
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
            "wire": wire.VERSION,
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
            "restoring": d.restoring,
            "state": self.state().word,
            "guarantee": d.guarantee.to_json(),
        }

    def policy(self, version: int | None = None) -> PolicyBody:
        """The newest publication, or an older one, as it is sent."""
        return self.billboard.entry(self._newest() if version is None else version)[1]

    def taking(self, version: int) -> Taking:
        """The body of GET /v1/taking: public, and the same for everybody who asks."""
        obstacle = self._intake.obstacle(version)
        try:
            name = self.billboard.entry(version)[1].hash
        except UnknownVersion:
            name = None
        reason, message = obstacle or (None, None)
        return Taking(self.deployment.task_id, version, name, obstacle is None, reason, message)

    def upload(
        self, task_id: str, reports: list[IncomingReport], token: Token | None
    ) -> UploadAnswer:
        """Decide about every report; what is accepted is durable when this returns."""
        (answer,) = self.settle([self.read(task_id, reports, token)])
        return answer

    def read(self, task_id: str, reports: list[IncomingReport], token: Token | None) -> Upload:
        """The first half of an upload: what can be said of it at once, without the database."""
        if task_id != self.deployment.task_id:
            raise UnknownTask(
                f"task {task_id[:12]}... is not served here; fetch the task description again"
            )
        if not reports:
            raise InvalidInput("an upload holds at least one report")
        if token is None and self.deployment.settings.population.tokens == "per-device":
            raise InvalidInput("reports of this task need the token of a device")
        entries = [
            PendingReport(report.id, bytes.fromhex(wire.report_id(report.id)), report.version)
            for report in reports
        ]
        if token is not None and token.seat is not None:
            for entry in entries:
                if not self._assigned(token.seat, entry.name):
                    entry.spoil("invalid", CHOSEN)
        return Upload(entries, token, reports)

    def _assigned(self, seat: bytes, name: str) -> bool:
        """Whether an id is one of those that a token may use."""
        times = range(self.deployment.task.participations)
        return any(hmac.compare_digest(wire.assigned_id(seat, k), name) for k in times)

    def settle(self, uploads: Sequence[Upload]) -> list[UploadAnswer]:
        """The second half, of many uploads in one transaction; durable when this returns."""
        with self.readiness.writing():
            self._decode(uploads)
            version = self._intake.settle(uploads)
        return [
            UploadAnswer(
                self.deployment.task_id,
                version,
                [entry.outcome for entry in upload.entries if entry.outcome is not None],
            )
            for upload in uploads
        ]

    def _decode(self, uploads: Sequence[Upload]) -> None:
        """Read messages; what is wrong with one is noted, and said if it is not a duplicate.

        All reports under one publication are read together, which costs little more than reading
        one.
        """
        alike: dict[tuple[int, str | None], list[tuple[PendingReport, str]]] = {}
        for upload in uploads:
            for entry, report in zip(upload.entries, upload.reports, strict=True):
                named = report.version, report.publication
                alike.setdefault(named, []).append((entry, report.message))
        for (version, name), sent in alike.items():
            try:
                publication, body = self.billboard.entry(version)
                problem = None if name in (None, body.hash) else ANOTHER.format(version=version)
            except UnknownVersion:
                problem = f"version {version} was never published"
            if problem is None:
                self._mode.decode(sent, publication)
                continue
            for entry, _ in sent:
                entry.spoil("stale", problem)

    def guarantee(self) -> dict[str, Any]:
        """The guarantee as JSON, and in plain words."""
        stated = self.deployment.guarantee
        return {"guarantee": stated.to_json(), "statement": stated.statement()}

    def ledger(self) -> dict[str, Any]:
        """Header, entries, spent, remaining and head of the ledger, every line checked again."""
        return statement(self._store)

    def status(self) -> Status:
        """Public numbers only."""
        with self._store.read() as connection:
            now, state = db.progress(connection), states.read(connection)
            alive = self._watch.held(connection)
            trouble = self.readiness.trouble(connection)
        ledger = self.ledger()
        if trouble is None and not ledger["verified"]:
            trouble = LEDGER
        if trouble is None and not alive:
            trouble = NOBODY
        missing = self._edges[now.version + 1] - now.accepted
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

    def state(self) -> states.State:
        """Open, paused or closed."""
        with self._store.read() as connection:
            return states.read(connection)

    def turn(self, word: states.Word) -> states.State:
        """Pause the task, open it again, or close it for good; every process follows at once."""
        return states.change(self._store, word, self.clock(), self.deployment.stem)

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
        else:
            book.spend(book.charge(self.deployment), NODE, replay=True)

    def _newest(self) -> int:
        with self._store.read() as connection:
            return db.progress(connection).version


def _claim(connection: sa.Connection, deployment: Deployment) -> tuple[int, Ids]:
    """The random root of this task's plans, and who decides ids; first rows of a new database."""
    rows = {row.name: row.value for row in connection.execute(sa.select(schema.meta))}
    if not rows:
        root = secrets.randbits(128)
        rows = {"task_id": deployment.task_id, "root": str(root), "ids": deployment.ids}
        connection.execute(
            schema.meta.insert(), [{"name": name, "value": value} for name, value in rows.items()]
        )
        connection.execute(
            schema.progress.insert(),
            {
                "id": 1,
                "population": deployment.task.users,
                "accepted": 0,
                "version": -1,
                "served": 0,
                "published_at": 0.0,
                "finished": False,
            },
        )
        DatabaseLedger.create(connection, deployment)
        if deployment.model == "joint":
            JointMode.create(connection, deployment)
        connection.execute(schema.lease.insert(), {"name": LEASE, "holder": "", "beats": 0.0})
    _hold_to_terms(connection, deployment, rows.get(TERMS))
    if rows["task_id"] != deployment.task_id:
        raise Refused(
            "the database belongs to another task: name, sizes, agent, epsilon, population and "
            "reward range are fixed once devices may have agreed to them. Restore the deployment "
            "file, or name another database for the new task"
        )
    # a database older than assigned ids goes on as it began: people are on their way
    return int(rows["root"]), "token" if rows.get("ids") == "token" else "chosen"


def _hold_to_terms(connection: sa.Connection, deployment: Deployment, stored: str | None) -> None:
    """Refuse a file whose terms were edited; a database without terms takes them as they are."""
    if stored is None:
        terms = json.dumps(deployment.fixed, sort_keys=True)
        db.put_named(connection, schema.meta, TERMS, value=terms)
        return
    before = json.loads(stored)
    for name in sorted(before.keys() | deployment.fixed.keys()):
        now = deployment.fixed.get(name, "null")
        # a key of ours that is not there was not known to the tacit that made the database
        was = before.get(name, "null" if name.endswith("[agent]") else now)
        if was != now:
            raise Refused(
                f"the database belongs to another task than this file: {name} was {_shown(was)} "
                f"when it began, and is {_shown(now)} now. People and devices were told "
                "otherwise: put it back, or begin a new task with another name, database and "
                "population"
            )


def _shown(value: str) -> str:
    return "left out" if value == "null" else value
