"""Reports are held: the time of sending is drawn at the beginning and tells nothing else."""

import json
import sqlite3
from dataclasses import replace

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from client.collector import A, FakeCollector, H, S, live
from tacit.client import Declined, Device, Refused, TookPart, Unreachable
from tacit.client.outbox import Delivery, Outbox, Saved
from tacit.client.report_times import Times
from tacit.errors import InvalidInput
from tacit.task.task import Task

HOUR, DAY = 3600.0, 86400.0
WEEK = 7 * DAY
NOON = 1_800_000_000.0


class Clock:
    """A device's clock: the time that passed, and by how much it is wrong."""

    def __init__(self) -> None:
        self.true = NOON
        self.wrong = 0.0

    def __call__(self) -> float:
        return self.true + self.wrong


def week(**more) -> Task:
    return Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, duration=WEEK, **more)


@pytest.fixture
def collector() -> FakeCollector:
    return FakeCollector(task=week(), epsilon=1.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def requests(collector: FakeCollector) -> int:
    return collector.gets + len(collector.bodies)


def end(device: Device, steps: int) -> None:
    """Live through some steps; leave if they are not all."""
    if steps == H:
        live(device)
        return
    episode = device.begin()
    for h in range(steps):
        episode.act(h % S)
        episode.observe(1.0, (h + 1) % S)
    episode.leave()


@pytest.mark.parametrize("steps", [0, 1, H])
def test_a_report_is_held_until_its_time_and_then_sent(collector, clock, steps) -> None:
    device = collector.device(clock=clock)
    end(device, steps)
    begun = requests(collector)
    assert begun == 3, "the task, the policy, and whether a report would be taken"
    (held,) = device.send()
    assert held.outcome is None and not held.counted
    assert NOON + WEEK <= held.due == device.due() < NOON + WEEK + WEEK / 10
    clock.true = held.due - 0.001
    assert device.send() == [held] and requests(collector) == begun
    clock.true = held.due
    (sent,) = device.send()
    assert sent == Delivery(held.id, held.task_id, "accepted") and device.due() is None
    assert requests(collector) == begun + 2 and len(collector.bodies) == 1, "asked, then sent"


def test_with_the_same_draw_everybody_sends_at_the_same_moment(clock, monkeypatch) -> None:
    monkeypatch.setattr("tacit.client.report_times.secrets.randbits", lambda bits: 2 ** (bits - 2))
    moments = set()
    for steps in range(H + 1):
        collector = FakeCollector(task=week(), epsilon=1.0)
        clock.true = NOON
        device = collector.device(clock=clock)
        end(device, steps)
        while not collector.bodies:
            clock.true = min(clock.true + HOUR, device.due() or clock.true)
            device.send()
        moments.add(clock.true)
    assert moments == {NOON + WEEK + WEEK / 40}


def test_leavers_and_finishers_wait_by_the_same_law(collector, clock) -> None:
    """Kolmogorov-Smirnov, two of 300 and one of 600; each errs once in a million runs."""
    waits = {}
    for steps in (1, H):
        waits[steps] = []
        for _ in range(300):
            device = collector.device(clock=clock)
            end(device, steps)
            (held,) = device.send()
            waits[steps].append((held.due - NOON - WEEK) / (WEEK / 10))
    assert stats.ks_2samp(waits[1], waits[H], method="asymp").pvalue > 1e-6
    assert stats.kstest(waits[1] + waits[H], "uniform").pvalue > 1e-6


def test_nothing_is_asked_between_the_beginning_and_the_due_time(
    collector, clock, tmp_path
) -> None:
    """An app that opens every day shows no difference between those who live on and who left."""
    for steps in (0, 1, H):
        collector.gets, path = 0, tmp_path / f"outbox{steps}"
        for day in range(7):
            clock.true = NOON + day * DAY
            device = collector.device(path, clock=clock)
            if day < steps:
                episode = device.begin()
                episode.act(0)
                episode.observe(0.5, 1)
            elif day == steps < H:
                device.begin().leave()
            else:
                with pytest.raises(TookPart, match="nothing is asked or begun before"):
                    device.begin()
            device.send()
            device.due()
            device.close()
        assert collector.gets == 3 and collector.bodies == []


def test_a_restart_keeps_the_due_time_and_the_bytes(collector, clock, tmp_path) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path, clock=clock)
    device.begin()
    due = device.due()
    device.close()
    device = collector.device(path, clock=clock)
    assert device.due() == due, "known from the beginning"
    device.begin().leave()
    device.close()
    device = collector.device(path, clock=clock)
    assert [d.due for d in device.send()] == [due]
    clock.true = due
    collector.broken = [
        *[httpx.Response(200, json=collector.taking(0))],
        *[httpx.ReadTimeout("")] * 5,
    ]
    with pytest.raises(Unreachable):
        device.send()
    device.close()
    ((body,),) = sqlite3.connect(path).execute("SELECT body FROM reports").fetchall()
    assert collector.device(path, clock=clock).send()[0].counted
    assert set(collector.bodies) == {body}


