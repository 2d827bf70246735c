"""Uploads in the local model: outcomes, exactness, idempotence."""

import json

import numpy as np
import pytest

from service.conftest import JOINT, LOCAL
from service.devices import local_reports, report_under, trajectories
from tacit import wire
from tacit.client.terms import read_terms
from tacit.errors import InvalidInput
from tacit.learned import load_policy
from tacit.service.answers import IncomingReport
from tacit.service.planning import PlannerLoop


def send(collector, reports):
    answer = collector.upload(collector.deployment.task_id, reports, None)
    return [outcome.outcome for outcome in answer.outcomes]


def test_a_task_runs_to_its_end(deploy, opened) -> None:
    collector = opened(deploy(users=250, batch=100))
    planner, rng = PlannerLoop(collector), np.random.default_rng(1)
    versions = []
    while collector.status().accepted < 250:
        reports = local_reports(collector, rng, 50)
        assert send(collector, reports) == ["accepted"] * 50
        while planner.step():
            versions.append(collector.status().version)
    assert versions == [1, 2, 3]  # after 100, after 200, and at the end, from everybody
    status = collector.status()
    assert (status.accepted, status.users, status.finished) == (250, 250, True)
    assert [p.users for p in collector.billboard.history()] == [0, 100, 200, 250]
    assert collector.policy().version == 3 and not planner.step()
    with pytest.raises(Exception, match="version 4 was never published"):
        collector.policy(4)


@pytest.mark.parametrize("text", [LOCAL, JOINT])
def test_what_is_published_is_a_policy_file_that_devices_read(text, deploy, opened, tmp_path):
    deployment = deploy(text, users=80, batch=40)
    collector = opened(deployment)
    make = local_reports if deployment.model == "local" else trajectories
    rng = np.random.default_rng(1)
    for _ in range(2):
        send(collector, make(collector, rng, 40))
        while collector.planning.step():
            pass
    file = tmp_path / "policy.json"
    file.write_bytes(collector.policy().body)
    learned = load_policy(file)
    assert (learned.users, learned.publication.version) == (80, 2)
    assert learned.guarantee == deployment.guarantee and not learned.guarantee.simulated
    assert learned.task_id == deployment.task_id
    assert learned.save(tmp_path / "again.json").read_bytes() == file.read_bytes()
    terms = read_terms(collector.describe())
    read = wire.publication_from_json(json.loads(file.read_bytes()), terms.task, terms.task_id)
    assert read.policy == learned.policy and read.version == 2
    assert learned.act(0, 0) == read.policy.act(0, 0)
    changed = json.loads(file.read_bytes()) | {"users": 81}
    with pytest.raises(InvalidInput, match="SHA-256"):
        wire.publication_from_json(changed, terms.task, terms.task_id)


def test_each_report_once(deploy, opened) -> None:
    collector, rng = opened(deploy()), np.random.default_rng(2)
    one, two = local_reports(collector, rng, 2)
    assert send(collector, [one, two, one]) == ["accepted", "accepted", "duplicate"]
    assert send(collector, [two, one]) == ["duplicate", "duplicate"]
    assert collector.status().accepted == 2


def test_never_one_more_than_the_population(deploy, opened) -> None:
    collector, rng = opened(deploy(users=5, batch=2)), np.random.default_rng(3)
    reports = local_reports(collector, rng, 8)
    outcomes = send(collector, reports[:4]) + send(collector, reports[4:])
    assert outcomes == ["accepted"] * 5 + ["refused"] * 3
    assert send(collector, reports) == ["duplicate"] * 5 + ["refused"] * 3
    assert collector.status().accepted == 5


def test_stale_and_invalid(deploy, opened) -> None:
    collector, rng = opened(deploy(users=1000, batch=100)), np.random.default_rng(4)
    planner = PlannerLoop(collector)
    first = collector.billboard.history()[0].publication
    early = report_under(collector.deployment, first, rng)
    old = report_under(collector.deployment, first, rng)
    assert send(collector, [early]) == ["accepted"]
    for batch in range(2):
        assert send(collector, local_reports(collector, rng, 100)).count("accepted")
        assert planner.step() and collector.status().version == batch + 1
    future = IncomingReport(old.id, 7, old.message)
    broken = IncomingReport("ab" * 16, 2, "AAAA")
    assert send(collector, [old, early, future, broken]) == [
        "stale",
        "duplicate",
        "stale",
        "invalid",
    ]
