"""Searches in the service: people are counted when they begin, and time decides nothing."""

import base64
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tacit.client import AlreadyTookPart, Device, NotTaken
from tacit.client import device as device_module
from tacit.errors import InvalidInput
from tacit.kernels.public.scores import search_directions
from tacit.privacy.noise import SecureNoise
from tacit.privacy.sentences import consent
from tacit.problems.classic_control import cart_pole
from tacit.wire import messages
from tacit.wire.report_rules import sliding_of
from tacit_service.collector import Collector
from tacit_service.dashboard.facts import FactReader
from tacit_service.dashboard.page import Window, render
from tacit_service.dashboard.view import build
from tacit_service.planning.loop import PlannerLoop
from tacit_service.rehearsal.in_process import InProcessApi
from tacit_service.responses import IncomingReport

SEARCH = """
[task]
name = "pole"
states = 4
actions = ["left", "right"]
horizon = 500
duration = "10m"
[search]
returns = [0, 500]
scale = [2.4, 3.0, 0.21, 3.0]
[agent]
name = "tacit-search"
epsilon = 8.0
model = "{model}"
[population]
users = {users}
[updates]
minimum_batch = 2
delay = "1m"
grace = "9m"
[storage]
keep_reports = true
witness_on_same_disk = true
"""

POLE = cart_pole()
WAIT = 20 * 60.0


def text(model: str, users: int = 48) -> str:
    return SEARCH.format(model=model, users=users)


@pytest.fixture(params=["local", "joint"])
def served(request, deploy, opened) -> Collector:
    return opened(deploy(text(request.param).replace("{", "{{").replace("}", "}}")))


class People:
    """Devices against a collector in the same process, all on one clock."""

    def __init__(self, collector: Collector, clock: Callable[[], float]) -> None:
        self.collector, self.api, self.clock = collector, InProcessApi(collector), clock
        self.tokens = iter(collector.tokens.issue("device", 100))
        self.bodies: list[bytes] = []
        upload = self.api.upload
        self.api.upload = lambda body, token: (self.bodies.append(body), upload(body, token))[1]
        self.planner = PlannerLoop(collector)

    def device(self, **options) -> Device:
        options = {"token": next(self.tokens), **options}
        return Device(self.api, None, max_epsilon=100.0, model="joint", clock=self.clock, **options)

    def begin(self, **options) -> Device:
        """Somebody who has lived through an episode, and whose report is held."""
        device = self.device(**options)
        episode = device.begin()
        POLE.through(7, episode.act, episode.observe)
        assert episode.done
        return device

    def plan(self) -> int:
        while self.planner.step():
            pass
        return self.collector.status().version


@pytest.fixture
def people(served, clock) -> People:
    return People(served, clock)


def batch(collector: Collector) -> int:
    return collector.deployment.bound.schedule(0)


def numbers(people: People, devices: list[Device]) -> list[int]:
    return [saved.number for d in devices for saved in d._outbox.waiting(people.api.address)]


def test_a_batch_is_assigned_at_the_beginning_and_closed_by_a_public_rule(people, clock) -> None:
    size = batch(people.collector)
    devices = [people.begin() for _ in range(size)]
    assert sorted(numbers(people, devices)) == list(range(size))
    assert people.collector.status().accepted == size, "counted before anybody has reported"
    with pytest.raises(NotTaken, match="try again later") as refused:
        people.begin()
    assert refused.value.reason == "batch_full"
    assert people.plan() == 0
    clock.now += 11 * 60.0
    for device in devices[:-3]:
        (delivery,) = device.send()
        assert delivery.outcome == "accepted"
    assert people.plan() == 0, "the others have time until the rule says that it is over"
    clock.now += 10 * 60.0
    assert people.plan() == 1
    release = people.collector.publications.published(1).release
    assert release.users == size, "the divisor is the number of people assigned"
    (late,) = devices[-1].send()
    assert (late.outcome, late.reason) == ("unmade", "stale")
    people.begin()
    verdict = people.collector.verify()
    assert verdict.sound and verdict.reports == size, str(verdict)


