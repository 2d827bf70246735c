"""Faults and attacks on a running service: it says what is wrong, and honest requests go on."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import psutil
import psycopg
import pytest

from patience import PATIENCE, until
from service.http.running import JOINT, SMALL, small_service
from tacit_service.dashboard import page
from tacit_service.http import server
from tacit_service.responses import Unavailable


def ready(service) -> tuple[int, str | None]:
    answer = service.client.get("/readyz")
    assert service.client.get("/livez").status_code == 200  # whatever is wrong
    return answer.status_code, answer.json()["reason"]


@contextmanager
def sockets(url: str, number: int, head: bytes) -> Iterator[list[socket.socket]]:
    """So many connections that never finish the head of their request."""
    address = httpx.URL(url)
    with ExitStack() as stack:
        made = []
        for _ in range(number):
            line = socket.create_connection((address.host, address.port), timeout=PATIENCE)
            made.append(stack.enter_context(line))
            line.sendall(head)
        yield made


def test_a_missing_witness_is_unready_everywhere_and_heals(tmp_path) -> None:
    with small_service(tmp_path, JOINT) as service:
        until(lambda: ready(service) == (200, None))
        witness = service.collector.deployment.witness
        hidden = witness.rename(witness.with_suffix(".hidden"))
        until(lambda: ready(service) == (503, "state"))
        until(lambda: service.client.get("/v1/dashboard").json()["health"]["reason"] == "state")
        health = service.client.get("/v1/dashboard").json()["health"]
        assert health["state"] == "trouble" and "witness" in health["summary"]
        metrics = service.client.get("/metrics", headers=service.as_operator).text
        assert 'tacit_ready{task="small"} 0.0' in metrics
        assert 'tacit_planner_failures_total{task="small"} 0.0' not in metrics
        sent = service.upload(service.reports(3)).json()["outcomes"]
        assert [one["outcome"] for one in sent] == ["accepted"] * 3  # reports are kept meanwhile
        hidden.rename(witness)
        until(lambda: ready(service) == (200, None))
        metrics = service.client.get("/metrics", headers=service.as_operator).text
        assert 'tacit_ready{task="small"} 1.0' in metrics


def test_a_database_that_is_away_is_unready_and_503(service, monkeypatch) -> None:
    until(lambda: ready(service) == (200, None))
    reports = service.reports(2)

    def away() -> None:
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(service.collector._store, "read", away)
        broken.setattr(service.collector._store, "write", away)
        assert ready(service) == (503, "database")
        assert service.upload(reports).status_code == 503
        assert service.client.get("/v1/policy").status_code == 503
    until(lambda: ready(service) == (200, None))
    sent = service.upload(reports).json()["outcomes"]
    assert [one["outcome"] for one in sent] == ["accepted"] * 2


def test_a_frozen_database_does_not_freeze_what_needs_none(service, monkeypatch) -> None:
    monkeypatch.setattr("tacit_service.http.monitoring.READY_SECONDS", 0.2)
    until(lambda: ready(service) == (200, None))
    status, thaw, asked = service.collector.status, threading.Event(), []

    def stuck():
        asked.append(threading.get_ident())
        thaw.wait(PATIENCE)
        return status()

    with monkeypatch.context() as frozen:
        frozen.setattr(service.collector, "status", stuck)
        for _ in range(5):
            assert ready(service) == (503, "database")
        assert len(asked) == 1  # however often somebody asks, one thread waits
        thaw.set()
    until(lambda: ready(service) == (200, None))


def test_a_frozen_postgresql_is_unready_and_thaws(tmp_path, postgres) -> None:
    with small_service(tmp_path, f'{SMALL}\n[storage]\ndatabase = "{postgres}"\n') as service:
        until(lambda: ready(service) == (200, None))
        reports = service.reports(2)
        with psycopg.connect(postgres) as connection:
            (number,) = connection.execute("SELECT pg_backend_pid()").fetchone()
            parent = psutil.Process(number).parent()
        frozen = [parent, *parent.children(recursive=True)]
        answers = []
        sender = threading.Thread(target=lambda: answers.append(service.upload(reports)))
        try:
            for process in frozen:
                process.suspend()
            until(lambda: ready(service) == (503, "database"))
            sender.start()
        finally:
            for process in frozen:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()
        sender.join(PATIENCE)
        until(lambda: ready(service) == (200, None))
        assert [one["outcome"] for one in answers[0].json()["outcomes"]] == ["accepted"] * 2
        assert service.collector.status().accepted == 2


def test_a_thousand_slow_heads_keep_nobody_out(service) -> None:
    slow = b"POST /v1/reports HTTP/1.1\r\nHost: here\r\nX-Slow: "
    with sockets(service.url, 1000, slow) as made:
        for k in range(5):
            for line in made[-100:]:
                line.sendall(b"x")
            with httpx.Client(base_url=service.url, timeout=PATIENCE) as honest:
                assert honest.get("/livez").status_code == 200
                body = {"task_id": service.task_id, "reports": service.reports(1)}
                sent = honest.post("/v1/reports", json=body, headers=service.as_device)
                assert sent.json()["outcomes"][0]["outcome"] == "accepted", k


def test_a_head_that_trickles_is_hung_up_on(service, monkeypatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.5)
    with sockets(service.url, 1, b"GET /livez HTTP/1.1\r\nX-Slow: ") as (line,):
        deadline = time.monotonic() + PATIENCE
        with pytest.raises(OSError):  # noqa: PT011  # whichever way the system says it
            while time.monotonic() < deadline:
                line.sendall(b"x")
                time.sleep(0.05)


def test_a_head_without_end_is_refused(service) -> None:
    with sockets(service.url, 1, b"GET /livez HTTP/1.1\r\nX-Long: ") as (line,):
        line.sendall(b"x" * (2 * server.HEAD_BYTES))
        assert line.recv(100).startswith(b"HTTP/1.1 400")


def test_the_dashboard_is_drawn_only_so_often(service, monkeypatch) -> None:
    monkeypatch.setattr(page, "KEPT_SECONDS", 1000.0)
    found = [service.client.get("/", params={"version": k}).status_code for k in range(15)]
    assert found == [200] * page.MOST_DRAWN + [429] * (15 - page.MOST_DRAWN)
    drawn = []
    monkeypatch.setattr(page, "render", lambda *words: drawn.append(words))
    assert service.client.get("/", params={"version": 0}).status_code == 200 and drawn == []
