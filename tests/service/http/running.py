"""A small service on a real socket, in a thread of the test."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI

from patience import PATIENCE
from service.devices import local_reports, sent, trajectories
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.http import server
from tacit_service.http.app import create_app
from tacit_service.planning.loop import PlannerLoop

SMALL = """
[task]
name = "small"
states = 2
actions = ["rest", "move"]
horizon = 2
homogeneous = true
[agent]
name = "tacit-local"
epsilon = 4.0
[population]
users = 40
tokens = "shared"
[updates]
minimum_batch = 100
[server]
max_body_bytes = 200000
max_batch = 20
"""


JOINT = (
    SMALL.replace("tacit-local", "tacit-joint").replace("4.0", "1.0\ndelta = 1e-5")
    + "[storage]\nwitness_on_same_disk = true\n"
)


def small_collector(folder: Path, text: str = SMALL) -> Collector:
    return Collector.open(Deployment.parse(text, folder / "small.toml"))


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    listening = server.bind("127.0.0.1", 0)
    serving = uvicorn.Server(server.settings(app))
    thread = threading.Thread(target=serving.run, args=([listening],))
    thread.start()
    while not serving.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        serving.should_exit = True
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()


class Service:
    """A running service with a client and one token of each role."""

    def __init__(self, collector: Collector, url: str, client: httpx.Client) -> None:
        self.collector, self.url, self.client = collector, url, client
        self.task_id = collector.deployment.task_id
        self._rng = np.random.default_rng(7)
        (self.device,) = collector.tokens.issue("device", 1, "test")
        (self.operator,) = collector.tokens.issue("operator", 1, "test")
        self.as_device = {"Authorization": f"Bearer {self.device}"}
        self.as_operator = {"Authorization": f"Bearer {self.operator}"}

    def reports(self, number: int) -> list[dict[str, object]]:
        """Honest reports under the newest policy."""
        make = local_reports if self.collector.deployment.model == "local" else trajectories
        return [sent(report) for report in make(self.collector, self._rng, number)]

    def upload(self, reports: object, task_id: str | None = None) -> httpx.Response:
        body = {"task_id": task_id or self.task_id, "reports": reports}
        return self.client.post("/v1/reports", json=body, headers=self.as_device)


@contextmanager
def small_service(folder: Path, text: str = SMALL) -> Iterator[Service]:
    collector = small_collector(folder, text)
    app = create_app(collector, PlannerLoop(collector))
    with running(app) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        yield Service(collector, url, client)
