"""Kill the service at random moments under load, and show that nothing is lost or counted twice.

    python benchmarks/service/soak.py                       200 kills: both modes, both databases
    python benchmarks/service/soak.py --kills 8 --modes joint --databases sqlite

Clients upload reports whose sum proves what was counted: every report carries a number of its own,
so that a report lost or counted twice shows in the exact sum behind the wall. Requests are dropped
before they are sent and answers before they are read; whatever was not acknowledged is sent again,
byte for byte, until it is. Server and database die by SIGKILL. At the end:

- every acknowledged report is counted exactly once: number and exact sum agree;
- the ledger's chain is whole and nothing was charged twice;
- no noise ever stored was replaced by other noise;
- every policy, worked out again from what was kept, is the same bit for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np

from tacit import wire
from tacit.arrays import IntArray
from tacit.privacy.local.additive import GRID
from tacit.service.collector import Collector
from tacit.service.deployment import Deployment
from tacit.service.store import Store
from tacit.service.vault import Vault
from tacit.trajectory import Lives, Trajectory

sys.path.insert(0, str(Path(__file__).parent))
from running import Postgres, Service, free_port, postgres  # noqa: E402

Mode = Literal["local", "joint"]
Database = Literal["sqlite", "postgres"]
BATCH = 20
LOST = 0.1
"""Share of requests and of answers that are lost on the way."""
DEPLOYMENT = """
[task]
name = "soak"
states = 2
actions = 2
horizon = 2
homogeneous = true

[agent]
{agent}

[population]
users = 1000000
tokens = "shared"

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
}


