"""Asking the collector: patience, bounds, caching."""

import httpx
import pytest

from client.collector import FakeCollector
from tacit.client import CollectorRefused, Unreachable, transport


@pytest.fixture
def collector() -> FakeCollector:
    return FakeCollector(epsilon=1.0)


def test_retries_wait_longer_and_longer(collector) -> None:
    collector.broken = [httpx.ConnectError("x"), httpx.Response(503), httpx.Response(500)]
    assert collector.api().task()["name"] == "coach"
    assert len(collector.pauses) == 3
    for n, pause in enumerate(collector.pauses):
        assert 0.25 * 2**n <= pause <= 0.75 * 2**n


def test_retry_after_is_heeded_within_reason(collector) -> None:
    collector.broken = [
        httpx.Response(429, headers={"retry-after": "7"}),
        httpx.Response(503, headers={"retry-after": "99999999"}),
        httpx.Response(503, headers={"retry-after": "soon"}),
    ]
    collector.api().task()
    assert 3.5 <= collector.pauses[0] <= 10.5
    assert all(pause <= 1.5 * transport.LONGEST_PAUSE for pause in collector.pauses)


def test_attempts_are_bounded(collector) -> None:
    collector.broken = [httpx.Response(503)] * 10
    with pytest.raises(Unreachable, match="4 attempts .status 503."):
        collector.api(attempts=4).task()
    assert len(collector.broken) == 6


@pytest.mark.parametrize("status", [301, 400, 403, 404, 418])
def test_other_statuses_are_final(collector, status) -> None:
    collector.broken = [httpx.Response(status, content=b"\xff", headers={"location": "http://x"})]
    with pytest.raises(CollectorRefused, match=f"status {status}"):
        collector.api().task()
    assert collector.pauses == []


def test_an_unchanged_policy_is_not_fetched_twice(collector) -> None:
    api = collector.api()
    first = api.policy()
    assert api.policy() == first
    assert api._kept["/v1/policy"][0] == '"0"'


def test_a_shared_connection_asks_for_the_task_now_and_then(collector) -> None:
    plain, sharing = collector.api(), collector.api(keep=60.0)
    for api, asked in ((plain, 3), (sharing, 1)):
        before = collector.gets
        assert all(api.task()["name"] == "coach" for _ in range(3))
        assert collector.gets - before == asked


def test_what_is_not_json_or_too_long_is_not_read(collector, monkeypatch) -> None:
    collector.broken = [httpx.Response(200, content=b"<html>")]
    with pytest.raises(Unreachable, match="JSON"):
        collector.api().task()
    collector.broken = [httpx.Response(200, content=b"[" * 100_000)]
    with pytest.raises(Unreachable, match="JSON"):
        collector.api().task()
    monkeypatch.setattr(transport, "MOST_BYTES", 10)
    with pytest.raises(Unreachable, match="more than 10 bytes"):
        collector.api().task()
