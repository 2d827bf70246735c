"""What goes wrong is seen at once, said once, and over soon after the repair."""

import errno
import json
import logging
import socket
import threading

import numpy as np
import pytest
import sqlalchemy as sa

from patience import PATIENCE, until
from service.conftest import JOINT
from service.devices import local_reports, trajectories
from tacit_service import log_lines
from tacit_service.collector import Collector
from tacit_service.http import readiness
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.responses import Refused, Unavailable
from tacit_service.storage.database import Store

DAY = 86_400.0


def send(collector, reports):
    answer = collector.upload(collector.deployment.task_id, reports, None)
    return [outcome.outcome for outcome in answer.outcomes]


def reason(collector) -> str | None:
    trouble = collector.status().trouble
    return None if trouble is None else trouble.reason


def events(caplog) -> list[str]:
    return [record.event for record in caplog.records if hasattr(record, "event")]


@pytest.fixture
def planning(deploy, caplog):
    """A collector with its planner running: of the joint model, on files of its own."""
    caplog.set_level(logging.INFO, logger="tacit.service")
    with Collector.open(deploy(JOINT, users=1000, batch=40)) as collector:
        loop = PlannerLoop(collector, pause=0.01)
        loop.start()
        until(lambda: reason(collector) is None)
        yield collector
        loop.stop()


def test_a_missing_witness_shows_before_a_batch_is_full_and_heals(planning, caplog) -> None:
    witness = planning.deployment.witness
    hidden = witness.rename(witness.with_suffix(".hidden"))
    until(lambda: reason(planning) == "state")
    assert "witness" in planning.status().trouble.sentence
    rng = np.random.default_rng(1)
    assert send(planning, trajectories(planning, rng, 60)) == ["accepted"] * 60
    tries: list[None] = []
    planning.readiness.failed = lambda: tries.append(None)
    until(lambda: len(tries) >= 3)  # it tries again, more than once
    assert planning.policy().version == 0 and events(caplog).count("planner_failed") == 1
    hidden.rename(witness)
    until(lambda: planning.policy().version == 1 and reason(planning) is None)
    assert planning.status().accepted == 60
    assert events(caplog).count("planner_recovered") == 1 and "published" in events(caplog)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk"),
        (ValueError("what somebody reported: 0.25"), "exception"),
    ],
)
def test_a_planner_that_fails_is_unready_and_loses_nothing(
    planning, caplog, monkeypatch, error, word
) -> None:
    mode = planning.planning.mode
    whole = mode.ready

    def broken(*words) -> None:
        raise error

    monkeypatch.setattr(mode, "ready", broken)
    rng = np.random.default_rng(2)
    assert send(planning, trajectories(planning, rng, 40)) == ["accepted"] * 40
    until(lambda: reason(planning) == word)
    assert "0.25" not in planning.status().trouble.sentence + caplog.text
    monkeypatch.setattr(mode, "ready", whole)
    until(lambda: planning.policy().version == 1 and reason(planning) is None)
    assert planning.status().users == 40


def test_uploads_that_cannot_be_written_show_until_one_can(deploy, opened, clock) -> None:
    collector = opened(deploy())
    assert PlannerLoop(collector).step() is False and reason(collector) is None
    reports = local_reports(collector, np.random.default_rng(3), 2)
    with collector._store.read() as connection:
        connection.execute(sa.text("PRAGMA query_only = ON"))
    collector._store.engine.dispose()
    full = sa.event.listens_for(collector._store.engine, "connect")(
        lambda raw, _: raw.execute("PRAGMA max_page_count = 1")
    )
    with collector._store.engine.connect() as connection:
        pages = connection.execute(sa.text("PRAGMA page_count")).scalar_one()
    assert pages > 1  # no page more: the disk is full
    with pytest.raises(Unavailable, match="disk is full"):
        for more in range(1000):
            send(collector, local_reports(collector, np.random.default_rng(more + 9), 20))
    assert reason(collector) == "disk"
    before = collector.status().accepted
    sa.event.remove(collector._store.engine, "connect", full)
    collector._store.engine.dispose()
    assert send(collector, reports) == ["accepted"] * 2
    assert reason(collector) is None and collector.status().accepted == before + 2


