"""The planner: when a batch is full, absorb it, release, plan and publish, all in one transaction.

What is planned is a function of the accepted reports and of the stored random root, so whoever
plans a version gets the same one. One process plans at a time, by lease; that saves work. What
makes it safe is that the publishing transaction checks the version it builds on.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tacit.driver import Learner
from tacit.errors import TacitError
from tacit.privacy.noise import SecureNoise
from tacit.service import schema
from tacit.service import store as db
from tacit.service.deployment import Deployment
from tacit.service.intake import Mode
from tacit.service.publishing import Billboard, Edges
from tacit.service.store import Store
from tacit.simulation.streams import planner_streams

if TYPE_CHECKING:
    from tacit.service.collector import Collector

LEASE = "planner"
LEASE_SECONDS = 15.0


@dataclass(eq=False, repr=False)  # the root is not printed
class Planning:
    """One step of the planner, as a function of the database.

    Attributes:
        root: of the planner's random streams; version v is planned with those of (root, v).
    """

    deployment: Deployment
    store: Store
    billboard: Billboard
    mode: Mode
    edges: Edges
    root: int
    clock: Callable[[], float]
    _clean: bool = True

    def first(self) -> None:
        """Version 0, before anybody took part: planned from an empty release."""
        learner = Learner(self.deployment.bound, SecureNoise())
        learner.publish(planner_streams(self.root, 0))
        self._commit(learner, -1)

    def step(self) -> bool:
        """Plan the next version if its batch is full and its time has come."""
        if not self._clean:
            self._clean = self.store.checkpoint()
        with self.store.read() as connection:
            now = db.progress(connection)
        end = self.edges[now.version + 1]
        if now.finished or now.accepted < end:
            return False
        if end >= self.deployment.task.users:
            self._finish(now.version, end)
            return True
        if self.clock() < now.published_at + self.deployment.settings.updates.cadence:
            return False
        learner = self._restore(now)
        with self.store.read() as connection:
            self.mode.fold(learner, connection, now.served, end)
        self.mode.ready(learner, now.version + 1)
        learner.publish(planner_streams(self.root, now.version + 1))
        self._commit(learner, now.version)
        self._clean = self.store.checkpoint()
        return True

    def _restore(self, now: db.Standing) -> Learner:
        with self.store.read() as connection:
            secret = self.mode.load(connection)
        return Learner(
            self.deployment.bound,
            SecureNoise(),
            secret=secret,
            publication=self.billboard.publication(now.version),
            served=now.served,
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
                connection, version=previous + 1, served=learner.served, published_at=time
            )

    def _finish(self, version: int, end: int) -> None:
        """The last batch leads to no policy, for nobody acts on it: it is deleted."""
        with self.store.write() as connection:
            if db.progress(connection, lock=True).version == version:
                self.mode.forget(connection, end)
                db.set_progress(connection, finished=True)
        self._clean = self.store.checkpoint()


@dataclass(frozen=True)
class Lease:
    """Who plans. Held for some seconds, renewed while alive, taken over when it ran out."""

    _store: Store
    _clock: Callable[[], float]
    _holder: str = field(default_factory=lambda: secrets.token_hex(16))

    def take(self) -> bool:
        """Get or renew it; False while somebody else has it."""
        now, row = self._clock(), schema.lease.c
        mine = {"holder": self._holder, "expires": now + LEASE_SECONDS}
        with self._store.write() as connection:
            renewed = connection.execute(
                schema.lease.update()
                .where(
                    row.name == LEASE,
                    sa.or_(row.holder == self._holder, row.expires <= now),
                )
                .values(**mine)
            )
            return bool(renewed.rowcount)

    def let_go(self) -> None:
        """Give it back, so that the next one need not wait."""
        row = schema.lease.c
        with self._store.write() as connection:
            connection.execute(
                schema.lease.update()
                .where(row.name == LEASE, row.holder == self._holder)
                .values(holder="", expires=0.0)
            )

    def held(self) -> bool:
        """Whether anybody has it."""
        with self._store.read() as connection:
            expires = connection.execute(
                sa.select(schema.lease.c.expires).where(schema.lease.c.name == LEASE)
            ).scalar()
        return expires is not None and expires > self._clock()


class PlannerLoop:
    """The planner as a thread of the server.

    Args:
        collector: whose batches are planned.
        pause: seconds between two looks at the database when there is nothing to do.
    """

    def __init__(self, collector: Collector, pause: float = 0.2) -> None:
        self._planning = collector.planning
        self._lease = collector.lease()
        self._clock = collector.clock
        self._renewed: float | None = None
        self._pause = pause
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.trouble: str | None = None
        self.timed: Callable[[float], None] = lambda seconds: None

    def step(self) -> bool:
        """Plan one version if there is one to plan here; whether something was done."""
        now = self._clock()
        if self._renewed is None or not 0 <= now - self._renewed < LEASE_SECONDS / 3:
            self._renewed = now if self._lease.take() else None
        if self._renewed is None:
            return False
        started = time.monotonic()
        done = self._planning.step()
        if done:
            self.timed(time.monotonic() - started)
        return done

    def start(self) -> None:
        """Plan in a thread until :meth:`stop`."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="tacit-planner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being done, and let others plan."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._renewed is not None:
            self._renewed = None
            self._lease.let_go()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                done = self.step()
                self.trouble = None
            except Exception as error:  # the next round tries again
                said = str(error) if isinstance(error, TacitError) else type(error).__name__
                done, self.trouble = False, said
            if not done:
                self._stop.wait(self._pause)
