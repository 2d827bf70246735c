"""What can still be erased of people's data, what cannot, and the erasing itself.

A report that was absorbed is part of sums and of everything published from them; no single one can
be taken out again. What can be erased is what is *kept*: reports that ``keep_reports`` holds on to,
without consequences for learning; and, at the price of the task, everything that waits or adds up.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from tacit.errors import InvalidInput
from tacit_service.collector import Collector
from tacit_service.modes.memory import PREFIX
from tacit_service.responses import ServiceRefused
from tacit_service.storage import database as db
from tacit_service.storage import schema
from tacit_service.storage.vault import Vault
from tacit_service.storage.witness import Witness

What = Literal["kept", "all"]

REMAINS = (
    "policies and releases that were published, and what others copied of them",
    "ids of reports and hashes of tokens, which say that somebody took part and not what they sent",
    "copies and backups of the database, and what file systems and disks keep of deleted files",
)
POSTGRES = "rows that PostgreSQL has replaced or deleted, in dead tuples, its log and its archives"


@dataclass(frozen=True)
class Erased:
    """What was erased, and what this command cannot reach; both as phrases for a person."""

    erased: list[str]
    remains: list[str]


def erase(collector: Collector, what: What) -> Erased:
    """Erase kept reports, or everything and with it the task; the service must not be running."""
    deployment, store = collector.deployment, collector.planning.store
    with store.write() as connection:
        if collector.lease().held(connection):
            raise ServiceRefused(
                "the service is running: stop it first, then erase. If it was killed, start and "
                "stop it once, so that it gives back the planner's lease"
            )
        now = db.progress(connection, lock=True)
        if not now.accepted:
            raise InvalidInput("no report was accepted yet, so there is nothing to erase")
        column, end = schema.uploads.c, now.served
        gone = schema.uploads.delete()
        remembered = 0
        if what == "kept":
            gone = gone.where(column.first + column.count <= end)
            stored = Vault.names(connection)
            names = [name for name in stored if _released(name, end, now.version)]
            Vault.delete(connection, *names)
            values = len(names)
        else:
            remembered = Vault.delete_under(connection, PREFIX)
            values = Vault.delete_under(connection, "")
        rows = connection.execute(gone).rowcount
        erased = [f"{rows + values:,} stored uploads, sums and draws of noise"]
        if remembered:
            erased.append("what was remembered of people: who has taught what")
        if what == "all":
            connection.execute(schema.learner.delete())
            db.set_progress(connection, population=now.accepted, finished=True)
            erased.append("the sums that learning would go on from: the task is over")
    store.checkpoint()
    remains = list(REMAINS)
    if not deployment.database.startswith("sqlite"):
        remains.append(POSTGRES)
    if what == "all" and deployment.model == "joint":
        Witness(deployment.witness, deployment.task_id).forget()
        os.truncate(deployment.key_file, 0)
        deployment.key_file.unlink()
        erased.append("the noise that the witness had sealed")
        erased.append(
            "the key file, without which every encrypted value in any copy of the database is "
            "unreadable, unless the key file was copied too: destroy those copies yourself"
        )
    return Erased(erased, remains)


def _released(name: str, served: int, version: int) -> bool:
    """Whether a secret is about reports that were absorbed, and is kept for verification alone."""
    kind, _, number = name.partition(":")
    limits = {"kept": served, "batch": version, "noise": version + 1}
    return kind in limits and int(number) < limits[kind]
