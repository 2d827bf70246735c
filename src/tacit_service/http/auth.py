"""Who may ask: bearer tokens have a role, which is checked before a body is read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer

from tacit_service.http import models
from tacit_service.http.errors import CODES, ApiError
from tacit_service.intake.tokens import digest

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.responses import Token

BELIEVED, REMEMBERED = 1.0, 1024
"""Seconds before the database is asked again, so that a revoked token is soon refused; and how many
tokens are remembered, by their digests."""

SCHEME = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token issued by `tacit admin tokens FILE issue`: role device or operator.",
)


class Authenticator:
    """Lets tokens of a role pass. What the database said of a token is believed for a second."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._seen: dict[bytes, tuple[float, Token]] = {}

    async def admit(self, request: Request, role: str = "operator") -> Token:
        """The token that the request carries, if it is valid and has the role."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        secret = secret.strip() if scheme.lower() == "bearer" else ""
        token = await self._recognise(secret) if secret else None
        if token is None:
            raise ApiError(
                "unauthorized",
                "the token is not valid" if secret else "this needs a token",
                "send Authorization: Bearer TOKEN, with a token that the operator issued",
                {"WWW-Authenticate": 'Bearer realm="tacit"'},
            )
        if token.role != role:
            raise ApiError(
                "forbidden",
                f"this needs a token of role {role}",
                f"the operator issues one with: tacit admin tokens FILE issue --role {role}",
            )
        return token

    async def _recognise(self, secret: str) -> Token | None:
        key = digest(secret)
        until, known = self._seen.get(key, (0.0, None))
        now = time.monotonic()
        if known is not None and now < until:
            return known
        token = await run_in_threadpool(self._collector.tokens.authenticate, secret)
        if len(self._seen) >= REMEMBERED:
            self._seen.clear()
        self._seen.pop(key, None)
        if token is not None:
            self._seen[key] = now + BELIEVED, token
        return token


BODY = (
    *("malformed", "unauthorized", "forbidden", "request_timeout", "too_large"),
    *("unsupported_media_type", "invalid"),
)
"""Errors of every route that takes a body from who has a token."""


def takes(schema: dict[str, Any]) -> dict[str, Any]:
    """What the OpenAPI document says of a JSON body that is checked by hand."""
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def documented(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Entries of the OpenAPI document for the errors that a route can answer."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in (*codes, "internal", "unavailable"):
        entry = by_status.setdefault(CODES[code], {"model": models.ErrorBody, "description": ""})
        entry["description"] = f"{entry['description']}, {code}".removeprefix(", ")
    return by_status
