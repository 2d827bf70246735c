"""The planner: when a batch is full, absorb it, release, plan and publish, all in one transaction.

What is planned is a function of the accepted reports and of the stored random root, so whoever
plans a version gets the same one. One process plans at a time, by lease (``loop``); that saves
work. What makes it safe is that the publishing transaction checks the version it builds on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tacit.learner import Learner
from tacit.privacy.noise import Noise, SecureNoise
from tacit.streams import planner_streams
from tacit_service.config.deployment import Deployment
from tacit_service.intake import task_state
from tacit_service.intake.uploads import Intake, Mode
from tacit_service.log_lines import event
from tacit_service.planning.publications import BatchBoundaries, PublicationStore
from tacit_service.storage import database as db
from tacit_service.storage.database import Store


@dataclass(eq=False, repr=False)  # the root is not printed
class Planning:
    """One step of the planner, as a function of the database.

    Attributes:
        root: of the planner's random streams; version v is planned with those of (root, v).
        intake: says when the last of a batch can have reported.
        noise: what releases draw from.
    """

    deployment: Deployment
    store: Store
    publications: PublicationStore
    mode: Mode
    intake: Intake
    boundaries: BatchBoundaries
    root: int
    clock: Callable[[], float]
    steady: Callable[[], float]
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
        end = self.boundaries[now.version + 1]
        if now.accepted < end and state.word == "closed":
            self._finish(now.version, self.deployment.task.users)
            return True
        if now.accepted < end:
            self.mode.drop_expired()
            return False
        if end < self.deployment.task.users and not self._due(now):
            return False
        if not self.intake.shut(now.version):
            return False
        learner = self._restore(now)
        with self.store.read() as connection:
            self.mode.renew(learner, connection, now.served)
            self.mode.absorb(learner, connection, now.served, end)
        self.mode.prepare_release(learner, now.version + 1)
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
            publication=self.publications.publication(now.version),
            served=now.served,
            people=1,  # whom the intake remembers, not the planner
        )

    def _commit(self, learner: Learner, previous: int) -> None:
        """Publication, state and the deletion of what was absorbed: all of it or nothing."""
        time = self.clock()
        with self.store.write() as connection:
            if db.progress(connection, lock=True).version != previous:
                return  # another process was faster, with the same result
            self.publications.put(connection, learner, time)
            self.mode.save(connection, learner.secret)
            self.mode.delete_absorbed(connection, learner.served)
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
                self.mode.delete_absorbed(connection, end)
                db.set_progress(connection, finished=True)
        self._clean = self.store.checkpoint()
