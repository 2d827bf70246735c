"""People who come back: what is reported of a period, and that nothing else is."""

import json
import sqlite3
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.collector import A, FakeCollector, H, S, live
from tacit.client import Declined, Device, NotTaken, TookPart, Unreachable
from tacit.errors import InvalidInput
from tacit.policies.tabular import TabularPolicy
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit.util.durations import DAY, HOUR
from tacit.wire import messages
from tacit.wire.report_rules import rules_hash

MONTH, TOKEN = 30 * DAY, "a token"
START = 660 * MONTH  # the first moment of period 660


@dataclass
class Clock:
    """Unix time as a test says."""

    now: float = START + DAY

    def __call__(self) -> float:
        return self.now


def returning(rule=None, agent="tacit-local", model="local", duration=0.0, **more):
    """A collector whose task has a rule: the first participation of a month, by default."""
    rule = rule or Participation(None, "first", period=MONTH)
    sizes = {"states": S, "actions": A}
    task = Task("tabular", H, sizes, True, 1000, duration=duration, rule=rule)
    collector = FakeCollector(agent, model, task, **{"epsilon": 1.0, **more})
    if model == "local":
        collector.description["ids"] = "token"
    return collector


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def collector() -> FakeCollector:
    return returning()


def ids(collector: FakeCollector) -> list[str]:
    return [json.loads(body)["reports"][0]["id"] for body in collector.bodies]


def id_of(collector: FakeCollector, number: int) -> str:
    return messages.assigned_id(messages.seat(TOKEN, collector.task_id), number)


def test_the_first_of_a_period_is_reported_and_the_others_are_free_rides(collector, clock) -> None:
    device = collector.device(token=TOKEN, clock=clock)
    for period in (660, 661, 663):
        clock.now = period * MONTH
        for visit in range(3):
            episode = live(device)
            assert episode.done and (episode.silent is None) == (visit == 0)
            device.send()
            clock.now += DAY
    assert ids(collector) == [id_of(collector, n) for n in (660, 661, 663)]
    assert all(delivery.counted for delivery in device.send())
    assert "only the first participation of every period" in str(episode.silent)


def test_without_a_period_there_is_one_report_in_a_life(clock) -> None:
    collector = returning(Participation(None, "first"))
    device = collector.device(token=TOKEN, clock=clock)
    for _ in range(4):
        episode = live(device)
        device.send()
        clock.now += 1000 * DAY
    assert ids(collector) == [id_of(collector, 0)]
    assert "only the first participation of all is reported" in str(episode.silent)


def test_a_free_ride_acts_on_the_newest_policy_and_asks_nothing_else(collector, clock) -> None:
    device = collector.device(token=TOKEN, clock=clock)
    live(device)
    device.send()
    table = np.array([[1, 0, 1]] * H)
    newest = replace(collector.publication, version=3, policy=TabularPolicy(table))
    collector.publication = newest
    collector.description["state"] = "closed"  # nothing is reported: nobody need take it
    collector.obstacle = "closed", "it is over"
    asked, sent = collector.gets, len(collector.bodies)
    episode = device.begin()
    assert episode.act(1) == 0 and episode.publication.version == 3
    assert collector.gets == asked + 2, "the task and the policy"
    episode.leave()
    (report,) = device.send()
    assert report.counted and collector.gets == asked + 2 and len(collector.bodies) == sent
    assert device.due() is None


def test_it_is_the_first_begun_also_if_it_is_left_at_once(collector, clock) -> None:
    device = collector.device(token=TOKEN, clock=clock)
    device.begin().leave()
    assert live(device).silent is not None
    device.send()
    assert ids(collector) == [id_of(collector, 660)]


def test_nobody_begins_a_report_that_would_not_be_taken(collector, clock) -> None:
    device = collector.device(token=TOKEN, clock=clock)
    collector.obstacle = "population_reached", "enough people were counted"
    with pytest.raises(NotTaken):
        device.begin()
    collector.obstacle = None
    assert device.begin().silent is None, "nothing had begun"


