"""Uploads in the local model: outcomes, exactness, idempotence."""

import numpy as np
import pytest

from service.devices import local_reports, report_under
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
    assert versions == [1, 2, 2]  # after 100, after 200, and the end, which publishes nothing
    status = collector.status()
    assert (status.accepted, status.users, status.finished) == (250, 200, True)
    assert [p.users for p in collector.billboard.history()] == [0, 100, 200]
    assert collector.policy().version == 2
    with pytest.raises(Exception, match="version 3 was never published"):
        collector.policy(3)


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
