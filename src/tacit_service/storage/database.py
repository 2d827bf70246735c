"""The database: SQLite in a file, or PostgreSQL. The same statements serve both.

SQLite runs with a write-ahead log, ``synchronous=FULL`` (a commit is on disk before it returns),
``secure_delete`` (what is deleted is overwritten) and ``BEGIN IMMEDIATE`` for whatever writes.
PostgreSQL runs at its default READ COMMITTED; rows that must not be raced for are locked.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA
from sqlalchemy.pool import ConnectionPoolEntry

from tacit_service.responses import ServiceRefused, Unavailable
from tacit_service.storage import schema

BUSY_SECONDS = 30
NOTICE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""When a PostgreSQL that is cut off is given up: in seconds (the last: milliseconds), where the
system's defaults are hours. The URL of the database may say otherwise."""
CHUNK = 500
"""Ids in one statement of SQLite."""
T = TypeVar("T")


class Standing(NamedTuple):
    """Where the task stands: public numbers, at first those of a new one."""

    population: int
    accepted: int = 0
    version: int = -1
    served: int = 0
    published_at: float = 0.0
    finished: bool = False


_ONE = schema.progress.c.id == 1
_PROGRESS = sa.select(*(schema.progress.c[name] for name in Standing._fields)).where(_ONE)
_ADMIT = (
    schema.progress.update()
    .where(_ONE, schema.progress.c.accepted + sa.bindparam("more") <= schema.progress.c.population)
    .values(accepted=schema.progress.c.accepted + sa.bindparam("more"))
    .returning(schema.progress.c.accepted)
)
_USE = (
    schema.tokens.update()
    .where(
        schema.tokens.c.id == sa.bindparam("token"),
        schema.tokens.c.used + sa.bindparam("more") <= sa.bindparam("most"),
    )
    .values(used=schema.tokens.c.used + sa.bindparam("more"))
)
_PUT_META = sa.text(
    "INSERT INTO meta (name, value) VALUES (:name, :value) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_INSERT_IDS = sa.text(
    "INSERT INTO report_ids (id) SELECT unnest(:ids) ON CONFLICT DO NOTHING RETURNING id"
).bindparams(sa.bindparam("ids", type_=ARRAY(BYTEA)))

_COUNT_POSTGRESQL = """
WITH fresh AS (
    INSERT INTO report_ids (id)
    SELECT substr(%(ids)s::bytea, 16 * i + 1, 16) FROM generate_series(0, %(n)s - 1) AS i
    RETURNING 1
) UPDATE progress SET accepted = accepted + %(n)s
WHERE id = 1 AND accepted + %(n)s <= population AND (SELECT count(*) FROM fresh) = %(n)s
RETURNING accepted, version
"""
"""Counts after all ids are written: the order in which every transaction takes its locks."""
_USE_POSTGRESQL = """
UPDATE tokens SET used = used + wanted.n
FROM unnest(%(ids)s::int[], %(counts)s::bigint[]) AS wanted (id, n)
WHERE tokens.id = wanted.id AND used + wanted.n <= %(most)s
"""
_USE_SQLITE = "UPDATE tokens SET used = used + :n WHERE id = :id AND used + :n <= :most"
_COUNT_SQLITE = """
UPDATE progress SET accepted = accepted + :n WHERE id = 1 AND accepted + :n <= population
RETURNING accepted, version
"""
STATE = "state"
"""Row of ``meta``: open, paused or closed, see ``task_state.py``."""
_STATE = f"SELECT value FROM meta WHERE name = '{STATE}'"


