"""One task on one database, its clients, and what they were told: the world of ``soak.py``."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np

from tacit.arrays import IntArray
from tacit.privacy.local.additive import GRID
from tacit.trajectory import Lives, Trajectory
from tacit.wire import messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.storage.database import Store
from tacit_service.storage.vault import Vault

sys.path.insert(0, str(Path(__file__).parent))
from running import Service, free_port  # noqa: E402

Mode = Literal["local", "joint", "returning"]
Database = Literal["sqlite", "postgres"]
BATCH = 20
LOST = 0.1
"""Share of requests and of answers that are lost on the way."""
DEPLOYMENT = """
[task]
name = "soak"
states = {states}
actions = 2
horizon = {horizon}
homogeneous = true

[agent]
{agent}

[population]
{population}

[updates]
minimum_batch = {batch}
accepted_versions = 1000

[storage]
{witness}
database = "{database}"
keep_reports = true

[server]
port = {port}
"""
AGENTS = {
    "local": 'name = "ldp-obi"\nepsilon = 1.0',
    "joint": f'name = "tacit-joint"\nepsilon = 1.0\ndelta = 1e-5\nfirst = {BATCH}',
    "returning": f'name = "tacit-joint"\nepsilon = 50.0\nfirst = {BATCH}\ngrowth = 1.01',
}
SHARED = 'users = 1000000\ntokens = "shared"'


class World:
    """One task on one database, its clients, and what they were told."""

    population, states, horizon = SHARED, 2, 2

    def __init__(
        self, folder: Path, mode: Mode, database: str, seed: int, witness: Path | None = None
    ) -> None:
        self.mode = mode
        port = free_port()
        path = folder / "soak.toml"
        text = DEPLOYMENT.format(
            agent=AGENTS[mode],
            population=self.population,
            states=self.states,
            horizon=self.horizon,
            batch=BATCH,
            database=database,
            port=port,
            witness=f'witness = "{witness}"' if witness else "witness_on_same_disk = true",
        )
        path.write_text(text)
        self.deployment = Deployment.load(path)
        with Collector.open(self.deployment) as collector:
            (self.token,) = collector.tokens.issue("device", 1, "soak")
        self.service = Service(path, port)
        self.rng = random.Random(seed)
        self.acknowledged: dict[str, int] = {}
        self.surprises: list[str] = []
        self.stop = threading.Event()
        self.gone = False  # the service is not coming back: nobody insists any more

    def report(self, rng: random.Random) -> tuple[dict[str, Any], int]:
        """A report that carries a number of its own, and the number."""
        if self.mode == "local":
            number = rng.randrange(2**28)
            values = np.zeros(self.deployment.bound.statistic.layout.size, dtype=np.int64)
            values[0] = number
            message = messages.pack_message(values)
        else:
            number = rng.randrange(2**24)
            rewards = np.array([number / 2**24, 0.0])
            life = Trajectory(np.zeros(3, int), np.zeros(2, int), rewards)
            message = messages.pack_trajectory(life, 2)
        name, made_by = f"{rng.getrandbits(128):032x}", rules_hash(self.deployment.rules)
        return {"id": name, "version": 0, "message": message, "rules": made_by}, number

    def client(self, seed: int) -> None:
        """One upload after the other, each repeated until it is acknowledged."""
        rng = random.Random(seed)
        with httpx.Client(base_url=self.service.address, timeout=20.0) as http:
            while not self.stop.is_set():
                self.insist(http, rng, rng.randrange(1, 6))

    def insist(self, http: httpx.Client, rng: random.Random, count: int) -> None:
        """Upload so many new reports until the answer says that they are there."""
        content, numbers = self.upload(rng, count)
        while not (self.gone or self.is_acknowledged(http, rng, content, numbers)):
            time.sleep(rng.uniform(0.0, 0.1))

    def upload(self, rng: random.Random, count: int) -> tuple[bytes, dict[str, int]]:
        """The body of a request with so many new reports, and the number that each carries."""
        made = [self.report(rng) for _ in range(count)]
        body = {"task_id": self.deployment.task_id, "reports": [report for report, _ in made]}
        return json.dumps(body).encode(), {report["id"]: number for report, number in made}

    def post(self, http: httpx.Client, content: bytes, token: str | None = None) -> httpx.Response:
        """Send it once, with the token of all or that of a person."""
        bearer = f"Bearer {token or self.token}"
        headers = {"Authorization": bearer, "Content-Type": "application/json"}
        return http.post("/v1/reports", content=content, headers=headers)

    def is_acknowledged(
        self,
        http: httpx.Client,
        rng: random.Random,
        content: bytes,
        numbers: dict[str, int],
        token: str | None = None,
    ) -> bool:
        """Send it once, if it is not lost; whether the answer came back."""
        if rng.random() < LOST:  # the request never arrives
            return False
        try:
            answer = self.post(http, content, token)
        except httpx.HTTPError:
            return False
        if rng.random() < LOST or answer.status_code == 503:  # the answer never arrives
            return False
        outcomes = answer.json().get("outcomes", []) if answer.status_code == 200 else []
        told = {outcome["id"]: outcome["outcome"] for outcome in outcomes}
        if set(told) != set(numbers) or set(told.values()) - {"accepted", "duplicate"}:
            self.surprises.append(f"{answer.status_code}: {answer.text[:300]}")
        self.acknowledged |= numbers
        return True

    def work_a_little(self) -> None:
        """Wait until some more reports were acknowledged, then a moment that nobody chose."""
        enough = len(self.acknowledged) + self.rng.randrange(1, 3 * BATCH)
        deadline = time.monotonic() + 10.0
        while len(self.acknowledged) < enough and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(self.rng.uniform(0.0, 0.1))

    def fill(self) -> None:
        """Upload until the open batch is full (local model), and wait until all are absorbed."""
        missing = -len(self.acknowledged) % BATCH
        if self.mode == "local" and missing:
            with httpx.Client(base_url=self.service.address, timeout=20.0) as http:
                self.insist(http, self.rng, missing)
        deadline = time.monotonic() + 120.0
        with Collector.open(self.deployment) as collector:
            while collector.status().next_batch == 0:
                if time.monotonic() > deadline:
                    raise RuntimeError("the planner did not catch up within two minutes")
                time.sleep(0.1)

    def expected(self) -> IntArray:
        """The exact sum of everything that was acknowledged, in grid steps."""
        bound, numbers = self.deployment.bound, list(self.acknowledged.values())
        total = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        if self.mode == "local":
            total[0] = sum(numbers)
            return total
        with Collector.open(self.deployment) as collector:
            publication = collector.billboard.published(0).publication
        users = len(numbers)
        rewards = np.stack([np.array(numbers) / 2**24, np.zeros(users)], axis=1)
        states, actions = np.zeros((users, 3), int), np.zeros((users, 2), int)
        lives = Lives(states, actions, rewards)
        bound.statistic.add_many(lives, publication, np.arange(users), total)
        return total

    def findings(self) -> list[str]:
        """What else is wrong behind the wall, when the service has stopped."""
        return []

    def counted(self) -> IntArray:
        """The exact sum behind the wall: of reports as absorbed, or of the encrypted batches."""
        bound = self.deployment.bound
        if self.mode == "local":
            with Collector.open(self.deployment) as collector:
                blocks = collector.billboard.published(collector.status().version).release.blocks
            flat = np.concatenate([blocks[b.name].ravel() for b in bound.privatizer.layout.blocks])
            return np.rint(flat / GRID).astype(np.int64)
        total = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        for value in secrets_of(self.deployment, "batch:").values():
            total += np.frombuffer(value, dtype="<i8")
        return total


def secrets_of(deployment: Deployment, kind: str) -> dict[str, bytes]:
    """What the encrypted table holds of one kind: the batches or the noise."""
    vault, store = Vault(deployment.key_file, deployment.task_id), Store(deployment.database)
    with contextlib.closing(store), store.read() as connection:
        names = [name for name in vault.names(connection) if name.startswith(kind)]
        return {name: vault.get(connection, name) or b"" for name in names}
