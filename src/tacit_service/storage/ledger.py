"""The privacy ledger in the service's database: the same chained lines as in a file."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from tacit.errors import TacitError
from tacit.privacy.charges import Charge
from tacit.privacy.filter import Budget, BudgetExhausted, PrivacyFilter
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger_lines import LedgerDamaged, LedgerWriter, header, line_bytes, read_book
from tacit.privacy.sentences import at_most
from tacit.util.durations import in_words
from tacit_service.config.deployment import Deployment
from tacit_service.config.sections import iso
from tacit_service.responses import ServiceRefused
from tacit_service.storage import database as db
from tacit_service.storage import schema
from tacit_service.storage.database import Store

NAME = "the ledger in the database"
NODE = "everything sent and published"
_HAIR = 1 + 1e-6


def whole_charge(deployment: Deployment) -> Charge:
    """What one unit pays for everything: all its reports, or the whole stream of releases."""
    return deployment.bound.privatizer.event.charge()


def budget(charge: Charge, stated: Guarantee) -> Budget:
    """What was asked for; a hair more where calibration used it up to the last digit."""
    asked, delta = stated.requested_epsilon or stated.epsilon, stated.delta
    plain = Budget(asked, delta)
    try:
        PrivacyFilter(plain).price(charge)
    except BudgetExhausted:
        return Budget(max(asked, stated.epsilon) * _HAIR, delta)
    return plain


class DatabaseLedger(LedgerWriter):
    """Lines in the table ``ledger``; every move is one transaction, durable when it returns."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._database = store
        self._clock = lambda: str(iso(clock()))
        self._connection: sa.Connection | None = None
        with store.read() as connection:
            self._book = read_book(_lines(connection), NAME)

    @staticmethod
    def create(connection: sa.Connection, deployment: Deployment) -> None:
        """The first line, in the transaction that makes the database."""
        stated = deployment.guarantee
        first = header(
            budget(whole_charge(deployment), stated),
            deployment.task_id,
            stated.unit,
            stated.relation,
            deployment.task.participations,
        )
        connection.execute(schema.ledger.insert(), {"sequence": 0, "line": line_bytes(first)})

    def charge(self, deployment: Deployment) -> Charge:
        """The whole charge, as it was written when the task began; refused if it is another now.

        Versions of tacit may round its last digit differently, and then the noise is the same.
        """
        now, earlier = whole_charge(deployment), self._book.entries.get(NODE)
        if earlier is None:
            return now
        was, price = earlier.charge.to_json(), now.to_json()
        if not _alike(was, price):
            raise ServiceRefused(
                f"the ledger charged {was} when this task began, and this tacit would charge "
                f"{price}: it calibrates the noise differently, so it cannot go on with the task. "
                "Use the version that began it, or begin a new task with other people"
            )
        return earlier.charge

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        if self._connection is not None:
            yield
            return
        with self._database.write() as connection:
            db.progress(connection, lock=True)
            self._book = read_book(_lines(connection), NAME)
            self._connection = connection
            try:
                yield
            except BudgetExhausted:
                connection.commit()  # the closing line stays
                raise
            finally:
                self._connection = None

    def _store(self, record: Mapping[str, Any]) -> None:
        assert self._connection is not None
        self._connection.execute(
            schema.ledger.insert(), {"sequence": record["sequence"], "line": line_bytes(record)}
        )


def charged(deployment: Deployment, periods: int) -> str:
    """Whose budget it is, and what so many periods cost together, in a sentence or two."""
    stated, rule = deployment.guarantee, deployment.task.rule
    if stated.unit == "participation":
        return "The budget is that of one participation."
    if rule is None or not rule.period:
        return "The budget is that of one person, in all their participations together."
    sentence = (
        f"The budget is that of one person in one period of {in_words(rule.period)}, in all their "
        "participations of it together; in the next period it is whole again."
    )
    if periods < 2:
        return sentence
    total = stated.compose(periods)
    return (
        f"{sentence} {periods:,} periods have begun: whoever took part in each of them was charged "
        f"({at_most(total.epsilon, 6)}, {at_most(total.delta)}) in all."
    )


def _alike(was: object, now: object) -> bool:
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(_alike(was[key], now[key]) for key in was)
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=1e-12)
    return was == now


def _lines(connection: sa.Connection) -> list[bytes]:
    rows = connection.execute(sa.select(schema.ledger.c.line).order_by(schema.ledger.c.sequence))
    return [bytes(line) for line in rows.scalars()]


def statement(store: Store) -> dict[str, Any]:
    """Every line checked again: header, entries, amounts, head, and whether all of it is sound."""
    with store.read() as connection:
        lines = _lines(connection)
    try:
        book = read_book(lines, NAME)
    except (LedgerDamaged, TacitError) as damage:
        return {"verified": False, "problem": str(damage), "lines": len(lines)}
    says = book.as_json()
    beside = ("spent", "reserved", "remaining", "closed", "head", "records")
    rest = {name: says.pop(name) for name in beside}
    return {
        "verified": True,
        "problem": "",
        "lines": len(lines),
        "header": says,
        "entries": [
            {
                "node": entry.node,
                "status": entry.status,
                "sequence": entry.sequence,
                "charge": entry.charge.to_json(),
                "cost": entry.cost.to_json(),
            }
            for entry in book.entries.values()
        ],
        **rest,
    }
