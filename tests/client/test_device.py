"""The device: what it does for its user, what it declines, what it remembers."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import numpy as np
import pytest

from client.collector import A, FakeCollector, H, S, live
from contracts.entropy import secure_law
from contracts.privatizer import worst_log_ratio
from tacit.client import AlreadyTookPart, CollectorRefused, Declined, Device, NotTaken, Unreachable
from tacit.client import device as device_module
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import KINDS
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.task.task import Task
from tacit.wire import messages
from tacit.wire.report_rules import oracles_of, rules_hash

ONE = {"epsilon": 1.0}


@pytest.fixture
def collector() -> FakeCollector:
    return FakeCollector(epsilon=1.0)


def sent(collector: FakeCollector) -> dict:
    (body,) = collector.bodies
    return json.loads(body)["reports"][0]


def test_a_whole_episode_becomes_one_report_that_the_collector_can_absorb(collector) -> None:
    device = collector.device(token="secret")
    episode = live(device)
    assert episode.done and collector.bodies == []
    (delivery,) = device.send()
    assert delivery.outcome == "accepted" and delivery.counted
    report = sent(collector)
    assert collector.headers[0]["authorization"] == "Bearer secret"
    message = messages.unpack_message(report["message"])
    coin = messages.coin(collector.task_id, report["id"])
    got = messages.local_privatizer(collector.bound).collect(message, collector.publication, coin)
    assert got.values.any()
    assert report["version"] == 0
    assert device.send() == [delivery] and len(collector.bodies) == 1, "sent once"


@pytest.mark.parametrize(
    ("agent", "parameters"),
    [
        ("ldp-obi", {"epsilon": 1.0}),
        ("ldp-obi", {"epsilon": 1.0, "randomizer": "randomized-response"}),
        ("ldp-psrl", {"epsilon": 1.0}),
    ],
)
def test_other_local_agents_are_served_alike(agent, parameters) -> None:
    collector = FakeCollector(agent, **parameters)
    device = collector.device()
    live(device)
    assert device.send()[0].counted
    message = messages.unpack_message(sent(collector)["message"])
    messages.local_privatizer(collector.bound).inspect(message, collector.publication, 0)


@pytest.mark.parametrize("kind", range(KINDS))
def test_what_is_stored_for_sending_costs_exactly_epsilon_whatever_is_asked(kind) -> None:
    """Every tape of entropy from the last step to the bytes in the outbox, for two lives.

    The publication is a later one: its questions are published, one of a kind before the last step.
    """
    collector = FakeCollector(epsilon=3.0)
    shares = (np.arange(KINDS * H) >= KINDS * 2 + kind).astype(float)
    context = {**collector.publication.context, "questions": shares}
    collector.publication = replace(collector.publication, context=context)

    def sent(states: tuple[int, ...], reward: float) -> str:
        with collector.device(report_id=lambda: "ab" * 16, api=api) as device:
            live(device, states, (reward,) * H)
            device.send()
        return json.loads(collector.bodies[-1])["reports"][0]["message"]

    api = collector.api()
    lives = [((0, 0, 0, 0, 0), -1.0), ((2, 2, 2, 2, 2), 3.0)]
    laws = [secure_law(lambda life=life: sent(*life)) for life in lives]
    oracle = collector.bound.privatizer.oracles[kind]
    assert worst_log_ratio(laws) == pytest.approx(oracle.epsilon, abs=1e-12)


def test_actions_are_those_of_the_published_policy(collector) -> None:
    table = np.array([[h % 2, (h + s_) % 2, 1] for h, s_ in enumerate(range(H))])
    collector.publication = replace(collector.publication, policy=TabularPolicy(table))
    episode = collector.device().begin()
    for h, state in enumerate((0, 1, 2, 1)):
        assert episode.act(state) == table[h, state]
        assert episode.act(state) == table[h, state]
        episode.observe(0.0, 1)


FACTS = {
    "terminal": np.array([False, False, True]),
    "end_reward": np.array(0.25),
    "allowed": np.array([[True, False], [True, True], [False, False]]),
}


def with_facts(agent="tacit-joint", model="joint", **parameters) -> FakeCollector:
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, known=FACTS)
    return FakeCollector(agent, model, task, **parameters)


@pytest.mark.parametrize("agent", ["tacit-local", "ldp-obi"])
def test_a_terminal_state_ends_the_episode(agent) -> None:
    collector = with_facts(agent, "local", epsilon=1.0)
    device = collector.device()
    episode = device.begin()
    episode.act("fair")
    episode.observe(0.0, "good")
    assert episode.done
    with pytest.raises(InvalidInput, match="this episode is over"):
        episode.act("fair")
    assert device.send()[0].counted


def test_after_the_end_everybody_reports_the_same() -> None:
    """A curator gets H steps: the end is repeated, with the reward that is public."""
    collector = with_facts(epsilon=1.0)
    device = collector.device(model="joint")
    episode = device.begin()
    episode.act("fair")
    episode.observe(3.0, "good")
    assert device.send()[0].counted
    lived = messages.unpack_trajectory(sent(collector)["message"], H)
    assert lived.states.tolist() == [1, 2, 2, 2, 2]
    assert lived.rewards.tolist() == [1.0, 0.25, 0.25, 0.25]


def test_a_policy_that_plays_what_is_forbidden_is_declined() -> None:
    collector = with_facts("tacit-local", "local", epsilon=1.0)
    assert (collector.publication.policy.actions[:, 0] == 0).all()
    table = np.array(collector.publication.policy.actions)
    table[2, 0] = 1
    collector.publication = replace(collector.publication, policy=TabularPolicy(table))
    with pytest.raises(Declined, match="plays action 1 in state 0 at step 2, where it is not"):
        collector.device().begin()


def test_states_may_be_named(collector) -> None:
    device = collector.device()
    live(device, states=("low", "good", "fair", 0, np.int64(2)))
    assert device.send()[0].counted
    episode = FakeCollector(epsilon=1.0).device().begin()
    for bad in ("awful", 3, -1, 1.5, True, None):
        with pytest.raises(InvalidInput):
            episode.act(bad)
    episode.act("low")
    with pytest.raises(InvalidInput):
        episode.observe(1.0, 3)
    episode.observe(1.0, 2)
    with pytest.raises(InvalidInput, match="call act first"):
        episode.observe(1.0, 2)


def test_a_drawn_action_stays_when_asked_again(collector) -> None:
    public = Publication(0, uniform_policy(H, S, A), collector.publication.context)
    collector.publication = public
    seen = set()
    for _ in range(40):
        episode = collector.device().begin()
        action = episode.act(0)
        assert {episode.act(0) for _ in range(5)} == {action}
        seen.add(action)
    assert seen == {0, 1}  # fails by chance once in 2^39


def lived(collector, monkeypatch) -> list:
    """Trajectories as the statistic gets them."""
    caught = []
    statistic = collector.bound.statistic
    contribute = type(statistic).contribute

    def spy(self, trajectory, publication, coin, out) -> None:
        caught.append(
            (trajectory.states.copy(), trajectory.actions.copy(), trajectory.rewards.copy())
        )
        contribute(self, trajectory, publication, coin, out)

    monkeypatch.setattr(type(statistic), "contribute", spy)
    return caught


def test_rewards_are_mapped_from_the_declared_range_and_clipped(collector, monkeypatch) -> None:
    caught = lived(collector, monkeypatch)
    live(collector.device(), rewards=(-1.0, 1.0, 99.0, float("nan")))
    live(collector.device(), rewards=(-7.0, 3.0, float("inf"), 0.0))
    assert caught[0][2].tolist() == [0.0, 0.5, 1.0, 0.0]
    assert caught[1][2].tolist() == [0.0, 1.0, 1.0, 0.25]


@pytest.mark.parametrize("after", ["nothing", "act", "one step", "one step and act"])
def test_who_leaves_is_padded_with_the_absorbing_state(collector, monkeypatch, after) -> None:
    caught = lived(collector, monkeypatch)
    device = collector.device()
    episode = device.begin()
    if after != "nothing":
        episode.act(2)
    if after.startswith("one step"):
        episode.observe(3.0, 0)
    if after == "one step and act":
        episode.act(0)
    episode.leave()
    ((states, actions, rewards),) = caught
    expected = {"nothing": [1] * 5, "act": [2, 1, 1, 1, 1]}.get(after, [2, 0, 1, 1, 1])
    assert states.tolist() == expected
    assert rewards.tolist() == ([1.0, 0, 0, 0] if after.startswith("one") else [0.0] * 4)
    table = collector.publication.policy.actions
    assert actions.tolist() == [table[h, s] for h, s in enumerate(expected[:-1])] or after == (
        "one step"
    )
    assert device.send()[0].counted
    with pytest.raises(InvalidInput, match="over"):
        episode.act(0)
    with pytest.raises(InvalidInput, match="over"):
        episode.leave()


def test_joint_trajectories_leave_only_with_consent() -> None:
    collector = FakeCollector("tacit-joint", model="joint", epsilon=1.0)
    with pytest.raises(Declined, match='model="joint"'):
        collector.device().begin()
    assert collector.bodies == []
    device = collector.device(model="joint")
    live(device)
    device.send()
    message = sent(collector)["message"]
    back = messages.unpack_trajectory(message, H)
    assert back.states.tolist() == [0, 1, 2, 0, 1]
    assert back.rewards.tolist() == [0.25, 0.5, 0.75, 1.0]
    left = FakeCollector("tacit-joint", model="joint", epsilon=1.0)
    device = left.device(model="joint")
    device.begin().leave()
    device.send()
    assert len(sent(left)["message"]) == len(message), "length says nothing"


def test_a_second_report_is_refused_also_after_a_restart(collector, tmp_path) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path)
    live(device)
    with pytest.raises(AlreadyTookPart, match="once"):
        device.begin()
    device.close()
    for _ in range(2):
        device = collector.device(path)
        with pytest.raises(AlreadyTookPart, match="once"):
            device.begin()
        assert device.send()[0].counted
        device.close()
    assert len(collector.bodies) == 1


def test_participations_are_respected() -> None:
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, 3)
    collector = FakeCollector(task=task, epsilon=1.0)
    device = collector.device()
    for _ in range(3):
        live(device)
    with pytest.raises(AlreadyTookPart, match="3 times"):
        device.begin()
    assert [d.outcome for d in device.send()] == ["accepted"] * 3
    assert len(collector.ids) == 3


def test_two_copies_of_an_episode_make_one_report() -> None:
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, 2)
    device = FakeCollector(task=task, epsilon=1.0).device()
    first, second = device.begin(), device.begin()
    first.leave()
    with pytest.raises(InvalidInput, match="its steps were forgotten before"):
        second.leave()
    assert len(device.send()) == 1


def test_an_episode_goes_on_after_the_app_was_closed(collector, tmp_path, monkeypatch) -> None:
    caught = lived(collector, monkeypatch)
    path = tmp_path / "outbox"
    newer = replace(collector.publication, version=1)
    for h in range(H):
        device = collector.device(path)
        episode = device.begin()
        assert episode.step == h and episode.publication.version == 0
        episode.act(h % S)
        device.close()
        device = collector.device(path)
        episode = device.begin()
        episode.observe(float(h) - 1.0, (h + 1) % S)
        device.close()
        collector.publication = newer  # the running episode keeps its policy
    ((states, _, rewards),) = caught
    assert states.tolist() == [0, 1, 2, 0, 1] and rewards.tolist() == [0.0, 0.25, 0.5, 0.75]
    device = collector.device(path)
    assert device.send()[0].counted and sent(collector)["version"] == 0


def test_raw_steps_are_forgotten_when_the_report_is_stored(collector, tmp_path) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path)
    episode = device.begin()
    for h in range(H - 1):
        episode.act(h % S)
        episode.observe(0.123456789 * 4 - 1, (h + 1) % S)
    assert b"0.123456789" in path.read_bytes(), "the search itself must find something"
    episode.act(0)
    episode.observe(0.0, 1)
    for file in tmp_path.iterdir():
        assert b"0.123456789" not in file.read_bytes()
    assert not episode._kept
    assert "hidden" in repr(episode)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_report_is_on_the_disk_before_the_first_send(collector, tmp_path) -> None:
    path = tmp_path / "outbox"
    collector.broken = [httpx.ConnectError("no way")] * 3
    device = Device(collector.api(attempts=3), path, max_epsilon=1.0)
    collector.broken.clear()
    live(device)
    collector.broken = [httpx.Response(200, json=collector.taking(0))]
    collector.broken += [httpx.ConnectError("no way")] * 3
    with pytest.raises(Unreachable, match="3 attempts"):
        device.send()
    stored = sqlite3.connect(path).execute("SELECT body FROM reports").fetchall()
    assert collector.bodies == [stored[0][0]] * 3
    device.close()
    device = collector.device(path)
    assert device.send()[0].outcome == "accepted"
    assert set(collector.bodies) == {stored[0][0]}, "the same bytes, also after a restart"


def test_a_lost_answer_leads_to_a_duplicate_not_to_a_second_report(collector) -> None:
    device = collector.device()
    live(device)
    answers = collector.answer

    def lose(request):
        answer = answers(request)
        if request.method == "POST":
            raise httpx.ReadTimeout("lost")
        return answer

    collector.answer = lose
    device._api = collector.api(attempts=2)
    with pytest.raises(Unreachable):
        device.send()
    collector.answer = answers
    device._api = collector.api()
    (delivery,) = device.send()
    assert delivery.outcome == "duplicate" and delivery.counted
    assert len(set(collector.bodies)) == 1 and len(collector.bodies) == 3
    assert len(collector.ids) == 1


@pytest.mark.parametrize("reason", ["stale", "closed", "population_reached"])
def test_what_would_not_be_taken_is_never_made_and_costs_nothing(
    collector, tmp_path, monkeypatch, reason
) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path)
    live(device)
    monkeypatch.setattr(device_module, "SecureNoise", lambda: pytest.fail("noise was drawn"))
    collector.obstacle = reason, "it is over"
    (delivery,) = device.send()
    assert (delivery.outcome, delivery.reason, delivery.detail) == ("unmade", reason, "it is over")
    assert not delivery.counted and collector.bodies == [] and device.due() is None
    with pytest.raises(NotTaken, match="no episode begins: it is over") as caught:
        device.begin()
    assert caught.value.reason == reason
    device.close()
    monkeypatch.undo()
    collector.obstacle = None
    device = collector.device(path)
    assert device.send() == [delivery], "the answer is gone for good"
    live(device)
    assert [d.outcome for d in device.send()] == ["unmade", "accepted"], "the one time was not used"
    with pytest.raises(AlreadyTookPart):
        device.begin()


def test_a_policy_that_was_replaced_by_another_history_is_not_reported_under(collector) -> None:
    device = collector.device()
    live(device)
    collector.served[0] = "0" * 64
    (delivery,) = device.send()
    assert (delivery.outcome, delivery.reason) == ("unmade", "stale")
    assert "restored" in delivery.detail and collector.bodies == []


@pytest.mark.parametrize("reason", ["paused", "not_open"])
def test_an_answer_waits_for_a_task_that_may_go_on(collector, monkeypatch, reason) -> None:
    device = collector.device()
    collector.obstacle = reason, "not now"
    live(device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_module, "SecureNoise", lambda: pytest.fail("noise was drawn"))
        (delivery,) = device.send()
    assert (delivery.outcome, delivery.reason, delivery.detail) == (None, reason, "not now")
    with pytest.raises(AlreadyTookPart):
        device.begin()
    collector.obstacle = None
    assert device.send()[0].counted


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.ConnectError("no way"), "did not answer"),
        (httpx.Response(200, json=[]), "cannot be read"),
        (httpx.Response(200, json={"taken": True}), "cannot be read"),
        (
            httpx.Response(404, json={"error": {"code": "not_found", "message": "no"}}),
            "older than this device",
        ),
    ],
)
def test_a_device_that_is_not_told_does_not_guess(collector, monkeypatch, answer, words) -> None:
    device = collector.device()
    live(device)
    device._api = collector.api(attempts=1)
    collector.broken = [answer]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_module, "SecureNoise", lambda: pytest.fail("noise was drawn"))
        with pytest.raises(Unreachable, match=words):
            device.send()
    assert collector.bodies == []
    assert device.send()[0].counted, "the answer was kept"


def test_nobody_begins_what_ends_after_the_task_has_closed() -> None:
    week = 7 * 86400.0
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, duration=week)
    collector = FakeCollector(task=task, epsilon=1.0)
    collector.description["closes"] = "2030-01-31T00:00:00Z"
    closes = datetime(2030, 1, 31, tzinfo=UTC).timestamp()
    last = closes - week - collector.description["delay"]
    with pytest.raises(NotTaken, match="closes before the report would be due"):
        collector.device(clock=lambda: last).begin()
    assert collector.device(clock=lambda: last - 1).begin().step == 0
    collector.description["closes"] = "soon"
    with pytest.raises(Declined, match="closes must be a time"):
        collector.device().begin()


@pytest.mark.parametrize(
    ("outcome", "reason", "final"),
    [
        ("stale", None, True),
        ("invalid", None, True),
        ("refused", "population_reached", True),
        ("refused", "token_spent", True),
        ("refused", "not_open", False),
    ],
)
def test_outcomes(collector, outcome, reason, final) -> None:
    collector.refusal = outcome, reason
    device = collector.device()
    live(device)
    (delivery,) = device.send()
    assert (delivery.outcome, delivery.reason, delivery.counted) == (outcome, reason, False)
    with pytest.raises(AlreadyTookPart):
        device.begin()
    collector.refusal = None
    (delivery,) = device.send()
    assert delivery.counted is not final and len(collector.bodies) == (1 if final else 2)


def test_an_unauthorized_device_says_so_and_keeps_its_report(collector) -> None:
    device = collector.device()
    live(device)
    body = {"error": {"code": "unauthorized", "message": "no such token", "hint": ""}}
    collector.broken = [httpx.Response(401, json=body)]
    with pytest.raises(CollectorRefused, match="no such token") as caught:
        device.send()
    assert caught.value.code == "unauthorized"
    assert device.send()[0].counted


@pytest.mark.parametrize("answer", [{}, [], {"outcomes": []}, {"outcomes": [{"id": "x"}]}, 7])
def test_an_answer_that_cannot_be_read_settles_nothing(collector, answer) -> None:
    device = collector.device()
    live(device)
    collector.broken = [httpx.Response(200, json=answer)]
    with pytest.raises(Unreachable, match="cannot be read"):
        device.send()
    assert device.send()[0].outcome == "accepted"


def test_terms_are_what_the_device_works_out_itself(collector) -> None:
    terms = collector.device().terms()
    assert terms.guarantee.epsilon == pytest.approx(1.0, rel=1e-9)
    assert terms.guarantee.unit == "user" and terms.model == "local"
    assert terms.states == ("low", "fair", "good") and terms.actions is None
    assert not collector.device()._outbox.knows("https://coach.test")
    collector.description["unit"] = "participation"
    collector.seal()
    assert "single participation" in collector.device().terms().guarantee.statement()


def test_too_much_epsilon_is_declined_before_anything_is_joined(collector) -> None:
    with pytest.raises(Declined, match="costs epsilon 1 .*allows 0.5"):
        collector.device(max_epsilon=0.5).begin()
    wide = FakeCollector("ldp-obi", epsilon=1.0, delta=0.01, randomizer="gaussian")
    with pytest.raises(Declined, match="costs delta 0.01"):
        wide.device().begin()
    assert wide.device(max_delta=0.01).terms().guarantee.delta == 0.01


def test_the_allowance_is_for_all_tasks_of_an_outbox(collector, tmp_path) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path, max_epsilon=2.5)
    live(device)
    device.close()
    for k in (2, 3):
        other = FakeCollector(epsilon=1.0)
        other.description["name"] = f"task {k}"
        other.seal()
        device = other.device(path, max_epsilon=2.5)
        if k == 2:
            live(device)
        else:
            with pytest.raises(Declined, match="beside 2 for other tasks"):
                device.begin()
        device.close()


def test_a_stated_guarantee_that_is_too_good_is_declined(collector) -> None:
    collector.description["guarantee"]["epsilon"] = 0.5
    with pytest.raises(Declined, match="states epsilon 0.5.*terms give epsilon 1"):
        collector.device().begin()
    collector.description["guarantee"].update(epsilon=1.0, mu=0.01)
    with pytest.raises(Declined, match="states Gaussian noise of mu 0.01, which its terms do not"):
        collector.device().terms()
    collector.description["guarantee"] = "trust us"
    with pytest.raises(Declined, match="guarantee cannot be read"):
        collector.device().begin()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"wire": 2}, "version 2 of the protocol, this device version 3; update"),
        ({"wire": 4}, "version 4 of the protocol, this device version 3; update"),
        ({"ids": "mine"}, "ids must be token or chosen"),
        ({"model": "joint"}, "states the model 'joint'"),
        ({"task_id": "0" * 64}, "hash of its terms"),
        ({"reward_range": [1.0, 1.0]}, "empty"),
        ({"reward_range": [1.0]}, "list of 2"),
        ({"absorbing_state": 3}, "absorbing_state"),
        ({"unit": "nobody"}, "unit"),
        ({"agent": {"name": "psrl", "parameters": {}}}, "privacy model 'none'"),
        (
            {"agent": {"name": "shuffle-obi", "parameters": {**ONE, "calibration": "tight"}}},
            "model 'shuffle'",
        ),
        ({"agent": {"name": "os:system", "parameters": {}}}, "unknown agent"),
        ({"agent": {"name": "tacit-local", "parameters": {"epsilon": "1"}}}, "epsilon"),
        ({"agent": {"name": "tacit-local", "parameters": {"epsilon": -1}}}, "epsilon"),
        ({"agent": {"name": "tacit-local", "parameters": {"epsilon": 1, "seed": 1}}}, "seed"),
        ({"agent": {"name": "tacit-local", "parameters": []}}, "object"),
        ({"task": {"family": "tabular"}}, "lacks the field"),
        ({"labels": {"states": ["a"]}}, "list of 3"),
        ({"name": ""}, "name"),
    ],
)
def test_descriptions_that_do_not_add_up_are_declined(collector, change, words) -> None:
    collector.description.update(change)
    if "task_id" not in change:
        collector.seal()
    with pytest.raises(Declined, match=words):
        collector.device().begin()


def _rules(change, where=()) -> Callable[[dict], None]:
    def apply(rules: dict) -> None:
        for name in where:
            rules = rules[name]
        rules.update(change)

    return apply


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_rules({"version": 2}), "rules have version 2, this device follows 1; update"),
        (_rules({"states": 4}), "a task of other sizes"),
        (_rules({"horizon": 5}), "a task of other sizes"),
        (_rules({"report": "trajectory"}), "a report of 'trajectory' in the local model"),
        (_rules({"report": "bits"}), "a report of 'bits', which this device cannot make"),
        (_rules({"reward": {}}, ["cells"]), "name a randomizer 'None'"),
        (_rules({"more": {}}, ["cells"]), "questions about 'more'"),
        (_rules({"own": 7}, ["cells", "step"]), "a threshold must be a text"),
        (_rules({"own": "07"}, ["cells", "step"]), "decimal digits"),
        (_rules({"domain": 20}, ["cells", "step"]), "20 cells of 3 states"),
        (_rules({"places": [0, 1, 1]}), "another way than the terminal states"),
        (_rules({"own": str(2**64 - 1)}, ["cells", "step"]), "the thresholds of its rules give"),
    ],
)
def test_rules_that_are_not_known_or_give_more_away_are_declined(collector, change, words) -> None:
    change(collector.description["rules"])
    with pytest.raises(Declined, match=words):
        collector.device().begin()
    assert collector.bodies == []


def test_a_report_is_drawn_with_the_thresholds_of_the_rules(collector) -> None:
    """Not with those that this machine would work out."""
    step = collector.description["rules"]["cells"]["step"]
    step["own"] = str(int(step["own"]) - 2**40)
    terms = collector.device().terms()
    assert terms.guarantee.epsilon < collector.bound.guarantee.epsilon + 1e-12
    assert terms.rules == rules_hash(collector.description["rules"])
    places = collector.bound.statistic.places
    oracles = oracles_of(collector.description["rules"], places)
    assert oracles[0].own == int(step["own"]) != collector.bound.privatizer.oracles[0].own
    device = collector.device()
    live(device)
    device.send()
    assert sent(collector)["rules"] == terms.rules


def test_ids_follow_from_the_token_where_the_task_says_so() -> None:
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, 3)
    collector = FakeCollector(task=task, epsilon=1.0)
    collector.description["ids"] = "token"
    with pytest.raises(Declined, match="there is none"):
        collector.device().begin()
    device = collector.device(token="secret", report_id=lambda: pytest.fail("it chose"))
    live(device)
    collector.obstacle = "stale", "too late"
    device.send()
    collector.obstacle = None
    for _ in range(3):
        live(device)
        device.send()
    seat = messages.seat("secret", collector.task_id)
    ids = [json.loads(body)["reports"][0]["id"] for body in collector.bodies]
    assert ids == [messages.assigned_id(seat, k) for k in range(3)], (
        "what was not made is used again"
    )
    with pytest.raises(AlreadyTookPart):
        device.begin()


def test_an_episode_begun_under_an_older_protocol_goes_on(collector, tmp_path) -> None:
    """An app that was updated in the middle; its task is described anew only for new episodes."""
    path = tmp_path / "outbox"
    device = collector.device(path)
    device.begin()
    device.close()
    outbox = sqlite3.connect(path)
    ((text,),) = outbox.execute("SELECT description FROM joined").fetchall()
    old = json.loads(text) | {"wire": 1}
    del old["rules"]
    outbox.execute("UPDATE joined SET description = ?", (json.dumps(old),))
    outbox.commit()
    outbox.close()
    device = collector.device(path)
    device.begin().leave()
    assert device.send()[0].counted
    assert "rules" not in sent(collector), "it agreed to none, and is taken as it is"


def test_changed_terms_of_a_joined_task_are_declined(collector, tmp_path) -> None:
    path = tmp_path / "outbox"
    device = collector.device(path)
    device.begin()
    collector.description["reward_range"] = [0.0, 1.0]
    collector.seal()
    assert device.begin().step == 0, "an episode that runs goes on, on the terms it began with"
    device.begin().leave()
    with pytest.raises(Declined, match="changed while this device was running"):
        device.begin()
    device.close()
    with pytest.raises(Declined, match="terms of 'coach' .*have changed"):
        collector.device(path).begin()


def test_an_older_policy_than_seen_is_declined(tmp_path) -> None:
    task = Task("tabular", H, {"states": S, "actions": A}, True, 1000, {}, 3)
    collector = FakeCollector(task=task, epsilon=1.0)
    first = collector.publication
    collector.publication = replace(first, version=5)
    device = collector.device(tmp_path / "outbox")
    live(device)
    device.close()
    collector.publication = replace(first, version=4)
    device = collector.device(tmp_path / "outbox")
    with pytest.raises(Declined, match="offers policy 4, but this device has seen 5"):
        device.begin()
    collector.publication = replace(first, version=5)
    live(device)


def test_a_policy_that_does_not_fit_is_declined(collector) -> None:
    collector.publication = replace(collector.publication, policy=TabularPolicy(np.full((H, S), A)))
    with pytest.raises(Declined, match="cannot be followed"):
        collector.device().begin()


@pytest.mark.parametrize(
    "address",
    [
        "http://coach.test",
        "http://10.0.0.1:80",
        "ftp://x",
        "coach.test",
        "",
        "http://",
        "https://x?q=1",
        "http://[::1",
        "http://localhost.evil.org",
    ],  # noqa: E501
)
def test_unsafe_addresses_are_declined(address) -> None:
    with pytest.raises(Declined):
        Device(address, None, max_epsilon=1.0)


@pytest.mark.parametrize(
    "address",
    ["https://coach.test/", "http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"],
)
def test_safe_addresses(address) -> None:
    with Device(address, None, max_epsilon=1.0) as device:
        assert device._api.address == address.rstrip("/")


def test_a_broken_outbox_is_named(tmp_path) -> None:
    path = tmp_path / "outbox"
    path.write_text("this is not a database, and it is long enough to be looked at" * 100)
    with pytest.raises(InvalidInput, match="not the outbox"):
        Device("https://x", path, max_epsilon=1.0)
    with pytest.raises(InvalidInput, match="cannot be opened"):
        Device("https://x", tmp_path / "no" / "folder", max_epsilon=1.0)
    newer = tmp_path / "newer"
    sqlite3.connect(newer).execute("PRAGMA user_version=9").connection.close()
    with pytest.raises(InvalidInput, match="version 9"):
        Device("https://x", newer, max_epsilon=1.0)


def test_noise_is_secure_and_cannot_be_chosen() -> None:
    assert device_module.SecureNoise().source == "secure"
    with pytest.raises(TypeError):
        Device("https://x", None, max_epsilon=1.0, noise=None)
