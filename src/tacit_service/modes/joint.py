"""The joint model: a trusted curator that keeps no trajectory.

In the transaction that counts it, a trajectory becomes its clipped contribution and is added to the
exact sums of its batch, encrypted. A release takes four steps, each durable before the next: the
charge in the ledger; the noise, drawn once and stored encrypted; the witness file; and then
release, policy and new state together. After a crash at any point the stored noise is used again,
and after a restore the noise that the witness knows, if the content is the same: no node is ever
answered with other noise, and no noise is used on other content. Sums that were released are
forgotten with their noise.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import GRID
from tacit.learner import Learner
from tacit.privacy.base import Report, Secret
from tacit.privacy.noise import ZeroNoise
from tacit.publication import Publication
from tacit.statistics.base import (
    BatchStatistic,
    Bounded,
    Relation,
    bounds_lifetimes,
)
from tacit.trajectory import Trajectory, together
from tacit.wire import messages
from tacit_service.config.deployment import Deployment
from tacit_service.intake.uploads import PendingReport, runs
from tacit_service.modes.memory import PREFIX, People, Remembered
from tacit_service.modes.periods import Periods
from tacit_service.planning.publications import BatchBoundaries, PublicationStore
from tacit_service.responses import ServiceRefused
from tacit_service.storage import database as db
from tacit_service.storage import packing
from tacit_service.storage.database import Store
from tacit_service.storage.ledger import NODE, DatabaseLedger
from tacit_service.storage.vault import Vault
from tacit_service.storage.witness import START, Mark, Seen, Witness

STATE = "state"
MARK = "drawn"
KEPT = "kept:"


def batch_name(batch: int) -> str:
    """Exact sums of a batch that is open or not yet released."""
    return f"batch:{batch}"


def noise_name(release: int) -> str:
    """Noise of a release."""
    return f"noise:{release}"


def kept_name(first: int) -> str:
    """Clipped contributions that the operator keeps, by the number of the first report."""
    return f"{KEPT}{first:015d}"


@dataclass(eq=False, repr=False)
class JointMode:
    """Reports of the joint model, from arrival to release."""

    _deployment: Deployment
    _store: Store
    _publications: PublicationStore
    _boundaries: BatchBoundaries
    _clock: Callable[[], float]

    def __post_init__(self) -> None:
        bound, task_id = self._deployment.bound, self._deployment.task_id
        assert isinstance(bound.statistic, BatchStatistic)
        self._privatizer, self._statistic = bound.privatizer, bound.statistic
        self._witness = Witness(self._deployment.witness, task_id)
        self._vault = Vault(self._deployment.key_file, task_id)
        self._periods = Periods(bound, self._boundaries, self._clock)
        self._people: People | None = None
        if bounds_lifetimes(bound.statistic):
            self._people = People(self._vault, bound.lifetime)

    @property
    def _keeping(self) -> bool:
        return self._deployment.settings.storage.keep_reports

    @staticmethod
    def create(connection: sa.Connection, deployment: Deployment) -> None:
        """Key file and first mark of a new database; a witness that is ahead refuses it."""
        Witness(deployment.witness, deployment.task_id).create()
        Vault.create(deployment.key_file)
        _set_mark(connection, START)

    def check(self) -> None:
        """Refuse a database that was turned back, or whose secrets do not open."""
        with self._store.read() as connection:
            self._witness.check(_mark(connection))
            for name in self._vault.names(connection, most=1):
                self._vault.get(connection, name)

    def check_state(self) -> None:
        """Refuse sums that another version of tacit began in another form."""
        with self._store.read() as connection:
            try:
                self.load(connection)
            except (InvalidInput, KeyError, ValueError):
                raise ServiceRefused(
                    "this task was begun by another version of tacit, in which this agent adds up "
                    "other numbers, so the sums that the database keeps cannot go on here; let the "
                    "version that began it finish it, or begin a new task with a file and a "
                    "database of its own"
                ) from None

    # Arrival.

    def decode(self, entries: Sequence[PendingReport], publication: Publication) -> None:
        """Trajectories or returns; only their length is judged, whatever they say is clipped."""
        for entry in entries:
            text = entry.sent.message
            with entry.judged():
                if self._deployment.ticketed:
                    entry.payload = messages.unpack_return(text)
                else:
                    entry.payload = messages.unpack_trajectory(text, self._deployment.task.horizon)

    def begin(self, connection: sa.Connection, first: int, count: int) -> None:
        """With the first report of a new period nobody has taught or sent anything yet."""
        if self._people is not None and self._periods.begin(connection, first, count):
            self._people.begin(connection)
            db.reset_tokens(connection)

    def keep(self, connection: sa.Connection, entries: list[PendingReport]) -> None:
        """Add clipped contributions to the encrypted sums of their batches.

        Where people are remembered, in the order of their reports, and with what they taught
        before; each report is clipped once, whether it is kept or not.
        """
        people = None if self._people is None else self._recall(connection, entries)
        by_batch: dict[int, IntArray] = {}
        for run in runs(entries) if self._keeping else ():
            rows = np.stack([self._contributions([entry], people) for entry in run])
            for entry, row in zip(run, rows, strict=True):
                self._add(by_batch, entry, row)
            stored = {"rows": rows, "versions": np.array([entry.version for entry in run])}
            if people is not None:
                stored["people"] = np.array([people.names[entry.row] for entry in run])
            self._vault.put(connection, kept_name(run[0].number), packing.to_bytes(stored))
        for alike in () if self._keeping else self._alike(entries):
            self._add(by_batch, alike[0], self._contributions(alike, people))
        for batch, sums in by_batch.items():
            name = batch_name(batch)
            earlier = self._vault.get(connection, name)
            if earlier is not None:
                sums += np.frombuffer(earlier, dtype="<i8")
            self._vault.put(connection, name, sums.astype("<i8").tobytes())
        if self._people is not None and people is not None:
            self._people.remember(connection, people)

    def _add(self, by_batch: dict[int, IntArray], entry: PendingReport, row: IntArray) -> None:
        batch = self._boundaries.batch(entry.number)
        by_batch[batch] = by_batch.get(batch, 0) + row

    def _alike(self, entries: list[PendingReport]) -> Iterator[list[PendingReport]]:
        """Stretches of the same batch and version, which are clipped together."""

        def kind(entry: PendingReport) -> tuple[int, int]:
            return self._boundaries.batch(entry.number), entry.version

        ordered = entries if self._people is not None else sorted(entries, key=kind)
        return (list(stretch) for _, stretch in itertools.groupby(ordered, kind))

    def _recall(self, connection: sa.Connection, entries: list[PendingReport]) -> Remembered:
        """What the senders of some reports have taught, and which of them sent which."""
        assert self._people is not None
        rows: dict[bytes, int] = {}
        for entry in entries:
            assert entry.sender.digest is not None
            entry.row = rows.setdefault(entry.sender.digest, len(rows))
        period = self._periods.begun(connection)[-1].number
        names = self._people.pseudonyms(connection, period, list(rows))
        return self._people.recall(connection, names)

    def _contributions(self, entries: list[PendingReport], people: Remembered | None) -> IntArray:
        """The summed contributions of some users, all under the version that the first names."""
        total = np.zeros(self._privatizer.layout.size, dtype=np.int64)
        lived: list[Trajectory] = [entry.payload for entry in entries]
        coins = [self._deployment.coin(entry.name, entry.number) for entry in entries]
        publication = self._publications.publication(entries[0].version)
        ids = np.array(coins, dtype=np.int64)
        if people is None:
            self._statistic.add_many(together(lived), publication, ids, total)
        else:
            who = np.array([entry.row for entry in entries], dtype=np.int64)
            known, lifetime = people.memory.of(who), self._deployment.bound.lifetime
            lifetime.add_people(together(lived), publication, ids, known, total)
        return total

    # Release.

    def renew(self, learner: Learner, connection: sa.Connection, start: int) -> None:
        """The counter begins again with the first batch of every period but the first."""
        if self._people is not None and self._periods.renews(connection, start):
            learner.renew()

    def drop_expired(self) -> None:
        """Forget people whose period is over, also if nobody comes to begin the next."""
        if self._people is None:
            return
        with self._store.read() as connection:
            over = self._periods.over(connection, db.progress(connection).accepted)
            known = over and self._vault.names(connection, PREFIX, most=1)
        if known:
            with self._store.write() as connection:
                if self._periods.over(connection, db.progress(connection, lock=True).accepted):
                    self._people.forget(connection)

    def absorb(self, learner: Learner, connection: sa.Connection, start: int, end: int) -> None:
        """Hand the sums of the batch [start, end) to the counter."""
        stored = self._vault.get(connection, batch_name(self._boundaries.batch(start)))
        if stored is None and self._deployment.ticketed:  # nobody reported
            stored = bytes(8 * self._privatizer.layout.size)
        if stored is None:
            raise ServiceRefused("the sums of the next batch are missing from the encrypted table")
        total = np.frombuffer(stored, dtype="<i8").astype(np.int64)
        learner.absorb_sums(total, end - start)

    def prepare_release(self, learner: Learner, version: int) -> None:
        """Charge, then noise (stored, known to the witness, or drawn now), then the witness.

        Nothing of it where the version is planned on a release that was made before.
        """
        if learner.agent.plans_again(learner.served):
            return
        number = learner.agent.release_number(version, learner.served)
        with self._store.read() as connection:
            seen = self._witness.check(_mark(connection))
        book = DatabaseLedger(self._store, self._clock)
        book.spend(book.charge(self._deployment), NODE, replay=True)
        content = packing.content(self._privatizer.state(learner.secret))
        noise = self._noise(learner, number, content, seen)
        self._privatizer.replay(learner.secret, packing.from_bytes(noise)["noise"])
        with self._store.read() as connection:
            sealed = self._vault.seal_for(noise_name(number), content, noise)
            self._witness.note(_mark(connection), sealed)

    def _noise(self, learner: Learner, number: int, content: bytes, seen: Seen) -> bytes:
        """The noise of a release, as it is in the database when this returns."""
        name = noise_name(number)
        with self._store.read() as connection:
            stored = self._vault.get(connection, name)
        if stored is not None:
            return stored
        known = seen.drawn.get(number)
        if known is None:
            # drawn with a copy of the counter: what is used is read back from the database
            scratch = self._privatizer.restore(self._privatizer.state(learner.secret))
            noise = packing.to_bytes({"noise": self._privatizer.draw(scratch, learner.noise)})
            digest = self._vault.digest(name, content + noise)
        else:
            opened = self._vault.open_for(name, content, known.noise)
            if opened is None:
                raise self._witness.turned_back(number)
            noise, digest = opened, known.digest
        with self._store.write() as connection:
            db.progress(connection, lock=True)
            stored = self._vault.get(connection, name)
            if stored is not None:
                return stored
            if _mark(connection).releases != number - 1:
                raise ServiceRefused(f"the noise of release {number} was drawn, used and deleted")
            self._vault.put(connection, name, noise)
            _set_mark(connection, Mark(number, digest))
        return noise

    # Verification.

    def reports(
        self, connection: sa.Connection, start: int, end: int
    ) -> Iterator[tuple[Report, int]]:
        """Kept contributions with numbers in [start, end), as the driver absorbs them.

        Tickets that no report came for count as zeros.
        """
        count = 0
        for first, stored in self._kept(connection, end):
            if not {"rows", "versions"} <= stored.keys():
                raise InvalidInput(
                    f"the reports that this database keeps from number {first} on were written by "
                    "another version of tacit in another form, so no policy can be worked out from "
                    "them again; verify it with the version that wrote them"
                )
            for i, row in enumerate(stored["rows"]):
                if start <= first + i < end:
                    version, count = int(stored["versions"][i]), count + 1
                    publication = self._publications.publication(version)
                    yield self._privatizer.encode(row, publication, ZeroNoise()), version
        for _ in range(end - start - count if self._deployment.ticketed else 0):
            yield Report(np.zeros(self._privatizer.layout.size, dtype=np.int64)), 0

    def _kept(
        self, connection: sa.Connection, end: float = math.inf
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """What is kept of reports before a number, each part with the number of its first."""
        for name in self._vault.names(connection, KEPT):
            first = int(name.removeprefix(KEPT))
            if first < end:
                yield first, packing.from_bytes(self._vault.get(connection, name) or b"")

    def overcounted(self, connection: sa.Connection) -> str:
        """Whether kept reports count a person beyond the rule, as a sentence; else nothing."""
        rule = self._deployment.task.rule
        if self._people is None or rule is None:
            return ""
        statistic = self._deployment.bound.statistic
        each, in_all = _most_taught(statistic)
        often, taught = Counter[str](), dict[str, Array]()
        for _, stored in self._kept(connection):
            for row, who in zip(stored["rows"], stored["people"].tolist(), strict=True):
                taught[who] = taught.get(who, 0.0) + _taught(statistic, row)
                often[who] += 1
                if rule.times is not None and often[who] > rule.times:
                    return f"a person was counted more than {rule.times} times in a period"
                if taught[who].max() > each or taught[who].sum() > in_all:
                    return "a person taught more in a period than a life may"
        return ""

    def restore_noise(self, learner: Learner, connection: sa.Connection, version: int) -> None:
        """Make the learner's next release use the noise that was stored for it."""
        if learner.agent.plans_again(learner.served):
            return
        number = learner.agent.release_number(version, learner.served)
        stored = self._vault.get(connection, noise_name(number))
        if stored is None:
            raise ServiceRefused(f"the noise of release {number} was not kept")
        self._privatizer.replay(learner.secret, packing.from_bytes(stored)["noise"])

    # State.

    def load(self, connection: sa.Connection) -> Secret | None:
        """Counter and exact sums as they were saved, None before the first publication."""
        stored = self._vault.get(connection, STATE)
        if stored is None:
            return None
        arrays = packing.from_bytes(stored)
        if "prefix" not in arrays:  # of the first versions: it is the newest release, in grid steps
            newest = self._publications.published(db.progress(connection).version).release
            arrays["prefix"] = np.zeros(self._privatizer.layout.size)
            for name, block in self._privatizer.layout.views(arrays["prefix"]).items():
                block[...] = newest.blocks[name] / GRID
        secret: Secret = self._privatizer.restore(arrays)
        return secret

    def save(self, connection: sa.Connection, secret: Secret) -> None:
        """The counter, encrypted; the noise that went into it is forgotten."""
        self._vault.put(connection, STATE, packing.to_bytes(self._privatizer.state(secret)))

    def delete_absorbed(self, connection: sa.Connection, end: int) -> None:
        """Delete sums and noise that went into a release; everything when the task is over."""
        if end >= self._deployment.task.users:
            People.forget(connection)
        if self._keeping or end == 0:
            return
        if end >= self._deployment.task.users:
            Vault.delete_under(connection, "")
            self._witness.forget()
            return
        batch = self._boundaries.batch(end - 1)
        number = self._deployment.bound.release_number(batch + 1, end)
        Vault.delete(connection, batch_name(batch), noise_name(number))


