"""The tables never change without a migration: these are the statements of each version."""

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from tacit_service.storage import schema
from tacit_service.storage.migrations.versions import v1, v2

VERSION_1 = """
CREATE TABLE learner ( id SERIAL NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (id) )
CREATE TABLE lease ( name VARCHAR(40) NOT NULL, holder VARCHAR(40) NOT NULL, expires FLOAT NOT
    NULL, PRIMARY KEY (name) )
CREATE TABLE ledger ( sequence INTEGER NOT NULL, line BYTEA NOT NULL, PRIMARY KEY (sequence) )
CREATE TABLE meta ( name VARCHAR(40) NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name) )
CREATE TABLE progress ( id SERIAL NOT NULL, population BIGINT NOT NULL, accepted BIGINT NOT NULL,
    version INTEGER NOT NULL, served BIGINT NOT NULL, published_at FLOAT NOT NULL, finished
    BOOLEAN NOT NULL, PRIMARY KEY (id), CONSTRAINT never_one_more CHECK (accepted <= population) )
CREATE TABLE publications ( version INTEGER NOT NULL, users BIGINT NOT NULL, published_at FLOAT
    NOT NULL, body BYTEA NOT NULL, release BYTEA NOT NULL, PRIMARY KEY (version) )
CREATE TABLE report_ids ( id BYTEA NOT NULL, PRIMARY KEY (id) )
CREATE TABLE secrets ( name VARCHAR(80) NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (name) )
CREATE TABLE tokens ( id SERIAL NOT NULL, digest BYTEA NOT NULL, role VARCHAR(20) NOT NULL, label
    VARCHAR(200) NOT NULL, issued_at FLOAT NOT NULL, revoked_at FLOAT, used BIGINT NOT NULL,
    PRIMARY KEY (id), UNIQUE (digest) )
CREATE TABLE uploads ( first BIGINT NOT NULL, count INTEGER NOT NULL, data BYTEA NOT NULL, PRIMARY
    KEY (first) )
"""


VERSION_2 = """
CREATE TABLE tickets ( id BYTEA NOT NULL, number BIGINT NOT NULL, reported BOOLEAN NOT NULL,
    PRIMARY KEY (id), UNIQUE (number) )
"""


@pytest.mark.parametrize(("version", "statements"), [(v1, VERSION_1), (v2, VERSION_2)])
def test_the_tables_are_those_of_their_version(version, statements) -> None:
    names = getattr(version, "TABLES", ("tickets",))
    made = [
        " ".join(str(CreateTable(table).compile(dialect=postgresql.dialect())).split())
        for table in sorted(schema.metadata.tables.values(), key=lambda table: table.name)
        if table.name in names
    ]
    assert " ".join(made) == " ".join(statements.split())
    assert {*v1.TABLES, "tickets"} == schema.metadata.tables.keys()


def test_a_database_of_version_1_gets_what_came_since() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        schema.migrate(connection)
        connection.execute(sa.text("DROP TABLE tickets"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '1'"))
        schema.migrate(connection)
        assert sa.inspect(connection).has_table("tickets")
        assert schema.revision(connection) == "2"


def test_a_new_database_has_them_in_sqlite() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        schema.migrate(connection)
        assert schema.revision(connection) == "2"
        found = sa.inspect(connection)
        for table in schema.metadata.tables.values():
            columns = {column["name"] for column in found.get_columns(table.name)}
            assert columns == {column.name for column in table.c}
        extra = {"alembic_version"}
        assert set(found.get_table_names()) == {*schema.metadata.tables, *extra}
        (ids,) = connection.execute(
            sa.text("SELECT sql FROM sqlite_master WHERE name = 'report_ids'")
        ).scalars()
    assert "WITHOUT ROWID" in ids
