"""A consistent copy of a running task's database, and a drill that shows what the copy is good for.

The drill only reads: it never plans, and so never draws noise.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import sqlalchemy as sa

from tacit.errors import InvalidInput
from tacit_service.config.deployment import Deployment
from tacit_service.planning.publications import PublicationStore
from tacit_service.responses import ServiceRefused
from tacit_service.storage import database as db
from tacit_service.storage import ledger
from tacit_service.storage.database import Store


@dataclass(frozen=True)
class Drill:
    """What a copy holds: reports counted, policies that can be read, and what is wrong with it."""

    reports: int
    versions: int
    problem: str

    def __str__(self) -> str:
        if self.problem:
            return f"NOT USABLE: {self.problem}"
        return (
            f"Usable: {self.reports:,} reports counted, {self.versions:,} policies with their "
            "releases can be read, and the ledger's chain is whole."
        )


def backup(deployment: Deployment, to: Path, *, key: bool) -> list[Path]:
    """Copy the database to a new file, and the key file beside it only if asked; what was made."""
    if to.exists():
        raise InvalidInput(f"{to} is there already; choose another name")
    if key and deployment.model != "joint":
        raise InvalidInput("a task of the local model has no key file; leave --key out")
    url = sa.make_url(deployment.database)
    os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        if deployment.database.startswith("sqlite"):
            _copy_sqlite(Path(str(url.database)), to)
        else:
            _run("pg_dump", url, "--format=custom", f"--file={to}")
    except BaseException:
        to.unlink()
        raise
    if not key:
        return [to]
    beside = to.with_name(f"{to.name}.key")
    shutil.copy2(deployment.key_file, beside)
    return [to, beside]


def _copy_sqlite(source: Path, to: Path) -> None:
    if not source.is_file():
        raise InvalidInput(f"there is no database {source.name}; start the task first")
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(to)) as new:
        old.backup(new)


def _run(program: str, url: sa.URL, *words: str) -> None:
    """The password goes by the environment, where other users of the machine do not see it."""
    plain = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    password = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    try:
        command = [program, *words, f"--dbname={plain}"]
        subprocess.run(command, env=os.environ | password, check=True)
    except FileNotFoundError:
        raise InvalidInput(
            f"{program} is not installed; it comes with PostgreSQL's client"
        ) from None
    except subprocess.CalledProcessError:
        raise InvalidInput(f"{program} failed; what it said is above") from None


def drill(deployment: Deployment, copy: Path) -> Drill:
    """Restore the copy in a scratch place and read all that is published in it."""
    scratch = _scratch_file if deployment.database.startswith("sqlite") else _scratch_database
    with scratch(deployment, copy) as url:
        store = Store(url)
        try:
            return _read(deployment, store)
        except (ServiceRefused, sa.exc.SQLAlchemyError, sqlite3.Error, ValueError) as error:
            return Drill(0, 0, f"it cannot be read ({type(error).__name__})")
        finally:
            store.close()


@contextmanager
def _scratch_file(deployment: Deployment, copy: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="tacit-drill-") as folder:
        scratch = Path(folder) / "copy.db"
        shutil.copyfile(copy, scratch)
        yield f"sqlite:///{scratch}"


@contextmanager
def _scratch_database(deployment: Deployment, copy: Path) -> Iterator[str]:
    """A database of its own on the same server, dropped afterwards."""
    url, name = sa.make_url(deployment.database), f"tacit_drill_{secrets.token_hex(8)}"
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with closing(psycopg.connect(plain, autocommit=True)) as server:
            server.execute(f'CREATE DATABASE "{name}"')
    except psycopg.errors.InsufficientPrivilege:
        raise InvalidInput(
            "the copy is made, but the database's role may not make a database to restore it in: "
            "let it (ALTER ROLE ... CREATEDB), or restore it with pg_restore elsewhere"
        ) from None
    except psycopg.OperationalError:
        raise InvalidInput("the copy is made, but the server no longer answers") from None
    scratch = url.set(database=name)
    try:
        _run("pg_restore", scratch, "--no-owner", "--exit-on-error", str(copy))
        yield scratch.render_as_string(hide_password=False)
    finally:
        with closing(psycopg.connect(plain, autocommit=True)) as server:
            server.execute(f'DROP DATABASE "{name}"')


def _read(deployment: Deployment, store: Store) -> Drill:
    with store.read() as connection:
        owner, now = db.read_meta(connection, "task_id"), db.progress(connection)
    deployment = deployment.as_recorded(owner)
    if owner != deployment.task_id:
        return Drill(0, 0, "it belongs to another task")
    history = PublicationStore(deployment, store).history()
    if [entry.version for entry in history] != list(range(now.version + 1)):
        return Drill(now.accepted, len(history), "publications are missing")
    chain = ledger.statement(store)
    return Drill(now.accepted, len(history), "" if chain["verified"] else str(chain["problem"]))
