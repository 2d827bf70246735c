"""A deployment in virtual time: weeks in seconds, on the real collector and real devices."""

import json

import pytest
from typer.testing import CliRunner

from service.rehearsal.test_fleet import TEXT
from tacit.cli.main import app as command
from tacit.errors import InvalidInput
from tacit_service.config.deployment import Deployment
from tacit_service.rehearsal.in_process import rehearsal
from tacit_service.rehearsal.people import fleet_population

DAY = 86400.0


@pytest.fixture
def swim(tmp_path):
    def make(more="", pace='pace = "30/day"', agent="tacit-local", users=90) -> Deployment:
        path = tmp_path / "swim.toml"
        text = TEXT.format(agent=agent, epsilon=4.0, users=users, tokens="per-device")
        text = text.replace("horizon = 5", 'horizon = 5\nduration = "7d"', 1)
        path.write_text(text.replace("[updates]", f"{pace}\n{more}\n[updates]"))
        return Deployment.load(path)

    return make


def lived(deployment: Deployment, users: int):
    people = fleet_population(deployment.settings.fleet, deployment.folder, deployment.task)
    with rehearsal(deployment, people, users, 0) as cohort:
        cohort.run(users)
        numbers = cohort.settle()
        return cohort.tally, cohort.passed / DAY, numbers["versions"]


def test_people_come_at_the_pace_and_report_a_week_later(swim) -> None:
    tally, days, versions = lived(swim(), 80)
    assert tally.outcomes == {"accepted": 80} and tally.over is None
    assert 7 + 80 / 30 / 2 < days < 7.5 + 2 * 80 / 30, "80 people at 30 a day, and a week"
    assert versions[0]["users"] == 0 and versions[1]["users"] >= 20


def test_nobody_begins_in_the_last_week_of_a_task_that_closes(swim) -> None:
    window = "[window]\nopens = 2030-01-01T00:00:00Z\ncloses = 2030-01-09T00:00:00Z"
    tally, days, _ = lived(swim(window), 80)
    assert tally.over == "closed" and set(tally.outcomes) == {"accepted", "closed"}
    assert tally.outcomes["closed"] == 1 and days < 8, "all who began were counted"


def test_the_command_says_how_much_time_went_by(swim) -> None:
    deployment = swim(agent="tacit-joint")
    path = str(deployment.folder / "swim.toml")
    result = CliRunner().invoke(command, ["fleet", path, "--virtual", "--users", "40", "--json"])
    said = json.loads(result.stdout)
    assert said["outcomes"] == {"accepted": 40} and said["timing"]["virtual_days"] > 7
    assert [entry.name for entry in deployment.folder.iterdir()] == ["swim.toml"]
    with pytest.raises(InvalidInput, match='pace = "150/day"'):
        lived(swim(pace=""), 10)
    wrong = CliRunner().invoke(command, ["fleet", path, "--virtual", "--address", "https://x"])
    assert "leave --address and --tokens out" in str(wrong.exception)