@pytest.mark.parametrize("by", ["begin", "send", "act", "observe", "leave"])
def test_an_episode_ends_when_its_time_is_over(collector, clock, by) -> None:
    device = collector.device(clock=clock)
    episode = device.begin()
    episode.act(0)
    due = device.due()
    clock.true = NOON + WEEK - 1
    episode.observe(1.0, 1)
    episode.act(1)
    clock.true = NOON + WEEK
    if by == "begin":
        with pytest.raises(TookPart, match="once"):
            device.begin()
    elif by == "send":
        device.send()
    elif by == "leave":
        episode.leave()
    else:
        with pytest.raises(InvalidInput, match="time of this episode is over"):
            episode.act(1) if by == "act" else episode.observe(1.0, 2)
        assert episode.done
    assert [d.due for d in device.send()] == [due] and collector.bodies == []
    clock.true = NOON + 14 * DAY
    (delivery,) = device.send()
    assert delivery.counted and device._outbox.running("https://coach.test") == []


def test_an_app_that_was_closed_for_two_weeks_sends_when_it_opens(
    collector, clock, tmp_path
) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path, clock=clock)
    device.begin().act(2)
    device.close()
    clock.true += 14 * DAY
    assert collector.device(path, clock=clock).send()[0].counted


def test_the_next_episode_may_begin_while_the_last_report_is_held(clock) -> None:
    collector = FakeCollector(task=week(participations=2), epsilon=1.0)
    device = collector.device(clock=clock)
    device.begin().leave()
    clock.true = NOON + WEEK - 1
    with pytest.raises(TookPart, match="2027-01-22 08:00 UTC"):
        device.begin()
    clock.true = NOON + WEEK
    episode = device.begin()
    assert device.send()[0].due is not None and not episode.done
    clock.true = NOON + 2 * WEEK + WEEK / 10
    assert [d.outcome for d in device.send()] == ["accepted", "accepted"]


def test_without_a_duration_reports_go_at_once_and_the_terms_say_so(clock) -> None:
    collector = FakeCollector(epsilon=1.0)
    device = collector.device(clock=clock)
    assert "can tell who stopped early" in device.terms().sending
    device.begin().leave()
    assert device.due() == NOON
    assert device.send()[0].counted and device.due() is None


def test_the_terms_say_how_long_a_report_is_held(collector) -> None:
    sentence = collector.device().terms().sending
    assert "held on the device for 7 days" in sentence and "up to 16 hours 48 minutes" in sentence


@pytest.mark.parametrize("delay", [-1.0, WEEK + 1, "1", None])
def test_a_delay_beyond_the_duration_is_declined(collector, delay) -> None:
    collector.description["delay"] = delay
    with pytest.raises(Declined, match="delay"):
        collector.device().begin()


# Clocks.


def test_a_clock_set_back_for_a_while_changes_nothing(collector, clock) -> None:
    for back in (DAY, 400 * DAY):
        clock.true, clock.wrong, collector.bodies = NOON, 0.0, []
        device = collector.device(clock=clock)
        device.begin().leave()
        due = device.due()
        clock.true, clock.wrong = NOON + 2 * DAY, -back
        assert device.send()[0].outcome is None
        clock.wrong, clock.true = 0.0, due - 1
        assert device.send()[0].due == due and collector.bodies == []
        clock.true = due
        assert device.send()[0].counted


