"""The planner: when a batch is full, absorb it, release, plan and publish, all in one transaction.

What is planned is a function of the accepted reports and of the stored random root, so whoever
plans a version gets the same one. One process plans at a time, by lease; that saves work. What
makes it safe is that the publishing transaction checks the version it builds on.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tacit.errors import TacitError
from tacit.learner import Learner
from tacit.privacy.noise import Noise, SecureNoise
from tacit.streams import planner_streams
from tacit_service.config.deployment import Deployment
from tacit_service.intake import task_state
from tacit_service.intake.tickets import Tickets
from tacit_service.intake.uploads import Mode
from tacit_service.log_lines import event
from tacit_service.planning.publications import Billboard, Edges
from tacit_service.storage import database as db
from tacit_service.storage import schema
from tacit_service.storage.database import Store

if TYPE_CHECKING:
    from tacit_service.collector import Collector

LEASE = "planner"
BEAT_SECONDS, LEASE_SECONDS = 1.0, 4.0
"""Time between two signs of life, and how long a silent holder keeps the lease."""
RETRY_SECONDS = 1.0
"""Pause after a failure; so soon after a repair the planner works again."""
_LEASE = sa.select(schema.lease.c.holder, schema.lease.c.beats).where(schema.lease.c.name == LEASE)


@dataclass(eq=False, repr=False)  # the root is not printed
class Planning:
    """One step of the planner, as a function of the database.

    Attributes:
        root: of the planner's random streams; version v is planned with those of (root, v).
        tickets: where people are counted when they begin: says when the last can have reported.
        noise: what releases draw from.
    """

    deployment: Deployment
    store: Store
    billboard: Billboard
    mode: Mode
    edges: Edges
    root: int
    clock: Callable[[], float]
    steady: Callable[[], float]
    tickets: Tickets | None = None
    noise: Callable[[], Noise] = SecureNoise
    _clean: bool = True
    _since: tuple[int, float] | None = None

    def first(self) -> None:
        """Version 0, before anybody took part: planned from an empty release."""
        learner = Learner(self.deployment.bound, self.noise(), people=1)
        learner.publish(planner_streams(self.root, 0))
        self._commit(learner, -1)

    def step(self) -> bool:
        """Plan the next version if its batch is full and its time has come.

        The last batch leads to a policy too, on which nobody acts here: it is what is left in the
        end, learned from everybody.
        """
        if not self._clean:
            self._clean = self.store.checkpoint()
        with self.store.read() as connection:
            state = task_state.read(connection)  # first: what is counted when it is closed is final
            now = db.progress(connection)
        if now.finished or state.word == "paused":
            return False
        end = self.edges[now.version + 1]
        if now.accepted < end and state.word == "closed":
            self._finish(now.version, self.deployment.task.users)
            return True
        if now.accepted < end:
            self.mode.tidy()
            return False
        if end < self.deployment.task.users and not self._due(now):
            return False
        if self.tickets is not None and not self.tickets.shut(now.version):
            return False
        learner = self._restore(now)
        with self.store.read() as connection:
            self.mode.renew(learner, connection, now.served)
            self.mode.fold(learner, connection, now.served, end)
        self.mode.ready(learner, now.version + 1)
        learner.publish(planner_streams(self.root, now.version + 1))
        self._commit(learner, now.version)
        self._clean = self.store.checkpoint()
        return True

    def _due(self, now: db.Standing) -> bool:
        """Whether the newest policy is as old as the cadence asks, by the steady clock.

        The wall clock is asked once per version, for its age when this process first saw it, and
        believed between 0 and the cadence: wrong by a day, it shifts one policy by one cadence.
        """
        cadence = self.deployment.settings.updates.cadence
        if self._since is None or self._since[0] != now.version:
            age = min(max(self.clock() - now.published_at, 0.0), cadence)
            self._since = now.version, self.steady() - age
        return self.steady() - self._since[1] >= cadence

    def _restore(self, now: db.Standing) -> Learner:
        with self.store.read() as connection:
            secret = self.mode.load(connection)
        return Learner(
            self.deployment.bound,
            self.noise(),
            secret=secret,
            publication=self.billboard.publication(now.version),
            served=now.served,
            people=1,  # whom the intake remembers, not the planner
        )

    def _commit(self, learner: Learner, previous: int) -> None:
        """Publication, state and the deletion of what was absorbed: all of it or nothing."""
        time = self.clock()
        with self.store.write() as connection:
            if db.progress(connection, lock=True).version != previous:
                return  # another process was faster, with the same result
            self.billboard.put(connection, learner, time)
            self.mode.save(connection, learner.secret)
            self.mode.forget(connection, learner.served)
            db.set_progress(
                connection,
                version=previous + 1,
                served=learner.served,
                published_at=time,
                finished=learner.served >= self.deployment.task.users,
            )
        event(
            "published",
            "a new policy is out",
            task=self.deployment.stem,
            version=previous + 1,
            users=learner.served,
        )

    def _finish(self, version: int, end: int) -> None:
        """The rest of a closed task, too few for a batch, leads to no policy: it is deleted."""
        with self.store.write() as connection:
            if db.progress(connection, lock=True).version == version:
                self.mode.forget(connection, end)
                db.set_progress(connection, finished=True)
        self._clean = self.store.checkpoint()


@dataclass(eq=False)
class Lease:
    """Who plans. Its holder counts up a number; whoever sees it stand still takes over.

    The watcher measures the silence on its own steady clock, so a wall clock that is wrong, here or
    there, neither makes two planners nor none.
    """

    _store: Store
    _steady: Callable[[], float]
    _holder: str = field(default_factory=lambda: secrets.token_hex(16))
    _seen: tuple[tuple[str, float], float] | None = None

    def take(self) -> bool:
        """Get it or show a sign of life; False while somebody else has it."""
        column = schema.lease.c
        with self._store.write() as connection:
            holder, beats = connection.execute(_LEASE.with_for_update()).one()
            if holder not in ("", self._holder) and not self._silent(holder, beats):
                return False
            mine = {"holder": self._holder, "beats": beats + 1}
            connection.execute(schema.lease.update().where(column.name == LEASE).values(**mine))
            return True

    def let_go(self) -> None:
        """Give it back, so that the next one need not wait."""
        row = schema.lease.c
        with self._store.write() as connection:
            connection.execute(
                schema.lease.update()
                .where(row.name == LEASE, row.holder == self._holder)
                .values(holder="")
            )

    def held(self, connection: sa.Connection) -> bool:
        """Whether anybody has it, as far as can be told from the looks taken so far."""
        holder, beats = connection.execute(_LEASE).one()
        return holder != "" and not self._silent(holder, beats)

    def _silent(self, holder: str, beats: float) -> bool:
        now, sign = self._steady(), (holder, beats)
        if self._seen is None or self._seen[0] != sign:
            self._seen = sign, now
        return now - self._seen[1] >= LEASE_SECONDS


class PlannerLoop:
    """The planner as a thread of the server; another one keeps the lease while it is busy.

    Args:
        collector: whose batches are planned.
        pause: seconds between two looks at the database when there is nothing to do.
    """

    def __init__(self, collector: Collector, pause: float = 0.2) -> None:
        self._planning = collector.planning
        self._readiness = collector.readiness
        self._lease = collector.lease()
        self._steady = collector.steady
        self._turn = threading.Lock()
        self._beat: float | None = None
        self._checked: float | None = None
        self._leading = False
        self._pause = pause
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.timed: Callable[[float], None] = lambda seconds: None

    def step(self) -> bool:
        """Plan one version if there is one to plan here; whether something was done."""
        self._keep_lease()
        if not self._leading:
            return False
        now = self._steady()
        if self._checked is None or now - self._checked >= BEAT_SECONDS:
            self._planning.mode.check()  # also while there is nothing to plan
            self._checked = now
        done = self._planning.step()
        if done:
            self.timed(self._steady() - now)
        return done

    def start(self) -> None:
        """Plan in a thread until :meth:`stop`."""
        self._stop.clear()
        work = {"tacit-planner": self._run, "tacit-lease": self._live}
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True) for name, target in work.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is being done, and let others plan."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads = []
        if self._leading:
            self._leading, self._beat = False, None
            with contextlib.suppress(TacitError):  # a database that is away: others wait a little
                self._lease.let_go()

    def _keep_lease(self) -> None:
        with self._turn:
            now = self._steady()
            if self._beat is None or now - self._beat >= BEAT_SECONDS:
                self._leading = self._lease.take()
                self._beat = now

    def _live(self) -> None:
        while not self._stop.wait(BEAT_SECONDS / 2):
            with contextlib.suppress(Exception):  # the planner meets the same, and says so
                self._keep_lease()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                done = self.step()
            except Exception as error:
                self._checked = None
                self._readiness.planner_failed(error)
                self._stop.wait(RETRY_SECONDS)
                continue
            self._readiness.planner_works(self._leading)
            if not done:
                self._stop.wait(self._pause)
