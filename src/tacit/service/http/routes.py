"""API v1: what each address takes and answers, and who may ask.

Bearer tokens have a role, which is checked before a body is read.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPBearer

from tacit._version import __version__
from tacit.errors import TacitError
from tacit.service.answers import Trouble, UploadAnswer
from tacit.service.http import models, uploads
from tacit.service.http.edge import UPLOADS, Upload, read_json
from tacit.service.http.errors import CODES, ApiError
from tacit.service.readiness import trouble_of
from tacit.service.tokens import digest

if TYPE_CHECKING:
    from tacit.service.answers import Token
    from tacit.service.collector import Collector
    from tacit.service.http.metrics import Metrics

HEALTH_SECONDS, READY_SECONDS = 2.0, 1.0
AWAY = Trouble("database", "the database does not answer; nothing that was acknowledged is lost")
Version = Annotated[int, Path(ge=0, le=models.LARGEST_VERSION, description="Version of a policy.")]
IfNoneMatch = Annotated[str | None, Header(description="ETag of the policy already held.")]

BELIEVED, REMEMBERED = 1.0, 1024
"""Seconds before the database is asked again, so that a revoked token is soon refused; and how many
tokens are remembered, by their digests."""

SCHEME = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token issued by `tacit tokens FILE issue`: role device or operator.",
)


class Door:
    """Lets tokens of a role pass. What the database said of a token is believed for a second."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._seen: dict[bytes, tuple[float, Token]] = {}

    async def admit(self, request: Request, role: str) -> Token:
        """The token that the request carries, if it is valid and has the role."""
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        token = None
        if scheme.lower() == "bearer" and secret:
            token = await self._recognise(secret.strip())
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


def documented(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Entries of the OpenAPI document for the errors that a route can answer."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in (*codes, "internal", "unavailable"):
        entry = by_status.setdefault(CODES[code], {"model": models.ErrorBody, "description": ""})
        entry["description"] = f"{entry['description']}, {code}".removeprefix(", ")
    return by_status


def api(collector: Collector, counters: Metrics) -> tuple[APIRouter, Upload]:
    """The routes on one collector; and the one that takes uploads, for those in a hurry."""
    routes, door, writer = APIRouter(), Door(collector), uploads.Writer(collector)
    deployment = collector.deployment
    limits = deployment.settings.server
    health_threads = anyio.CapacityLimiter(2)  # never behind a queue of uploads
    token = [Depends(SCHEME)]
    role = ("unauthorized", "forbidden")
    held: dict[int | str, dict[str, Any]] = {
        304: {"description": "The policy is the one already held."}
    }

    @routes.get("/v1/task", response_model=models.TaskBody, responses=documented())
    def task() -> Response:
        """What is learned, by whom, and what is guaranteed. Public."""
        return JSONResponse(collector.describe())

    @routes.get("/v1/policy", response_model=models.PolicyBody, responses=documented() | held)
    def newest_policy(if_none_match: IfNoneMatch = None) -> Response:
        """The newest policy, or 304 if the client names its ETag. Public."""
        return _conditional(collector, None, if_none_match)

    @routes.get(
        "/v1/policy/{version}",
        response_model=models.PolicyBody,
        responses=documented("unknown_version", "invalid") | held,
    )
    def policy(version: Version, if_none_match: IfNoneMatch = None) -> Response:
        """The policy of one version. Public."""
        return _conditional(collector, version, if_none_match)

    schema = models.upload_schema(deployment.task_id, limits.max_batch)

    @routes.post(
        UPLOADS,
        response_model=UploadAnswer,
        dependencies=token,
        responses=documented(
            *("malformed", *role, "unknown_task", "request_timeout", "too_large"),
            *("too_many_reports", "unsupported_media_type", "invalid"),
        ),
        openapi_extra={
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}
        },
    )
    async def upload(request: Request) -> Response:
        """Hand in reports: one outcome each, in the order sent.

        Idempotent: a report is known by its id, so that the same upload may be sent again after any
        failure. Role device.
        """
        sender = await door.admit(request, "device")
        task_id, reports = uploads.parse(
            await read_json(request, limits.max_body_bytes), limits.max_batch
        )
        answer = await writer.settle(collector.read(task_id, reports, sender))
        counters.count_reports(outcome.outcome for outcome in answer.outcomes)
        return Response(uploads.ANSWER.dump_json(answer), media_type="application/json")

    @routes.get("/v1/guarantee", response_model=models.GuaranteeBody, responses=documented())
    def guarantee() -> Response:
        """The guarantee, computed from the noise that is added. Public."""
        return JSONResponse(collector.guarantee())

    @routes.get(
        "/v1/ledger",
        response_model=models.LedgerBody,
        dependencies=token,
        responses=documented(*role),
    )
    async def ledger(request: Request) -> Response:
        """Every charge, and whether the chain of them is whole. Role operator."""
        await door.admit(request, "operator")
        return JSONResponse(await run_in_threadpool(collector.ledger))

    @routes.get(
        "/metrics",
        dependencies=token,
        response_class=Response,
        responses=documented(*role)
        | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics(request: Request) -> Response:
        """Public counts for Prometheus. Role operator."""
        await door.admit(request, "operator")
        text = await run_in_threadpool(counters.text)
        return Response(text, media_type="text/plain; version=0.0.4")

    @routes.get(
        "/healthz",
        response_model=models.Health,
        responses=documented() | {503: {"model": models.Health}},
    )
    async def health() -> Response:
        """Whether database and planner work. Public, and quick also under load."""
        database = planner = False
        with anyio.move_on_after(HEALTH_SECONDS), contextlib.suppress(TacitError):
            now = await anyio.to_thread.run_sync(
                collector.status, abandon_on_cancel=True, limiter=health_threads
            )
            database, planner = True, now.planner_alive
        status = "ok" if planner else "degraded" if database else "unavailable"
        found = {"status": status, "tacit": __version__, "database": database, "planner": planner}
        return JSONResponse(found, 200 if database else 503)

    @routes.get("/livez", response_model=models.Alive, responses=documented())
    async def alive() -> Response:
        """Whether the process answers; it asks nothing of the database. Public."""
        return JSONResponse({"status": "alive", "tacit": __version__})

    @routes.get(
        "/readyz",
        response_model=models.Ready,
        responses=documented() | {503: {"model": models.Ready}},
    )
    async def ready() -> Response:
        """Whether reports are kept and policies planned; 503 with the reason if not. Public."""
        trouble: Trouble | None = AWAY
        with anyio.move_on_after(READY_SECONDS):
            try:
                now = await anyio.to_thread.run_sync(
                    collector.status, abandon_on_cancel=True, limiter=health_threads
                )
                trouble = now.trouble
            except Exception as error:
                trouble = trouble_of(error)
        found = {
            "ready": trouble is None,
            "reason": trouble and trouble.reason,
            "message": trouble and trouble.sentence,
            "tacit": __version__,
        }
        return JSONResponse(found, 200 if trouble is None else 503)

    return routes, upload


def _conditional(collector: Collector, version: int | None, held: str | None) -> Response:
    policy = collector.policy(version)
    headers = {"ETag": policy.etag, "Cache-Control": "no-cache"}
    if held is not None and _matches(held, policy.etag):
        return Response(status_code=304, headers=headers)
    return Response(policy.body, media_type="application/json", headers=headers)


def _matches(held: str, etag: str) -> bool:
    """RFC 9110 13.1.2: any of a list of tags, compared weakly, or a star."""
    tags = {tag.strip().removeprefix("W/") for tag in held.split(",")}
    return "*" in tags or etag.removeprefix("W/") in tags
