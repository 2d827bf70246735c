"""Fleets of all clients against servers of one task, fed the same tapes: the same policies?

    python benchmarks/service/devices.py --people 5000 --clients node python
    python benchmarks/service/devices.py --people 200 --clients pages node python

A database is made once and copied, so that every server has the same tokens and the same root of
its plans. Then each fleet takes part, batch by batch: pages in a real Chromium, whose origin is not
the server's; devices in Node; devices in Python. At the end every report was counted once,
``--verify`` finds every policy again, and all servers published the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from tacit.client import Api, Device
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "js"
TACIT = [sys.executable, "-c", "from tacit.cli.main import main; main()"]
STATES, HORIZON = 6, 5
PATIENCE = 1800.0
"""Seconds for what must happen, also on a busy machine."""
TABS = 20
"""Pages that are open at the same time."""

DEPLOYMENT = """
[task]
name = "all clients"
states = {states}
actions = 3
horizon = {horizon}
homogeneous = true
[agent]
name = "tacit-local"
epsilon = {epsilon}
[population]
users = {people}
[updates]
minimum_batch = {batch}
[storage]
keep_reports = true
"""

Person = dict[str, Any]
Send = Callable[[str, list[Person]], list[str]]


def begun(folder: Path, people: int, epsilon: float, batch: int) -> list[Person]:
    """A new task in a folder, and its people: their tokens, lives and tapes."""
    path, sizes = folder / "task.toml", {"states": STATES, "horizon": HORIZON}
    path.write_text(DEPLOYMENT.format(people=people, epsilon=epsilon, batch=batch, **sizes))
    with Collector.open(Deployment.load(path)) as collector:
        tokens = collector.tokens.issue("device", people, "all clients")
    return [_person(number, token) for number, token in enumerate(tokens)]


def _person(number: int, token: str) -> Person:
    rng = random.Random(number)
    lived, states = rng.choice([HORIZON, HORIZON, 2]), [rng.randrange(STATES) for _ in range(9)]
    steps = [[states[h], rng.random(), states[h + 1]] for h in range(lived)]
    return {"number": number, "token": token, "steps": steps, "tape": rng.randbytes(4096).hex()}


@contextmanager
def serving(folder: Path, origin: str) -> Iterator[str]:
    """``tacit serve`` on a copy of the task."""
    process = subprocess.Popen(
        [*TACIT, "serve", str(folder / "task.toml"), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TACIT_SERVER_ORIGINS": json.dumps([origin])},
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        address = "http://" + first.split("http://")[1].split()[0]
        end = time.monotonic() + PATIENCE
        while not _answers(address):
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False


def run(address: str, people: list[Person], send: Send) -> list[bytes]:
    """Let people take part batch by batch; every policy that was published, as bytes."""
    at, end = 0, time.monotonic() + PATIENCE
    while at < len(people):
        now = httpx.get(f"{address}/v1/dashboard", timeout=PATIENCE).json()["progress"]
        batch = people[at : at + now["next_policy_in"]]
        if not batch:
            assert time.monotonic() < end, "the planner does not go on"
            time.sleep(0.2)
            continue
        outcomes = send(address, batch)
        # a duplicate was accepted before: its answer was lost on a slow line
        assert set(outcomes) <= {"accepted", "duplicate"}, sorted(set(outcomes))
        at += len(batch)
    while True:
        newest = httpx.get(f"{address}/v1/policy", timeout=PATIENCE).json()
        if newest["users"] == len(people):
            break
        assert time.monotonic() < end, "the last policy does not come"
        time.sleep(0.2)
    assert httpx.get(f"{address}/v1/dashboard").json()["progress"]["accepted"] == len(people)
    versions = range(newest["version"] + 1)
    return [httpx.get(f"{address}/v1/policy/{v}", timeout=PATIENCE).content for v in versions]


def by_node(address: str, people: list[Person]) -> list[str]:
    """Devices of the TypeScript client in Node."""
    done = subprocess.run(
        ["node", "test/fleet.mjs", address],
        input=json.dumps(people),
        capture_output=True,
        text=True,
        cwd=CLIENT,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def by_python(address: str, people: list[Person]) -> list[str]:
    """Devices of the Python client, each thread with the tape of its person."""
    own = threading.local()

    def tape(count: int) -> bytes:
        if not hasattr(own, "tape"):
            return os.urandom(count)
        return bytes(next(own.tape) for _ in range(count))

    def live(person: Person) -> str:
        own.tape = iter(bytes.fromhex(person["tape"]))
        api = Api(address, keep=60.0)
        with Device(api, None, max_epsilon=100.0, token=person["token"]) as device:
            episode = device.begin()
            for state, reward, following in person["steps"]:
                episode.act(state)
                episode.observe(reward, following)
            if not episode.done:
                episode.leave()
            (delivery,) = device.send()
        api.close()
        return str(delivery.outcome)

    with patch("random._urandom", tape), ThreadPoolExecutor(8) as pool:
        return list(pool.map(live, people))


class Pages:
    """Devices of the TypeScript client in pages of a real Chromium, served from here."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._people: dict[int, Person] = {}
        self._outcomes: dict[int, list[str]] = {}
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.partition("?")[0]
                kind, body = "text/javascript", (CLIENT / "dist" / "tacit.min.js").read_bytes()
                if name.startswith("/people/"):
                    kind, body = "application/json", pages.person(int(name.split("/")[-1]))
                elif name != "/tacit.min.js":
                    kind, body = "text/html", Path(__file__).with_name("fleet.html").read_bytes()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                said = self.rfile.read(int(self.headers["Content-Length"])).decode()
                pages._outcomes[int(self.path.split("/")[-1])].append(said)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *anything: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def person(self, number: int) -> bytes:
        """What a page is told."""
        return json.dumps(self._people[number]).encode()

    def __call__(self, address: str, people: list[Person]) -> list[str]:
        """One page for each of them, some at a time."""
        for first in range(0, len(people), TABS):
            self._open(address, people[first : first + TABS])
        return [self._outcomes[person["number"]][0] for person in people]

    def twice(self, address: str, person: Person) -> list[str]:
        """Two pages of one person with one outbox, at the same time."""
        self._open(address, [person, person])
        return self._outcomes[person["number"]]

    def _open(self, address: str, people: list[Person]) -> None:
        """A tab for each of them, until all have said how it ended."""
        home = self._driver.current_window_handle
        self._people = {person["number"]: {**person, "address": address} for person in people}
        self._outcomes |= {number: [] for number in self._people}
        for person in people:
            self._driver.switch_to.new_window("tab")
            self._driver.get(f"{self.origin}/page?person={person['number']}")
        end = time.monotonic() + 300
        while sum(len(self._outcomes[number]) for number in self._people) < len(people):
            assert time.monotonic() < end, "a page does not come to its end"
            time.sleep(0.1)
        for handle in set(self._driver.window_handles) - {home}:
            self._driver.switch_to.window(handle)
            self._driver.close()
        self._driver.switch_to.window(home)

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


