"""How many reports per second the service takes, beside plain inserts into the same database.

    python benchmarks/service/load.py                  PostgreSQL, two workers, three rounds
    python benchmarks/service/load.py --sqlite         SQLite, one process
    python benchmarks/service/load.py --reports 1e6 --rounds 1
    python benchmarks/service/load.py --sqlite --each 1 --clients 32     one report per request

A round first inserts rows of the same size (id, version, message; one statement and one commit per
upload, ``synchronous_commit`` on), on one connection and on as many as there are clients, then
uploads as many reports, ``--each`` per request, and compares the rates, one after the other on this
machine. Many connections share the waiting for the disk, so they are the harder comparison.
Clients send prepared bytes over one kept connection each; a few processes hold all connections, so
that the clients do not compete with the service more than they must. They connect one after the
other (whoever accepts one of several connections at once accepts them all) before time counts.
The processor time that the service spends on a report is printed as well: it says what a machine
with nothing else to do would reach.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import multiprocessing
import re
import selectors
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent))
from running import Service, free_port, postgres  # noqa: E402

CLIENT_PROCESSES = 4
DEPLOYMENT = """
[task]
name = "load"
states = 10
actions = 4
horizon = 10
homogeneous = true

[agent]
name = "tacit-local"
epsilon = 2.0

[population]
users = {users}
tokens = "shared"

[updates]
minimum_batch = {batch}
accepted_versions = 1000

[storage]
database = "{database}"

[server]
port = {port}
"""


class Case:
    """A deployment with its device token and everything needed to write reports to it."""

    def __init__(self, folder: Path, database: str, users: int) -> None:
        from tacit.wire.report_rules import rules_hash
        from tacit_service.collector import Collector
        from tacit_service.config.deployment import Deployment

        self.port = free_port()
        path = folder / "load.toml"
        batch = max(1000, users // 10)
        text = DEPLOYMENT.format(users=users, batch=batch, database=database, port=self.port)
        path.write_text(text)
        self.deployment = Deployment.load(path)
        with contextlib.closing(Collector.open(self.deployment)) as collector:
            (self.token,) = collector.tokens.issue("device", 1, "load")
            self.publication = collector.billboard.history()[0].publication
        self.path = path
        self._pool = self._messages(40)
        self._rules = rules_hash(self.deployment.rules)

    def _messages(self, each: int) -> dict[tuple[int, int], list[str]]:
        """Some randomized messages for every question: what somebody who did nothing sends."""
        from tacit.privacy.noise import SecureNoise
        from tacit.trajectory import Trajectory
        from tacit.wire import messages

        bound, H = self.deployment.bound, self.deployment.task.horizon
        nothing = Trajectory(np.zeros(H + 1, int), np.zeros(H, int), np.zeros(H))
        out = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        pool: dict[tuple[int, int], list[str]] = {}
        noise = SecureNoise()
        for number in range(each * 3 * H * 20):
            coin = messages.coin(self.deployment.task_id, f"{number:032x}")
            found = pool.setdefault(self._question(coin), [])
            if len(found) < each:
                bound.statistic.contribute(nothing, self.publication, coin, out)
                message = messages.device_message(bound, out, self.publication, coin, noise)
                found.append(messages.pack_message(message))
        return pool

    def _question(self, coin: int) -> tuple[int, int]:
        statistic: Any = self.deployment.bound.statistic
        step, kind = statistic.question(self.publication, coin)
        return step, kind

    def upload(self, rng: np.random.Generator, each: int) -> list[tuple[str, str]]:
        """Ids and messages of one request."""
        from tacit.wire import messages

        task_id = self.deployment.task_id
        found = []
        for _ in range(each):
            name = rng.bytes(16).hex()
            pool = self._pool[self._question(messages.coin(task_id, name))]
            found.append((name, pool[int(rng.integers(len(pool)))]))
        return found

    def request(self, reports: Sequence[tuple[str, str]]) -> bytes:
        """The bytes of one HTTP request."""
        body = json.dumps(
            {
                "task_id": self.deployment.task_id,
                "reports": [
                    {"id": i, "version": 0, "message": m, "rules": self._rules} for i, m in reports
                ],
            },
            separators=(",", ":"),
        ).encode()
        head = (
            f"POST /v1/reports HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


class Line:
    """One connection: it sends its next request when the answer to the last one is there."""

    def __init__(self, port: int, requests: Sequence[bytes], each: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.latencies: list[float] = []
        self._requests, self._each = iter(requests), each
        self._received, self._began = b"", 0.0

    def send(self) -> bool:
        """Send the next request; False if there is none."""
        request = next(self._requests, None)
        if request is None:
            return False
        self._began = time.perf_counter()
        self.socket.sendall(request)
        return True

    def answered(self) -> bool:
        """Read what is there; whether it is a whole answer, and says that all was accepted."""
        part = self.socket.recv(65536)
        self._received += part
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not part or (end and not head.startswith(b"HTTP/1.1 200")):
            raise RuntimeError(f"refused: {self._received[:500]!r}")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE) if end else None
        if length is None or len(body) < int(length[1]):
            return False
        self.latencies.append(time.perf_counter() - self._began)
        if body.count(b'"accepted"') != self._each:
            raise RuntimeError(f"not all were accepted: {body[:500]!r}")
        self._received = b""
        return True


def send_all(
    number: int, start: Any, times: Any, port: int, each: int, parts: Sequence[Sequence[bytes]]
) -> None:
    """Some clients in one process, each with its own connection."""
    time.sleep(0.05 * number)
    lines = []
    for requests in parts:
        lines.append(Line(port, requests, each))
        time.sleep(0.01)
    waiting = selectors.DefaultSelector()
    for line in lines:
        waiting.register(line.socket, selectors.EVENT_READ, line)
    start.wait()
    for line in lines:
        if not line.send():
            waiting.unregister(line.socket)
    while waiting.get_map():
        for key, _ in waiting.select(120):
            if key.data.answered() and not key.data.send():
                waiting.unregister(key.fileobj)
    times.put([latency for line in lines for latency in line.latencies])


def insert_all(
    number: int, start: Any, times: Any, url: str, uploads: Sequence[Sequence[tuple[str, str]]]
) -> None:
    """One client of the comparison: one statement and one commit per upload."""
    import psycopg

    row = "(%s, %s, %s)"
    statement = f"INSERT INTO plain VALUES {', '.join([row] * len(uploads[0]))}"
    latencies = []
    with psycopg.connect(url, autocommit=True) as connection:
        start.wait()
        for reports in uploads:
            values: list[Any] = []
            for name, message in reports:
                values += (uuid.UUID(name), 0, base64.b64decode(message))
            began = time.perf_counter()
            connection.execute(statement, values)
            latencies.append(time.perf_counter() - began)
    times.put(latencies)


def together(work: Callable[..., None], parts: Sequence[tuple[Any, ...]]) -> tuple[float, Any]:
    """Run one process per part; seconds from start to end, and all latencies."""
    context = multiprocessing.get_context("fork")
    times, start = context.SimpleQueue(), context.Barrier(len(parts) + 1)
    processes = [
        context.Process(target=work, args=(number, start, times, *part))
        for number, part in enumerate(parts)
    ]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    found = [times.get() for _ in processes]
    for process in processes:
        process.join()
    return time.perf_counter() - began, np.concatenate(found)


def plain_rate(url: str, parts: Sequence[Sequence[Any]]) -> float:
    """Rows per second of plain inserts into a fresh table with a primary key."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS plain")
        connection.execute("CREATE TABLE plain (id uuid PRIMARY KEY, version int, message bytea)")
        row = connection.execute("SHOW synchronous_commit").fetchone()
        if row is None or row[0] != "on":
            raise RuntimeError("synchronous_commit is off; the comparison would be unfair")
    seconds, _ = together(insert_all, [(url, part) for part in parts])
    return len(parts[0][0]) * sum(map(len, parts)) / seconds