def test_what_is_said_to_be_taken_is_what_an_upload_gets(people, clock) -> None:
    """Devices ask before they randomize: a yes that is false would cost them a report for nothing.

    These hear yes whatever is said, at every moment of a batch: open, paused, shut, planned on.
    """
    collector, taking = people.collector, people.api.taking
    devices = [people.begin() for _ in range(batch(collector))]
    people.api.taking = lambda version: {**taking(version), "taken": True}
    clock.now += 11 * 60.0

    def says(version: int) -> str | None:
        """Why it is not taken; what is said is what one of the devices gets."""
        said = collector.would_accept(version)
        (delivery,) = devices.pop().send()
        assert people.bodies, "it was sent"
        assert said.taken is (said.reason is None) is (delivery.outcome == "accepted")
        people.bodies.clear()
        return said.reason

    assert says(0) is None
    collector.set_state("paused")
    assert collector.would_accept(0).reason == "paused" and not collector.would_accept(0).taken
    collector.set_state("open")
    clock.now += WAIT
    assert says(0) is None, "its time has passed, but nobody has shut it"
    assert collector.planning.intake.shut(0) and collector.status().version == 0
    assert says(0) == "stale", "nothing was planned yet"
    assert people.plan() == 1
    assert says(0) == "stale"
    assert collector.would_accept(1).taken and collector.would_accept(2).reason == "stale"
    collector.set_state("closed")
    assert collector.would_accept(1).reason == "closed" and not collector.would_accept(1).taken


def test_a_report_of_the_whole_wire_has_at_most_64_bytes_besides_its_id(people, clock) -> None:
    device = people.begin()
    (held,) = device.send()
    assert held.outcome is None and held.due >= clock.now + 600.0, "held to begin + duration"
    assert people.bodies == []
    clock.now += 11 * 60.0
    device.send()
    (body,) = people.bodies
    report = json.loads(body)["reports"][0]
    assert len(body) - len(report["id"]) <= 64
    assert report.keys() == {"id", "message"} and len(report["message"]) == 12


@pytest.mark.parametrize("model", ["local", "joint"])
def test_nobody_can_choose_or_foresee_a_number(model, deploy, opened, clock) -> None:
    """An id has one ticket, whatever becomes of it; the order of numbers is not that of arrival.

    Fifteen people come in the order of their numbers in fewer than one run of 10^12.
    """
    large = text(model, users=400).replace("{", "{{").replace("}", "}}")
    people = People(opened(deploy(large)), clock)
    assert 16 <= batch(people.collector) <= 90
    token = next(people.tokens)
    first = people.device(token=token).begin()
    again = people.device(token=token).begin()  # a device that forgot everything
    z = first.publication.policy.theta - again.publication.policy.theta
    assert not z.any(), "the same number, hence the same direction"
    assert people.collector.status().accepted == 1
    devices = [people.begin() for _ in range(batch(people.collector) - 1)]
    assert (np.diff(numbers(people, devices)) != 1).any()
    sender = people.collector.tokens.authenticate(token)
    asked, rules = people.collector.deployment.task_id, first.terms.rules
    with pytest.raises(InvalidInput, match="follows from the device's token"):
        people.collector.ticket(asked, "ab" * 16, rules, sender)
    with pytest.raises(InvalidInput, match="other rules"):
        people.collector.ticket(asked, "ab" * 16, "0" * 64, sender)


def test_an_id_is_used_up_when_it_begins(people, clock) -> None:
    token = next(people.tokens)
    device = people.begin(token=token)
    clock.now += 11 * 60.0
    assert device.send()[0].outcome == "accepted"
    with pytest.raises(AlreadyTookPart):
        device.begin()
    with pytest.raises(NotTaken, match="used up by an earlier ticket"):
        people.begin(token=token)
    body = json.loads(people.bodies[0])
    sender = people.collector.tokens.authenticate(token)
    reports = [IncomingReport(**report) for report in body["reports"]]
    again = people.collector.upload(None, reports, sender)
    assert [one.outcome for one in again.outcomes] == ["duplicate"]


def test_a_report_without_a_ticket_is_not_taken(people) -> None:
    token = next(people.tokens)
    sender = people.collector.tokens.authenticate(token)
    task_id = people.collector.deployment.task_id
    name = messages.assigned_id(messages.seat(token, task_id), 0)
    answer = people.collector.upload(None, [IncomingReport(name, message="AAAAAAAAAAA=")], sender)
    assert [one.outcome for one in answer.outcomes] == ["invalid"]
    assert "no ticket" in answer.outcomes[0].detail