def test_every_process_shows_the_planners_trouble(deploy, opened, database) -> None:
    deployment = deploy(more=database)
    one, other = opened(deployment), opened(deployment)
    PlannerLoop(one).step()
    assert reason(other) is None
    one.readiness.planner_failed(Refused("the witness is missing", "state"))
    assert reason(one) == reason(other) == "state"
    other.readiness.planner_works(leading=False)  # it does not plan, so it cannot know
    assert reason(other) == "state"
    other.readiness.planner_works(leading=True)
    assert reason(other) is None


def test_nobody_plans_is_a_reason_too(deploy, opened) -> None:
    collector = opened(deploy())
    assert reason(collector) == "no_planner"
    loop = PlannerLoop(collector)
    loop.step()
    assert reason(collector) is None
    loop.stop()
    assert reason(collector) == "no_planner"


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_makes_neither_two_planners_nor_none(
    deploy, opened, clock, jump, database
) -> None:
    deployment = deploy(users=1000, batch=50, more=database)
    workers = [opened(deployment), opened(deployment)]
    first, second = (PlannerLoop(worker) for worker in workers)
    rng = np.random.default_rng(4)
    first.step()
    assert not second.step() and workers[1].status().planner_alive
    clock.jump(jump)
    send(workers[0], local_reports(workers[0], rng, 50))
    assert not second.step() and workers[1].status().planner_alive
    assert first.step() and workers[0].policy().version == 1
    send(workers[0], local_reports(workers[0], rng, 50))
    clock.now += 1.0
    assert not second.step()
    clock.now += LEASE_SECONDS  # the first one is silent now
    assert second.step() and workers[0].policy().version == 2


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_leaves_the_cadence_alone(deploy, opened, clock, jump) -> None:
    more = 'cadence = "5m"\n[storage]'
    text = JOINT.replace("accepted_versions = 2\n[storage]", f"accepted_versions = 2\n{more}")
    collector = opened(deploy(text, users=1000, batch=40))
    planner, rng = PlannerLoop(collector), np.random.default_rng(5)
    send(collector, trajectories(collector, rng, 120))
    assert not planner.step()
    clock.jump(jump)
    clock.now += 299
    assert not planner.step()
    clock.now += 1
    assert planner.step()
    restarted = PlannerLoop(opened(collector.deployment))
    planner.stop()
    clock.jump(-jump)
    done = restarted.step()
    clock.now += 300  # at most one cadence later, whatever the clock said meanwhile
    assert done or restarted.step()


def test_a_damaged_database_is_refused_in_words(tmp_path) -> None:
    path = tmp_path / "not.db"
    path.write_text("a letter, not a database\n" * 100)
    store = Store(f"sqlite:///{path}")
    with pytest.raises(Refused, match="not a database") as refused, store.write():
        raise AssertionError
    assert refused.value.reason == "damaged"
    store.close()


def test_a_database_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = Store(f"postgresql+psycopg://nobody@127.0.0.1:{silent.getsockname()[1]}/none")
        found: list[Exception] = []

        def look() -> None:
            try:
                with store.read():
                    raise AssertionError
            except Unavailable as error:
                found.append(error)

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        looking.join(PATIENCE)
        assert found and found[0].reason == "database"
        store.close()


def test_a_new_database_is_its_owners_alone(deploy, opened) -> None:
    deployment = deploy()
    collector = opened(deployment)
    send(collector, local_reports(collector, np.random.default_rng(6), 5))
    files = list(deployment.folder.glob("*.db*"))
    assert len(files) == 3 and {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_log_lines_are_json_with_their_facts() -> None:
    record = logging.LogRecord("tacit.service", logging.INFO, "", 0, "%s", ("a policy",), None)
    record.event, record.facts = "published", {"version": 3, "users": 120}
    line = json.loads(log_lines._Lines("json").format(record))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "event": "published",
        "message": "a policy",
        "version": 3,
        "users": 120,
    }
    text = log_lines._Lines("text").format(record)
    assert text.endswith("INFO published: a policy (version=3, users=120)")


def test_only_our_own_sentences_are_repeated() -> None:
    said = readiness.trouble_of(ValueError("0.25 of somebody"))
    assert said.reason == "exception" and "0.25" not in said.sentence
    assert readiness.trouble_of(PermissionError(13, "Permission denied")).reason == "files"