def test_an_unmade_report_frees_no_other_participation_and_costs_nothing(clock) -> None:
    collector = returning()
    device = collector.device(token=TOKEN, clock=clock, max_epsilon=1.0)
    live(device)
    collector.obstacle = "stale", "the policy's time is over"
    assert device.send()[0].outcome == "unmade"
    collector.obstacle = None
    assert live(device).silent is not None, "it was the first, whatever became of it"
    clock.now += MONTH
    assert live(device).silent is None, "the period before was not paid for"
    device.send()
    assert ids(collector) == [id_of(collector, 661)]


def test_a_report_begun_in_a_period_is_of_that_period(clock) -> None:
    """A week that ends in the next month; then the first week of that month is reported, too."""
    collector = returning(duration=7 * DAY)
    device = collector.device(token=TOKEN, clock=clock)
    clock.now = START + MONTH - DAY
    device.begin().leave()
    clock.now += 3 * DAY
    with pytest.raises(TookPart, match="nothing is asked or begun before"):
        device.begin()
    clock.now += 5 * DAY
    device.send()
    device.begin().leave()
    clock.now += 9 * DAY
    device.send()
    assert ids(collector) == [id_of(collector, 660), id_of(collector, 661)]


def test_a_free_ride_takes_its_time_like_any_other(clock) -> None:
    """Nothing is asked before the time is over: it would show who stopped early."""
    collector = returning(duration=DAY)
    device = collector.device(token=TOKEN, clock=clock)
    device.begin().leave()
    clock.now = device.due() + 1.0
    device.send()
    episode = device.begin()
    assert episode.silent is not None
    episode.act(0)
    episode.leave()
    asked = collector.gets
    clock.now += DAY / 2
    with pytest.raises(TookPart, match="show who stopped early"):
        device.begin()
    assert device.send()[0].counted and device.due() is None and collector.gets == asked
    clock.now += DAY / 2
    episode = device.begin()
    episode.act(0)
    clock.now += 2 * DAY
    device.send()
    with pytest.raises(InvalidInput, match="this episode is over"):
        episode.observe(0.0, 1)


# What the rule allows.


def test_sentences_say_when_the_next_one_may_begin(clock) -> None:
    collector = returning(Participation(2, "first", apart=20 * HOUR, period=MONTH))
    device = collector.device(token=TOKEN, clock=clock)
    clock.now = START
    live(device)
    clock.now += 19 * HOUR
    with pytest.raises(TookPart) as told:
        device.begin()
    assert str(told.value) == (
        "participations begin at least 20 hours apart; the next one may begin at "
        "2024-03-18 20:00 UTC"
    )
    clock.now += HOUR
    live(device)
    clock.now += 20 * HOUR
    with pytest.raises(TookPart) as told:
        device.begin()
    assert str(told.value) == (
        "one may take part up to 2 times in every period of 30 days, at least 20 hours apart, and "
        "this device has done so; the next period begins at 2024-04-17 00:00 UTC"
    )
    clock.now = START + MONTH
    assert live(device).silent is None


def test_once_in_every_period(clock) -> None:
    collector = returning(Participation(1, period=MONTH))
    device = collector.device(token=TOKEN, clock=clock)
    for _ in range(3):
        live(device)
        with pytest.raises(TookPart, match="once in every period of 30 days, and this device has"):
            device.begin()
        device.send()
        clock.now += MONTH
    assert ids(collector) == [id_of(collector, 660 + n) for n in range(3)]


def test_every_participation_of_a_period_has_an_id_of_its_own(clock) -> None:
    collector = returning(Participation(2, "every", period=MONTH), epsilon=2.0)
    device = collector.device(token=TOKEN, clock=clock)
    for _ in range(2):
        for _ in range(2):
            assert live(device).silent is None
            device.send()
        with pytest.raises(TookPart):
            device.begin()
        clock.now += MONTH
    assert ids(collector) == [id_of(collector, 2 * 660 + k) for k in range(4)]


def test_a_life_that_is_bounded_together_uploads_every_participation(clock) -> None:
    collector = returning(Participation(None, "lifetime"), "tacit-joint", "joint")
    device = collector.device(token=TOKEN, clock=clock, model="joint", max_epsilon=1.0)
    for _ in range(3):
        assert live(device).silent is None
        device.send()
    assert len(set(ids(collector))) == 3
    collector.description["ids"] = "token"
    with pytest.raises(Declined, match="ids that devices draw"):
        collector.device(token=TOKEN, model="joint").begin()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"times": None}, "does not say which of them teach"),
        ({"times": 3}, "does not say which of them teach"),
        ({"times": 3, "teaches": "last"}, "teaches"),
        ({"times": 3, "teaches": "first", "period": -1.0}, "period"),
        ({"times": 3, "teaches": "first", "sometimes": True}, "no 'sometimes'"),
        ({"times": None, "teaches": "every"}, "any number"),
    ],
)
def test_rules_that_cannot_be_followed_are_declined(collector, rule, words) -> None:
    collector.description["task"]["rule"] = rule
    collector.seal()
    with pytest.raises(Declined, match=words):
        collector.device().terms()