def test_directions_of_a_batch_are_opposite_in_pairs(people) -> None:
    people.plan()
    policy = people.collector.publications.publication(0).policy
    size = batch(people.collector)
    z = np.empty((size, 4), dtype=np.int64)
    search_directions(policy.key, np.arange(size), z)
    assert not (z[0::2] + z[1::2]).any()


def test_after_a_crash_everything_goes_on(people, clock, opened) -> None:
    """At every step a new process, as after kill -9, comes to the same numbers and policies."""
    deployment, size = people.collector.deployment, batch(people.collector)
    devices = []
    for _ in range(size):
        fresh = opened(deployment)
        people.collector = fresh
        people.api._collector = fresh
        devices.append(people.begin())
    assert sorted(numbers(people, devices)) == list(range(size))
    clock.now += WAIT
    for device in devices[1:]:
        people.api._collector = opened(deployment)
        assert device.send()[0].outcome == "accepted"
    shut = opened(deployment)
    assert shut.planning.intake.shut(0), "and the process dies here"
    people.collector = people.api._collector = opened(deployment)
    people.planner = PlannerLoop(people.collector)
    assert people.plan() == 1
    assert people.collector.verify().sound


def test_a_pause_gives_everybody_more_time(people, clock) -> None:
    devices = [people.begin() for _ in range(batch(people.collector))]
    people.collector.set_state("paused")
    clock.now += 100 * WAIT
    with pytest.raises(NotTaken, match="paused"):
        people.begin()
    people.collector.set_state("open")
    assert people.plan() == 0
    clock.now += WAIT
    assert devices[0].send()[0].outcome == "accepted"
    assert people.plan() == 1


def test_who_leaves_counts_as_the_least_return(people, clock) -> None:
    device = people.device()
    episode = device.begin()
    episode.act([0.0, 0.0, 0.0, 0.0])
    episode.observe(300.0)
    episode.leave()
    saved = device._outbox.waiting(people.api.address)[0]
    if people.collector.deployment.model == "joint":
        assert np.frombuffer(base64.b64decode(saved.steps), "<f8") == [0.0]
    else:
        assert saved.steps == 0 and device.due() > clock.now


def test_a_search_to_its_end_and_what_the_dashboard_shows(people, clock) -> None:
    users, size = people.collector.deployment.task.users, batch(people.collector)
    version = 0
    while people.collector.status().accepted < users:
        room = min(size, users - people.collector.status().accepted)
        devices = [people.begin() for _ in range(room)]
        clock.now += WAIT
        for device in devices[room // 3 :]:
            device.send()
        version += 1
        assert people.plan() == version
    assert people.collector.status().finished
    with pytest.raises(NotTaken, match="have begun"):
        people.begin()
    said = people.api.dashboard()
    assert said["value"]["kind"] == "played" and len(said["value"]["points"]) > 3
    assert all(p["low"] <= p["middle"] <= p["high"] for p in said["value"]["points"])
    facts = FactReader(people.collector).read(None)
    page = render(build(facts), facts, Window())
    assert page.count("<h2>Mean return of people</h2>") == 2 and "Estimated value</h2>" not in page
    assert '<p class="small">95% band ' in page
    last = people.collector.publications.publication(version)
    assert last.policy.sigma == 0.0 and len(last.context["curve"]) == version
    verdict = people.collector.verify()
    assert verdict.sound and verdict.reports == users


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('duration = "10m"\n', ""), "a search needs duration"),
        (("states = 4", 'states = ["a", "b"]'), "say how many there are"),
        (("[search]", "reward_range = [0, 2]\n[search]"), "said of tables"),
        (
            ("scale = [2.4, 3.0, 0.21, 3.0]", "scale = [1, 1]"),
            "scale has shape \\[2\\], but it must be \\[4\\]",
        ),
        (("minimum_batch = 2", "minimum_batch = 40"), "lower that"),
        (("returns = [0, 500]", ""), "needs the key 'returns'"),
        (("scale = ", "scales = "), "did you mean 'scale'"),
        (('model = "joint"', 'model = "shuffle"'), "in the shuffle model: the service has no"),
    ],
)
def test_what_a_file_gets_wrong_is_said(deploy, change, problem) -> None:
    with pytest.raises(InvalidInput, match=problem):
        deploy(text("joint").replace(*change, 1))


