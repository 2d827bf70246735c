"""When policies are planned, under which publication reports count, and the validity window."""

from types import SimpleNamespace

import numpy as np
import pytest
import sqlalchemy as sa

from service.conftest import LOCAL
from service.devices import local_reports, report_under
from tacit.privacy.charges import PureCharge
from tacit.privacy.filter import BudgetExhausted
from tacit_service.collector import Collector
from tacit_service.modes import local
from tacit_service.planning.loop import PlannerLoop
from tacit_service.responses import Unavailable
from tacit_service.storage import schema
from tacit_service.storage.database import Store
from tacit_service.storage.ledger import DatabaseLedger


def send(collector, reports):
    answer = collector.upload(collector.deployment.task_id, reports, None)
    return [(outcome.outcome, outcome.reason) for outcome in answer.outcomes]


def accepted(count: int) -> list[tuple[str, None]]:
    return [("accepted", None)] * count


def test_cadence_delays_a_policy_and_changes_nothing_in_it(deploy, opened, clock) -> None:
    text = LOCAL.replace("minimum_batch", 'cadence = "5m"\nminimum_batch')
    collector = opened(deploy(text, users=1000, batch=60))
    planner, rng = PlannerLoop(collector), np.random.default_rng(1)
    assert send(collector, local_reports(collector, rng, 130)) == accepted(130)
    assert not planner.step()
    clock.now += 300
    assert planner.step() and not planner.step()
    assert collector.billboard.history()[-1].users == 60  # exactly one batch, however late it is
    clock.now += 300
    assert planner.step() and collector.billboard.history()[-1].users == 120
    assert collector.status().next_batch == 50


def test_reports_count_under_the_version_they_name(deploy, opened) -> None:
    collector = opened(deploy(users=1000, batch=60, keep="true"))
    planner, rng = PlannerLoop(collector), np.random.default_rng(2)
    zero = collector.billboard.published(0).publication
    send(collector, local_reports(collector, rng, 60))
    assert planner.step()
    late = [report_under(collector.deployment, zero, rng) for _ in range(30)]
    assert send(collector, late + local_reports(collector, rng, 30)) == accepted(60)
    assert planner.step()
    assert send(collector, [report_under(collector.deployment, zero, rng)]) == [("stale", None)]
    assert collector.verify().sound


def test_a_batch_adds_up_to_the_same_in_small_parts(deploy, opened, monkeypatch) -> None:
    collector = opened(deploy(users=1000, batch=100))
    reports = local_reports(collector, np.random.default_rng(4), 60)
    for start in range(0, 60, 25):
        send(collector, reports[start : start + 25])
    found = []
    for at_once in (10_000, 7):
        monkeypatch.setattr(local, "AT_ONCE", at_once)
        learner = SimpleNamespace(secret=collector.deployment.bound.privatizer.init(), served=0)
        with collector._store.read() as connection:
            collector._mode.fold(learner, connection, 3, 58)
        assert learner.served == learner.secret.users == 55
        found.append(learner.secret.sums)
    assert np.array_equal(*found) and found[0].any()


def test_the_window(deploy, opened, clock) -> None:
    window = "[window]\nopens = 1970-01-12T13:46:40Z\ncloses = 1970-01-12T14:46:40Z"
    collector, rng = opened(deploy(more=window)), np.random.default_rng(3)
    one, two = local_reports(collector, rng, 2)
    clock.now = 999_999.0
    assert send(collector, [one]) == [("refused", "not_open")]
    clock.now = 1_000_000.0
    assert send(collector, [one]) == accepted(1)
    clock.now = 1_003_600.0
    assert send(collector, [one, two]) == [("duplicate", None), ("refused", "closed")]
    described = collector.describe()
    assert described["opens"] == "1970-01-12T13:46:40Z"


def test_a_restart_plans_the_same_policy(deploy, opened, monkeypatch) -> None:
    deployment = deploy(users=1000, batch=60)
    collector, rng = opened(deployment), np.random.default_rng(4)
    send(collector, local_reports(collector, rng, 60))
    planned = []
    commit = collector.planning._commit

    def forgetful(learner, previous) -> None:
        planned.append(learner.publication.policy)

    monkeypatch.setattr(collector.planning, "_commit", forgetful)
    collector.planning.step()
    assert collector.status().version == 0
    collector.planning.step()
    monkeypatch.setattr(collector.planning, "_commit", commit)
    again = opened(deployment)
    assert again.planning.step()
    assert planned[0] == planned[1] == again.billboard.published(1).publication.policy


def test_absorbed_messages_are_gone_and_ids_stay(deploy, opened) -> None:
    deployment = deploy(users=1000, batch=60)
    collector, rng = opened(deployment), np.random.default_rng(5)
    reports = local_reports(collector, rng, 60)
    send(collector, reports)
    assert PlannerLoop(collector).step()
    with collector._store.read() as connection:
        assert connection.execute(sa.select(schema.uploads)).all() == []
    assert send(collector, reports) == [("duplicate", None)] * 60
    collector.close()
    for path in deployment.folder.iterdir():
        content = path.read_bytes()
        assert not any(bytes.fromhex(r.id) * 2 in content for r in reports)


def test_the_loop_plans_in_a_thread(deploy) -> None:
    with Collector.open(deploy(users=1000, batch=60)) as collector:
        loop = PlannerLoop(collector, pause=0.01)
        loop.start()
        send(collector, local_reports(collector, np.random.default_rng(6), 60))
        for _ in range(500):
            if collector.policy().version == 1:
                break
            loop._stop.wait(0.02)
        assert collector.status().planner_alive
        loop.stop()
        assert collector.policy().version == 1 and not collector.status().planner_alive


def test_the_ledger_in_the_database_is_chained(deploy, opened) -> None:
    deployment = deploy()
    collector = opened(deployment)
    said = collector.ledger()
    assert said["verified"] and said["header"]["unit"] == "participation"
    assert [entry["status"] for entry in said["entries"]] == ["committed"]
    assert said["spent"]["epsilon"] <= said["header"]["budget"]["epsilon"]
    again = DatabaseLedger(collector._store, collector.clock)
    assert again.head == said["head"]
    with collector._store.write() as connection:
        line = bytes(
            connection.execute(
                sa.select(schema.ledger.c.line).where(schema.ledger.c.sequence == 1)
            ).scalar_one()
        )
        connection.execute(
            schema.ledger.update()
            .where(schema.ledger.c.sequence == 1)
            .values(line=line.replace(b"everything", b"anything"))
        )
    assert not collector.ledger()["verified"]


def test_a_refused_charge_closes_the_ledger_for_good(deploy, opened) -> None:
    collector = opened(deploy())
    book = DatabaseLedger(collector._store, collector.clock)
    with pytest.raises(BudgetExhausted):
        book.spend(PureCharge(100.0), "far too much")
    said = collector.ledger()
    assert said["verified"] and said["closed"] and len(said["entries"]) == 1
    with pytest.raises(BudgetExhausted):
        DatabaseLedger(collector._store, collector.clock).spend(PureCharge(1e-6), "a little")


def test_a_database_that_does_not_answer(tmp_path) -> None:
    store = Store("postgresql+psycopg://nobody@127.0.0.1:1/none")
    with pytest.raises(Unavailable, match="does not answer"), store.read():
        raise AssertionError
    store.close()
