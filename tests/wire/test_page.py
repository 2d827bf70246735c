"""docs/reference/wire.md is enough: a client in C that follows it sends what the reference does."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from service.http.running import JOINT, SMALL, small_service
from wire.test_vectors import CASES, Written, read

SOURCE = Path(__file__).with_name("client.c")


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "tests need a C compiler"
    made = tmp_path_factory.mktemp("c") / "client"
    warnings = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *warnings, "-O1", "-o", made, SOURCE, "-lm"], check=True)
    return made


def run(client: Path, port: int, token: str, **life) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [client, str(port), token], input=json.dumps(life), capture_output=True, text=True
    )


@contextmanager
def served(collector: Written) -> Iterator[int]:
    """What a file says, on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            url = f"http://127.0.0.1{self.path}"
            answer = collector.answer(httpx.Request(self.command, url, content=body))
            self.send_response(answer.status_code)
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_GET

        def log_message(self, *anything: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("name", [name for name in CASES if name != "every month"])
def test_it_replays_every_vector(client, name) -> None:
    one = CASES[name]
    collector = Written(one)
    with served(collector) as port:
        for vector in one["reports"]:
            life = {key: vector[key] for key in ("id", "steps", "tape")}
            done = run(client, port, "token", **life)
            assert (done.stdout, done.stderr) == ("accepted\n", "")
            assert collector.bodies.pop() == vector["body"].encode()


def test_it_declines_a_rule_that_it_cannot_keep_to(client) -> None:
    collector = Written(CASES["every month"])
    with served(collector) as port:
        done = run(client, port, "token", steps=[])
    assert done.returncode == 1 and "needs an outbox" in done.stderr and collector.bodies == []


def test_it_declines_what_does_not_add_up(client) -> None:
    one = CASES["a week"]
    for change, words in (
        ({"wire": 2}, "version of the protocol"),
        ({"name": "another"}, "not the hash of the terms"),
        ({"rules": {**one["task"]["rules"], "version": 2}}, "version of the rules"),
        ({"rules": {**one["task"]["rules"], "states": 2}}, "another task"),
        (read("search.json")[0]["task"], "cannot make"),
    ):
        collector = Written(one)
        collector.description |= change
        with served(collector) as port:
            done = run(client, port, "token", steps=[])
        assert done.returncode == 1 and words in done.stderr and collector.bodies == []


@pytest.mark.parametrize("text", [SMALL.replace("shared", "per-device"), SMALL, JOINT])
def test_a_running_service_takes_its_reports(client, tmp_path, text) -> None:
    with small_service(tmp_path, text) as service:
        port = int(service.url.rpartition(":")[2])
        steps = [[0, 0.25, 1], [1, 1.0, 0]]
        assert run(client, port, service.device, steps=steps).stdout == "accepted\n"
        again = run(client, port, service.device, steps=steps[:1]).stdout
        assert again == ("duplicate\n" if "per-device" in text else "accepted\n")
