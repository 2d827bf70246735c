"""A fleet over a real socket: everybody counted once, stopped, killed and started again."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from service.http.running import running
from tacit.cli.main import app as command
from tacit.client.device import Device
from tacit.client.outbox import Delivery
from tacit.client.transport import Api
from tacit_service.cli.rehearse import _since, _tenths
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.http.app import create_app
from tacit_service.planning.loop import PlannerLoop
from tacit_service.rehearsal.fleet import Fleet
from tacit_service.rehearsal.people import fleet_population

TEXT = """
[task]
name = "swim"
states = 4
actions = ["left", "right"]
horizon = 5
reward_range = [-1.0, 1.0]
homogeneous = true
[agent]
name = "{agent}"
epsilon = {epsilon}
[population]
users = {users}
tokens = "{tokens}"
[updates]
minimum_batch = 20
[storage]
witness_on_same_disk = true
keep_reports = true
[fleet]
problem = "river-swim"
states = 4
horizon = 5
"""


LATE = Delivery("", "", "stale")


class Running:
    """A collector on a socket, and fleets against it."""

    def __init__(self, folder, agent="tacit-local", epsilon=4.0, users=200, tokens="shared"):
        self.path = folder / "swim.toml"
        self.path.write_text(TEXT.format(agent=agent, epsilon=epsilon, users=users, tokens=tokens))
        self.deployment = Deployment.load(self.path)
        self.collector = Collector.open(self.deployment)
        count = users if tokens == "per-device" else 1
        self.tokens = self.collector.tokens.issue("device", count, "fleet")
        self.file = folder / "tokens.txt"
        self.file.write_text("\n".join(self.tokens))
        self.server = running(create_app(self.collector, PlannerLoop(self.collector, pause=0.01)))

    def __enter__(self):
        self.address = self.server.__enter__()
        return self

    def __exit__(self, *problem):
        self.server.__exit__(*problem)

    def fleet(self, **options) -> Fleet:
        people = fleet_population(
            self.deployment.settings.fleet, self.deployment.folder, self.deployment.task
        )
        return Fleet(partial(Api, self.address), people, **{"tokens": self.tokens, **options})

    def accepted(self) -> int:
        return self.collector.status().accepted


@pytest.mark.parametrize(
    ("agent", "users"), [("tacit-local", 300), ("ldp-obi", 24), ("tacit-joint", 60)]
)
def test_everybody_is_counted_once_and_every_policy_follows(tmp_path, agent, users) -> None:
    with Running(tmp_path, agent, users=users) as service:
        fleet = service.fleet(workers=4)
        seen = []
        fleet.run(users + 1, seen.append)
        assert service.accepted() == users and fleet.tally.counted == users
        assert fleet.tally.outcomes["accepted"] == users
        assert set(fleet.tally.outcomes) <= {"accepted", "population_reached"}
        numbers = fleet.settle()
        curve = fleet.score(numbers["versions"])
        assert [row["version"] for row in curve] == list(range(len(curve)))
        assert len(curve) >= 2 and curve[1]["users"] >= 20
        people = fleet.people
        low = fleet.terms.task.horizon * fleet.terms.reward_range[0]
        high = people.limits(fleet.terms)["ceiling"]
        assert low == -5.0 and all(low <= row["value"] <= high + 1e-9 for row in curve)
        verdict = service.collector.verify()  # bit for bit, with the simulator's step
        assert verdict.sound and verdict.versions == len(curve)
        fleet.close()


def test_an_interrupted_fleet_goes_on_where_it_was(tmp_path) -> None:
    def interrupt(counted: int) -> None:
        if counted >= 10:
            raise KeyboardInterrupt

    with Running(tmp_path, users=2000, tokens="per-device") as service:
        first = service.fleet(workers=3)
        with pytest.raises(KeyboardInterrupt):
            first.run(2000, interrupt)
        stopped = service.accepted()
        assert 10 <= stopped < 2000
        assert first.tally.counted == stopped, "nobody was left on the way"
        second = service.fleet(workers=3)
        assert second.before == stopped
        second.run(stopped + 15)
        assert service.accepted() == stopped + 15
        assert second.tally.outcomes["accepted"] == 15
        second.run(stopped + 1)
        assert service.accepted() == stopped + 15, "enough is enough"
        first.close()
        second.close()


def test_a_killed_fleet_counts_nobody_twice(tmp_path) -> None:
    """After a kill, numbers of people and of reports need not agree: ids tell who was there."""
    with Running(tmp_path, tokens="per-device") as service:
        first = service.fleet(workers=2)
        first.run(20)
        again = service.fleet(workers=2)
        again.before = again._next = 5  # as if fifteen had been lost from sight
        again._tokens.extendleft(reversed(service.tokens[5:20]))
        again.tally.counted = 5
        again.run(25)
        assert again.tally.outcomes["duplicate"] == 15
        assert again.tally.counted == 25 and service.accepted() == 40
        first.close()
        again.close()


def test_people_need_tokens(tmp_path) -> None:
    with Running(tmp_path, tokens="per-device") as service:
        fleet = service.fleet(tokens=service.tokens[:3], workers=1)
        fleet.run(10)
        assert service.accepted() == 3
        assert fleet.tally.over == "no token" and fleet.tally.outcomes["accepted"] == 3
        fleet.close()


def test_the_token_of_somebody_who_came_too_late_is_used_again(tmp_path, monkeypatch) -> None:
    with Running(tmp_path, tokens="per-device") as service:
        fleet = service.fleet(tokens=service.tokens[:12], workers=1)
        send, late = Device.send, [2, 5]

        def sometimes_late(device):
            (delivery,) = send(device) if fleet._next - 1 not in late else (LATE,)
            return [delivery]

        monkeypatch.setattr(Device, "send", sometimes_late)
        fleet.run(12)
        assert fleet.tally.outcomes == {"accepted": 12, "stale": 2}
        assert service.accepted() == 12
        fleet.close()


def invoke(*words: object):
    return CliRunner().invoke(command, ["admin", "rehearse", *map(str, words)])


def test_the_command_scores_what_was_learned(tmp_path) -> None:
    with Running(tmp_path) as service:
        basic = [service.path, "--address", service.address, "--tokens", service.file]
        said = json.loads(invoke(*basic, "--users", "50", "--json").stdout)
        assert said["users"] == {"asked": 50, "before": 0, "counted": 50, "population": 200}
        assert said["outcomes"] == {"accepted": 50} and said["interrupted"] is False
        assert said["curve"][-1]["version"] == said["version"] >= 1
        values = said["value"]
        assert values["uniform"] < values["best"] == pytest.approx(values["ceiling"])
        assert set(said["beats"]) == {"uniform"} and said["task_id"] == service.deployment.task_id
        shown = invoke(*basic, "--users", "60")
        assert "60 reports counted" in shown.stdout and "(50 before)" in shown.stdout
        assert "uniform" in shown.stdout and "best policy" in shown.stdout


def test_when_a_reference_is_beaten() -> None:
    curve = [{"users": 0, "value": 1.0}, {"users": 25, "value": 3.0}, {"users": 90, "value": 2.0}]
    tenths = _tenths(curve, 100)
    assert [t["from"] for t in tenths] == list(range(0, 100, 10))
    assert [t["value"] for t in tenths] == [1.0, 1.0, 2.0, *[3.0] * 6, 2.0]
    assert [_since(tenths, value) for value in (0.5, 1.0, 1.9, 2.0)] == [0, 20, 20, None]


def test_mistakes_at_the_command_line(tmp_path) -> None:
    with Running(tmp_path) as service:
        for words, sentence in [
            ([], "tacit admin tokens"),
            (["--tokens", tmp_path / "none"], "cannot be read"),
            (["--tokens", service.path], "it must hold the one shared token"),
            (["--tokens", service.file, "--users", "0"], "--users"),
            (["--tokens", service.file, "--address", "http://example.org"], "https"),
        ]:
            result = invoke(service.path, "--address", service.address, *words)
            assert result.exit_code != 0 and sentence in str(result.exception), words
        other = tmp_path / "other.toml"
        other.write_text(service.path.read_text().replace('"swim"', '"other"'))
        result = invoke(other, "--address", service.address, "--tokens", service.file)
        assert "on other terms" in str(result.exception)
