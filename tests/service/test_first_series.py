"""Databases of the first series go on: nothing counted twice, nothing lost, no noise drawn again.

``first_series.zip`` was written by the service as it was before terms were stored, publications
carried hashes and the witness kept noise: two tasks, each with one release and five reports that
wait, with the ids of all reports and the tokens of all devices beside them.
"""

import hashlib
import os
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest

from service.devices import local_reports
from tacit.privacy.charges import GaussianCharge
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.responses import Refused

FILE = Path(__file__).with_name("first_series.zip")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The folder as it was found."""
    with zipfile.ZipFile(FILE) as packed:
        packed.extractall(tmp_path)
    os.chmod(tmp_path / "joint.key", 0o600)
    file = tmp_path / "joint.toml"  # what its operator is asked to add
    file.write_text(f"{file.read_text()}[storage]\nwitness_on_same_disk = true\n")
    return tmp_path


def rows(folder: Path, name: str, what: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(folder / f"{name}.db")
    try:
        return connection.execute(what).fetchall()
    finally:
        connection.close()


def test_a_curator_that_added_up_other_sums_is_refused(old: Path) -> None:
    """Tables whose stages are alike have been learned by other sums since."""
    before = rows(old, "joint", "SELECT * FROM secrets")
    with pytest.raises(Refused, match="another version of tacit.*let the version that began it"):
        Collector.open(Deployment.load(old / "joint.toml"))
    assert rows(old, "joint", "SELECT * FROM secrets") == before


def test_it_goes_on_to_its_end(old: Path, opened, clock) -> None:
    name = "local"
    sent = (old / f"{name}.ids").read_text().split()
    published = rows(old, name, "SELECT version, users, body, release FROM publications")
    tokens = rows(old, name, "SELECT digest, used FROM tokens ORDER BY id")
    lines = rows(old, name, "SELECT line FROM ledger ORDER BY sequence")
    assert rows(old, name, "SELECT name FROM meta WHERE name IN ('terms', 'state')") == []
    clock.now = 1.8e9
    collector = opened(Deployment.load(old / f"{name}.toml"))
    now = collector.status()
    assert (now.accepted, now.version, now.state) == (len(sent), 1, "open")
    assert now.users == len(sent) - 5
    assert collector.ledger()["verified"] and collector.schema() == "2"
    plain = (old / f"{name}.tokens").read_text().split()
    assert tokens == [
        (hashlib.sha256(t.encode()).digest(), k < len(sent)) for k, t in enumerate(plain)
    ]
    again = local_reports(collector, np.random.default_rng(1), len(sent))
    for report, identity in zip(again, sent, strict=True):
        report.id = identity
    known = collector.tokens.authenticate(plain[0])
    answer = collector.upload(collector.deployment.task_id, again, known)
    assert {outcome.outcome for outcome in answer.outcomes} == {"duplicate"}
    spent = local_reports(collector, np.random.default_rng(2), 1)
    (outcome,) = collector.upload(collector.deployment.task_id, spent, known).outcomes
    assert outcome.reason == "token_spent"
    loop, seed = PlannerLoop(collector), 100
    clock.now += LEASE_SECONDS  # the old lease is nobody's
    loop.step()
    clock.now += LEASE_SECONDS
    while not collector.status().finished:
        missing, seed = collector.status().next_batch, seed + 1
        fresh = collector.tokens.issue("device", missing, "second")
        reports = local_reports(collector, np.random.default_rng(seed), missing)
        for token, report in zip(fresh, reports, strict=True):
            sender = collector.tokens.authenticate(token)
            if seed % 2:
                report.rules = None  # of an app that is as old as the task
            (outcome,) = collector.upload(collector.deployment.task_id, [report], sender).outcomes
            assert outcome.outcome == "accepted"
        assert loop.step()
    assert collector.status().accepted == collector.status().population
    assert collector.status().version > 1
    kept = rows(old, name, "SELECT version, users, body, release FROM publications")
    assert kept[: len(published)] == published
    assert rows(old, name, "SELECT line FROM ledger ORDER BY sequence") == lines  # charged once


def test_other_noise_than_was_charged_is_refused(old: Path, opened, monkeypatch) -> None:
    deployment = Deployment.load(old / "joint.toml")
    event = deployment.bound.privatizer.event
    other = GaussianCharge(0.08)
    monkeypatch.setattr(type(event), "charge", lambda self: other)
    with pytest.raises(Refused, match="calibrates the noise differently.*version that began it"):
        opened(deployment)


def test_an_old_joint_task_is_told_what_to_add(old: Path) -> None:
    file = old / "joint.toml"
    file.write_text(file.read_text().partition("[storage]")[0])
    with pytest.raises(Exception, match="witness_on_same_disk = true"):
        Collector.open(Deployment.load(file))
