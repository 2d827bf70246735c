"""Policies worked out again: service and simulator share one learning step, to the last bit."""

import json

import numpy as np
import pytest
import sqlalchemy as sa

from service.conftest import JOINT, LOCAL
from service.devices import local_reports, report_under, trajectories
from tacit.cli.main import main
from tacit.errors import InvalidInput
from tacit.learner import Learner
from tacit.privacy.noise import ZeroNoise
from tacit.streams import planner_streams
from tacit.wire import documents
from tacit_service.modes.joint import kept_name
from tacit_service.planning.loop import PlannerLoop
from tacit_service.planning.publications import body
from tacit_service.storage import packing, schema

OBI = LOCAL.replace('"tacit-local"', '"ldp-obi"')
PSRL = LOCAL.replace('"tacit-local"', '"ldp-psrl"')
LINOPT = JOINT.replace('"tacit-joint"', '"private-linopt-po"').replace(
    "first = 40\ngrowth = 1.5", "delta = 1e-5"
)
PUCB = JOINT.replace('"tacit-joint"', '"pucb"').replace("first = 40\ngrowth = 1.5", "")


def run(collector, make, users: int, chunk: int) -> None:
    """Users in chunks that do not fit the batches, some of them one version late."""
    planner, rng = PlannerLoop(collector), np.random.default_rng(1)
    sent = 0
    late: list = []
    while sent < users:
        fresh = make(collector, rng, min(chunk, users - sent))
        batch = late + fresh[: len(fresh) // 2]
        late = fresh[len(fresh) // 2 :]
        answer = collector.upload(collector.deployment.task_id, batch, None)
        sent += sum(o.outcome == "accepted" for o in answer.outcomes)
        planner.step()
    planner.step()


@pytest.mark.parametrize(
    ("text", "make"),
    [(LOCAL, local_reports), (OBI, local_reports), (PSRL, local_reports)]
    + [(JOINT, trajectories), (LINOPT, trajectories), (PUCB, trajectories)],
)
def test_every_policy_follows_from_kept_reports(deploy, opened, text, make) -> None:
    collector = opened(deploy(text, users=300, batch=60, keep="true"))
    run(collector, make, 300, 70)
    verdict = collector.verify()
    assert verdict.sound and verdict.versions >= 4 and verdict.reports >= 200, str(verdict)


def test_the_command(deploy, opened, capsys, monkeypatch) -> None:
    deployment = deploy(users=300, batch=60, keep="true")
    run(opened(deployment), local_reports, 200, 70)
    path = next(deployment.folder.glob("*.toml"))
    monkeypatch.setattr("sys.argv", ["tacit", "admin", "verify", str(path), "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    said = json.loads(capsys.readouterr().out)
    assert end.value.code == 0 and said["sound"] and said["versions"] == 4
    with opened(deployment)._store.write() as connection:
        connection.execute(schema.uploads.delete())
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1 and not json.loads(capsys.readouterr().out)["sound"]


def test_a_changed_report_shows(deploy, opened) -> None:
    collector = opened(deploy(users=300, batch=60, keep="true"))
    run(collector, local_reports, 300, 70)
    with collector._store.write() as connection:
        row = connection.execute(sa.select(schema.uploads).limit(1)).one()
        changed = bytes(row.data)[:-8] + bytes(8)
        connection.execute(
            schema.uploads.update().where(schema.uploads.c.first == row.first).values(data=changed)
        )
    with pytest.raises(InvalidInput):  # an impossible report
        assert not collector.verify().sound
    with collector._store.write() as connection:
        connection.execute(schema.uploads.delete().where(schema.uploads.c.first == row.first))
    verdict = collector.verify()
    assert not verdict.sound and "missing" in verdict.problem


def test_reports_kept_in_another_form_are_named(deploy, opened) -> None:
    collector = opened(deploy(JOINT, users=300, batch=60, keep="true"))
    run(collector, trajectories, 100, 70)
    with collector._store.write() as connection:
        vault = collector._mode._vault
        rows = packing.to_bytes({"rows": np.zeros((70, 3))})
        vault.put(connection, kept_name(0), rows)
    with pytest.raises(InvalidInput, match="from number 0 on were written by another version"):
        collector.verify()


def test_without_kept_reports_there_is_nothing_to_verify(deploy, opened) -> None:
    with pytest.raises(InvalidInput, match="keep_reports = true"):
        opened(deploy()).verify()


def test_the_same_reports_in_any_order_give_the_same_policies(deploy, opened) -> None:
    """Two services with one random root; batches arrive shuffled and cut differently."""
    deployments = [deploy(users=200, batch=60), deploy(users=200, batch=60)]
    one, two = (opened(deployment) for deployment in deployments)
    two.planning.root, task_id = one.planning.root, deployments[1].task_id
    first = planner_streams(one.planning.root, 0)
    zero = Learner(deployments[0].bound, ZeroNoise()).publish(first)
    with two._store.write() as connection:  # version 0 was planned with two's own root
        connection.execute(
            schema.publications.update().values(body=body(zero, deployments[1], 0, task_id))
        )
    rng = np.random.default_rng(5)
    for _ in range(3):
        publication = one.publications.published(one.policy().version).publication
        reports = [report_under(one.deployment, publication, rng) for _ in range(60)]
        for collector, cut in ((one, 60), (two, 13)):
            order = rng.permutation(60) if collector is two else np.arange(60)
            for start in range(0, 60, cut):
                chunk = [reports[i] for i in order[start : start + cut]]
                answer = collector.upload(collector.deployment.task_id, chunk, None)
                assert all(outcome.outcome == "accepted" for outcome in answer.outcomes)
            planner = PlannerLoop(collector)
            planner.step()
            planner.stop()
        assert one.policy().body == two.policy().body
    assert one.policy().version == 3


@pytest.mark.parametrize("text", [LOCAL, JOINT])
def test_a_report_made_under_another_history_is_refused(deploy, opened, text) -> None:
    """Publications name the one before, reports the one they were made under."""
    make = local_reports if text == LOCAL else trajectories
    text = text.replace("states = 3", "states = 12")  # so many policies that none comes twice
    one, two = (opened(deploy(text, users=400, batch=100)) for _ in range(2))
    rng = np.random.default_rng(1)
    for collector in (one, two):
        reports = make(collector, rng, 100)
        collector.upload(collector.deployment.task_id, reports, None)
        assert PlannerLoop(collector).step()
    first, second = (json.loads(one.policy(version).body) for version in (0, 1))
    assert first["previous"] == one.deployment.task_id
    assert second["previous"] == documents.publication_hash(first)
    assert one.policy(1).hash == documents.publication_hash(second) != two.policy(1).hash
    outcomes = []
    for name in (one.policy(1).hash, two.policy(1).hash, None):
        (report,) = make(one, rng, 1)
        report.publication = name
        answer = one.upload(one.deployment.task_id, [report], None)
        outcomes += [(o.outcome, o.detail) for o in answer.outcomes]
    assert [outcome for outcome, _ in outcomes] == ["accepted", "stale", "accepted"]
    assert "another publication of version 1" in outcomes[1][1]