def test_a_guarantee_about_another_rule_is_declined(collector) -> None:
    collector.description["guarantee"]["rule"]["period"] = 2 * MONTH
    with pytest.raises(Declined, match="another rule of participations"):
        collector.device().terms()


# Budgets.


def test_periods_are_paid_for_until_nothing_is_left(collector, clock, tmp_path) -> None:
    device = collector.device(tmp_path / "outbox", token=TOKEN, clock=clock, max_epsilon=2.0)
    for reported in (True, True, False, False):
        episode = live(device)
        device.send()
        assert (episode.silent is None) == reported
        clock.now += MONTH
    assert ids(collector) == [id_of(collector, 660), id_of(collector, 661)]
    assert episode.silent == (
        "nothing of this period is reported: the task 'coach' costs epsilon 1 in each of 3 periods "
        "beside 0 for other tasks, but the app allows 2"
    )
    device.close()
    other = FakeCollector(epsilon=0.5)
    elsewhere = Device(
        other.api("https://other.test"), tmp_path / "outbox", max_epsilon=2.4, clock=clock
    )
    with pytest.raises(Declined, match="beside 2 for other tasks, but the app allows 2.4"):
        elsewhere.begin()
    elsewhere.close()
    more = collector.device(tmp_path / "outbox", token=TOKEN, clock=clock, max_epsilon=3.0)
    assert live(more).silent is None
    less = collector.device(tmp_path / "outbox", token=TOKEN, clock=clock, max_epsilon=1.0)
    with pytest.raises(Declined, match="in each of 3 periods"):
        less.send()


def test_a_task_that_is_too_dear_says_that_its_price_is_of_one_period(collector, tmp_path) -> None:
    dear = collector.device(tmp_path / "outbox", token=TOKEN, max_epsilon=0.5)
    with pytest.raises(Declined, match="costs epsilon 1 in one period beside 0 for other tasks"):
        dear.begin()


# Restarts, losses, clocks.


def test_a_restart_forgets_nothing(collector, clock, tmp_path) -> None:
    def device() -> Device:
        return collector.device(tmp_path / "outbox", token=TOKEN, clock=clock)

    with device() as first:
        first.begin().act(0)
    with device() as again:
        episode = again.begin()
        assert episode.silent is None
        episode.observe(1.0, 2)
        episode.leave()
    with device() as ride:
        silent = ride.begin().silent
        assert silent is not None
        ride.begin().act(2)
    with device() as ride:
        episode = ride.begin()
        assert episode.silent == silent
        episode.observe(3.0, 1)
        assert episode.step == 1
        episode.leave()
        ride.send()
    assert ids(collector) == [id_of(collector, 660)]
    stored = sqlite3.connect(tmp_path / "outbox")
    for table in ("episodes", "answers"):
        assert stored.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    assert stored.execute("SELECT * FROM periods").fetchall() == [(collector.task_id, 660, 2, 1)]


def test_a_lost_outbox_repeats_the_id_so_that_nothing_counts_twice(collector, clock) -> None:
    for outcome in ("accepted", "duplicate"):
        device = collector.device(token=TOKEN, clock=clock)
        live(device)
        assert device.send()[0].outcome == outcome
    assert len(set(ids(collector))) == 1 and len(collector.bodies) == 2, "it was sent all the same"


def test_two_programs_with_one_outbox_begin_one_first_participation(
    collector, clock, tmp_path
) -> None:
    one, other = (collector.device(tmp_path / "outbox", token=TOKEN, clock=clock) for _ in range(2))
    policy = other._api.policy

    def meanwhile(version):
        one.begin().leave()
        return policy(version)

    other._api.policy = meanwhile
    with pytest.raises(TookPart, match="another program"):
        other.begin()
    assert one.begin().silent is not None


