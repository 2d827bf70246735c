"""Vectors of policy searches: the reference makes them again, and the client replays them."""

import json

import httpx
import numpy as np
import pytest

from tacit.client import Api, Declined, Device, NotTaken
from tacit.client.terms import read_terms
from tacit.kernels.public.scores import search_coins, search_directions
from wire.test_vectors import Written, make, read

CASES = {one["name"]: one for one in read("search.json")}
BEGUN = 1.8e9


class Searched(Written):
    """A collector that serves what a file says, and gives out the numbers of its tickets."""

    def __init__(self, one: dict) -> None:
        super().__init__(one)
        self.number, self.tickets, self.now = 0, [], BEGUN

    def answer(self, request: httpx.Request) -> httpx.Response:
        version = json.loads(self.policy)["version"]
        if request.url.path == f"/v1/policy/{version}":
            return httpx.Response(200, content=self.policy)
        if request.url.path != "/v1/tickets":
            return super().answer(request)
        asked = json.loads(request.content)
        self.tickets.append(asked)
        said = {"number": self.number, "version": version, "reason": None, "message": None}
        if self.number is None:
            said |= {"reason": "batch_full", "message": "try again later"}
        return httpx.Response(200, json={"task_id": asked["task_id"], "id": asked["id"], **said})

    def reports(self, upload: dict) -> httpx.Response:
        outcomes = [{"id": one["id"], "outcome": "accepted"} for one in upload["reports"]]
        return httpx.Response(200, json={"outcomes": outcomes})

    def device(self, **options) -> Device:
        transport = httpx.MockTransport(self.answer)
        api = Api("https://coach.test", client=httpx.Client(transport=transport))
        limits = {"max_epsilon": 100.0, "max_delta": 1.0, "model": "joint"}
        return Device(api, None, clock=lambda: self.now, **{**limits, **options})


@pytest.mark.parametrize("compiled", [True, False])
def test_directions_and_coins(compiled) -> None:
    """A device without a compiler has the same ones."""
    directions = search_directions if compiled else search_directions.py_func
    coins = search_coins if compiled else search_coins.py_func
    for one in read("directions.json"):
        people = np.array([one["number"]], dtype=np.int64)
        z, coin = np.empty((1, one["d"]), dtype=np.int64), np.empty(1)
        directions(int(one["key"]), people, z)
        coins(int(one["key"]), people, coin)
        assert z[0].tolist() == one["direction"] and coin[0] == (one["coin"] + 0.5) / 2**32
        assert (z[0].astype(object) ** 2).sum() <= one["d"] * 2**48, "no direction is longer"


@pytest.mark.parametrize("name", CASES)
def test_the_client_replays_a_case(name) -> None:
    one = CASES[name]
    terms = read_terms(one["task"])
    assert (terms.task_id, terms.rules) == (one["task_id"], one["rules_hash"])
    if one["epsilon"] is not None:
        each = one["epsilon"]["epsilon"]
        assert terms.guarantee.epsilon == terms.task.participations * each
    collector = Searched(one)
    for vector in one["reports"]:
        collector.number, collector.now = vector["number"], BEGUN
        tape = iter(bytes.fromhex(vector["tape before"] + vector["tape"]))
        with (
            make.drawing_from(lambda count, tape=tape: bytes(next(tape) for _ in range(count))),
            collector.device(report_id=lambda vector=vector: vector["id"]) as device,
        ):
            episode, last = device.begin(), len(vector["steps"]) - 1
            for h, (seen, action, reward) in enumerate(vector["steps"]):
                found = episode.act(seen)
                assert np.asarray(found).tolist() == pytest.approx(action, rel=1e-12)
                episode.observe(reward, ended=vector["ended"] and h == last)
            if not episode.done:
                episode.leave()
            assert device.send()[0].outcome is None and collector.bodies == [], "held"
            collector.now += 3600.0 + 300.0
            device.send()
        assert list(tape) == [], "the tape must be used up"
        body = collector.bodies.pop()
        assert body == vector["body"].encode() and len(body) - 32 <= 64
        ticket = {"task_id": one["task_id"], "id": vector["id"], "rules": one["rules_hash"]}
        assert collector.tickets.pop() == ticket


def test_no_ticket_no_episode_and_another_policy_is_declined() -> None:
    collector = Searched(CASES["one bit"])
    collector.number = None
    with collector.device(report_id=lambda: "0" * 32) as device:
        with pytest.raises(NotTaken, match="try again later"):
            device.begin()
        collector.number = 3
        shut = {**json.loads(collector.policy), "version": 4}
        answered = collector.answer

        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.path == "/v1/policy/3":
                return httpx.Response(200, json=shut)
            return answered(request)

        device._api._client = httpx.Client(transport=httpx.MockTransport(answer))
        with pytest.raises(Declined, match="another policy"):
            device.begin()