def compare(
    folder: Path,
    people: int,
    fleets: dict[str, Send],
    origin: str,
    epsilon: float = 2.0,
    batch: int = 50,
) -> dict[str, Any]:
    """Every fleet on its own copy of the task: seconds, and the number of equal policies."""
    made = begun(folder, people, epsilon, batch)
    published: dict[str, list[bytes]] = {}
    seconds = {}
    for name, send in fleets.items():
        place = folder.with_name(f"{folder.name}-{name}")
        shutil.copytree(folder, place)
        began = time.monotonic()
        with serving(place, origin) as address:
            published[name] = run(address, made, send)
        seconds[name] = round(time.monotonic() - began, 1)
        check = [*TACIT, "serve", str(place / "task.toml"), "--verify"]
        subprocess.run(check, check=True, stdout=subprocess.DEVNULL)
    (first, *others) = published.values()
    assert len(first) > 2 and all(one == first for one in others), "the policies differ"
    return {"people": people, "policies": len(first), "seconds": seconds}


def main() -> None:
    """Run the fleets that were asked for."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--people", type=int, default=500)
    kinds = ("pages", "node", "python")
    options.add_argument("--clients", nargs="+", choices=kinds, default=["node", "python"])
    given = options.parse_args()
    sends: dict[str, Send] = {"node": by_node, "python": by_python}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "task"
        place.mkdir()
        if "pages" not in given.clients:
            fleets = {name: sends[name] for name in given.clients}
            print(json.dumps(compare(place, given.people, fleets, "https://page.example.org")))
            return
        sys.path.insert(0, str(ROOT / "tests"))
        from browser.showcase import browser

        with browser(800, 600) as driver:
            pages = Pages(driver)
            fleets = {name: {**sends, "pages": pages}[name] for name in given.clients}
            print(json.dumps(compare(place, given.people, fleets, pages.origin)))
            pages.close()


if __name__ == "__main__":
    main()
