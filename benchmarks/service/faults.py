"""Break what the service stands on, one thing after the other, while reports come in.

    python benchmarks/service/faults.py                      all faults (some need root to mount)
    python benchmarks/service/faults.py witness "full disk"  those whose name holds one of the words
    python benchmarks/service/faults.py --attack 1000        honest uploads beside slow heads

A row says how long after the fault ``/readyz`` answered 503 and how long after the repair it was
ready again for good, the slowest answer of ``/livez`` meanwhile, and whether an acknowledged report
was lost or counted twice. The end is judged as in ``soak.py``: number and exact sum of everything
counted, chain of the ledger, no noise drawn again, the same policies. SQLite is served by one
process, PostgreSQL by two workers.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np

from tacit_service.collector import Collector

sys.path.insert(0, str(Path(__file__).parent))
from broken import FAULTS, Fault, disk, false_clock, full_disk, scene  # noqa: E402
from soak import Draws, Tally, judge  # noqa: E402
from world import Database, World  # noqa: E402

HOLD_SECONDS, CALM_SECONDS, PATIENCE = 3.0, 3.0, 120.0
"""How long a fault lasts once it shows; how long all must be well before it is over; at most."""


class Sample(NamedTuple):
    """One question to the service: when it was asked and answered, and the status (0: none)."""

    asked: float
    answered: float
    status: int


class Probe(threading.Thread):
    """Asks one address again and again, each time on a connection of its own."""

    def __init__(self, address: str, path: str) -> None:
        super().__init__(daemon=True)
        self._port, self._path = httpx.URL(address).port, path
        self._over = threading.Event()
        self.samples: list[Sample] = []

    def run(self) -> None:
        """Ask until told to stop."""
        while not self._over.wait(0.05):
            asked, status = time.monotonic(), 0
            line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(line):
                line.request("GET", self._path)
                status = line.getresponse().status
            self.samples.append(Sample(asked, time.monotonic(), status))

    def end(self) -> None:
        """Stop asking."""
        self._over.set()
        self.join()

    def ill(self, since: float) -> float | None:
        """Seconds from a moment to the first answer that all is not well."""
        found = (s.answered - since for s in self.samples if s.asked >= since and s.status != 200)
        return next(found, None)

    def well(self, since: float) -> float | None:
        """Seconds from a moment to the first good answer that no other followed."""
        good: float | None = None
        for sample in list(self.samples):
            if sample.answered >= since:
                good = None if sample.status != 200 else good or sample.answered
        return None if good is None else good - since


@dataclass
class Row:
    """What was measured."""

    name: str
    where: str
    unready: float | None = None
    ready: float | None = None
    livez: float = 0.0
    lost: int = 0
    twice: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shown = ["never" if one is None else f"{one:.1f}" for one in (self.unready, self.ready)]
        verdict = "; ".join(self.problems) or "sums, ledger, noise and policies agree"
        cells = [self.name, self.where, *shown, f"{self.livez:.2f}", self.lost, self.twice, verdict]
        return f"| {' | '.join(map(str, cells))} |"


@contextlib.contextmanager
def load(world: World, seed: int = 1) -> Iterator[None]:
    """Reports arrive meanwhile; with another seed, of other people."""
    clients = [threading.Thread(target=world.client, args=(10 * seed + k,)) for k in range(2)]
    for client in clients:
        client.start()
    try:
        yield
    except BaseException:
        world.gone = True
        raise
    finally:
        world.stop.set()
        for client in clients:
            client.join()


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Wait for it; False if it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def version(world: World) -> int:
    """The newest policy, as anybody can see it; -1 if nobody answers."""
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.get(f"{world.service.address}/v1/policy", timeout=30)
        if answer.status_code == 200:
            return int(answer.json()["version"])
    return -1


def learned(world: World, more: int = 1) -> bool:
    """Whether so many more policies come out."""
    newest = version(world)
    return until(lambda: version(world) >= newest + more)


def run(fault: Fault, folder: Path) -> Row:
    """Cause it, look, repair it, look, and judge what is there at the end."""
    row = Row(fault.name, f"{fault.mode}, {fault.database}")
    with contextlib.ExitStack() as stack:
        if fault.begin is full_disk:
            size = "8m" if fault.database == "sqlite" else "200m"
            folder = stack.enter_context(disk(folder / "disk", size))
        environment = {} if fault.shows else false_clock(folder)
        now = stack.enter_context(scene(folder, fault.mode, fault.database, environment))
        world, draws = now.world, Draws(now.world)
        with load(world):
            learned(world)
            ready, alive = (Probe(world.service.address, path) for path in ("/readyz", "/livez"))
            ready.start()
            alive.start()
            began = time.monotonic()
            repair = fault.begin(now)
            until(lambda: ready.ill(began), 30.0 if fault.shows else HOLD_SECONDS)
            time.sleep(HOLD_SECONDS)
            row.unready, repaired = ready.ill(began), time.monotonic()
            repair()
            until(lambda: ready.well(repaired + CALM_SECONDS))
            if not learned(world):
                row.problems.append("no policy after the repair")
            row.ready = ready.well(repaired)
            for probe in (ready, alive):
                probe.end()
        row.livez = max(sample.answered - sample.asked for sample in alive.samples)
        silent = sum(sample.status != 200 for sample in alive.samples)
        if silent:
            row.problems.append(f"/livez did not answer {silent} times")
        if (row.unready is not None) != fault.shows:
            row.problems.append(f"unready: {row.unready}")
        settle(world, draws, row)
    return row


def settle(world: World, draws: Draws, row: Row) -> None:
    """Stop it, and look behind the wall."""
    world.fill()
    world.service.stop()
    draws.look()
    tally = Tally()
    judge(world, tally)
    row.problems += world.surprises + draws.problems + tally.problems
    off = tally.accepted - len(world.acknowledged)
    row.lost, row.twice = max(0, -off), max(0, off)


def restored(database: Database, folder: Path) -> Row:
    """Put back an old copy of the database, and send other reports: nothing is released anew."""
    row = Row("old copy put back", f"joint, {database}")
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(disk(folder / "other", "1m"))  # the witness is not restored
        now = stack.enter_context(scene(folder, "joint", database, {}, other / "witness"))
        world, draws = now.world, Draws(now.world)
        with load(world):
            learned(world)
        world.fill()  # so that the copy holds no full batch that is not published
        world.service.stop()
        old = now.copy("old")
        world.service.start()
        world.stop.clear()
        with load(world, seed=2):
            learned(world, 3)
        world.fill()
        world.service.stop()
        newest, policies, kept = now.copy("newest"), published(world), dict(world.acknowledged)
        now.put_back(old)
        world.service.start()
        ready, alive = (Probe(world.service.address, path) for path in ("/readyz", "/livez"))
        began = time.monotonic()
        ready.start()
        alive.start()
        world.stop.clear()
        with load(world, seed=3):
            until(lambda: ready.ill(began), 60.0)
            time.sleep(HOLD_SECONDS)
        row.unready = ready.ill(began)
        world.service.stop()
        again = published(world)
        for number, (first, second) in enumerate(zip(policies, again, strict=False)):
            if first != second:
                row.problems.append(f"version {number} was published twice, differently")
        for probe in (ready, alive):
            probe.end()
        row.livez = max(s.answered - s.asked for s in alive.samples if s.status)
        now.put_back(newest)  # what was sent meanwhile is gone with the old copy
        world.acknowledged = kept
        repaired = time.monotonic()
        world.service.start()
        ready = Probe(world.service.address, "/readyz")
        ready.start()
        until(lambda: ready.well(repaired))
        row.ready = ready.well(repaired)
        ready.end()
        settle(world, draws, row)
    return row


def published(world: World) -> list[bytes]:
    """Every policy as it was sent, read from the database."""
    with Collector.open(world.deployment) as collector:
        newest = collector.status().version
        return [collector.policy(number).body for number in range(newest + 1)]


def attack(number: int, folder: Path) -> str:
    """Sockets that send a head byte by byte and never finish it, beside one honest client."""
    said = []
    with scene(folder, "local", "sqlite", {}) as now, contextlib.ExitStack() as stack:
        world, address = now.world, httpx.URL(now.world.service.address)
        for lines in (0, number):
            slow: list[socket.socket] = []
            served, latencies = 0, []
            for _ in range(lines):
                line = socket.create_connection((address.host, address.port or 80), timeout=60)
                slow.append(stack.enter_context(line))
                line.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: here\r\nX-Slow: ")
            rng, end = random.Random(lines), time.monotonic() + 20.0
            while time.monotonic() < end:
                for k, line in enumerate(slow):  # whoever was hung up on comes again
                    try:
                        line.sendall(b"x")
                    except OSError:
                        slow[k] = stack.enter_context(
                            socket.create_connection((address.host, address.port or 80), timeout=60)
                        )
                with httpx.Client(base_url=address, timeout=30.0) as honest:
                    for _ in range(10):
                        body, began = world.upload(rng, 1)[0], time.monotonic()
                        with contextlib.suppress(httpx.HTTPError):
                            served += b'"accepted"' in world.post(honest, body).content
                        latencies.append(time.monotonic() - began)
            p50, p99 = 1e3 * np.quantile(latencies, [0.5, 0.99])
            said.append(
                f"{lines} slow sockets: {served} of {len(latencies)} honest uploads served, "
                f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, slowest {1e3 * max(latencies):.0f} ms"
            )
    return "\n".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names; all faults without")
    parser.add_argument("--attack", type=int, default=0, help="so many slow sockets instead")
    options = parser.parse_args()
    cases: list[tuple[str, Callable[[Path], Row]]] = [
        (f"{fault.name}, {fault.mode}, {fault.database}", partial(run, fault)) for fault in FAULTS
    ]
    kinds: tuple[Database, ...] = ("sqlite", "postgres")
    cases += [(f"old copy put back, joint, {kind}", partial(restored, kind)) for kind in kinds]
    if options.attack:
        with tempfile.TemporaryDirectory() as folder:
            print(attack(options.attack, Path(folder)))
        return
    print("| fault | where | unready after | ready after | slowest /livez | lost | twice | |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for name, case in cases:
        if options.names and not any(word in name for word in options.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            row = case(Path(folder))
        print(row, flush=True)
        failed = failed or bool(row.problems)
    sys.exit(failed)


if __name__ == "__main__":
    main()
