"""Who plans: one process at a time, by a lease that is kept by heartbeats."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tacit.errors import TacitError
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
        mine = schema.lease.update().where(row.name == LEASE, row.holder == self._holder)
        with self._store.write() as connection:
            connection.execute(mine.values(holder=""))

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