def test_a_clock_set_back_and_put_right_reports_no_period_twice(collector, clock) -> None:
    device = collector.device(token=TOKEN, clock=clock)
    for period in (660, 661, 660, 661, 659, 661, 659):
        clock.now = (period + 0.5) * MONTH
        live(device)
        device.send()
    assert ids(collector) == [id_of(collector, n) for n in (660, 661, 659)]


def test_a_clock_set_back_does_not_keep_people_apart_for_years(clock) -> None:
    collector = returning(Participation(None, "first", apart=20 * HOUR))
    device = collector.device(token=TOKEN, clock=clock)
    live(device)
    clock.now -= 1000 * DAY
    with pytest.raises(TookPart):
        device.begin()
    clock.now += 20 * HOUR
    live(device)


def test_an_outbox_of_version_4_is_brought_up(clock, tmp_path) -> None:
    collector = FakeCollector(epsilon=1.0)
    path = tmp_path / "outbox"
    with collector.device(path, clock=clock) as device:
        device.begin().act(0)
    old = sqlite3.connect(path)
    for table in ("episodes", "answers"):
        for column in ("period", "silent"):
            old.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    old.execute("DROP TABLE periods")
    old.execute("PRAGMA user_version=4")
    old.commit()
    old.close()
    with collector.device(path, clock=clock) as device:
        episode = device.begin()
        assert episode.silent is None
        episode.leave()
        assert device.send()[0].counted
    with pytest.raises(TookPart):
        collector.device(path, clock=clock).begin()


# Decoys.


def test_a_decoy_looks_like_a_report_and_is_none(clock) -> None:
    collector = returning(duration=DAY)
    device = collector.device(token=TOKEN, clock=clock, decoys=True)
    traffic = []
    for visit in range(3):
        asked = collector.gets
        live(device, rewards=(-1.0, 3.0, 3.0, -1.0) if visit else (0.0,) * 4)
        begun = collector.gets - asked
        due = device.due()
        assert clock.now + DAY <= due <= clock.now + 1.1 * DAY
        assert device.send()[-1].due == due
        clock.now = due
        last = device.send()[-1]
        assert last.outcome == ("accepted" if visit == 0 else "decoy")
        traffic.append((begun, collector.gets - asked))
    assert len(set(traffic)) == 1, "the network sees the same requests"
    rules = [json.loads(body)["reports"][0]["rules"] for body in collector.bodies]
    assert rules == [rules_hash(collector.description["rules"]), messages.DECOY, messages.DECOY]
    assert [delivery.outcome for delivery in device.send()] == ["accepted"], "decoys are forgotten"
    assert device._outbox._rows("SELECT COUNT(*) FROM times") == [(2,)]


def test_a_decoy_says_nothing_about_the_episode(collector, clock, monkeypatch) -> None:
    told = []
    for rewards in ((-1.0,) * H, (3.0,) * H):
        device = collector.device(token=TOKEN, clock=clock, decoys=True)
        device.begin().leave()
        monkeypatch.setattr(messages, "new_report_id", lambda: "ab" * 16)
        live(device, rewards=rewards)
        told.append(device._outbox.waiting(collector.api().address)[-1].steps)
    assert told[0] == told[1]


def test_a_decoy_is_sent_as_it_is_until_it_is_answered(collector, clock, tmp_path) -> None:
    def device() -> Device:
        return collector.device(tmp_path / "outbox", token=TOKEN, clock=clock, decoys=True)

    live(device())
    device().send()
    live(device())
    sent = len(collector.bodies)
    api = collector.api(attempts=1)
    upload = api.upload

    def lost(*asked):
        upload(*asked)
        raise Unreachable("the answer is lost")

    api.upload = lost
    with pytest.raises(Unreachable):
        collector.device(tmp_path / "outbox", token=TOKEN, clock=clock, decoys=True, api=api).send()
    assert [d.outcome for d in device().send()] == ["accepted", "decoy"]
    assert len(set(collector.bodies[sent:])) == 1 and len(collector.bodies) == sent + 2


def test_a_decoy_that_would_not_be_taken_leaves_nothing(collector, clock) -> None:
    device = collector.device(token=TOKEN, clock=clock, decoys=True)
    live(device)
    device.send()
    live(device)
    collector.obstacle = "closed", "it is over"
    assert [delivery.outcome for delivery in device.send()] == ["accepted"]
    assert device.due() is None and len(collector.bodies) == 1


