"""Who may do what: bearer tokens with a role, checked before a body is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer

from tacit.service.http.errors import ApiError

if TYPE_CHECKING:
    from tacit.service.answers import Token
    from tacit.service.collector import Collector

SCHEME = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token issued by `tacit tokens FILE issue`: role device or operator.",
)


async def admit(collector: Collector, request: Request, role: str) -> Token:
    """The token that the request carries, if it is valid and has the role."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    token = None
    if scheme.lower() == "bearer" and secret:
        token = await run_in_threadpool(collector.tokens.authenticate, secret.strip())
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
            f"the operator issues one with: tacit tokens FILE issue --role {role}",
        )
    return token
