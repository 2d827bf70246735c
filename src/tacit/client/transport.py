"""Talking to the collector over HTTP: bounded, patient, and never in plain text to strangers."""

from __future__ import annotations

import ipaddress
import json
import math
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx

from tacit._version import __version__
from tacit.client.errors import CollectorRefused, Declined, Unreachable
from tacit.wire import strict_json

MOST_BYTES = 64 * 2**20
"""Of an answer; larger ones are not read to the end."""

AGAIN = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""

LONGEST_PAUSE = 60.0


class _Busy(Exception):
    """A status after which the same request may succeed, and how long to wait first."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"status {response.status_code}")
        text = response.headers.get("retry-after", "")
        asked = float(text) if text.isascii() and text.isdigit() else 0.0
        self.seconds = min(asked, LONGEST_PAUSE)


def _pause(failed: int, error: Exception) -> float:
    """Twice as long each time, or as the collector asks; by half more or less, at random."""
    asked = error.seconds if isinstance(error, _Busy) else 0.0
    doubled = min(0.5 * 2.0**failed, LONGEST_PAUSE)
    return max(doubled, asked) * secrets.SystemRandom().uniform(0.5, 1.5)


class Api:
    """The collector's address and how to ask it; devices of one process may share it.

    Args:
        address: for example ``https://coach.example.org``; ``http`` only to this very machine.
        attempts: how often a request is tried before the collector counts as unreachable.
        pause: waits that many seconds between two attempts.
        keep: seconds for which the description of the task is not fetched again; for connections
            that many devices share.
        client: an open connection pool to use instead of a new one.
    """

    def __init__(
        self,
        address: str,
        *,
        attempts: int = 5,
        pause: Callable[[float], None] = time.sleep,
        keep: float = 0.0,
        client: httpx.Client | None = None,
    ) -> None:
        self.address = safe_address(address)
        self._attempts = attempts
        self._pause = pause
        self._client = client or httpx.Client(
            timeout=10.0, trust_env=self.address.startswith("https:")
        )
        self._keep = keep
        self._task: tuple[float, Any] = (-math.inf, None)
        self._kept: dict[str, tuple[str, bytes]] = {}

    def task(self) -> Any:
        """The description of the task."""
        now = time.monotonic()
        if now - self._task[0] >= self._keep:
            self._task = now, self._get("/v1/task")
        return self._task[1]

    def policy(self, version: int | None = None) -> Any:
        """The newest policy, or the one of that version."""
        return self._get("/v1/policy" if version is None else f"/v1/policy/{version}")

    def taking(self, version: int) -> Any:
        """Whether a report under this version would be taken now."""
        return self._get(f"/v1/taking/{version}")

    def dashboard(self) -> Any:
        """The collector's public numbers."""
        return self._get("/v1/dashboard")

    def ticket(self, task_id: str, report_id: str, rules: str | None, token: str | None) -> Any:
        """Be counted before an episode; the same answer however often it is asked."""
        body = strict_json.canonical({"task_id": task_id, "id": report_id, "rules": rules})
        return self._post("/v1/tickets", body, token)

    def upload(self, body: bytes, token: str | None) -> Any:
        """Send stored bytes, the same on every attempt."""
        return self._post("/v1/reports", body, token)

    def _post(self, path: str, body: bytes, token: str | None) -> Any:
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self._json(self._ask("POST", path, headers, body)[2])

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _get(self, path: str) -> Any:
        """Fetch, or learn that what was fetched before is still the newest."""
        kept = self._kept.get(path)
        headers = {"If-None-Match": kept[0]} if kept else {}
        status, answered, body = self._ask("GET", path, headers)
        if status == 304 and kept:
            return self._json(kept[1])
        if "etag" in answered:
            self._kept[path] = answered["etag"], body
        return self._json(body)

    def _ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, httpx.Headers, bytes]:
        """One answer, after as many attempts as it takes, at most ``attempts``."""
        headers["User-Agent"] = f"tacit/{__version__}"
        for failed in range(self._attempts):
            try:
                return self._once(method, path, headers, body)
            except (httpx.TransportError, _Busy) as error:
                trouble = error
            if failed + 1 < self._attempts:
                self._pause(_pause(failed, trouble))
        raise Unreachable(
            f"{self.address} did not answer {method} {path} in {self._attempts} attempts "
            f"({str(trouble) or type(trouble).__name__}); try again later"
        )

    def _once(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, httpx.Headers, bytes]:
        with self._client.stream(
            method, self.address + path, headers=headers, content=body
        ) as response:
            answer = b""
            for chunk in response.iter_bytes():
                answer += chunk
                if len(answer) > MOST_BYTES:
                    raise Unreachable(f"{self.address} answered with more than {MOST_BYTES} bytes")
        if response.status_code in AGAIN:
            raise _Busy(response)
        if response.status_code not in (200, 304):
            raise _refusal(response.status_code, answer)
        return response.status_code, response.headers, answer

    def _json(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Unreachable(
                f"{self.address} did not answer in JSON; is it a collector?"
            ) from None


def safe_address(address: str) -> str:
    """The address without a slash at its end, if what is sent there cannot be read on the way."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        raise Declined(f"{address!r} is not an address") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise Declined(
            f"{address!r} is not the address of a collector; write for example "
            "https://coach.example.org"
        )
    if parts.scheme == "http" and not this_machine(host):
        raise Declined(
            f"{address} would send reports and tokens readable by everybody on the way; use https "
            "(plain http is accepted to this very machine only)"
        )
    return address.rstrip("/")


def this_machine(host: str) -> bool:
    """Whether an address cannot be reached from elsewhere."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(status: int, body: bytes) -> CollectorRefused:
    try:
        error = json.loads(body)["error"]
        code, message = str(error["code"])[:60], str(error["message"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError):
        code, message = f"status {status}", "no reason was given"
    return CollectorRefused(code, message)
