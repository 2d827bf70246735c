"""Devices of both clients in a policy search, against a running server and on the same tapes."""

import json
import random
import shutil
import subprocess
import time
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest

from browser.test_devices import devices
from patience import PATIENCE, until
from tacit.client import Device, NotTaken
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment

pytestmark = pytest.mark.browser  # they need Node, as the others here

PEOPLE = 8
SEARCH = """
[task]
name = "search"
states = 2
actions = 2
horizon = 4
duration = "1s"
[search]
returns = [-4, 4]
scale = [1.0, 1.0]
[agent]
name = "tacit-search"
epsilon = 8.0
model = "{model}"
[population]
users = {people}
[updates]
minimum_batch = 1
delay = "0s"
grace = "2s"
[storage]
keep_reports = true
witness_on_same_disk = true
"""


def person(number: int, token: str) -> dict:
    rng = random.Random(number)
    seen = [[rng.uniform(-1, 1), rng.uniform(-1, 1)] for _ in range(rng.choice((4, 4, 2)))]
    return {"token": token, "seen": seen, "tape": rng.randbytes(1024).hex()}


def by_node(address: str, people: list[dict]) -> list[str]:
    done = subprocess.run(
        ["node", "test/search_fleet.mjs", address],
        input=json.dumps(people),
        capture_output=True,
        text=True,
        cwd=devices.CLIENT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def begun(device: Device):
    while True:
        try:
            return device.begin()
        except NotTaken as full:
            assert full.reason == "batch_full"
            time.sleep(0.1)


def by_python(address: str, people: list[dict]) -> list[str]:
    return [live(address, one) for one in people]


def live(address: str, one: dict) -> str:
    tape, begins, ahead = iter(bytes.fromhex(one["tape"])), time.time(), 0.0

    def drawn(count: int) -> bytes:
        return bytes(next(tape) for _ in range(count))

    def clock() -> float:
        return begins + ahead

    options = {"max_epsilon": 100.0, "model": "joint", "token": one["token"], "clock": clock}
    with patch("random._urandom", drawn), Device(address, None, **options) as device:
        episode, last = begun(device), len(one["seen"]) - 1
        for h, o in enumerate(one["seen"]):
            action = episode.act(o)
            episode.observe(o[0] if action == 1 else -o[0], ended=h == last)
        ahead = 3600.0
        return str(device.send()[0].outcome)


@pytest.mark.parametrize("model", ["local", "joint"])
def test_both_clients_on_the_same_tapes_lead_to_the_same_policies(tmp_path, model) -> None:
    """Every person counted once; local noise is on the tapes, so the same bytes are published."""
    place = tmp_path / "task"
    place.mkdir()
    (place / "task.toml").write_text(SEARCH.format(model=model, people=PEOPLE))
    with Collector.open(Deployment.load(place / "task.toml")) as collector:
        tokens = collector.tokens.issue("device", PEOPLE, "both clients")
    people = [person(number, token) for number, token in enumerate(tokens)]
    published = {}
    for name, fleet in {"node": by_node, "python": by_python}.items():
        copied = Path(shutil.copytree(place, tmp_path / name))
        with devices.serving(copied, "https://page.example.org") as address:
            assert fleet(address, people) == ["accepted"] * PEOPLE
            published[name] = policies(address)
        check = [*devices.TACIT, "serve", str(copied / "task.toml"), "--verify"]
        subprocess.run(check, check=True, stdout=subprocess.DEVNULL)
    assert len(published["node"]) > 2
    if model == "local":
        assert published["node"] == published["python"]


def policies(address: str) -> list[bytes]:
    """All of them, when the last one is there."""

    def newest() -> dict:
        return httpx.get(f"{address}/v1/policy", timeout=PATIENCE).json()

    until(lambda: newest()["users"] >= PEOPLE, "the last policy")
    last = newest()["version"]
    return [
        httpx.get(f"{address}/v1/policy/{v}", timeout=PATIENCE).content for v in range(last + 1)
    ]
