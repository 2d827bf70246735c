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

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from tacit import wire
from tacit.arrays import IntArray
from tacit.driver import Learner
from tacit.errors import InvalidInput
from tacit.grid import GRID
from tacit.privacy.base import Report, Secret
from tacit.privacy.noise import Silence
from tacit.publication import Publication
from tacit.service import packing, schema
from tacit.service import store as db
from tacit.service.answers import Refused
from tacit.service.deployment import Deployment
from tacit.service.intake import PendingReport
from tacit.service.ledger import NODE, DatabaseLedger
from tacit.service.publishing import Billboard, Edges
from tacit.service.store import Store
from tacit.service.vault import Vault
from tacit.service.witness import START, Mark, Seen, Witness
from tacit.statistics.base import BatchStatistic
from tacit.trajectory import Trajectory, together

STATE = "state"
MARK = "drawn"


def batch_name(batch: int) -> str:
    """Exact sums of a batch that is open or not yet released."""
    return f"batch:{batch}"


def noise_name(release: int) -> str:
    """Noise of a release."""
    return f"noise:{release}"


def kept_name(first: int) -> str:
    """Clipped contributions that the operator keeps, by the number of the first report."""
    return f"kept:{first:015d}"


@dataclass(eq=False, repr=False)
class JointMode:
    """Reports of the joint model, from arrival to release."""

    _deployment: Deployment
    _store: Store
    _billboard: Billboard
    _edges: Edges
    _clock: Callable[[], float]

    def __post_init__(self) -> None:
        bound, task_id = self._deployment.bound, self._deployment.task_id
        assert isinstance(bound.statistic, BatchStatistic)
        self._privatizer, self._statistic = bound.privatizer, bound.statistic
        self._witness = Witness(self._deployment.witness, task_id)
        self._vault = Vault(self._deployment.key_file, task_id)

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
            for name in self._vault.names(connection)[:1]:
                self._vault.get(connection, name)

    # Arrival.

    def decode(self, sent: Sequence[tuple[PendingReport, str]], publication: Publication) -> None:
        """Trajectories; only their length is judged, whatever they say is clipped."""
        for entry, text in sent:
            with entry.judged():
                entry.payload = wire.unpack_trajectory(text, self._deployment.task.horizon)

    def keep(self, connection: sa.Connection, first: int, entries: list[PendingReport]) -> None:
        """Add clipped contributions to the encrypted sums of their batches."""
        by_batch: dict[int, list[PendingReport]] = defaultdict(list)
        for i, entry in enumerate(entries):
            by_batch[self._edges.batch(first + i)].append(entry)
        for batch, members in by_batch.items():
            name = batch_name(batch)
            sums = self._contributions(members)
            earlier = self._vault.get(connection, name)
            if earlier is not None:
                sums += np.frombuffer(earlier, dtype="<i8")
            self._vault.put(connection, name, sums.astype("<i8").tobytes())
        if self._deployment.settings.storage.keep_reports:
            rows = np.stack([self._contributions([entry]) for entry in entries])
            versions = np.array([entry.version for entry in entries])
            stored = packing.to_bytes({"rows": rows, "versions": versions})
            self._vault.put(connection, kept_name(first), stored)

    def _contributions(self, entries: list[PendingReport]) -> IntArray:
        """The summed contributions of some users, each under the version it names."""
        total = np.zeros(self._privatizer.layout.size, dtype=np.int64)
        by_version: dict[int, list[PendingReport]] = defaultdict(list)
        for entry in entries:
            by_version[entry.version].append(entry)
        for version, members in by_version.items():
            lived: list[Trajectory] = [entry.payload for entry in members]
            coins = [wire.coin(self._deployment.task_id, entry.name) for entry in members]
            publication = self._billboard.publication(version)
            ids = np.array(coins, dtype=np.int64)
            self._statistic.add_many(together(lived), publication, ids, total)
        return total

    # Release.

    def fold(self, learner: Learner, connection: sa.Connection, start: int, end: int) -> None:
        """Hand the sums of the batch [start, end) to the counter."""
        stored = self._vault.get(connection, batch_name(self._edges.batch(start)))
        if stored is None:
            raise Refused("the sums of the next batch are missing from the encrypted table")
        total = np.frombuffer(stored, dtype="<i8").astype(np.int64)
        learner.absorb_sums(total, end - start)

    def ready(self, learner: Learner, version: int) -> None:
        """Charge, then noise (stored, known to the witness, or drawn now), then the witness."""
        with self._store.read() as connection:
            seen = self._witness.check(_mark(connection))
        book = DatabaseLedger(self._store, self._clock)
        book.spend(book.charge(self._deployment), NODE, replay=True)
        content = packing.content(self._privatizer.state(learner.secret))
        noise = self._noise(learner, version, content, seen)
        self._privatizer.replay(learner.secret, packing.from_bytes(noise)["noise"])
        with self._store.read() as connection:
            sealed = self._vault.seal_for(noise_name(version), content, noise)
            self._witness.note(_mark(connection), sealed)

    def _noise(self, learner: Learner, version: int, content: bytes, seen: Seen) -> bytes:
        """The noise of a release, as it is in the database when this returns."""
        name = noise_name(version)
        with self._store.read() as connection:
            stored = self._vault.get(connection, name)
        if stored is not None:
            return stored
        known = seen.drawn.get(version)
        if known is None:
            # drawn with a copy of the counter: what is used is read back from the database
            scratch = self._privatizer.restore(self._privatizer.state(learner.secret))
            noise = packing.to_bytes({"noise": self._privatizer.draw(scratch, learner.noise)})
            digest = self._vault.digest(name, content + noise)
        else:
            again = self._vault.open_for(name, content, known.noise)
            if again is None:
                raise self._witness.turned_back(version)
            noise, digest = again, known.digest
        with self._store.write() as connection:
            db.progress(connection, lock=True)
            stored = self._vault.get(connection, name)
            if stored is not None:
                return stored
            if _mark(connection).releases != version - 1:
                raise Refused(f"the noise of release {version} was drawn, used and deleted")
            self._vault.put(connection, name, noise)
            _set_mark(connection, Mark(version, digest))
        return noise

    # Verification.

    def reports(
        self, connection: sa.Connection, start: int, end: int
    ) -> Iterator[tuple[Report, int]]:
        """Kept contributions with numbers in [start, end), as the driver absorbs them."""
        for name in self._vault.names(connection):
            if not name.startswith("kept:") or int(name.removeprefix("kept:")) >= end:
                continue
            stored = packing.from_bytes(self._vault.get(connection, name) or b"")
            first = int(name.removeprefix("kept:"))
            if not {"rows", "versions"} <= stored.keys():
                raise InvalidInput(
                    f"the reports that this database keeps from number {first} on were written by "
                    "another version of tacit in another form, so no policy can be worked out from "
                    "them again; verify it with the version that wrote them"
                )
            for i, row in enumerate(stored["rows"]):
                if start <= first + i < end:
                    version = int(stored["versions"][i])
                    publication = self._billboard.publication(version)
                    yield self._privatizer.encode(row, publication, Silence()), version

    def recall(self, learner: Learner, connection: sa.Connection, version: int) -> None:
        """Make the learner's next release use the noise that was stored for it."""
        stored = self._vault.get(connection, noise_name(version))
        if stored is None:
            raise Refused(f"the noise of release {version} was not kept")
        self._privatizer.replay(learner.secret, packing.from_bytes(stored)["noise"])

    # State.

    def load(self, connection: sa.Connection) -> Secret | None:
        """Counter and exact sums as they were saved, None before the first publication."""
        stored = self._vault.get(connection, STATE)
        if stored is None:
            return None
        arrays = packing.from_bytes(stored)
        if "prefix" not in arrays:  # of the first versions: it is the newest release, in grid steps
            newest = self._billboard.published(db.progress(connection).version).release
            arrays["prefix"] = np.zeros(self._privatizer.layout.size)
            for name, block in self._privatizer.layout.views(arrays["prefix"]).items():
                block[...] = newest.blocks[name] / GRID
        secret: Secret = self._privatizer.restore(arrays)
        return secret

    def save(self, connection: sa.Connection, secret: Secret) -> None:
        """The counter, encrypted; the noise that went into it is forgotten."""
        self._vault.put(connection, STATE, packing.to_bytes(self._privatizer.state(secret)))

    def forget(self, connection: sa.Connection, end: int) -> None:
        """Delete sums and noise that went into a release; everything when the task is over."""
        if self._deployment.settings.storage.keep_reports or end == 0:
            return
        if end >= self._deployment.task.users:
            Vault.delete(connection, *Vault.names(connection))
            self._witness.forget()
            return
        batch = self._edges.batch(end - 1)
        Vault.delete(connection, batch_name(batch), noise_name(batch + 1))


def _mark(connection: sa.Connection) -> Mark:
    column = schema.meta.c
    value = connection.execute(sa.select(column.value).where(column.name == MARK)).scalar()
    if value is None:
        raise InvalidInput("this database was not made for the joint model")
    releases, _, digest = value.partition(":")
    return Mark(int(releases), digest)


def _set_mark(connection: sa.Connection, mark: Mark) -> None:
    db.put_named(connection, schema.meta, MARK, value=f"{mark.releases}:{mark.digest}")
