"""The tables, and how a database gets them: migrations, and refusal of versions not known here.

One database serves one task. Everything but ``secrets`` is public or already randomized; that table
holds exact sums, counter state and stored noise (joint model), encrypted by ``vault.py``.
"""

from __future__ import annotations

from importlib import resources

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tacit_service.responses import Refused

metadata = sa.MetaData()

meta = sa.Table(
    "meta",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"""The task's id and its planner's random root, fixed when the database was made."""

progress = sa.Table(
    "progress",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("population", sa.BigInteger, nullable=False),
    sa.Column("accepted", sa.BigInteger, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("served", sa.BigInteger, nullable=False),
    sa.Column("published_at", sa.Float, nullable=False),
    sa.Column("finished", sa.Boolean, nullable=False),
    sa.CheckConstraint("accepted <= population", name="never_one_more"),
)
"""One row: reports accepted, newest version, and how many reports it was learned from."""

report_ids = sa.Table(
    "report_ids",
    metadata,
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sqlite_with_rowid=False,
)
"""For ever: they outlive the data, so that a replay is known as one."""

tickets = sa.Table(
    "tickets",
    metadata,
    sa.Column("id", sa.LargeBinary(16), primary_key=True),
    sa.Column("number", sa.BigInteger, nullable=False, unique=True),
    sa.Column("reported", sa.Boolean, nullable=False),
    sqlite_with_rowid=False,
)
"""Participations of a search, for ever: an id is used up when its number is given out."""

uploads = sa.Table(
    "uploads",
    metadata,
    sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Randomized messages (local model) by the number of the first one, until they are absorbed."""

publications = sa.Table(
    "publications",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("users", sa.BigInteger, nullable=False),
    sa.Column("published_at", sa.Float, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("release", sa.LargeBinary, nullable=False),
)
"""The billboard: every policy as it was sent, and the release it was planned on."""

learner = sa.Table(
    "learner",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Sums of randomized reports (local model)."""

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("name", sa.String(80), primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Everything secret (joint model), encrypted: exact sums, counter state, stored noise."""

ledger = sa.Table(
    "ledger",
    metadata,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("line", sa.LargeBinary, nullable=False),
)
"""The hash-chained lines of the privacy ledger."""

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("label", sa.String(200), nullable=False),
    sa.Column("issued_at", sa.Float, nullable=False),
    sa.Column("revoked_at", sa.Float, nullable=True),
    sa.Column("used", sa.BigInteger, nullable=False),
)
"""Hashes of tokens, and how many reports each has sent."""

lease = sa.Table(
    "lease",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("holder", sa.String(40), nullable=False),
    sa.Column("expires", sa.Float, key="beats", nullable=False),
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
    found = MigrationContext.configure(connection).get_current_heads()
    known = {script.revision for script in scripts.walk_revisions()}
    strange = sorted(set(found) - known)
    if strange:
        raise Refused(
            f"the database has schema version {', '.join(strange)}, which this tacit does not "
            f"know (it knows {', '.join(sorted(known))}); use the tacit that made it, or a newer "
            "one"
        )
    if not found and sa.inspect(connection).has_table("progress"):
        raise Refused(
            "the database has tables of a service but no schema version; it is damaged or not "
            "ours: restore it from a backup, or name another database"
        )
    if set(found) != set(scripts.get_heads()):
        command.upgrade(config, "head")


def revision(connection: sa.Connection) -> str:
    """The version of the tables that a database has."""
    return ", ".join(MigrationContext.configure(connection).get_current_heads())
