"""What must hold on SQLite and on PostgreSQL alike."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from service.conftest import JOINT, LOCAL
from service.devices import local_reports, trajectories
from service.returning import (
    FIRST,
    LIFETIME,
    Reference,
    come,
    crowd,
    report_of,
    stepping,
    sums,
    write,
)
from tacit.wire import documents
from tacit_service.collector import Collector
from tacit_service.modes.periods import Periods
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.responses import Refused, Unavailable
from tacit_service.storage import database as db
from tacit_service.storage import schema


def send(collector, reports, token=None):
    answer = collector.upload(collector.deployment.task_id, reports, token)
    return [outcome.outcome for outcome in answer.outcomes]


def test_tables_are_those_of_the_migrations(deploy, opened, database) -> None:
    collector = opened(deploy(more=database))
    with collector._store.read() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, schema.metadata) == []


def test_an_unknown_schema_version_is_refused(deploy, opened, database) -> None:
    deployment = deploy(more=database)
    collector = opened(deployment)
    with collector._store.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '99'"))
    with pytest.raises(Refused, match="schema version 99, which this tacit does not know"):
        Collector.open(deployment)


def test_another_task_is_refused(deploy, opened, database) -> None:
    opened(deploy(users=400, more=database or 'database = "sqlite:///one.db"'))
    with pytest.raises(Refused, match="belongs to another task"):
        Collector.open(deploy(users=401, more=database or 'database = "sqlite:///one.db"'))


@pytest.mark.parametrize("form", documents.TERMS_FORMS)
def test_a_task_whose_devices_told_ends_apart_is_refused(
    deploy, opened, database, monkeypatch, form
) -> None:
    """Old answers and new ones are numbered otherwise, and must not be added up."""
    text = LOCAL.replace("horizon = 4", "horizon = 4\nterminal = [2]")
    with monkeypatch.context() as before:
        before.setattr(documents, "terms_forms", lambda _: (form,))
        opened(deploy(text, more=database or 'database = "sqlite:///ends.db"'))
    with pytest.raises(Refused, match="begun when devices told terminal states apart"):
        Collector.open(deploy(text, more=database or 'database = "sqlite:///ends.db"'))


@pytest.mark.parametrize(("text", "make"), [(LOCAL, local_reports), (JOINT, trajectories)])
def test_exactly_the_population_under_concurrency(deploy, opened, database, text, make) -> None:
    """Two workers, four threads each, send overlapping reports, more than may be accepted."""
    deployment = deploy(text, users=150, batch=1000 if text == LOCAL else 40, more=database)
    workers = [opened(deployment), opened(deployment)]
    reports = make(workers[0], np.random.default_rng(1), 200)
    outcomes: list[str] = []
    errors: list[BaseException] = []

    def run(worker: Collector, order: np.ndarray) -> None:
        try:
            for chunk in np.array_split(order, 8):
                outcomes.extend(send(worker, [reports[i] for i in chunk]))
        except BaseException as error:
            errors.append(error)

    rng = np.random.default_rng(2)
    threads = [
        threading.Thread(target=run, args=(worker, rng.permutation(200)))
        for worker in workers
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert outcomes.count("accepted") == 150
    assert len(outcomes) == 8 * 200
    with workers[0]._store.read() as connection:
        assert db.progress(connection).accepted == 150
        ids = connection.execute(sa.select(sa.func.count()).select_from(schema.report_ids))
        assert ids.scalar_one() == 150
        if text == LOCAL:
            kept = list(workers[0]._mode.kept(connection, 0, 150))
            assert sorted(report.number for report in kept) == list(range(150))
            assert len({report.identity for report in kept}) == 150


def test_tokens_are_counted_per_device(deploy, opened, database) -> None:
    text = LOCAL.replace('"tacit-local"', '"ldp-obi"')  # its devices choose the ids
    text = text.replace('tokens = "shared"', 'participations = 2\nteaches = "every"')
    collector = opened(deploy(text, more=database))
    assert collector.deployment.guarantee.unit == "user"
    assert collector.deployment.guarantee.participations == 2
    first, second = collector.tokens.issue("device", 2, "phones")
    one, two = collector.tokens.authenticate(first), collector.tokens.authenticate(second)
    assert one is not None and two is not None
    reports = local_reports(collector, np.random.default_rng(1), 6)
    answer = collector.upload(collector.deployment.task_id, reports[:3], one)
    assert [o.outcome for o in answer.outcomes] == ["accepted", "accepted", "refused"]
    assert answer.outcomes[2].reason == "token_spent"
    assert send(collector, [reports[0], reports[2]], one) == ["duplicate", "refused"]
    assert send(collector, [reports[2]], two) == ["accepted"]  # refused ids are not remembered
    assert collector.status().accepted == 3
    assert [token.used for token in collector.tokens.list()] == [2, 1]
    other = "x" if first[0] != "x" else "y"
    assert collector.tokens.authenticate(other + first[1:]) is None
    assert collector.tokens.revoke(one.id) and collector.tokens.authenticate(first) is None
    with pytest.raises(Exception, match="need the token of a device"):
        send(collector, reports)


def test_one_planner_at_a_time(deploy, opened, clock, database) -> None:
    deployment = deploy(users=1000, batch=50, more=database)
    workers = [opened(deployment), opened(deployment)]
    planners = [PlannerLoop(worker) for worker in workers]
    rng = np.random.default_rng(3)
    assert not workers[0].status().planner_alive
    send(workers[0], local_reports(workers[0], rng, 50))
    assert planners[0].step() and workers[1].status().planner_alive
    send(workers[0], local_reports(workers[0], rng, 50))
    assert not planners[1].step()
    clock.now += LEASE_SECONDS + 1  # the first one died
    assert planners[1].step() and workers[0].policy().version == 2
    assert not planners[0].step()
    planners[1].stop()
    send(workers[0], local_reports(workers[0], rng, 50))
    clock.now += LEASE_SECONDS + 1
    assert planners[0].step() and workers[1].policy().version == 3


@pytest.mark.parametrize("text", [LOCAL, JOINT])
def test_a_second_planner_that_lost_its_lease_publishes_nothing(
    deploy, opened, database, text
) -> None:
    """Both plan the same version; one publication is left, and one draw of noise."""
    deployment = deploy(text, users=200, batch=40, more=database)
    workers = [opened(deployment), opened(deployment)]
    make = local_reports if text == LOCAL else trajectories
    send(workers[0], make(workers[0], np.random.default_rng(4), 60))
    commit, bodies = workers[0].planning._commit, []

    def late(learner, previous) -> None:
        assert workers[1].planning.step()  # somebody else is faster
        bodies.append(workers[1].policy().body)
        commit(learner, previous)

    workers[0].planning._commit = late
    workers[0].planning.step()
    assert [p.version for p in workers[0].billboard.history()] == [0, 1]
    assert workers[0].policy().body == bodies[0]


def test_joint_runs_to_its_end(deploy, opened, database) -> None:
    collector = opened(deploy(JOINT, users=120, batch=40, more=database))
    planner, rng = PlannerLoop(collector), np.random.default_rng(5)
    for _ in range(4):
        assert send(collector, trajectories(collector, rng, 30)) == ["accepted"] * 30
        while planner.step():
            pass
    assert [p.users for p in collector.billboard.history()] == [0, 40, 80, 120]
    assert collector.status().finished and collector.ledger()["verified"]


@pytest.mark.parametrize("text", [LOCAL, JOINT])
def test_lost_connections_are_made_again(deploy, opened, postgres, text) -> None:
    make = local_reports if text == LOCAL else trajectories
    collector = opened(deploy(text, users=400, batch=60, more=f'database = "{postgres}"'))
    rng, planner = np.random.default_rng(6), PlannerLoop(collector)
    for chunk in range(3):
        assert send(collector, make(collector, rng, 20)) == ["accepted"] * 20
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        if chunk < 2:  # who only looks may be told once to try again
            with contextlib.suppress(Unavailable):
                collector.status()
            assert collector.status().accepted == 20 * (chunk + 1)
    with contextlib.suppress(Unavailable):
        planner.step()
    assert planner.step() or collector.status().version == 1
    assert collector.status().accepted == 60 and collector.policy().version == 1


def test_a_token_is_never_overspent_under_concurrency(deploy, opened, database) -> None:
    text = LOCAL.replace('"tacit-local"', '"ldp-obi"')  # its devices choose the ids
    text = text.replace('tokens = "shared"', 'participations = 3\nteaches = "every"')
    deployment = deploy(text, more=database)
    workers = [opened(deployment), opened(deployment)]
    tokens = [workers[0].tokens.authenticate(t) for t in workers[0].tokens.issue("device", 2)]
    reports = local_reports(workers[0], np.random.default_rng(8), 24)
    outcomes: list[str] = []

    def run(index: int) -> None:
        mine = reports[index * 3 : index * 3 + 3]
        token = tokens[index % 2]
        for report in mine:
            outcomes.extend(send(workers[index // 4], [report], token))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 24 and outcomes.count("accepted") == 6
    assert [token.used for token in workers[0].tokens.list()] == [3, 3]
    assert workers[1].status().accepted == 6


def test_lives_are_folded_under_concurrency(tmp_path, opened, clock, database) -> None:
    """Two workers, six people who come back all the time: each is counted as one."""
    deployment = write(LIFETIME, tmp_path, users=400, keep="true", more=database)
    workers = [opened(deployment), opened(deployment)]
    six = crowd(workers[0], 6)
    lives = [trajectories(workers[0], np.random.default_rng(k), 20) for k in range(6)]

    def run(who: int) -> None:
        for report in lives[who]:  # one after the other, through either worker
            assert send(workers[int(report.id[-1], 16) % 2], [report], six[who]) == ["accepted"]

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(6)))
    reference = Reference(workers[0])
    for who in range(6):
        for report in lives[who]:
            reference.add(report, who)
    assert np.array_equal(sums(workers[1]), reference.total)
    assert stepping(PlannerLoop(workers[0]).step) and workers[1].verify().sound


def test_a_new_period_begins_once_for_all_workers(tmp_path, opened, clock, database) -> None:
    text = LIFETIME.replace('"any"', "40")
    more = {"users": 200, "keep": "true", "rule": 'renews = "10d"', "more": database}
    deployment = write(text, tmp_path, **more)
    workers = [opened(deployment), opened(deployment)]
    edge, rng = deployment.bound.schedule.times[1], np.random.default_rng(9)
    four = crowd(workers[0], 4)
    clock.now = 105 * 86400.0
    for k in range(edge - 4):
        come(workers[k % 2], rng, four[k % 4])
    clock.now = 111 * 86400.0
    last = trajectories(workers[0], rng, 12)
    with ThreadPoolExecutor(4) as pool:
        chunks = [(workers[k % 2], last[3 * k : 3 * k + 3], four[k]) for k in range(4)]
        outcomes = list(pool.map(lambda chunk: send(*chunk), chunks))
    assert outcomes == [["accepted"] * 3] * 4
    with workers[0]._store.read() as connection:
        assert [tuple(one) for one in Periods.begun(connection)] == [(0, 10), (edge, 11)]
    assert sum(token.used for token in workers[0].tokens.list()) == 8  # of the new period
    for k in range(deployment.bound.schedule.times[2] - edge):
        come(workers[k % 2], rng, four[k % 4])
    assert stepping(PlannerLoop(workers[0]).step) > 1 and workers[1].verify().sound


def test_one_report_of_a_person_in_a_period(tmp_path, opened, clock, database) -> None:
    collector = opened(write(FIRST, tmp_path, rule='renews = "10d"', more=database))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(10)
    for period in (10, 11, 12):
        clock.now = (10 * period + 5) * 86400.0
        report = report_of(collector, rng, anna, period)
        assert send(collector, [report], anna) == ["accepted"]
        assert send(collector, [report], anna) == ["duplicate"]
