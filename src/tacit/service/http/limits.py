"""How much of a request is read, and for how long."""

from __future__ import annotations

import asyncio

from fastapi import Request

from tacit.service.http.errors import ApiError

BODY_SECONDS = 30.0
"""Time a client has for its whole body."""
DRAIN_BYTES, DRAIN_SECONDS = 1 << 20, 2.0
"""What is still read and thrown away before an early answer, so that a client that is writing gets
to read it; whoever sends more loses the connection."""


async def read_json(request: Request, limit: int) -> bytes:
    """The body of a JSON request, at most ``limit`` bytes of it, within a bounded time."""
    kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    if kind.strip() != "application/json" or charset not in ("", "charset=utf-8"):
        raise ApiError(
            "unsupported_media_type", "the body must be JSON", "send Content-Type: application/json"
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise ApiError(
            "unsupported_media_type", "compressed bodies are not read", "send the JSON as it is"
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