@pytest.mark.parametrize(
    ("back", "longer"), [(DAY, DAY), (3 * DAY, 3 * DAY), (5 * DAY, 5 * DAY), (400 * DAY, 3 * DAY)]
)
def test_a_clock_set_back_for_good_holds_a_report_a_little_longer(
    collector, clock, monkeypatch, back, longer
) -> None:
    monkeypatch.setattr("tacit.client.report_times.secrets.randbits", lambda bits: 0)
    device = collector.device(clock=clock)
    device.begin().leave()
    due = device.due()
    clock.true, clock.wrong = NOON + 3 * DAY, -back
    device.send()
    assert device.due() - clock.wrong == due + longer
    clock.true = due + longer - 1
    assert device.send()[0].outcome is None
    clock.true = due + longer
    assert device.send()[0].counted


def test_a_clock_that_loses_its_time_twice_does_not_add_both_up(collector, clock) -> None:
    device = collector.device(clock=clock)
    device.begin().leave()
    for day, shown in ((1, 0.0), (2, None), (3, 9 * DAY)):
        clock.true = NOON + day * DAY
        clock.wrong = 0.0 if shown is None else shown - clock.true
        assert device.send()[0].outcome is None
    assert collector.bodies == []


def test_a_clock_set_forward_and_put_right_changes_nothing(collector, clock) -> None:
    device = collector.device(clock=clock)
    episode = device.begin()
    due = device.due()
    clock.true, clock.wrong = NOON + DAY, DAY
    episode.act(0)
    assert device.send() == [] and device.due() == due
    clock.wrong = 0.0
    episode.leave()
    assert device.send()[0].due == due and collector.bodies == []


def test_a_clock_set_forward_moves_everybody_alike(clock, monkeypatch) -> None:
    """It cannot be told from time that passed; so it must not tell who stopped early either."""
    monkeypatch.setattr("tacit.client.report_times.secrets.randbits", lambda bits: 0)
    for steps in (0, 1, H):
        collector = FakeCollector(task=week(), epsilon=1.0)
        clock.true, clock.wrong = NOON, 0.0
        device = collector.device(clock=clock)
        end(device, steps)
        clock.wrong = DAY
        clock.true = NOON + 6 * DAY - 1
        assert device.send()[0].outcome is None
        clock.true += 1
        assert device.send()[0].counted


class Wait:
    """One held report in an outbox, and the looks at it."""

    def __init__(self, wait: float) -> None:
        self.outbox = Outbox(None)
        times = Times(NOON, NOON + wait, NOON + wait)
        self.outbox.begin(Saved("task", "report", {}, [], times))

    def held(self, now: float) -> bool:
        self.outbox.note_clock(now)
        return self.outbox.times("report").held(now)


@given(
    wait=st.floats(HOUR, 100 * DAY),
    when=st.floats(0.0, 0.999),
    back=st.floats(0.0, 60 * 365 * DAY),
    right=st.one_of(st.none(), st.floats(0.0, 4.0)),
)
@settings(max_examples=200, deadline=None)
def test_one_set_back_neither_sends_early_nor_holds_for_ever(wait, when, back, right) -> None:
    """Set back at a share of the wait, perhaps put right later; the app looks 50 times a wait."""
    report, look = Wait(wait), 0
    while True:
        share = look / 50
        wrong = share >= when and (right is None or share < when + right)
        now = NOON + share * wait - (back if wrong else 0.0)
        if not report.held(now):
            break
        look += 1
        assert share <= 3 + 2 / 50, "held for ever"
    assert share >= 1 - 1e-6, "sent early"


# Files of an older program.

VERSION_1 = """
CREATE TABLE joined (
    task_id TEXT PRIMARY KEY, address TEXT NOT NULL, name TEXT NOT NULL, terms BLOB NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, newest INTEGER NOT NULL
);
CREATE TABLE episodes (
    task_id TEXT PRIMARY KEY, report_id TEXT NOT NULL, publication TEXT NOT NULL,
    steps TEXT NOT NULL
);
CREATE TABLE reports (
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, body BLOB, outcome TEXT, reason TEXT, detail TEXT
);
PRAGMA user_version=1;
"""


