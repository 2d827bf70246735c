"""Kill the service at random moments under load, and show that nothing is lost or counted twice.

    python benchmarks/service/soak.py                       300 kills: all modes, both databases
    python benchmarks/service/soak.py --kills 8 --modes joint --databases sqlite

Clients upload reports whose sum proves what was counted: every report carries a number of its own,
so that a report lost or counted twice shows in the exact sum behind the wall. Requests are dropped
before they are sent and answers before they are read; whatever was not acknowledged is sent again,
byte for byte, until it is. Server and database die by SIGKILL. At the end:

- every acknowledged report is counted exactly once: number and exact sum agree;
- the ledger's chain is whole and nothing was charged twice;
- no noise ever stored was replaced by other noise;
- every policy, worked out again from what was kept, is the same bit for bit.

``--modes returning`` has people who come back (``lives.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tacit_service.collector import Collector

sys.path.insert(0, str(Path(__file__).parent))
from lives import Returning  # noqa: E402
from running import Postgres, postgres  # noqa: E402
from world import Database, Mode, World, secrets_of  # noqa: E402


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
        tally.problems += world.findings()
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
        kind_of_world = Returning if mode == "returning" else World
        world = kind_of_world(folder, mode, server.url if server else "sqlite:///soak.db", seed)
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
    parser.add_argument("--kills", type=int, default=300, help="in all")
    parser.add_argument("--modes", nargs="+", default=["local", "joint", "returning"])
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
