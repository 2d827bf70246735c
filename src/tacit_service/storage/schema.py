"""The tables, and how a database gets them: migrations, and refusal of versions not known here.

One database serves one task. Everything but ``secrets`` is public or already randomized; that table
holds exact sums, counter state and stored noise (joint model), encrypted by ``vault.py``.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tacit_service.responses import ServiceRefused

metadata = sa.MetaData()

_column = functools.partial(sa.Column, nullable=False)


def _table(name: str, *columns: sa.Column[Any] | sa.CheckConstraint, **more: Any) -> sa.Table:
    return sa.Table(name, metadata, *columns, **more)


meta = _table("meta", _column("name", sa.String(40), primary_key=True), _column("value", sa.Text))
"""The task's id and its planner's random root, fixed when the database was made."""

progress = _table(
    "progress",
    _column("id", sa.Integer, primary_key=True),
    _column("population", sa.BigInteger),
    _column("accepted", sa.BigInteger),
    _column("version", sa.Integer),
    _column("served", sa.BigInteger),
    _column("published_at", sa.Float),
    _column("finished", sa.Boolean),
    sa.CheckConstraint("accepted <= population", name="never_one_more"),
)
"""One row: reports accepted, newest version, and how many reports it was learned from."""

report_ids = _table(
    "report_ids", _column("id", sa.LargeBinary(16), primary_key=True), sqlite_with_rowid=False
)
"""For ever: they outlive the data, so that a replay is known as one."""

tickets = _table(
    "tickets",
    _column("id", sa.LargeBinary(16), primary_key=True),
    _column("number", sa.BigInteger, nullable=False, unique=True),
    _column("reported", sa.Boolean),
    sqlite_with_rowid=False,
)
"""Participations of a search, for ever: an id is used up when its number is given out."""

uploads = _table(
    "uploads",
    _column("first", sa.BigInteger, primary_key=True, autoincrement=False),
    _column("count", sa.Integer),
    _column("data", sa.LargeBinary),
)
"""Randomized messages (local model) by the number of the first one, until they are absorbed."""

publications = _table(
    "publications",
    _column("version", sa.Integer, primary_key=True, autoincrement=False),
    _column("users", sa.BigInteger),
    _column("published_at", sa.Float),
    _column("body", sa.LargeBinary),
    _column("release", sa.LargeBinary),
)
"""The billboard: every policy as it was sent, and the release it was planned on."""

learner = _table(
    "learner", _column("id", sa.Integer, primary_key=True), _column("data", sa.LargeBinary)
)
"""Sums of randomized reports (local model)."""

secrets = _table(
    "secrets", _column("name", sa.String(80), primary_key=True), _column("data", sa.LargeBinary)
)
"""Everything secret (joint model), encrypted: exact sums, counter state, stored noise."""

ledger = _table(
    "ledger",
    _column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    _column("line", sa.LargeBinary),
)
"""The hash-chained lines of the privacy ledger."""

tokens = _table(
    "tokens",
    _column("id", sa.Integer, primary_key=True),
    _column("digest", sa.LargeBinary(32), nullable=False, unique=True),
    _column("role", sa.String(20)),
    _column("label", sa.String(200)),
    _column("issued_at", sa.Float),
    _column("revoked_at", sa.Float, nullable=True),
    _column("used", sa.BigInteger),
)
"""Hashes of tokens, and how many reports each has sent."""

lease = _table(
    "lease",
    _column("name", sa.String(40), primary_key=True),
    _column("holder", sa.String(40)),
    _column("expires", sa.Float, key="beats"),
)
"""Who plans, and how many signs of life there were (in a column that once was a time)."""

MIGRATION_LOCK = 7232_0825
"""PostgreSQL advisory lock: workers that start together migrate one after the other."""


def migrate(connection: sa.Connection) -> None:
    """Bring a database to this version's tables; refuse one made by a version not known here."""
    config = Config()
    config.set_main_option("path_separator", "os")
    folder = resources.files("tacit_service.storage").joinpath("migrations")
    config.set_main_option("script_location", str(folder))
    config.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(config)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
    heads = MigrationContext.configure(connection).get_current_heads()
    known = {script.revision for script in scripts.walk_revisions()}
    strange = sorted(set(heads) - known)
    if strange:
        raise ServiceRefused(
            f"the database has schema version {', '.join(strange)}, which this tacit does not "
            f"know (it knows {', '.join(sorted(known))}); use the tacit that made it, or a newer "
            "one"
        )
    if not heads and sa.inspect(connection).has_table("progress"):
        raise ServiceRefused(
            "the database has tables of a service but no schema version; it is damaged or not "
            "ours: restore it from a backup, or name another database"
        )
    if set(heads) != set(scripts.get_heads()):
        command.upgrade(config, "head")


def revision(connection: sa.Connection) -> str:
    """The version of the tables that a database has."""
    return ", ".join(MigrationContext.configure(connection).get_current_heads())
