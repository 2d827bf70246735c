"""The outermost layer: how much of a request is read, and what leaves.

Nothing leaves without security headers, nothing escapes as a traceback. HEAD is answered with what
GET would say. An answer given before the body was read is sent after a short drain, and if the
client still has more to say the connection is closed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from fastapi import Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.errors import TacitError
from tacit_service.http.errors import ApiError, answer_unexpected, shape
from tacit_service.responses import Unavailable

if TYPE_CHECKING:
    from tacit_service.http.metrics import Metrics

Upload = Callable[[Request], Awaitable[Response]]
UPLOADS = "/v1/reports"
MOST_REQUESTS = 1000
"""Requests being answered at the same time; further ones get 503."""
ALWAYS = ("/livez", "/readyz", "/healthz")
"""Answered however many there are."""
BODY_SECONDS = 30.0
"""Time a client has for its whole body."""
DRAIN_BYTES, DRAIN_SECONDS = 1 << 20, 2.0
"""What is still read and thrown away before an early answer, so that a client that is writing gets
to read it; whoever sends more loses the connection."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""Defaults; a page that needs more (the dashboard) sets its own policy."""

_ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class RequestLimits:
    """ASGI middleware around the whole application.

    Uploads, by far the most frequent requests, skip the framework's search for their route, which
    takes longer than the rest of their way.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, upload: Upload | None = None) -> None:
        self.app, self.metrics, self._upload = app, metrics, upload
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange, started = _Exchange(scope, receive, send), time.monotonic()
        path = scope["path"]
        uploaded = path == UPLOADS and scope["method"] == "POST"
        self._active += 1
        try:
            if self._active > MOST_REQUESTS and path not in ALWAYS:
                raise Unavailable("too many requests at a time")
            if twice := _twice(scope):
                await twice.response()(exchange.scope, exchange.receive, exchange.send)
            elif uploaded and self._upload is not None:
                await self._take(exchange, self._upload)
            else:
                await self.app(exchange.scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            pass
        except Exception as error:
            response = answer_unexpected(error)
            if exchange.status is None:
                await response(exchange.scope, exchange.receive, exchange.send)
        finally:
            self._active -= 1
            matched = getattr(exchange.scope.get("route"), "path", "other")
            route = UPLOADS if uploaded else matched
            self.metrics.count_request(route, exchange.status, time.monotonic() - started)

    async def _take(self, exchange: _Exchange, upload: Upload) -> None:
        try:
            response = await upload(Request(exchange.scope, exchange.receive))
        except TacitError as error:
            response = shape(error).response()
        await response(exchange.scope, exchange.receive, exchange.send)


def _twice(scope: Scope) -> ApiError | None:
    """A query that names something twice means nothing definite, and is refused."""
    names = [name for name, _ in parse_qsl(scope["query_string"].decode("latin-1"), True)]
    if len(set(names)) == len(names):
        return None
    return ApiError("invalid", "a query parameter is given twice", "name each of them once")


class _Exchange:
    """One request and its answer, on their way through."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self.head = scope["method"] == "HEAD"
        self.scope = {**scope, "method": "GET"} if self.head else scope
        self.status: int | None = None
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        self._unread = announced
        self._invited = "expect" not in headers

    async def receive(self) -> Message:
        """Pass a part of the body on."""
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._unread = False
        return message

    async def send(self, message: Message) -> None:
        """Pass a part of the answer on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            more = [pair for pair in _ENCODED if pair[0] not in names]
            message["headers"] = [*message["headers"], *more]
            headers = MutableHeaders(scope=message)
            if self._unread:
                await self._drain()
            if self._unread:
                headers["Connection"] = "close"
        elif self.head:
            message = {**message, "body": b""}
        await self._send(message)

    async def _drain(self) -> None:
        if not self._invited:  # the client waits for "100 Continue" and has sent nothing
            return
        seen = 0
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._unread and seen <= DRAIN_BYTES:
                    message = await self.receive()
                    seen += len(message.get("body", b""))
        except TimeoutError:
            pass


async def read_body(request: Request, limit: int) -> bytes:
    """The JSON body of a request, at most ``limit`` bytes of it, within a bounded time."""
    kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    if kind.strip() != "application/json" or charset not in ("", "charset=utf-8"):
        raise ApiError(
            "unsupported_media_type", "the body must be JSON", "send Content-Type: application/json"
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise ApiError(
            "unsupported_media_type", "compressed bodies are not read", "send it as it is"
        )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 15 or int(declared) > limit):
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise ApiError(
            "request_timeout",
            f"the body did not arrive within {BODY_SECONDS:g} seconds",
            "send the same request again",
        ) from None
    return bytes(body)


def _too_large(limit: int) -> ApiError:
    return ApiError(
        "too_large", f"the body is larger than {limit:,} bytes", "send fewer reports at a time"
    )