def processes_of(service: Service) -> list[psutil.Process]:
    """The service's own process and its workers."""
    assert service.process is not None
    parent = psutil.Process(service.process.pid)
    return [parent, *parent.children(recursive=True)]


def memory(service: Service) -> float:
    """Megabytes of the service's processes, private and shared parts counted once each."""
    return sum(process.memory_full_info().pss for process in processes_of(service)) / 1e6


def processor(service: Service) -> float:
    """Seconds of processor time that they have used."""
    times = [process.cpu_times() for process in processes_of(service)]
    return sum(time.user + time.system for time in times)


def measure(case: Case, service: Service, plain_url: str | None, options: Any) -> None:
    """Rounds of plain inserts and uploads, in turns."""
    rng = np.random.default_rng()
    each, uploads = options.each, int(options.reports) // options.each
    for round_ in range(options.rounds):
        parts = [
            [case.upload(rng, each) for _ in range(uploads // options.clients)]
            for _ in range(options.clients)
        ]
        plain = {}
        if plain_url:
            plain["one connection"] = plain_rate(plain_url, [sum(parts, start=[])])
            plain[f"{options.clients} connections"] = plain_rate(plain_url, parts)
        requests = [[case.request(upload) for upload in part] for part in parts]
        del parts
        spread = [requests[i::CLIENT_PROCESSES] for i in range(CLIENT_PROCESSES)]
        before, used = memory(service), processor(service)
        seconds, latencies = together(
            send_all, [(case.port, each, some) for some in spread if some]
        )
        rate = each * len(latencies) / seconds
        cost = 1e6 * (processor(service) - used) / (each * len(latencies))
        p50, p99 = 1e3 * np.quantile(latencies, [0.5, 0.99])
        words = f"round {round_ + 1}: {rate:,.0f} reports/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms, "
        words += f"processor {cost:.0f} us per report, "
        words += f"memory {before:.0f} -> {memory(service):.0f} MB"
        for how, rows in plain.items():
            words += f"; plain inserts, {how}: {rows:,.0f} rows/s, ratio {rate / rows:.2f}"
        print(words, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reports", type=float, default=60_000, help="reports per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--each", type=int, default=100, help="reports per request")
    parser.add_argument("--workers", type=int, default=2, help="API processes (PostgreSQL)")
    parser.add_argument("--sqlite", action="store_true", help="SQLite and one process")
    options = parser.parse_args()
    users = int(options.reports) * options.rounds
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        url, extra = None, []
        database = "sqlite:///load.db"
        if not options.sqlite:
            database = url = stack.enter_context(postgres(folder / "postgres")).url
            extra = ["--workers", str(options.workers)]
        case = Case(folder, database, users)
        service = Service(case.path, case.port, *extra)
        stack.callback(service.stop)
        print(f"healthy after {service.start():.1f} s", flush=True)
        measure(case, service, url, options)


if __name__ == "__main__":
    main()
