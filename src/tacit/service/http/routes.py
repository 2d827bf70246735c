"""API v1: what each address takes and answers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from tacit._version import __version__
from tacit.errors import TacitError
from tacit.service.http import models, uploads
from tacit.service.http.auth import SCHEME, Door
from tacit.service.http.errors import CODES
from tacit.service.http.limits import read_json

if TYPE_CHECKING:
    from tacit.service.collector import Collector
    from tacit.service.http.metrics import Metrics

HEALTH_SECONDS = 2.0
Version = Annotated[int, Path(ge=0, le=models.LARGEST_VERSION, description="Version of a policy.")]
IfNoneMatch = Annotated[str | None, Header(description="ETag of the policy already held.")]


def documented(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Entries of the OpenAPI document for the errors that a route can answer."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in (*codes, "internal", "unavailable"):
        entry = by_status.setdefault(CODES[code], {"model": models.ErrorBody, "description": ""})
        entry["description"] = f"{entry['description']}, {code}".removeprefix(", ")
    return by_status


class Api:
    """The routes on one collector."""

    def __init__(self, collector: Collector, metrics: Metrics) -> None:
        self._collector, self._metrics, self._door = collector, metrics, Door(collector)
        self._writer = uploads.Writer(collector)
        self._health_threads = anyio.CapacityLimiter(2)  # never behind a queue of uploads

    def router(self) -> APIRouter:
        """Addresses, documentation and limits of every route."""
        api = APIRouter()
        held: dict[int | str, dict[str, Any]] = {
            304: {"description": "The policy is the one already held."}
        }
        token = [Depends(SCHEME)]
        role = ("unauthorized", "forbidden")
        api.get("/v1/task", response_model=models.TaskBody, responses=documented())(self.task)
        api.get("/v1/policy", response_model=models.PolicyBody, responses=documented() | held)(
            self.newest_policy
        )
        api.get(
            "/v1/policy/{version}",
            response_model=models.PolicyBody,
            responses=documented("unknown_version", "invalid") | held,
        )(self.policy)
        deployment = self._collector.deployment
        upload = models.upload_schema(deployment.task_id, deployment.settings.server.max_batch)
        api.post(
            "/v1/reports",
            response_model=models.UploadBody,
            dependencies=token,
            responses=documented(
                *("malformed", *role, "unknown_task", "request_timeout", "too_large"),
                *("too_many_reports", "unsupported_media_type", "invalid"),
            ),
            openapi_extra={
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": upload}},
                }
            },
        )(self.upload)
        api.get("/v1/guarantee", response_model=models.GuaranteeBody, responses=documented())(
            self.guarantee
        )
        api.get(
            "/v1/ledger",
            response_model=models.LedgerBody,
            dependencies=token,
            responses=documented(*role),
        )(self.ledger)
        api.get(
            "/metrics",
            dependencies=token,
            response_class=Response,
            responses=documented(*role)
            | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        )(self.metrics)
        api.get(
            "/healthz",
            response_model=models.Health,
            responses=documented() | {503: {"model": models.Health}},
        )(self.health)
        return api

    def task(self) -> Response:
        """What is learned, by whom, and what is guaranteed. Public."""
        return JSONResponse(self._collector.describe())

    def newest_policy(self, if_none_match: IfNoneMatch = None) -> Response:
        """The newest policy, or 304 if the client names its ETag. Public."""
        return self._conditional(None, if_none_match)

    def policy(self, version: Version, if_none_match: IfNoneMatch = None) -> Response:
        """The policy of one version. Public."""
        return self._conditional(version, if_none_match)

    def _conditional(self, version: int | None, held: str | None) -> Response:
        policy = self._collector.policy(version)
        headers = {"ETag": policy.etag, "Cache-Control": "no-cache"}
        if held is not None and _matches(held, policy.etag):
            return Response(status_code=304, headers=headers)
        return Response(policy.body, media_type="application/json", headers=headers)

    async def upload(self, request: Request) -> Response:
        """Hand in reports: one outcome each, in the order sent.

        Idempotent: a report is known by its id, so that the same upload may be sent again after any
        failure. Role device.
        """
        limits = self._collector.deployment.settings.server
        token = await self._door.admit(request, "device")
        task_id, reports = uploads.parse(
            await read_json(request, limits.max_body_bytes), limits.max_batch
        )
        answer = await self._writer.settle(self._collector.read(task_id, reports, token))
        self._metrics.count_reports(outcome.outcome for outcome in answer.outcomes)
        return Response(uploads.answer(answer), media_type="application/json")

    def guarantee(self) -> Response:
        """The guarantee, computed from the noise that is added. Public."""
        return JSONResponse(self._collector.guarantee())

    async def ledger(self, request: Request) -> Response:
        """Every charge, and whether the chain of them is whole. Role operator."""
        await self._door.admit(request, "operator")
        return JSONResponse(await run_in_threadpool(self._collector.ledger))

    async def metrics(self, request: Request) -> Response:
        """Public counts for Prometheus. Role operator."""
        await self._door.admit(request, "operator")
        return Response(
            await run_in_threadpool(self._metrics.text),
            media_type="text/plain; version=0.0.4",
        )

    async def health(self) -> Response:
        """Whether database and planner work. Public, and quick also under load."""
        database = planner = False
        with anyio.move_on_after(HEALTH_SECONDS), contextlib.suppress(TacitError):
            now = await anyio.to_thread.run_sync(
                self._collector.status, abandon_on_cancel=True, limiter=self._health_threads
            )
            database, planner = True, now.planner_alive
        status = "ok" if planner else "degraded" if database else "unavailable"
        health = {"status": status, "tacit": __version__, "database": database, "planner": planner}
        return JSONResponse(health, 200 if database else 503)


def _matches(held: str, etag: str) -> bool:
    """RFC 9110 13.1.2: any of a list of tags, compared weakly, or a star."""
    tags = {tag.strip().removeprefix("W/") for tag in held.split(",")}
    return "*" in tags or etag.removeprefix("W/") in tags