COUNTS = "totals"
"""The block that says how often what was counted; sums without one are bounded in norm."""


def _taught(statistic: Bounded, row: IntArray) -> Array:
    """What of one contribution adds up over a life: its counts, or its norm."""
    natural = row * statistic.layout.units
    counts = statistic.layout.views(natural).get(COUNTS)
    return np.array([np.linalg.norm(natural)]) if counts is None else counts.ravel()


def _most_taught(statistic: Bounded) -> tuple[float, float]:
    """How much of it one life has in one cell, and in all of them, at most."""
    alone = {block.name: float(block.name == COUNTS) for block in statistic.layout.blocks}
    if not any(alone.values()):
        norm = statistic.sensitivity("l2", Relation.ADD_REMOVE_ONE) * (1 + 1e-9)
        return norm, norm
    often: int = getattr(statistic, "often", 1)
    return 0.5 * often, statistic.sensitivity("l1", Relation.ADD_REMOVE_ONE, alone)


def _mark(connection: sa.Connection) -> Mark:
    value = db.read_meta(connection, MARK)
    if value is None:
        raise InvalidInput("this database was not made for the joint model")
    releases, _, digest = value.partition(":")
    return Mark(int(releases), digest)


def _set_mark(connection: sa.Connection, mark: Mark) -> None:
    db.put_meta(connection, MARK, f"{mark.releases}:{mark.digest}")
