"""What a database fixes about its task when it is made, and what it is held to afterwards."""

from __future__ import annotations

import json
import secrets
from typing import Any, NamedTuple

import sqlalchemy as sa

from tacit.wire import documents
from tacit.wire.report_rules import same_rules
from tacit.wire.strict_json import spelt
from tacit_service.config.deployment import Deployment, Ids
from tacit_service.modes.joint import JointMode
from tacit_service.planning.loop import LEASE
from tacit_service.responses import ServiceRefused
from tacit_service.storage import database as db
from tacit_service.storage import schema
from tacit_service.storage.ledger import DatabaseLedger

TERMS, RULES = "terms", "rules"
"""Rows of ``meta``: every term of the file, and the rules, as when the database was made."""


class TaskIdentity(NamedTuple):
    """What a database fixes: the random root of plans, who decides ids, and the rules."""

    root: int
    ids: Ids
    rules: dict[str, Any]


def open_identity(
    connection: sa.Connection, deployment: Deployment
) -> tuple[Deployment, TaskIdentity]:
    """The task as its database began; the first rows of a new one."""
    rows = {row.name: row.value for row in connection.execute(sa.select(schema.meta))}
    if not rows:
        root = secrets.randbits(128)
        rows = {"task_id": deployment.task_id, "root": str(root), "ids": deployment.ids}
        for name, value in rows.items():
            db.put_meta(connection, name, value)
        start = db.Standing(deployment.task.users)._asdict()
        connection.execute(schema.progress.insert(), {"id": 1, **start})
        DatabaseLedger.create(connection, deployment)
        if deployment.model == "joint":
            JointMode.create(connection, deployment)
        connection.execute(schema.lease.insert(), {"name": LEASE, "holder": "", "beats": 0.0})
    _require_same_terms(connection, deployment, rows.get(TERMS))
    deployment = deployment.as_recorded(rows["task_id"])
    if rows["task_id"] != deployment.task_id:
        forms = (documents.task_id(deployment.terms, form) for form in documents.TERMS_FORMS)
        if rows["task_id"] in forms:
            raise ServiceRefused(
                "the database was begun when devices told terminal states apart; they answer "
                "otherwise now, and the two do not add up. Finish this task with the tacit that "
                "began it, or begin a new one with another name, database and population"
            )
        raise ServiceRefused(
            "the database belongs to another task: name, sizes, agent, epsilon, population and "
            "reward range are fixed once devices may have agreed to them. Restore the deployment "
            "file, or name another database for the new task"
        )
    # a database older than assigned ids goes on as it began: people are on their way
    ids: Ids = "token" if rows.get("ids") == "token" else "chosen"
    return deployment, TaskIdentity(
        int(rows["root"]), ids, _rules(connection, deployment, rows.get(RULES))
    )


def _rules(connection: sa.Connection, deployment: Deployment, stored: str | None) -> dict[str, Any]:
    """The rules as they were when the database was made, or first opened by who knows rules."""
    if stored is None:
        db.put_meta(connection, RULES, spelt(deployment.rules).decode())
        return deployment.rules
    rules: dict[str, Any] = json.loads(stored)
    if not same_rules(rules, deployment.rules):
        raise ServiceRefused(
            "this version of tacit would have devices make their reports by other rules than those "
            "the task began with; go back to the version that began it, or begin a new task"
        )
    return rules


def _require_same_terms(
    connection: sa.Connection, deployment: Deployment, stored: str | None
) -> None:
    """Refuse a file whose terms were edited; a database without terms takes them as they are."""
    if stored is None:
        db.put_meta(connection, TERMS, json.dumps(deployment.fixed, sort_keys=True))
        return
    before = json.loads(stored)
    for name in sorted(before.keys() | deployment.fixed.keys()):
        now = deployment.fixed.get(name, "null")
        # a key of ours that is not there was not known to the tacit that made the database
        was = before.get(name, "null" if name.endswith("[agent]") else now)
        if was != now:
            raise ServiceRefused(
                f"the database belongs to another task than this file: {name} was {_shown(was)} "
                f"when it began, and is {_shown(now)} now. People and devices were told "
                "otherwise: put it back, or begin a new task with another name, database and "
                "population"
            )


def _shown(value: str) -> str:
    return "left out" if value == "null" else value