class Store:
    """One database, shared by the threads of a process.

    Args:
        url: SQLAlchemy URL.
    """

    def __init__(self, url: str) -> None:
        self.sqlite = url.startswith("sqlite")
        if self.sqlite:
            _make_private(sa.make_url(url).database)
        arguments: dict[str, Any] = {"timeout": BUSY_SECONDS}
        if not self.sqlite:
            chosen = sa.make_url(url).query
            arguments = {name: value for name, value in NOTICE.items() if name not in chosen}
        self.engine = sa.create_engine(
            url, connect_args=arguments, hide_parameters=True, pool_size=8, max_overflow=32
        )
        alone = {} if self.sqlite else {"isolation_level": "AUTOCOMMIT"}
        self._reading = self.engine.execution_options(**alone)
        setup = _setup_sqlite if self.sqlite else _setup_postgresql
        sa.event.listen(self.engine, "connect", setup)
        if self.sqlite:
            sa.event.listen(self.engine, "begin", _begin_sqlite)

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection that only reads; on PostgreSQL every statement by itself, in one trip."""
        with self._reachable(), self._reading.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that is durable when the block ends without an error."""
        with self._reachable(), self.engine.connect() as connection:
            connection.execution_options(immediate=True)
            with connection.begin():
                yield connection

    def checkpoint(self) -> bool:
        """Empty SQLite's write-ahead log, so that no deleted byte stays in it; False if busy."""
        if not self.sqlite:
            return True
        with self._reachable():
            raw = self.engine.raw_connection()
            try:
                row = raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                raw.close()
        return row is not None and row[0] == 0

    @contextlib.contextmanager
    def _reachable(self) -> Iterator[None]:
        """Database trouble as one named error; statements and their values are never shown."""
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError, psycopg.Error, sqlite3.Error) as error:
            trouble = _in_words(error)
            # SQLite remembers damaged pages after their repair
            if isinstance(trouble, ServiceRefused):
                self.engine.dispose()
            raise trouble from None

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


_FULL = ("SQLITE_FULL", "DiskFull", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC")
_READ_ONLY = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "ReadOnlySqlTransaction")
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "DataCorrupted", "IndexCorrupted")
_AWAY = (
    *(sa.exc.TimeoutError, sqlite3.OperationalError),
    *(psycopg.OperationalError, psycopg.InterfaceError),
)


def _in_words(error: Exception) -> Exception:
    """What is wrong with the database, as a sentence; other errors as they are."""
    cause = getattr(error, "orig", None) or error
    why = getattr(cause, "sqlite_errorname", None) or type(cause).__name__
    kept = "nothing that was acknowledged is lost"
    if why.startswith(_FULL):
        return Unavailable(
            f"the database cannot be written ({why}): the disk is full or failing; {kept}, make "
            "room",
            "disk",
        )
    if why.startswith(_READ_ONLY):
        return Unavailable(
            f"the database cannot be written ({why}): let the user that runs tacit write the file "
            f"and its folder; {kept}",
            "read_only",
        )
    if why.startswith(_DAMAGED):
        return ServiceRefused(
            f"the database is damaged, or the file is not a database ({why}): stop the service, "
            "and restore the newest backup or name another file",
            "damaged",
        )
    if isinstance(cause, _AWAY):
        return Unavailable(f"the database does not answer ({why}); {kept}, try again")
    return error


