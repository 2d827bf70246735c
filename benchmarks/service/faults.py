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
import shutil
import socket
import subprocess
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
import psutil
import psycopg

from tacit.service.collector import Collector

sys.path.insert(0, str(Path(__file__).parent))
from running import Postgres, postgres  # noqa: E402
from soak import Database, Draws, Mode, Tally, World, judge  # noqa: E402

HOLD_SECONDS, CALM_SECONDS, PATIENCE = 3.0, 3.0, 120.0
"""How long a fault lasts once it shows; how long all must be well before it is over; at most."""
Break = Callable[["Scene"], Callable[[], None]]
"""Causes a fault, and returns what repairs it."""


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
class Scene:
    """A running service under load, and what it stands on."""

    world: World
    folder: Path
    server: Postgres | None

    @property
    def files(self) -> list[Path]:
        """The files of SQLite's database."""
        return [self.folder / f"soak.db{end}" for end in ("", "-wal", "-shm")]

    def copy(self, name: str) -> Path:
        """A copy of the database of a service that is stopped."""
        if self.server is None:
            return Path(shutil.copy(self.files[0], self.folder / name))
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE soak")
        return Path(name)

    def put_back(self, copy: Path) -> None:
        """Let the service find that copy in place of its database."""
        if self.server is None:
            for file in self.files:
                file.unlink(missing_ok=True)
            shutil.copy(copy, self.files[0])
            return
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute("DROP DATABASE soak WITH (FORCE)")
            connection.execute(f"CREATE DATABASE soak TEMPLATE {copy.name}")


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


# The faults.


def missing_witness(scene: Scene) -> Callable[[], None]:
    """Somebody moved it."""
    witness = scene.world.deployment.witness
    hidden = witness.rename(witness.with_suffix(".hidden"))
    return lambda: void(hidden.rename(witness))


def full_disk(scene: Scene) -> Callable[[], None]:
    """Not a byte is left where the database is."""
    ballast = scene.folder / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass

    def repair() -> None:
        ballast.unlink()
        if scene.server is not None:  # it gives up when its log cannot be written
            scene.server.start()

    return repair


def immutable(scene: Scene) -> Callable[[], None]:
    """No file of the database can be written any more, not by those who have it open either."""
    files = [str(file) for file in scene.files if file.exists()]
    subprocess.run(["chattr", "+i", *files], check=True)
    return lambda: void(subprocess.run(["chattr", "-i", *files], check=True))


def read_only(scene: Scene) -> Callable[[], None]:
    """PostgreSQL serves readers only, as after a failover to a standby."""

    def turn(how: str) -> None:
        assert scene.server is not None
        with psycopg.connect(scene.server.url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE soak SET default_transaction_read_only = {how}")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'soak'"
            )

    turn("on")
    return lambda: turn("off")


def garbage(scene: Scene) -> Callable[[], None]:
    """All pages of the file are overwritten; the repair puts back those still spoilt."""
    page, noise = 4096, b"\xa5" * 4096
    database = scene.files[0]
    before = database.read_bytes()
    with open(database, "r+b") as file:
        file.write(noise * (len(before) // page))

    def repair() -> None:
        with open(database, "r+b") as file:
            for start in range(0, len(before), page):
                file.seek(start)
                if file.read(page) == noise:
                    file.seek(start)
                    file.write(before[start : start + page])

    return repair


def frozen(scene: Scene) -> Callable[[], None]:
    """PostgreSQL is stopped in the middle of whatever it does."""
    assert scene.server is not None
    parent = scene.server.process()
    stopped = [parent, *parent.children(recursive=True)]
    for process in stopped:
        process.suspend()

    def repair() -> None:
        for process in reversed(stopped):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    return repair


def killed(scene: Scene) -> Callable[[], None]:
    """PostgreSQL is gone."""
    assert scene.server is not None
    scene.server.kill()
    return scene.server.start


def clock(jump: str) -> Break:
    """The wall clock of the service is set; its steady clock goes on."""

    def begin(scene: Scene) -> Callable[[], None]:
        (scene.folder / "clock").write_text(jump)
        return lambda: void((scene.folder / "clock").write_text("+0"))

    return begin


def void(_: object) -> None:
    """Nothing."""


class Fault(NamedTuple):
    """One line of the table."""

    name: str
    mode: Mode
    database: Database
    begin: Break
    shows: bool = True


FAULTS = (
    Fault("missing witness", "joint", "sqlite", missing_witness),
    Fault("missing witness", "joint", "postgres", missing_witness),
    Fault("full disk", "local", "sqlite", full_disk),
    Fault("full disk", "joint", "sqlite", full_disk),
    Fault("full disk", "joint", "postgres", full_disk),
    Fault("files write-protected", "joint", "sqlite", immutable),
    Fault("read-only", "joint", "postgres", read_only),
    Fault("file overwritten", "local", "sqlite", garbage),
    Fault("frozen", "local", "postgres", frozen),
    Fault("frozen", "joint", "postgres", frozen),
    Fault("killed", "joint", "postgres", killed),
    Fault("clock a day ahead", "joint", "sqlite", clock("+1d"), shows=False),
    Fault("clock a day ahead", "joint", "postgres", clock("+1d"), shows=False),
    Fault("clock a day behind", "joint", "sqlite", clock("-1d"), shows=False),
    Fault("clock a day behind", "joint", "postgres", clock("-1d"), shows=False),
)


# The scene.


@contextlib.contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A small disk of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def false_clock(folder: Path) -> dict[str, str]:
    """Variables that let a program see the wall clock that the file ``clock`` says."""
    (folder / "clock").write_text("+0")
    found = subprocess.run(
        ["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True
    )
    return {
        "LD_PRELOAD": found.stdout.strip(),
        "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


@contextlib.contextmanager
def scene(
    folder: Path,
    mode: Mode,
    database: Database,
    environment: dict[str, str],
    witness: Path | None = None,
) -> Iterator[Scene]:
    """A service that runs in a folder, with everything it stands on."""
    with contextlib.ExitStack() as stack:
        server, url = None, "sqlite:///soak.db"
        if database == "postgres":
            server = stack.enter_context(postgres(folder / "postgres"))
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("CREATE DATABASE soak")
            url = server.url.replace("/postgres?", "/soak?")
        world = World(folder, mode, url, seed=1, witness=witness)
        world.service.options = ("--workers", "2") if server else ()
        world.service.environment = environment
        world.service.start()
        stack.callback(world.service.stop)
        yield Scene(world, folder, server)


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
        for number, (one, other) in enumerate(zip(policies, again, strict=False)):
            if one != other:
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
    print(
        "| fault | where | s until unready | s until ready | slowest /livez (s) | lost | twice | |"
    )
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
