"""A minimal collector behind an httpx transport: answers like the service, keeps what arrives."""

import json

import httpx
import numpy as np

from tacit.agents import make_agent
from tacit.client import Api, Device
from tacit.planners.base import Streams
from tacit.privacy import Query, SecureNoise
from tacit.task.task import Task
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_of

S, A, H = 3, 2, 4


class FakeCollector:
    """Serves one task and its first publication; ``bodies`` are the requests as they arrived."""

    def __init__(self, agent="tacit-local", model="local", task=None, **parameters) -> None:
        self.task = task or Task("tabular", H, {"states": S, "actions": A}, True, 1000)
        self.bound = make_agent(agent, **parameters).bind(self.task)
        streams = Streams(np.random.default_rng(1), np.random.default_rng(2))
        release = self.bound.privatizer.release(
            self.bound.privatizer.init(), Query(0), SecureNoise()
        )
        self.publication = self.bound.planner.plan(self.task, release, None, None, streams)
        self.description = {
            "tacit": "0",
            "wire": documents.VERSION,
            "name": "coach",
            "model": model,
            "task": documents.task_to_json(self.task),
            "agent": {"name": agent, "parameters": parameters},
            "labels": {"states": ["low", "fair", "good"], "actions": None},
            "reward_range": [-1.0, 3.0],
            "absorbing_state": 1,
            "unit": "user",
            "opens": None,
            "closes": None,
            "accepted_versions": None if self.task.duration else 2,
            "delay": self.task.duration / 10,
            "grace": self.task.duration,
            "rules": rules_of(self.bound),
            "guarantee": self.bound.guarantee.to_json(),
        }
        self.seal()
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.ids: set[str] = set()
        self.broken: list[httpx.Response | Exception] = []
        self.refusal: tuple[str, str | None] | None = None
        self.served: dict[int, str] = {}
        self.obstacle: tuple[str, str] | None = None
        self.gets = 0
        self.pauses: list[float] = []

    def seal(self) -> None:
        """Give the description the id of its terms."""
        self.description["task_id"] = documents.task_id(self.description)

    @property
    def task_id(self) -> str:
        return self.description["task_id"]

    def api(self, address="https://coach.test", attempts=5, keep=0.0) -> Api:
        client = httpx.Client(transport=httpx.MockTransport(self.answer))
        pause = self.pauses.append
        return Api(address, attempts=attempts, pause=pause, keep=keep, client=client)

    def device(self, outbox=None, **options) -> Device:
        api = options.pop("api", None) or self.api()
        return Device(api, outbox, **{"max_epsilon": 5.0, **options})

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.bodies.append(request.content)
            self.headers.append(dict(request.headers))
        if self.broken:
            trouble = self.broken.pop(0)
            if isinstance(trouble, Exception):
                raise trouble
            return trouble
        if request.url.path == "/v1/reports":
            return self.reports(json.loads(request.content))
        self.gets += 1
        if request.url.path == "/v1/task":
            return httpx.Response(200, json=self.description)
        if request.url.path.startswith("/v1/taking/"):
            return httpx.Response(200, json=self.taking(int(request.url.path.split("/")[-1])))
        assert request.url.path == "/v1/policy"
        etag = f'"{self.publication.version}"'
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304, headers={"etag": etag})
        body = documents.publication_to_json(self.publication, self.task_id, self.task_id)
        self.served[self.publication.version] = documents.publication_hash(body)
        return httpx.Response(200, json=body, headers={"etag": etag})

    def taking(self, version: int) -> dict:
        reason, message = self.obstacle or (None, None)
        return {
            "task_id": self.task_id,
            "version": version,
            "publication": self.served.get(version),
            "taken": self.obstacle is None,
            "reason": reason,
            "message": message,
        }

    def reports(self, upload) -> httpx.Response:
        assert set(upload) == {"task_id", "reports"} and upload["task_id"] == self.task_id
        outcomes = []
        for report in upload["reports"]:
            assert set(report) - {"rules"} == {"id", "version", "message", "publication"}
            outcome, reason = self.refusal or ("accepted", None)
            if report.get("rules") == messages.DECOY:
                outcome = "decoy"
            elif report["id"] in self.ids:
                outcome = "duplicate"
            elif self.refusal is None:
                self.ids.add(report["id"])
            outcomes.append(
                {"id": report["id"], "outcome": outcome, "reason": reason, "detail": None}
            )
        return httpx.Response(
            200, json={"task_id": self.task_id, "version": 0, "outcomes": outcomes}
        )


def live(device, states=(0, 1, 2, 0, 1), rewards=(0.0, 1.0, 2.0, 3.0)):
    """A whole episode on a device."""
    episode = device.begin()
    for h in range(len(rewards)):
        episode.act(states[h])
        episode.observe(rewards[h], states[h + 1])
    return episode
