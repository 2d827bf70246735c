"""A task that is paused stands still and loses nothing; a closed one is over."""

import threading
import time

import numpy as np
import pytest

from patience import PATIENCE
from service.conftest import JOINT, LOCAL
from service.devices import local_reports, trajectories
from tacit_service.dashboard.facts import FactReader
from tacit_service.dashboard.view import build
from tacit_service.intake.task_state import State
from tacit_service.responses import Paused, TaskClosed

WEEK = 7 * 86400.0


def send(collector, reports):
    answer = collector.upload(collector.deployment.task_id, reports, None)
    return [(outcome.outcome, outcome.reason) for outcome in answer.outcomes]


@pytest.mark.parametrize(("text", "make"), [(LOCAL, local_reports), (JOINT, trajectories)])
def test_a_pause_takes_nothing_plans_nothing_and_loses_nothing(
    deploy, opened, database, text, make
) -> None:
    deployment = deploy(text, users=400, batch=40, more=database)
    here, there = opened(deployment), opened(deployment)  # two workers
    full = here.status().next_batch
    reports = make(here, np.random.default_rng(1), full + 10)
    assert send(here, reports[:full]) == [("accepted", None)] * full
    here.turn("paused")
    for collector in (here, there):
        with pytest.raises(Paused):
            send(collector, reports[full:])
        assert collector.describe()["state"] == "paused"
    assert not there.planning.step()  # though a batch is full
    assert there.status().trouble is None or there.status().trouble.reason == "no_planner"
    assert there.turn("paused") == here.state()  # twice is once
    assert there.turn("open").word == "open"
    assert send(here, reports) == [("duplicate", None)] * full + [("accepted", None)] * 10
    assert here.planning.step() and here.status().accepted == full + 10


@pytest.mark.parametrize(("text", "make"), [(LOCAL, local_reports), (JOINT, trajectories)])
def test_a_closed_task_plans_what_is_full_and_deletes_the_rest(
    deploy, opened, database, text, make
) -> None:
    deployment = deploy(text, users=400, batch=40, more=database)
    collector = opened(deployment)
    full = collector.status().next_batch
    reports = make(collector, np.random.default_rng(2), full + 11)
    send(collector, reports[:-1])
    collector.turn("closed")
    assert send(collector, reports[-2:]) == [("duplicate", None), ("refused", "closed")]
    while collector.planning.step():
        pass
    now = collector.status()
    assert (now.version, now.users, now.accepted, now.finished) == (1, full, full + 10, True)
    for table in ("uploads", "secrets"):
        with collector._store.read() as connection:
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0
    with pytest.raises(TaskClosed, match="stays so"):
        collector.turn("open")
    assert opened(deployment).status().finished  # also after a restart


def test_no_report_is_counted_after_the_answer_to_close(deploy, opened, database) -> None:
    deployment = deploy(users=4000, batch=4000, more=database)
    here, there = opened(deployment), opened(deployment)
    reports = local_reports(here, np.random.default_rng(3), 400)
    accepted: list[int] = []
    closed = threading.Event()

    def upload(collector, mine) -> None:
        for number, report in enumerate(mine):
            if number == len(mine) - 5:  # the last ones come afterwards, however long it takes
                assert closed.wait(PATIENCE)
            time.sleep(0.02)  # SQLite lets whoever waits for the lock in now and then only
            accepted.append(send(collector, [report]) == [("accepted", None)])

    threads = [
        threading.Thread(target=upload, args=(one, reports[k::4]))
        for k, one in enumerate((here, there, here, there))
    ]
    for thread in threads:
        thread.start()
    while sum(accepted) < 20:
        time.sleep(0.001)
    here.turn("closed")
    closed.set()
    final = here.status().accepted
    for thread in threads:
        thread.join()
    assert there.status().accepted == final == sum(accepted) < 400


def test_time_stands_still_in_a_pause(deploy, opened, clock) -> None:
    """A report that was due in a pause of a year counts when the task goes on."""
    text = LOCAL.replace("horizon = 4", 'horizon = 4\nduration = "7d"')
    deployment = deploy(text.replace("accepted_versions = 2", 'grace = "1d"'), batch=10)
    collector = opened(deployment)
    full = collector.status().next_batch
    late, old, *first = local_reports(collector, np.random.default_rng(4), full + 2)
    send(collector, first)
    assert collector.planning.step()
    clock.now += WEEK
    collector.turn("paused")
    clock.now += 365 * 86400.0
    collector.turn("open")
    assert send(collector, [late]) == [("accepted", None)]
    clock.now += 3 * 86400.0  # beyond delay and grace
    assert send(collector, [old]) == [("stale", None)]


def test_worked_time_leaves_pauses_out() -> None:
    state = State("open", ((10.0, 20.0), (30.0, float("inf"))))
    assert [state.worked(t) for t in (5.0, 15.0, 25.0, 40.0)] == [5.0, 10.0, 15.0, 20.0]


def test_the_dashboard_says_so(deploy, opened) -> None:
    collector = opened(deploy())
    collector.lease().take()
    stamps = set()
    for word, said in (("paused", "Paused by"), ("open", "nobody has"), ("closed", "Closed by")):
        collector.turn(word)
        view = build(FactReader(collector).read(None))
        assert said in view.health.summary and view.task["state"] == word
        stamps.add(view.stamp)
    assert len(stamps) == 3
