"""API v1 of one task: what each address takes and answers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from tacit_service.http import models, uploads
from tacit_service.http.auth import BODY, SCHEME, Authenticator, documented, takes
from tacit_service.http.limits import UPLOADS, Upload, read_body
from tacit_service.responses import TakingBody, Ticket, UploadAnswer

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.http.metrics import Metrics

Version = Annotated[int, Path(ge=0, le=models.LARGEST_VERSION, description="Version of a policy.")]
TOKEN = [Depends(SCHEME)]
IfNoneMatch = Annotated[str | None, Header(description="ETag of the policy already held.")]


def api(collector: Collector, auth: Authenticator, metrics: Metrics) -> tuple[APIRouter, Upload]:
    """The routes on one collector; and the one that takes uploads, which ``limits.py`` calls."""
    routes = APIRouter()
    _publications(routes, collector)
    upload = _reports(routes, collector, auth, metrics)
    _statements(routes, collector, auth)
    return routes, upload


def _publications(routes: APIRouter, collector: Collector) -> None:
    """What everybody may ask: the task, its policies, and whether a report would be taken."""
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

    @routes.get("/v1/taking/{version}", response_model=TakingBody, responses=documented("invalid"))
    def taking(version: Version) -> Response:
        """Whether a report under a version would be taken now: ask before randomizing. Public."""
        answer = dataclasses.asdict(collector.would_accept(version))
        return JSONResponse(answer, headers={"Cache-Control": "no-store"})


def _reports(
    routes: APIRouter, collector: Collector, auth: Authenticator, metrics: Metrics
) -> Upload:
    """What devices hand in; the route that takes uploads is returned."""
    writer, deployment = uploads.Writer(collector), collector.deployment
    limits = deployment.settings.server

    @routes.post(
        "/v1/tickets",
        response_model=Ticket,
        dependencies=TOKEN,
        responses=documented(*BODY, "unknown_task", "paused"),
        openapi_extra=takes(models.TICKET.json_schema()),
    )
    async def ticket(request: Request) -> Response:
        """Be counted before an episode of a search begins: a number, and the policy to act on.

        Idempotent: an id has one ticket, which is answered again. Role device.
        """
        sender = await auth.admit(request, "device")
        asked = uploads.validated(models.TICKET, await read_body(request, limits.max_body_bytes))
        named = asked["task_id"], asked["id"], asked["rules"]
        answer = await run_in_threadpool(collector.ticket, *named, sender)
        return JSONResponse(dataclasses.asdict(answer))

    schema = models.upload_schema(
        deployment.task_id, limits.max_batch, ticketed=deployment.ticketed
    )

    @routes.post(
        UPLOADS,
        response_model=UploadAnswer,
        dependencies=TOKEN,
        responses=documented(*BODY, "unknown_task", "paused", "too_many_reports"),
        openapi_extra=takes(schema),
    )
    async def upload(request: Request) -> Response:
        """Hand in reports: one outcome each, in the order sent.

        Idempotent: a report is known by its id, so that the same upload may be sent again after any
        failure. Role device.
        """
        sender = await auth.admit(request, "device")
        task_id, reports = uploads.parse(
            await read_body(request, limits.max_body_bytes), limits.max_batch
        )
        answer = await writer.settle(collector.read(task_id, reports, sender))
        metrics.count_reports(outcome.outcome for outcome in answer.outcomes)
        return Response(uploads.ANSWER.dump_json(answer), media_type="application/json")

    return upload


def _statements(routes: APIRouter, collector: Collector, auth: Authenticator) -> None:
    """What is guaranteed, and what was charged for it."""

    @routes.get("/v1/guarantee", response_model=models.GuaranteeBody, responses=documented())
    def guarantee() -> Response:
        """The guarantee, computed from the noise that is added. Public."""
        return JSONResponse(collector.guarantee())

    @routes.get(
        "/v1/ledger",
        response_model=models.LedgerBody,
        dependencies=TOKEN,
        responses=documented("unauthorized", "forbidden"),
    )
    async def ledger(request: Request) -> Response:
        """Every charge, and whether the chain of them is whole. Role operator."""
        await auth.admit(request)
        return JSONResponse(await run_in_threadpool(collector.ledger))


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
