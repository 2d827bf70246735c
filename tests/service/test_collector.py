"""Uploads in the local model: outcomes, exactness, idempotence."""

import json
from dataclasses import replace

import numpy as np
import pytest

from service.conftest import JOINT, LOCAL
from service.devices import local_reports, report_under, trajectories
from tacit.client.terms import read_terms
from tacit.errors import InvalidInput
from tacit.learned_policy import load_policy
from tacit.wire import documents
from tacit.wire.report_rules import rules_hash
from tacit_service.planning.loop import PlannerLoop
from tacit_service.responses import Refused


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
    read = documents.publication_from_json(json.loads(file.read_bytes()), terms.task, terms.task_id)
    assert read.policy == learned.policy and read.version == 2
    assert learned.act(0, 0) == read.policy.act(0, 0)
    changed = json.loads(file.read_bytes()) | {"users": 81}
    with pytest.raises(InvalidInput, match="SHA-256"):
        documents.publication_from_json(changed, terms.task, terms.task_id)


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
    future = replace(old, version=7)
    broken = replace(old, id="ab" * 16, version=2, message="AAAA")
    assert send(collector, [old, early, future, broken]) == [
        "stale",
        "duplicate",
        "stale",
        "invalid",
    ]


def test_a_report_for_another_layout_or_version_of_the_rules_is_refused(deploy, opened) -> None:
    """Well formed, of the right length, from a program that follows other rules, or names none."""
    collector, rng = opened(deploy(users=1000, batch=100)), np.random.default_rng(4)
    rules = collector.describe()["rules"]
    for other in (
        {**rules, "version": rules["version"] + 1},
        {**rules, "states": rules["states"] + 1},
        {**rules, "cells": {**rules["cells"], "move": rules["cells"]["step"]}},
    ):
        (report,) = local_reports(collector, rng, 1)
        answer = collector.upload(
            collector.deployment.task_id, [replace(report, rules=rules_hash(other))], None
        )
        assert answer.outcomes[0].outcome == "invalid"
        assert "other rules than those of this task" in answer.outcomes[0].detail
    (report,) = local_reports(collector, rng, 1)
    (said,) = collector.upload(
        collector.deployment.task_id, [replace(report, rules=None)], None
    ).outcomes
    assert said.outcome == "invalid" and "update the app" in said.detail
    assert collector.status().accepted == 0
    assert send(collector, [report]) == ["accepted"], "the same report with its rules is taken"


def test_rules_stay_as_they_were_when_the_task_began(deploy, opened, monkeypatch) -> None:
    deployment = deploy()
    began = opened(deployment).rules
    own = int(began["cells"]["step"]["own"])
    for off, refused in ((1 << 20, False), (1 << 40, True)):
        made = json.loads(json.dumps(began))
        made["cells"]["step"]["own"] = str(own + off)
        monkeypatch.setitem(vars(deployment), "rules", made)
        monkeypatch.setattr(type(deployment), "begun_as", lambda self, task_id: self)
        if refused:
            with pytest.raises(Refused, match="other rules than those the task began with"):
                opened(deployment)
        else:
            assert opened(deployment).rules == began, "another machine may round differently"
