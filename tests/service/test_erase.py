"""Terms stay as they were, and what can be erased is gone."""

import json
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from service.conftest import JOINT, LOCAL
from service.devices import local_reports, trajectories
from service.returning import LIFETIME, come, crowd, stepping, write
from tacit.errors import InvalidInput
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.modes.memory import PREFIX
from tacit_service.planning.loop import PlannerLoop
from tacit_service.responses import ServiceRefused
from tacit_service.storage import schema
from tacit_service.storage.erase import erase
from tacit_service.storage.vault import Vault
from tacit_service.storage.witness import Witness

EDITS = {
    "keep_reports in [storage] was false": ("keep_reports = false", "keep_reports = true"),
    "minimum_batch in [updates] was 100": ("minimum_batch = 100", "minimum_batch = 50"),
    "accepted_versions in [updates] was 2": ("accepted_versions = 2", "accepted_versions = 3"),
    "cadence in [updates] was 0.0": ("[updates]", '[updates]\ncadence = "1h"'),
    "closes in [window] was left out": (
        "[storage]", "[window]\ncloses = 2030-01-01T00:00:00Z\n[storage]"
    ),
    "epsilon in [agent] was 4.0": ("epsilon = 4.0", "epsilon = 4.5"),
}  # fmt: skip


def test_edited_terms_are_refused_by_name(deploy, opened) -> None:
    first = deploy()
    opened(first).close()
    path = first.folder / "deployment0.toml"
    text = path.read_text()
    for said, (old, new) in EDITS.items():
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(ServiceRefused) as refusal:
            Collector.open(Deployment.load(path))
        assert said in str(refusal.value) and "put it back" in str(refusal.value)
    path.write_text(text + "[server]\nport = 9999\n")
    opened(Deployment.load(path)).close()


def rows(collector: Collector, table: sa.Table) -> list[sa.Row]:
    with collector.planning.store.read() as connection:
        return list(connection.execute(sa.select(table)))


@pytest.mark.parametrize(("text", "make"), [(LOCAL, local_reports), (JOINT, trajectories)])
def test_kept_reports_are_erased_and_learning_goes_on(deploy, opened, text, make) -> None:
    collector, rng = (
        opened(deploy(text, users=400, batch=100, keep="true")),
        np.random.default_rng(1),
    )
    planner, table = PlannerLoop(collector), schema.uploads if text == LOCAL else schema.secrets
    for count in (100, 30):
        collector.upload(collector.deployment.task_id, make(collector, rng, count), None)
        planner.step()
    assert collector.status().version == 1
    with pytest.raises(ServiceRefused, match="stop it first"):
        erase(collector, "kept")
    planner.stop()
    before = len(rows(collector, table))
    said = erase(collector, "kept")
    left = sorted(row[0] for row in rows(collector, table))
    assert len(left) < before and said.erased and said.remains
    assert left == ([100] if text == LOCAL else ["batch:1", "kept:000000000000100", "state"])
    collector.upload(collector.deployment.task_id, make(collector, rng, 70), None)
    assert planner.step() and collector.status().version == 2


@pytest.mark.parametrize(("text", "make"), [(LOCAL, local_reports), (JOINT, trajectories)])
def test_everything_is_erased_and_the_task_is_over(deploy, opened, text, make) -> None:
    deployment = deploy(text, users=400, batch=100)
    collector, rng = opened(deployment), np.random.default_rng(2)
    with pytest.raises(InvalidInput, match="nothing to erase"):
        erase(collector, "all")
    collector.upload(deployment.task_id, make(collector, rng, 130), None)
    planner = PlannerLoop(collector)
    planner.step()
    planner.stop()
    late = make(collector, rng, 1)
    erase(collector, "all")
    for table in (schema.uploads, schema.secrets, schema.learner):
        assert rows(collector, table) == []
    assert collector.upload(deployment.task_id, late, None).outcomes[0].outcome == "refused"
    assert len(collector.publications.history()) == 2, "what was published stays"
    if text == JOINT:
        assert not deployment.key_file.exists()
        assert Witness(deployment.witness, deployment.task_id).read().drawn == {}
        collector.close()
        with pytest.raises(ServiceRefused, match="key file"):
            Collector.open(deployment)


def test_the_command_says_what_it_cannot_do(deploy, opened, capsys, monkeypatch) -> None:
    from tacit.cli.main import main

    collector = opened(deploy(users=400, batch=100, keep="true"))
    collector.upload(
        collector.deployment.task_id, local_reports(collector, np.random.default_rng(3), 5), None
    )
    collector.close()
    path = str(Path(collector.deployment.folder) / "deployment0.toml")
    for arguments, status in ((["all"], 2), (["all", "--yes", "--json"], 0)):
        monkeypatch.setattr("sys.argv", ["tacit", "admin", "erase", path, *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == status
    said = json.loads(capsys.readouterr().out)
    assert any("published" in line for line in said["remains"])


def test_what_was_remembered_of_people_is_erased_with_the_task(tmp_path, opened) -> None:
    deployment = write(LIFETIME, tmp_path, keep="true")
    collector = opened(deployment)
    (anna,), rng = crowd(collector, 1), np.random.default_rng(1)
    come(collector, rng, anna, 30)
    planner = PlannerLoop(collector)
    stepping(planner.step)
    planner.stop()
    with collector._store.read() as connection:
        before = Vault.names(connection, PREFIX)
    assert erase(collector, "kept").erased[1:] == []
    with collector._store.read() as connection:
        assert Vault.names(connection, PREFIX) == before, "learning goes on with it"
    erased = erase(collector, "all").erased
    assert "what was remembered of people: who has taught what" in erased
    with collector._store.read() as connection:
        assert Vault.names(connection) == []


def test_digests_are_made_with_the_newest_key(tmp_path: Path) -> None:
    """A new line on top of the key file: who found the old key cannot test guesses any more."""
    new, old = tmp_path / "new", tmp_path / "old"
    for path in (new, old):
        Vault.create(path)
    once = {path: Vault(path, "task").digest("release", b"content") for path in (new, old)}
    old.write_bytes(new.read_bytes() + old.read_bytes())
    assert Vault(old, "task").digest("release", b"content") == once[new] != once[old]
