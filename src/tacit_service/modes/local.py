"""The local model: messages arrive randomized, wait for their batch, are added up and deleted."""

from __future__ import annotations

import itertools
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from tacit.arrays import IntArray
from tacit.errors import InvalidInput
from tacit.learner import Learner
from tacit.privacy.base import Report, Secret, Sent
from tacit.publication import Publication
from tacit.wire import messages as documents
from tacit_service.config.deployment import Deployment
from tacit_service.intake.uploads import PendingReport, runs
from tacit_service.planning.publications import PublicationStore
from tacit_service.storage import packing, schema

AT_ONCE = 10_000
"""Reports in memory at once while a batch is added up, however large it is."""


class Kept(NamedTuple):
    """One stored report: its number in the task, id, version and message."""

    number: int
    identity: str
    version: int
    message: IntArray


def pack(entries: list[PendingReport]) -> bytes:
    """Many reports as one value: ids, versions, lengths and all the integers."""
    messages = [entry.payload for entry in entries]
    return b"".join(
        (
            struct.pack("<q", len(entries)),
            *(entry.identity for entry in entries),
            np.array([entry.version for entry in entries], dtype="<i4").tobytes(),
            np.array([len(message) for message in messages], dtype="<i4").tobytes(),
            np.concatenate(messages).astype("<i8").tobytes(),
        )
    )


def unpack(first: int, data: bytes) -> Iterator[Kept]:
    """The reports again, numbered from ``first``."""
    (count,) = struct.unpack_from("<q", data)
    ids = data[8 : 8 + 16 * count]
    versions = np.frombuffer(data, "<i4", count, 8 + 16 * count)
    lengths = np.frombuffer(data, "<i4", count, 8 + 20 * count)
    values = np.frombuffer(data, "<i8", offset=8 + 24 * count).astype(np.int64)
    ends = np.cumsum(lengths).tolist()
    for i, (start, end) in enumerate(itertools.pairwise((0, *ends))):
        identity = ids[16 * i : 16 * i + 16].hex()
        yield Kept(first + i, identity, int(versions[i]), values[start:end])


class LocalMode:
    """Reports of the local model, from arrival to absorption."""

    def __init__(self, deployment: Deployment, publications: PublicationStore) -> None:
        self._deployment = deployment
        self._publications = publications
        self._privatizer = documents.local_privatizer(deployment.bound)

    def check(self) -> None:
        """Nothing is needed beside the database."""

    def decode(self, entries: Sequence[PendingReport], publication: Publication) -> None:
        """Messages as integers; one that no device of ours can have sent is noted as invalid."""
        coins = [self._deployment.coin(entry.name, entry.number) for entry in entries]
        try:
            for entry in entries:
                entry.payload = documents.unpack_message(entry.sent.message)
            payloads = [entry.payload for entry in entries]
            self._privatizer.inspect_all(Sent(payloads, publication, coins))
        except InvalidInput:  # at least one of them is wrong
            for entry, coin in zip(entries, coins, strict=True):
                with entry.judged():
                    entry.payload = documents.unpack_message(entry.sent.message)
                    self._privatizer.inspect(entry.payload, publication, coin)

    def keep(self, connection: sa.Connection, entries: list[PendingReport]) -> None:
        """One row for every stretch of them."""
        rows = [
            {"first": run[0].number, "count": len(run), "data": pack(run)} for run in runs(entries)
        ]
        connection.execute(schema.uploads.insert(), rows)

    def begin(self, connection: sa.Connection, first: int, count: int) -> None:
        """Nothing: the period of a report is in its id."""

    def renew(self, learner: Learner, connection: sa.Connection, start: int) -> None:
        """Nothing: every report has noise of its own."""

    def drop_expired(self) -> None:
        """Nothing: nobody is remembered."""

    def absorb(self, learner: Learner, connection: sa.Connection, start: int, end: int) -> None:
        """Absorb the reports with numbers in [start, end), each under the version it names."""
        for first in range(start, end, AT_ONCE):
            by_version: dict[int, list[Kept]] = defaultdict(list)
            for report in self.kept(connection, first, min(first + AT_ONCE, end)):
                by_version[report.version].append(report)
            for version, reports in sorted(by_version.items()):
                sent = Sent(
                    [report.message for report in reports],
                    self._publications.publication(version),
                    [self._deployment.coin(report.identity, report.number) for report in reports],
                )
                learner.secret = self._privatizer.fold(learner.secret, sent)
                learner.served += len(reports)
        for missing in self._missing(end - learner.served):
            learner.absorb(missing, 0)

    def reports(
        self, connection: sa.Connection, start: int, end: int
    ) -> Iterator[tuple[Report, int]]:
        """Kept reports with numbers in [start, end) as the simulator's driver absorbs them."""
        count = 0
        for kept in self.kept(connection, start, end):
            coin = self._deployment.coin(kept.identity, kept.number)
            publication = self._publications.publication(kept.version)
            count += 1
            yield self._privatizer.collect(kept.message, publication, coin), kept.version
        for report in self._missing(end - start - count):
            yield report, 0

    def _missing(self, count: int) -> Iterator[Report]:
        """Tickets that no report came for: they count, as zeros."""
        for _ in range(count if self._deployment.ticketed else 0):
            yield Report(np.zeros(self._privatizer.layout.size, dtype=np.int64), "secure")

    def overcounted(self, connection: sa.Connection) -> str:
        """Nobody: the id of a report is that of its sender in a period, and counts once."""
        return ""

    def restore_noise(self, learner: Learner, connection: sa.Connection, version: int) -> None:
        """Nothing: the noise of a release is in the reports."""

    @staticmethod
    def kept(connection: sa.Connection, start: int, end: int) -> Iterator[Kept]:
        """Stored reports with numbers in [start, end)."""
        column = schema.uploads.c
        rows = connection.execute(
            sa.select(column.first, column.data)
            .where(column.first < end, column.first + column.count > start)
            .order_by(column.first)
        )
        for first, data in rows:
            for report in unpack(int(first), bytes(data)):
                if start <= report.number < end:
                    yield report

    def prepare_release(self, learner: Learner, version: int) -> None:
        """Nothing: the noise was added by the devices."""

    def load(self, connection: sa.Connection) -> Secret | None:
        """The sums as they were saved, None before the first publication."""
        row = connection.execute(sa.select(schema.learner.c.data)).one_or_none()
        if row is None:
            return None
        secret: Secret = self._privatizer.restore(packing.from_bytes(bytes(row[0])))
        return secret

    def save(self, connection: sa.Connection, secret: Secret) -> None:
        """The sums, for the next batch."""
        data = packing.to_bytes(self._privatizer.state(secret))
        connection.execute(schema.learner.delete())
        connection.execute(schema.learner.insert(), {"id": 1, "data": data})

    def delete_absorbed(self, connection: sa.Connection, end: int) -> None:
        """Delete messages that were absorbed, unless the operator keeps them."""
        if not self._deployment.settings.storage.keep_reports:
            column = schema.uploads.c
            connection.execute(schema.uploads.delete().where(column.first + column.count <= end))