@pytest.mark.parametrize("output", [0, 1, 2])
def test_a_local_report_is_a_function_of_the_randomized_word_alone(
    deploy, opened, clock, monkeypatch, output
) -> None:
    """Two people who lived differently, whose randomizers said the same, send the same message."""
    collector = opened(deploy(text("local").replace("epsilon = 8.0", "epsilon = 1.0")))
    people = People(collector, clock)

    class Said(SecureNoise):
        def randomize(self, randomizer, value):
            assert randomizer.outputs == 3
            return np.array([output])

    monkeypatch.setattr(device_module, "SecureNoise", Said)
    for reward, steps in ((1.0, 3), (170.0, 2), (float("nan"), 1)):
        device = people.device()
        episode = device.begin()
        for h in range(steps):
            episode.act([0.1, 0.0, -0.1, 0.0])
            episode.observe(reward, ended=h + 1 == steps)
        clock.now += 11 * 60.0
        assert device.send()[0].outcome == "accepted"
    sent = {json.loads(body)["reports"][0]["message"] for body in people.bodies}
    assert len(sent) == 1 and len({len(body) for body in people.bodies}) == 1


def test_what_a_device_draws_has_the_exact_chances_of_the_rules(deploy, opened, clock) -> None:
    """Thresholds of the rules are those that the guarantee was computed from: epsilon exactly."""
    collector = opened(deploy(text("local").replace("epsilon = 8.0", "epsilon = 1.0")))
    terms = People(collector, clock).device().terms()
    randomizer = sliding_of(collector.rules)
    log = math.log(randomizer.likely / randomizer.unlikely)
    assert terms.guarantee.epsilon == pytest.approx(log, abs=1e-12)
    assert terms.guarantee.epsilon >= 0.95 * 1.0 and terms.guarantee.delta == 0.0
    worst = np.log(randomizer.chances).max(axis=0) - np.log(randomizer.chances).min(axis=0)
    assert worst.max() == pytest.approx(terms.guarantee.epsilon, abs=1e-9)


def test_people_are_told_what_is_sent(deploy) -> None:
    joint, local = (deploy(text(model)) for model in ("joint", "local"))
    said = [
        consent(d.guarantee, name=d.name, steps=500, kept=True, searched=True)
        for d in (joint, local)
    ]
    assert "one number: what they were worth" in " ".join(said[0].split())
    assert "record" not in said[0] and all("at random" in one for one in said)
    assert "counts as zero" in joint.taking and "10 minutes for the episode" in joint.taking


@pytest.mark.parametrize("model", ["local", "joint"])
def test_on_postgresql_several_workers_give_every_number_once(
    deploy, opened, clock, postgres, model
) -> None:
    given = text(model).replace("[storage]", f'[storage]\ndatabase = "{postgres}"')
    deployment = deploy(given)
    workers = [opened(deployment) for _ in range(3)]
    people, size = People(workers[0], clock), batch(workers[0])
    tokens = workers[0].tokens.issue("device", size + 4)
    places = [InProcessApi(worker) for worker in workers]

    def come(k: int) -> Device | None:
        device = Device(
            places[k % 3], None, max_epsilon=100.0, model="joint", token=tokens[k], clock=clock
        )
        try:
            episode = device.begin()
        except NotTaken as refusal:
            assert refusal.reason == "batch_full"
            return None
        POLE.through(k, episode.act, episode.observe)
        return device

    with ThreadPoolExecutor(6) as pool:
        devices = [device for device in pool.map(come, range(size + 4)) if device is not None]
    assert sorted(numbers(people, devices)) == list(range(size))
    clock.now += 11 * 60.0
    with ThreadPoolExecutor(6) as pool:
        sent = list(pool.map(lambda device: device.send()[0].outcome, devices[1:]))
    assert sent == ["accepted"] * (size - 1)
    clock.now += WAIT
    assert people.plan() == 1
    assert people.collector.verify().sound
