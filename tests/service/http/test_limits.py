"""How much of a request is read, and for how long, on real sockets."""

import socket
from collections.abc import Iterable

import httpx
import pytest

from patience import PATIENCE
from tacit_service.http import limits, server

POST = (
    "POST /v1/reports HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {token}\r\n"
    "Content-Type: application/json\r\n"
)


def talk(url: str, head: str, more: Iterable[bytes] = ()) -> bytes:
    """Send bytes as they are and read until the other side closes."""
    address = httpx.URL(url)
    with socket.create_connection((address.host, address.port), timeout=PATIENCE) as connection:
        connection.sendall(head.encode())
        try:
            for part in more:
                connection.sendall(part)
        except OSError:  # closed while we were still talking
            pass
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def chunks(number: int) -> Iterable[bytes]:
    for _ in range(number):
        yield b"10000\r\n" + b" " * 65536 + b"\r\n"


@pytest.fixture
def hurried(monkeypatch) -> None:
    """What is thrown away is read for a short time; what is waited for has all of its own."""
    monkeypatch.setattr(limits, "DRAIN_SECONDS", 0.2)


def test_a_body_that_says_it_is_too_large_is_not_read(shared, hurried) -> None:
    head = POST.format(token=shared.device) + "Content-Length: 100000000\r\n\r\n"
    answer = talk(shared.url, head)
    assert answer.startswith(b"HTTP/1.1 413") and b"too_large" in answer
    assert b"connection: close" in answer


def test_a_body_without_end_is_cut_off(shared, hurried) -> None:
    sent = []

    def endless() -> Iterable[bytes]:
        for chunk in chunks(2000):  # 131 MB
            sent.append(len(chunk))
            yield chunk

    head = POST.format(token=shared.device) + "Transfer-Encoding: chunked\r\n\r\n"
    answer = talk(shared.url, head, endless())
    assert answer.startswith(b"HTTP/1.1 413") or answer == b""
    assert sum(sent) < 60_000_000


def test_a_body_just_over_the_limit_gets_its_answer(shared) -> None:
    size = shared.collector.deployment.settings.server.max_body_bytes
    too_long = shared.client.post(
        "/v1/reports",
        content=b" " * (size + 1),
        headers={"Content-Type": "application/json", **shared.as_device},
    )
    assert too_long.status_code == 413
    assert too_long.json()["error"]["code"] == "too_large"
    fits = shared.client.post(
        "/v1/reports",
        content=b" " * size,
        headers={"Content-Type": "application/json", **shared.as_device},
    )
    assert fits.status_code == 400  # read to its end, and not JSON


def test_a_body_that_never_comes_times_out(shared, hurried, monkeypatch) -> None:
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.2)
    head = POST.format(token=shared.device) + "Content-Length: 100\r\n\r\n{"
    answer = talk(shared.url, head)
    assert answer.startswith(b"HTTP/1.1 408") and b"request_timeout" in answer


def test_a_head_that_never_comes_is_hung_up_on(shared, monkeypatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.2)
    assert talk(shared.url, "") == b""
    assert talk(shared.url, "GET /healthz HT") == b""


def test_a_stranger_is_answered_before_the_body_is_read(shared, hurried) -> None:
    head = POST.format(token="no") + "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n"
    answer = talk(shared.url, head)
    assert answer.startswith(b"HTTP/1.1 401")  # and never "100 Continue"


def test_what_is_not_http_gets_400(shared) -> None:
    assert talk(shared.url, "\x00\x01 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_the_connection_lives_on_after_an_early_answer(shared) -> None:
    with httpx.Client(base_url=shared.url, timeout=PATIENCE) as client:
        for _ in range(3):
            refused = client.post("/v1/reports", content=b"x" * 10_000)
            assert refused.status_code == 401
            assert "connection" not in refused.headers