def _make_private(path: str | None) -> None:
    """A new file only its owner can read; SQLite gives its log and index the same mode."""
    with contextlib.suppress(OSError):  # there already, or no place for it: opening it will say so
        if path:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _setup_sqlite(connection: Any, entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None
    for pragma in (
        *("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"),
        *("foreign_keys = ON", "wal_autocheckpoint = 1000"),
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _setup_postgresql(connection: Any, entry: ConnectionPoolEntry) -> None:
    """A commit must be on disk before it returns, whatever the server's default is."""
    if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
        connection.execute("SET synchronous_commit = on")
    connection.commit()


def progress(connection: sa.Connection, *, lock: bool = False) -> Standing:
    """The one row; with ``lock`` nobody else may change it until the transaction ends."""
    statement = _PROGRESS.with_for_update() if lock else _PROGRESS
    return Standing(*connection.execute(statement).one())


def set_progress(connection: sa.Connection, **values: Any) -> None:
    """Change some of its numbers."""
    connection.execute(schema.progress.update().where(_ONE).values(**values))


def read_meta(connection: sa.Connection, name: str) -> str | None:
    """The value of that name in table ``meta``; None if there is none."""
    table = schema.meta.c
    value: str | None = connection.execute(
        sa.select(table.value).where(table.name == name)
    ).scalar()
    return value


def put_meta(connection: sa.Connection, name: str, value: str) -> None:
    """Write it, in place of an older one."""
    connection.execute(_PUT_META, {"name": name, "value": value})


def among(column: sa.ColumnElement[T], values: Sequence[T]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions that together say: one of these values; no statement holds too many of them."""
    for start in range(0, len(values), CHUNK):
        yield column.in_(values[start : start + CHUNK])


def known_ids(connection: sa.Connection, ids: Sequence[bytes]) -> set[bytes]:
    """Which of them were seen before."""
    column = schema.report_ids.c.id
    chunks = (sa.select(column).where(some) for some in among(column, ids))
    return {bytes(one) for chunk in chunks for one in connection.execute(chunk).scalars()}


def count_all(
    connection: sa.Connection, ids: Sequence[bytes]
) -> tuple[int, int, str | None] | None:
    """The common case in few steps: all ids new, and room for all of them.

    The number counted so far, the newest version and the row of the state are returned. None means
    that it was not the common case, and the transaction must be rolled back.
    """
    raw = connection.connection.driver_connection
    ordered = sorted(ids)
    if isinstance(raw, psycopg.Connection):
        try:
            with raw.pipeline():  # BEGIN travels along
                rows = raw.execute(_COUNT_POSTGRESQL, {"ids": b"".join(ordered), "n": len(ids)})
                state = raw.execute(_STATE)  # after the count, whose row is locked from there on
            counted = rows.fetchone()
            return counted and (*counted, *(state.fetchone() or [None]))
        except psycopg.errors.UniqueViolation:
            return None
        except psycopg.OperationalError:
            connection.invalidate()
            raise
    assert isinstance(raw, sqlite3.Connection)
    try:
        raw.executemany("INSERT INTO report_ids (id) VALUES (?)", [(one,) for one in ordered])
    except sqlite3.IntegrityError:
        return None
    totals = raw.execute(_COUNT_SQLITE, {"n": len(ordered)}).fetchone()
    return totals and (*totals, *(raw.execute(_STATE).fetchone() or [None]))


def use_all_tokens(connection: sa.Connection, wanted: Mapping[int, int], most: int) -> bool:
    """Likewise: every token may still send what it wants to send. False: roll back."""
    raw = connection.connection.driver_connection
    ordered = sorted(wanted)
    if isinstance(raw, psycopg.Connection):
        counts = [wanted[token] for token in ordered]
        done = raw.execute(_USE_POSTGRESQL, {"ids": ordered, "counts": counts, "most": most})
        return done.rowcount == len(ordered)
    assert isinstance(raw, sqlite3.Connection)
    rows = [{"id": token, "n": wanted[token], "most": most} for token in ordered]
    return raw.executemany(_USE_SQLITE, rows).rowcount == len(ordered)


def insert_ids(connection: sa.Connection, ids: Sequence[bytes]) -> set[bytes]:
    """Write down ids, and say which of them are new.

    In sorted order, so that two transactions never wait for each other in a circle.
    """
    ordered = sorted(ids)
    if connection.dialect.name == "postgresql":
        rows = connection.execute(_INSERT_IDS, {"ids": ordered})
        return {bytes(row[0]) for row in rows}
    seen = known_ids(connection, ordered)
    fresh = [identity for identity in ordered if identity not in seen]
    if fresh:
        connection.exec_driver_sql(
            "INSERT INTO report_ids (id) VALUES (?)", [(identity,) for identity in fresh]
        )
    return set(fresh)


def forget_ids(connection: sa.Connection, ids: Sequence[bytes]) -> None:
    """Take back ids written in this transaction whose reports are refused after all."""
    for some in among(schema.report_ids.c.id, ids):
        connection.execute(schema.report_ids.delete().where(some))


def admit(connection: sa.Connection, wanted: int) -> tuple[int, int]:
    """Count up to ``wanted`` more reports, never beyond the population: (first number, how many).

    From here to the end of the transaction nobody else counts.
    """
    row = connection.execute(_ADMIT, {"more": wanted}).one_or_none()
    if row is not None:
        return int(row[0]) - wanted, wanted
    now = progress(connection, lock=True)
    room = min(wanted, now.population - now.accepted)
    if room:
        connection.execute(_ADMIT, {"more": room})
    return now.accepted, room


def reset_tokens(connection: sa.Connection) -> None:
    """A new period begins: nobody has sent a report in it."""
    connection.execute(schema.tokens.update().where(schema.tokens.c.used > 0).values(used=0))


def use_token(connection: sa.Connection, token: int, wanted: int, most: int) -> int:
    """Count up to ``wanted`` reports of a token that may send ``most``; how many there were."""
    if connection.execute(_USE, {"token": token, "more": wanted, "most": most}).rowcount:
        return wanted
    column = schema.tokens.c
    used: int = connection.execute(
        sa.select(column.used).where(column.id == token).with_for_update()
    ).scalar_one()
    room = min(wanted, max(0, most - used))
    if room:
        connection.execute(_USE, {"token": token, "more": room, "most": most})
    return room
