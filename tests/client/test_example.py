"""The health coach, small: its files agree, and the whole of it runs over HTTP."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE
from tacit_service.config.deployment import Deployment
from tacit_service.rehearsal.people import fleet_population

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "health_coach"


@pytest.mark.parametrize(("name", "model"), [("coach", "local"), ("coach_joint", "joint")])
def test_deployment_and_people_agree(name, model) -> None:
    deployment = Deployment.load(FOLDER / f"{name}.toml")
    people = fleet_population(deployment.settings.fleet, deployment.folder, deployment.task)
    assert deployment.model == model and deployment.unit == "user"
    module = sys.modules["tacit_fleet_population"]
    assert deployment.labels == {"states": module.STATES, "actions": module.ACTIONS}
    values = {name: people.value(policy) for name, policy in people.references.items()}
    best = people.value(people.best())
    text = (FOLDER / "README.md").read_text()
    for value in (values["say nothing"], values["uniform"], best, people.ceiling()):
        assert f"{value:.2f}" in text
    assert max(values.values()) + 1.5 < best < people.ceiling()


def test_it_runs(tmp_path) -> None:
    program = [sys.executable, FOLDER / "run.py", "--users", "60", "--json", "--out", tmp_path]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["users"]["counted"] == 60 and said["outcomes"] == {"accepted": 60}
    assert said["version"] >= 1
    assert set(said["value"]) == {"newest", "uniform", "say nothing", "best", "ceiling"}
