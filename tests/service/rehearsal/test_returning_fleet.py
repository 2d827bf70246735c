"""Populations that come back, over virtual time: real devices, the real collector, one clock."""

import json

import pytest
from typer.testing import CliRunner

from service.rehearsal.test_fleet import TEXT
from tacit.cli.main import app as command
from tacit.errors import InvalidInput
from tacit.util.durations import DAY
from tacit_service.config.deployment import Deployment
from tacit_service.rehearsal.in_process import rehearsal
from tacit_service.rehearsal.people import fleet_population
from tacit_service.rehearsal.returning_fleet import Returns


@pytest.fixture
def swim(tmp_path):
    def make(rule='participations = "any"', agent="tacit-local", duration="", users=400):
        text = TEXT.format(agent=agent, epsilon=4.0, users=users, tokens="per-device")
        text = text.replace("horizon = 5", f"horizon = 5\n{duration}", 1)
        path = tmp_path / "swim.toml"
        path.write_text(text.replace("[updates]", f"{rule}\n[updates]"))
        return Deployment.load(path)

    return make


def lived(deployment: Deployment, people: int, returns: Returns):
    population = fleet_population(deployment.settings.fleet, deployment.folder, deployment.task)
    with rehearsal(deployment, population, people, 0, returns) as regulars:
        regulars.run(people)
        return regulars.visits, regulars.tally, regulars.passed / DAY, regulars.settle()


def test_everybody_reports_once_and_rides_free_afterwards(swim) -> None:
    visits, tally, days, numbers = lived(swim(), 30, Returns(4))
    assert (visits.begun, visits.free, visits.refused) == (120, 90, 0)
    assert tally.outcomes == {"accepted": 30} and numbers["progress"]["accepted"] == 30
    assert 3 < days < 4, "once a day, each at an hour of their own"


def test_a_week_in_the_life_of_a_device_takes_a_week(swim) -> None:
    rule = 'participations = "any"\nrenews = "14d"'
    deployment = swim(rule, duration='duration = "7d"')
    visits, tally, days, _ = lived(deployment, 12, Returns(4, "anytime", decoys=True))
    assert visits.begun == 48 and days > 28
    reported = visits.begun - visits.free
    assert 24 <= reported < 48 and tally.outcomes == {"accepted": reported, "decoy": visits.free}


def test_lives_that_are_bounded_together_upload_every_time(swim) -> None:
    deployment = swim(agent="tacit-joint")
    assert deployment.task.lifetime
    visits, tally, _, _ = lived(deployment, 12, Returns(3, "few-often"))
    assert (visits.begun, visits.free) == (36, 0) and tally.outcomes == {"accepted": 36}


def test_the_rule_turns_people_away(swim) -> None:
    visits, tally, _, _ = lived(swim("participations = 2\napart = '1d'"), 10, Returns(3))
    assert (visits.begun, visits.free, visits.refused) == (20, 10, 10)
    assert tally.outcomes == {"accepted": 10}


def test_once_in_every_period_is_reported_in_each(swim) -> None:
    visits, tally, _, _ = lived(swim('participations = 1\nrenews = "2d"'), 5, Returns(4))
    assert visits.free == 0 and visits.refused > 0
    assert tally.outcomes == {"accepted": visits.begun}


def test_the_command_says_who_came_back(swim) -> None:
    path = str(swim().folder / "swim.toml")
    ask = ["fleet", path, "--virtual", "--users", "10", "--returns", "3", "--json"]
    said = json.loads(CliRunner().invoke(command, ask).stdout)
    assert said["visits"] == {
        **{"people": 10, "law": "rounds", "participations": 30, "reported": 10},
        **{"free_rides": 20, "decoys": 0, "refused_by_rule": 0},
    }
    refused = CliRunner().invoke(command, ["fleet", path, "--returns", "3"])
    assert "--returns needs --virtual" in str(refused.exception)
    with pytest.raises(InvalidInput, match='participations = "any"'):
        lived(swim(""), 10, Returns(3))