def old_outbox(collector, path) -> list[bytes]:
    """The outbox of version 1 of a device with an unsent report and a running episode."""
    new = collector.device(path.with_name("new"))
    new.begin().leave()
    collector.broken = [httpx.Response(200, json=collector.taking(0)), httpx.Response(401)]
    with pytest.raises(Refused):
        new.send()
    collector.bodies.clear()
    episode = new.begin()
    episode.act(2)
    episode.observe(1.0, 0)
    new.close()
    source = sqlite3.connect(path.with_name("new"))
    old = sqlite3.connect(path)
    old.executescript(VERSION_1)
    for table, columns in (
        ("joined", "task_id, address, name, terms, epsilon, delta, newest"),
        ("episodes", "task_id, report_id, publication, steps"),
        ("reports", "*"),
    ):
        for row in source.execute(f"SELECT {columns} FROM {table}"):
            old.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
    old.commit()
    bodies = [row[0] for row in old.execute("SELECT body FROM reports")]
    old.close()
    source.close()
    return bodies


def test_an_outbox_of_version_1_is_brought_up_and_goes_on(tmp_path, clock) -> None:
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, 2)
    collector = FakeCollector(task=task, epsilon=1.0)
    bodies = old_outbox(collector, tmp_path / "outbox")
    assert len(bodies) == 1
    device = collector.device(tmp_path / "outbox", clock=clock)
    assert device.due() == NOON
    assert [d.outcome for d in device.send()] == ["accepted"] and collector.bodies == bodies
    episode = device.begin()
    assert episode.step == 1, "the running episode goes on"
    asked = collector.gets
    assert device.begin().step == 1 and collector.gets == asked, "now without the network"
    episode.leave()
    assert [d.outcome for d in device.send()] == ["accepted", "accepted"]
    device.close()
    assert sqlite3.connect(tmp_path / "outbox").execute("PRAGMA user_version").fetchone() == (5,)
    with pytest.raises(TookPart):
        collector.device(tmp_path / "outbox", clock=clock).begin()


def test_what_the_app_no_longer_allows_is_not_sent(tmp_path, clock) -> None:
    collector = FakeCollector("tacit-joint", model="joint", task=week(), epsilon=1.0)
    path = tmp_path / "outbox"
    device = collector.device(path, model="joint", clock=clock)
    device.begin().leave()
    device.close()
    clock.true += 2 * WEEK
    for less in ({"model": "local"}, {"model": "joint", "max_epsilon": 0.5}):
        device = collector.device(path, clock=clock, **less)
        with pytest.raises(Declined):
            device.send()
        device.close()
    assert collector.bodies == []
    assert collector.device(path, model="joint", clock=clock).send()[0].counted


# Collectors that move, or change.


def test_a_collector_at_another_address_gets_the_held_report(collector, clock, tmp_path) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path, clock=clock)
    device.begin().leave()
    due = device.due()
    device.close()
    device = Device(collector.api("https://new.coach.test"), path, max_epsilon=5.0, clock=clock)
    assert device.send()[0].due == due
    clock.true = due
    assert device.send()[0].counted


def test_a_report_waits_for_a_collector_that_serves_another_task(collector, clock) -> None:
    device = collector.device(clock=clock)
    device.begin().leave()
    clock.true += 2 * WEEK
    body = {"error": {"code": "unknown_task", "message": "not served here", "hint": ""}}
    elsewhere = httpx.Response(200, json={**collector.taking(0), "task_id": "0" * 64})
    for answer in (elsewhere, httpx.Response(404, json=body)):
        collector.broken = [answer]
        (delivery,) = device.send()
        assert (delivery.outcome, delivery.reason) == (None, "unknown_task")
        assert collector.bodies == [], "nothing is made for somebody else"
    collector.broken = [
        httpx.Response(200, json=collector.taking(0)),
        httpx.Response(404, json=body),
    ]
    (delivery,) = device.send()
    assert (delivery.outcome, delivery.reason) == ("refused", "unknown_task")
    assert device.send()[0].counted and len(set(collector.bodies)) == 1


def test_the_version_of_a_report_is_the_one_it_began_under(collector, clock) -> None:
    device = collector.device(clock=clock)
    device.begin().leave()
    collector.publication = replace(collector.publication, version=9)
    clock.true += 2 * WEEK
    device.send()
    assert json.loads(collector.bodies[0])["reports"][0]["version"] == 0
