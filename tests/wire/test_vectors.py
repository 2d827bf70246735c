"""The vectors of the wire: the files are what the reference makes, and the client replays them."""

import importlib.util
import json
import sys
from pathlib import Path

import httpx
import pytest

from client.collector import FakeCollector
from tacit.client import Api, Device
from tacit.client.terms import read_terms
from tacit.wire import messages
from tacit.wire.strict_json import spelt

FOLDER = Path(__file__).resolve().parents[2] / "vectors"
sys.path.insert(0, str(FOLDER))  # what make.py is made of lies beside it
_spec = importlib.util.spec_from_file_location("vectors_make", FOLDER / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


def read(name: str) -> list[dict]:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


CASES = {one["name"]: one for name in ("cells.json", "trajectories.json") for one in read(name)}


class Written(FakeCollector):
    """A collector that serves what a file says."""

    def __init__(self, one: dict) -> None:
        self.description, self.policy = {**one["task"], "ids": "chosen"}, one["policy"]
        self.served = {json.loads(self.policy)["version"]: make.hashlib.sha256(
            self.policy.encode()).hexdigest()}  # fmt: skip
        self.bodies, self.headers, self.ids, self.broken = [], [], set(), []
        self.refusal = self.obstacle = None
        self.gets = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/policy":
            return httpx.Response(200, content=self.policy)
        return super().answer(request)


def test_the_files_are_what_the_reference_makes() -> None:
    for name, content in make.files(make.EACH).items():
        assert read(name) == json.loads(json.dumps(content)), name


def test_json_is_spelt_as_written() -> None:
    for one in read("spelling.json"):
        assert spelt(one["value"]).decode() == one["spelt"]


@pytest.mark.parametrize("name", CASES)
def test_the_client_replays_a_case(name) -> None:
    one = CASES[name]
    terms = read_terms(one["task"])
    assert (terms.task_id, terms.rules) == (one["task_id"], one["rules_hash"])
    worst = [kind["epsilon"] for kind in (one["epsilon"] or {}).values()]
    if worst:
        assert terms.guarantee.epsilon == terms.task.participations * max(worst)
    seat = messages.seat("a token", terms.task_id)
    for begun in one.get("periods of 'a token'", []):
        number = terms.task.rule.period_at(begun["begun"])
        assert number == begun["period"] and messages.assigned_id(seat, number) == begun["id"]
    collector = Written(one)
    api = Api(
        "https://coach.test", client=httpx.Client(transport=httpx.MockTransport(collector.answer))
    )
    for vector in one["reports"]:
        tape = iter(bytes.fromhex(vector["tape"]))
        with make.drawing_from(lambda count, tape=tape: bytes(next(tape) for _ in range(count))):
            device = Device(
                *(api, None),
                max_epsilon=100.0,
                max_delta=1.0,
                model="joint",
                report_id=lambda vector=vector: vector["id"],
            )
            episode = device.begin()
            for state, reward, following in vector["steps"]:
                episode.act(state)
                episode.observe(reward, following)
            if not episode.done:
                episode.leave()
            device.send()
            device.close()
        assert list(tape) == [], "the tape must be used up"
        assert collector.bodies.pop() == vector["body"].encode()