# Whatever happens.

VISITS = st.lists(
    st.tuples(
        st.sampled_from([0.0, HOUR, 12 * HOUR, 3 * DAY, 11 * DAY, 31 * DAY, -2 * DAY, -40 * DAY]),
        st.integers(0, H),  # steps before the person leaves
        st.booleans(),  # whether the app sends afterwards
        st.booleans(),  # whether it is restarted
    ),
    min_size=1,
    max_size=12,
)
RULES = st.sampled_from(
    [
        Participation(None, "first"),
        Participation(None, "first", period=MONTH),
        Participation(3, "first", period=10 * DAY),
        Participation(None, "first", apart=20 * HOUR, period=MONTH),
        Participation(1, period=MONTH),
        Participation(2, "every", period=MONTH),
    ]
)


@dataclass
class Diary:
    """What can be seen of a person from outside, and whether each participation is reported."""

    begun: list[tuple[float, str | None] | str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)


def lived(collector: FakeCollector, path, visits, reward: float) -> Diary:
    """A person's visits on one outbox, with one reward for all that happens."""
    diary, clock = Diary(), Clock()
    answer = collector.answer

    def watched(request):
        name = ""
        if request.method == "POST":
            name = json.loads(request.content)["reports"][0]["id"]
        diary.seen.append(f"{request.method} {request.url.path} {name}")
        return answer(request)

    collector.answer = watched
    device = collector.device(path, token=TOKEN, clock=clock)
    for wait, steps, sends, restarts in visits:
        clock.now += wait
        try:
            episode = device.begin()
            diary.begun.append((clock.now, episode.silent))
            for h in range(steps):
                episode.act(h % S)
                episode.observe(reward, (h + 1) % S)
            if not episode.done:
                episode.leave()
        except TookPart as refusal:
            diary.begun.append(str(refusal))
        if sends:
            device.send()
        if restarts and path is not None:
            device.close()
            device = collector.device(path, token=TOKEN, clock=clock)
    device.send()
    collector.answer = answer
    return diary


@settings(max_examples=60, deadline=None)
@given(RULES, VISITS)
def test_no_period_is_reported_more_often_than_the_rule_says(
    tmp_path_factory, rule, visits
) -> None:
    collector = returning(rule, epsilon=2.0)
    diary = lived(collector, tmp_path_factory.mktemp("device") / "outbox", visits, 1.0)
    counted, begun, last = rule.counted, {}, -np.inf
    expected = []
    for entry in diary.begun:
        if isinstance(entry, str):
            continue
        now, silent = entry
        n = rule.period_at(now)
        k = begun[n] = begun.get(n, 0) + 1
        assert rule.times is None or k <= rule.times
        assert (silent is None) == (k <= counted or rule.teaches == "every") or "allows" in silent
        assert now >= last + rule.apart or now < last, "apart, unless the clock was set back"
        last = now
        if silent is None:
            expected.append(id_of(collector, n * counted + k - 1))
    assert sorted(ids(collector)) == sorted(expected)
    assert len(set(expected)) == len(expected)


@settings(max_examples=25, deadline=None)
@given(RULES, VISITS)
def test_nothing_that_is_seen_depends_on_what_happens(rule, visits) -> None:
    """Beside the randomized message: which participations are reported, and every request."""
    diaries = [lived(returning(rule, epsilon=2.0), None, visits, reward) for reward in (-1.0, 3.0)]
    assert diaries[0] == diaries[1]


def test_a_report_that_is_chosen_by_reward_would_be_noticed(monkeypatch) -> None:
    """The mutant: a participation that went badly is taken back, and the next one is reported."""
    end = Device._end

    def mutant(self, terms, publication, saved, went):
        if saved.silent is None and went.rewards.max() == 0.0:
            self._outbox.forget(saved)
            self._outbox._db.execute("DELETE FROM periods")
        else:
            end(self, terms, publication, saved, went)

    monkeypatch.setattr(Device, "_end", mutant)
    visits = [(0.0, H, True, False)] * 2
    bad, good = (lived(returning(), None, visits, reward) for reward in (-1.0, 3.0))
    assert bad.begun != good.begun and bad.seen != good.seen
