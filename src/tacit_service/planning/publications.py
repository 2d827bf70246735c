"""The billboard: publications as they were sent, and after how many reports there is a new one."""

from __future__ import annotations

import bisect
import functools
import hashlib
import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import sqlalchemy as sa

from tacit.learned_policy import LearnedPolicy
from tacit.learner import BoundAgent, Learner
from tacit.publication import Publication
from tacit.wire import documents, strict_json
from tacit_service.config.deployment import Deployment
from tacit_service.responses import Published, SentPolicy, UnknownVersion
from tacit_service.storage import packing, schema
from tacit_service.storage.database import Store

REMEMBERED = 64
"""Publications kept in memory."""


class BatchBoundaries:
    """After how many reports each version is learned: version v from the first ``edges[v]``.

    A function of the agent's schedule alone, so every process agrees.
    """

    def __init__(self, bound: BoundAgent) -> None:
        self._bound = bound
        self._boundaries = [0]
        self._lock = threading.Lock()

    def __getitem__(self, version: int) -> int:
        """The edge, at most the number of users of the task."""
        with self._lock:
            while len(self._boundaries) <= version:
                self._grow()
            return self._boundaries[version]

    def batch(self, number: int) -> int:
        """The batch that report ``number`` (from 0) falls into; it leads to version batch + 1."""
        with self._lock:
            while self._boundaries[-1] <= number:
                self._grow()
            return bisect.bisect_right(self._boundaries, number) - 1

    def between(self, start: int, end: int) -> list[int]:
        """Boundaries after ``start`` and before ``end``."""
        boundaries, version = [], self.batch(start) + 1
        while self[version] < min(end, self._bound.task.users):
            boundaries.append(self[version])
            version += 1
        return boundaries

    def _grow(self) -> None:
        last, users = self._boundaries[-1], self._bound.task.users
        self._boundaries.append(last + max(1, min(self._bound.schedule(last), users - last)))


def body(publication: Publication, deployment: Deployment, users: int, previous: str) -> bytes:
    """A publication of what so many users reported, as it is sent and stored: a policy file."""
    learned = LearnedPolicy.of(
        publication,
        deployment.task,
        deployment.guarantee,
        users,
        task_id=deployment.task_id,
        names={kind: names for kind, names in deployment.labels.items() if names is not None},
        about={"task": deployment.name, "agent": deployment.agent.name},
        previous=previous,
    )
    return strict_json.canonical(learned.to_json())


class Version(NamedTuple):
    """When a policy was published, and how many users are in the release behind it."""

    version: int
    users: int
    published_at: float


def timeline(connection: sa.Connection, after: int = -1) -> list[Version]:
    """Every publication after a version, oldest first, without its arrays."""
    column = schema.publications.c
    wanted = sa.select(column.version, column.users, column.published_at)
    rows = connection.execute(wanted.where(column.version > after).order_by(column.version))
    return [Version(*row) for row in rows]


class PublicationStore:
    """Reads and writes publications; entries never change, so they are remembered.

    Attributes:
        entry: a publication of a version, and the bytes it is sent as.
    """

    def __init__(self, deployment: Deployment, store: Store) -> None:
        self._deployment = deployment
        self._store = store
        self.entry: Callable[[int], tuple[Publication, SentPolicy]] = functools.lru_cache(
            maxsize=REMEMBERED
        )(lambda version: self._decode(bytes(self._row(version).body)))

    def publication(self, version: int) -> Publication:
        """A publication, read back from its bytes."""
        return self.entry(version)[0]

    def _decode(self, sent: bytes) -> tuple[Publication, SentPolicy]:
        publication = documents.publication_from_json(
            json.loads(sent), self._deployment.task, self._deployment.task_id
        )
        name = hashlib.sha256(sent).hexdigest()  # wire.publication_hash: it is stored canonical
        return publication, SentPolicy(publication.version, f'"{name[:32]}"', sent, name)

    def before(self, version: int) -> str:
        """What a publication names as the one before it: its hash, or the task's for the first."""
        return self.entry(version - 1)[1].hash if version else self._deployment.task_id

    def put(self, connection: sa.Connection, learner: Learner, time: float) -> None:
        """Write the learner's newest publication and the release it was planned on.

        Where it was planned on a release made before, that one is stored already.
        """
        assert learner.publication is not None and learner.release is not None
        replanned = learner.agent.plans_again(learner.served)
        previous = self.before(learner.publication.version)
        connection.execute(
            schema.publications.insert(),
            {
                "version": learner.publication.version,
                "users": learner.served,
                "published_at": time,
                "body": body(learner.publication, self._deployment, learner.served, previous),
                "release": b"" if replanned else packing.release_to_bytes(learner.release),
            },
        )

    def history(self) -> list[Published]:
        """Everything that was ever published, oldest first."""
        with self._store.read() as connection:
            rows = connection.execute(
                sa.select(schema.publications).order_by(schema.publications.c.version)
            ).all()
        return [self._published(row) for row in rows]

    def published(self, version: int) -> Published:
        """One version, with the release it was planned on."""
        return self._published(self._row(version))

    def _row(self, version: int) -> Any:
        """What is stored of a version; numbers that none can have do not reach the database."""
        table, row = schema.publications, None
        if 0 <= version < 2**31:
            with self._store.read() as connection:
                wanted = sa.select(table).where(table.c.version == version)
                row = connection.execute(wanted).one_or_none()
        if row is None:
            raise UnknownVersion(f"policy version {version} was never published")
        return row

    def timeline(self, after: int) -> list[Version]:
        """Likewise."""
        with self._store.read() as connection:
            return timeline(connection, after)

    def _published(self, row: Any) -> Published:
        return Published(
            row.version,
            row.users,
            row.published_at,
            packing.release_from_bytes(bytes(row.release) or self._release_before(row.version)),
            self._decode(bytes(row.body))[0],
        )

    def _release_before(self, version: int) -> bytes:
        """The newest release that was stored before a version."""
        table = schema.publications
        wanted = (
            sa.select(table.c.release)
            .where(table.c.version < version, sa.func.length(table.c.release) > 0)
            .order_by(table.c.version.desc())
            .limit(1)
        )
        with self._store.read() as connection:
            return bytes(connection.execute(wanted).scalar_one())