class World:
    """One task on one database, its clients, and what they were told."""

    def __init__(
        self, folder: Path, mode: Mode, database: str, seed: int, witness: Path | None = None
    ) -> None:
        self.mode = mode
        port = free_port()
        path = folder / "soak.toml"
        text = DEPLOYMENT.format(
            agent=AGENTS[mode],
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
            message = wire.pack_message(values)
        else:
            number = rng.randrange(2**24)
            rewards = np.array([number / 2**24, 0.0])
            life = Trajectory(np.zeros(3, int), np.zeros(2, int), rewards)
            message = wire.pack_trajectory(life, 2)
        return {"id": f"{rng.getrandbits(128):032x}", "version": 0, "message": message}, number

    def client(self, seed: int) -> None:
        """One upload after the other, each repeated until it is acknowledged."""
        rng = random.Random(seed)
        with httpx.Client(base_url=self.service.address, timeout=20.0) as http:
            while not self.stop.is_set():
                self.insist(http, rng, rng.randrange(1, 6))

    def insist(self, http: httpx.Client, rng: random.Random, count: int) -> None:
        """Upload so many new reports until the answer says that they are there."""
        content, numbers = self.upload(rng, count)
        while not (self.gone or self._acknowledged(http, rng, content, numbers)):
            time.sleep(rng.uniform(0.0, 0.1))

    def upload(self, rng: random.Random, count: int) -> tuple[bytes, dict[str, int]]:
        """The body of a request with so many new reports, and the number that each carries."""
        made = [self.report(rng) for _ in range(count)]
        body = {"task_id": self.deployment.task_id, "reports": [report for report, _ in made]}
        return json.dumps(body).encode(), {report["id"]: number for report, number in made}

    def post(self, http: httpx.Client, content: bytes) -> httpx.Response:
        """Send it once."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return http.post("/v1/reports", content=content, headers=headers)

    def _acknowledged(
        self, http: httpx.Client, rng: random.Random, content: bytes, numbers: dict[str, int]
    ) -> bool:
        if rng.random() < LOST:  # the request never arrives
            return False
        try:
            answer = self.post(http, content)
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


class Draws:
    """Remembers every noise ever seen in the encrypted table, and notices any that changed."""

    def __init__(self, world: World) -> None:
        self._deployment = world.deployment
        self._seen: dict[str, bytes] = {}
        self.problems: list[str] = []

    def look(self) -> None:
        """Compare what is stored now with what was stored before."""
        if self._deployment.model != "joint":
            return
        for name, value in secrets_of(self._deployment, "noise:").items():
            if self._seen.setdefault(name, value) != value:
                self.problems.append(f"{name} was drawn again")
        missing = {f"noise:{i + 1}" for i in range(len(self._seen))} - set(self._seen)
        if missing:
            self.problems.append(f"noise of {len(missing)} releases was never seen")


def judge(world: World, tally: Tally) -> None:
    """Number and exact sum of everything counted, the chain of the ledger, the policies."""
    with Collector.open(world.deployment) as collector:
        status, ledger = collector.status(), collector.ledger()
        tally.versions, tally.accepted = status.version, status.accepted
        if status.accepted != len(world.acknowledged):
            tally.problems.append(
                f"{status.accepted} counted, {len(world.acknowledged)} acknowledged"
            )
        if not np.array_equal(world.counted(), world.expected()):
            tally.problems.append("the exact sum differs from what was sent")
        checked = collector.verify()
    if not ledger["verified"] or len(ledger["entries"]) > 1:
        tally.problems.append(f"ledger: {ledger}")
    if not checked.sound:
        tally.problems.append(f"policies: {checked.problem}")


@dataclass
class Tally:
    """What happened, and what was found at the end."""

    kills: int = 0
    database_kills: int = 0
    reports: int = 0
    accepted: int = 0
    versions: int = 0
    restarts: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        slowest, middle = max(self.restarts), sorted(self.restarts)[len(self.restarts) // 2]
        verdict = (
            "; ".join(self.problems)
            or "every report counted once, chain intact, no redraw, same policies"
        )
        return (
            f"{self.kills} kills ({self.database_kills} of the database), {self.reports} reports, "
            f"{self.versions} versions, restart {middle:.1f} s (slowest {slowest:.1f}): {verdict}"
        )


def soak(folder: Path, mode: Mode, kind: Database, kills: int, seed: int = 0) -> Tally:
    """Kill one service so many times, then look behind the wall."""
    tally = Tally()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(postgres(folder / "postgres")) if kind == "postgres" else None
        world = World(folder, mode, server.url if server else "sqlite:///soak.db", seed)
        stack.callback(world.service.stop)
        draws = Draws(world)
        tally.restarts.append(world.service.start())
        clients = [threading.Thread(target=world.client, args=(seed + i,)) for i in range(1, 4)]
        for client in clients:
            client.start()
        try:
            for _ in range(kills):
                world.work_a_little()
                kill_one(world, server, tally)
                draws.look()
        except BaseException:
            world.gone = True
            raise
        finally:
            world.stop.set()
            for client in clients:
                client.join()
        world.fill()
        draws.look()
        world.service.stop()
        tally.reports = len(world.acknowledged)
        tally.problems += world.surprises + draws.problems
        judge(world, tally)
    return tally


def kill_one(world: World, server: Postgres | None, tally: Tally) -> None:
    """SIGKILL the service, or now and then the database under it, and start it again."""
    tally.kills += 1
    if server is not None and world.rng.random() < 0.4:
        tally.database_kills += 1
        server.kill()
        if world.rng.random() < 0.5:
            world.service.kill()
        server.start()
    else:
        world.service.kill()
    began = time.monotonic()
    if world.service.process is None:
        world.service.start()
    while not world.service.healthy():
        if time.monotonic() - began > 300.0:
            raise RuntimeError("the service is not healthy five minutes after a kill")
        time.sleep(0.02)
    tally.restarts.append(time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="in all")
    parser.add_argument("--modes", nargs="+", default=["local", "joint"])
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = [(mode, kind) for mode in options.modes for kind in options.databases]
    failed = False
    for mode, kind in cases:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            tally = soak(Path(folder), mode, kind, options.kills // len(cases), options.seed)
        print(f"{mode}, {kind}: {tally}", flush=True)
        failed = failed or bool(tally.problems)
    sys.exit(failed)


if __name__ == "__main__":
    main()
