"""The program as it is run: start, stop, kill, several processes."""

import json
import multiprocessing
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from patience import PATIENCE
from service.http import running
from tacit.errors import InvalidInput
from tacit.privacy.noise import GridLaw, SecureNoise
from tacit_service.http import server
from tacit_service.http.app import create_app


@contextmanager
def program(*words: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run ``tacit serve`` until the block ends: the process, its address, what it said."""
    command = [str(Path(sys.executable).with_name("tacit")), "serve", *words, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while "Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        url = re.search(r"http://\S+", said)[0]
        yield process, url, said
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def first_token(file: Path, role: str) -> str:
    written = file.with_suffix(f".{role}-token")
    assert written.stat().st_mode & 0o777 == 0o600
    return written.read_text().strip()


def healthy(url: str) -> dict[str, object]:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            answer = httpx.get(f"{url}/healthz", timeout=PATIENCE)
            if answer.status_code == 200:
                return answer.json()
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_starts_survives_kill_and_stops(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(running.SMALL)
    with program(str(file)) as (process, url, said):
        assert healthy(url)["database"] is True
        assert "local model" in said
        assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("small.db*")} == {0o600}
        token, operator = (first_token(file, role) for role in ("device", "operator"))
        assert token not in said and operator not in said
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            collector = running.small_collector(tmp_path)
            service = running.Service(collector, url, client)
            body = {"task_id": service.task_id, "reports": service.reports(6)}
            headers = {"Authorization": f"Bearer {token}"}
            sent = client.post("/v1/reports", json=body, headers=headers).json()
            assert {o["outcome"] for o in sent["outcomes"]} == {"accepted"}
            collector.close()
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    with program(str(file), "--log", "json") as (process, url, said):
        assert "-token" not in said
        healthy(url)
        again = httpx.post(f"{url}/v1/reports", json=body, headers=headers, timeout=PATIENCE)
        assert {o["outcome"] for o in again.json()["outcomes"]} == {"duplicate"}
        metrics = httpx.get(
            f"{url}/metrics", headers={"Authorization": f"Bearer {operator}"}, timeout=PATIENCE
        )
        assert 'tacit_accepted{task="small"} 6.0' in metrics.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert [line["event"] for line in lines] == ["started"]
        assert lines[0]["task_id"] == body["task_id"] and round(lines[0]["epsilon"], 6) == 4.0


def test_uploads_under_way_are_finished(tmp_path: Path, monkeypatch) -> None:
    collector = running.small_collector(tmp_path)
    real, begun = collector.settle, threading.Event()

    def slow(*words: object) -> object:
        begun.set()
        time.sleep(0.5)
        return real(*words)

    monkeypatch.setattr(collector, "settle", slow)
    answers = []
    with httpx.Client(timeout=PATIENCE) as client:
        with running.running(create_app(collector)) as url:
            client.base_url = url
            service = running.Service(collector, url, client)
            reports = service.reports(1)
            sender = threading.Thread(target=lambda: answers.append(service.upload(reports)))
            sender.start()
            assert begun.wait(PATIENCE)
        sender.join()
    assert answers[0].json()["outcomes"][0]["outcome"] == "accepted"


def test_several_workers_share_one_database(tmp_path: Path, postgres: str) -> None:
    file = tmp_path / "small.toml"
    file.write_text(f'{running.SMALL}\n[storage]\ndatabase = "{postgres}"\n')
    with program(str(file), "--workers", "2") as (process, url, said):
        assert healthy(url)["database"] is True
        token, operator = (first_token(file, role) for role in ("device", "operator"))
        assert token not in said and operator not in said
        collector = running.small_collector(tmp_path, file.read_text())
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            service = running.Service(collector, url, client)
            parts = [service.reports(3) for _ in range(16)]
        collector.close()
        headers = {"Authorization": f"Bearer {token}"}
        outcomes = []
        for part in parts:  # a new connection each: any worker may get it
            body = {"task_id": service.task_id, "reports": part}
            answer = httpx.post(f"{url}/v1/reports", json=body, headers=headers, timeout=PATIENCE)
            outcomes += [o["outcome"] for o in answer.json()["outcomes"]]
        assert outcomes.count("accepted") == 40 and outcomes.count("refused") == 8
        headers = {"Authorization": f"Bearer {operator}"}
        metrics = httpx.get(f"{url}/metrics", headers=headers, timeout=PATIENCE).text
        assert 'tacit_reports_total{outcome="accepted",task="small"} 40.0' in metrics
        process.send_signal(signal.SIGKILL)  # nobody is left behind on the port
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                httpx.get(f"{url}/healthz", timeout=5)
            except httpx.TransportError:
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_workers_serve_a_folder_and_all_see_a_new_task(
    tmp_path: Path, postgres: str, monkeypatch
) -> None:
    monkeypatch.setenv("TACIT_STORAGE_DATABASE", re.sub(r"test_\w+", "{task}", postgres))
    name = re.search(r"test_\w+", postgres)[0]
    folder = tmp_path / "tasks"
    folder.mkdir()
    with program(str(folder), "--workers", "2") as (_, url, said):
        assert healthy(url)["database"] is True
        token = (folder / "operator.token").read_text().strip()
        assert token not in said
        address = f"{url}/v1/operator/tasks/{name}"
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as client:
            headers = {"Content-Type": "text/plain"}
            made = client.put(address, content=running.SMALL, headers=headers)
            assert made.status_code == 201, made.text
            assert client.post(f"{address}/pause").json()["state"] == "paused"
        deadline = time.monotonic() + PATIENCE
        seen = 0
        while seen < 20:  # a new connection each: any worker may get it
            answer = httpx.get(f"{url}/t/{name}/v1/task", timeout=PATIENCE)
            seen = seen + 1 if answer.status_code == 200 else 0
            assert time.monotonic() < deadline
        assert answer.json()["state"] == "paused"


def test_a_worker_that_cannot_start_says_why_and_stops(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.0)
    file = tmp_path / "small.toml"
    file.write_text(running.SMALL)
    running.small_collector(tmp_path).close()
    file.write_text(running.SMALL.replace("epsilon = 4.0", "epsilon = 3.0"))
    with pytest.raises(SystemExit) as stopped:
        server.open_app(file, plans=True, parent=os.getppid())
    assert stopped.value.code == 3 and "another task" in caplog.text
    away = '[storage]\ndatabase = "postgresql://nobody@127.0.0.1:9/none"\n'
    file.write_text(running.SMALL + away)
    with pytest.raises(SystemExit) as stopped:
        server.open_app(file, plans=True, parent=os.getppid())
    assert stopped.value.code == 1 and "does not answer" in caplog.text


def test_forked_workers_draw_noise_of_their_own() -> None:
    """Workers are forked: a generator that is copied along would give two of them the same."""

    def draw() -> list[int]:
        noise, drawn = SecureNoise(), []
        for kind in ("laplace", "gaussian"):
            out = np.zeros(20, dtype=np.int64)
            noise.fill(GridLaw(kind, np.full(20, 1e9)), out)
            drawn += out.tolist()
        return [*drawn, secrets.randbits(64)]

    draw()  # whatever is made on first use is there before the fork
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    workers = [context.Process(target=lambda: found.put(draw())) for _ in range(2)]
    for worker in workers:
        worker.start()
    numbers = [number for _ in workers for number in found.get()] + draw()
    for worker in workers:
        worker.join(PATIENCE)
    assert len(set(numbers)) == len(numbers) == 3 * 41


def test_a_taken_port_and_a_strange_host_are_sentences() -> None:
    taken = server.bind("127.0.0.1", 0)
    taken.listen()
    with taken, pytest.raises(InvalidInput, match="in use.*--port"):
        server.bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(InvalidInput, match="--host"):
        server.bind("no.such.host.invalid", 0)
