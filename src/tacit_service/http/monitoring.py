"""What watches the service: alive, ready, healthy, and metrics."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from tacit._version import __version__
from tacit_service.http import models
from tacit_service.http.auth import SCHEME, Authenticator, documented
from tacit_service.http.readiness import trouble_of
from tacit_service.responses import Status, Trouble

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.http.metrics import Metrics

HEALTH_SECONDS, READY_SECONDS = 2.0, 1.0
AWAY = Trouble("database", "the database does not answer; nothing that was acknowledged is lost")


class Pulse:
    """Asks the database how things stand, never behind a queue of uploads.

    Whoever asks meanwhile waits for the same answer, so a frozen database holds up one thread,
    however often somebody asks.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tacit-pulse")
        self._asked: asyncio.Future[Status] | None = None

    async def status(self, seconds: float) -> Status | Trouble:
        """The public numbers, or why there are none."""
        if self._asked is None or self._asked.done():
            loop = asyncio.get_running_loop()
            self._asked = loop.run_in_executor(self._thread, self._collector.status)
            self._asked.add_done_callback(asyncio.Future.exception)  # if nobody waited for it
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._asked)
        except TimeoutError:
            return AWAY
        except Exception as error:
            return trouble_of(error)


def monitoring(collector: Collector, auth: Authenticator, metrics: Metrics) -> APIRouter:
    """Public routes for whoever restarts, routes traffic, or wakes somebody; and for Prometheus."""
    routes, pulse = APIRouter(), Pulse(collector)

    @routes.get(
        "/healthz",
        response_model=models.Health,
        responses=documented() | {503: {"model": models.Health}},
    )
    async def health() -> Response:
        """Whether database and planner work. Public, and quick also under load."""
        now = await pulse.status(HEALTH_SECONDS)
        database, planner = isinstance(now, Status), isinstance(now, Status) and now.planner_alive
        status = "ok" if planner else "degraded" if database else "unavailable"
        body = {"status": status, "tacit": __version__, "database": database, "planner": planner}
        return JSONResponse(body, 200 if database else 503)

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
        now = await pulse.status(READY_SECONDS)
        trouble = now.trouble if isinstance(now, Status) else now
        body = {
            "ready": trouble is None,
            "reason": trouble and trouble.reason,
            "message": trouble and trouble.sentence,
            "tasks": [] if trouble is None else [collector.deployment.stem],
            "tacit": __version__,
        }
        return JSONResponse(body, 200 if trouble is None else 503)

    @routes.get(
        "/metrics",
        dependencies=[Depends(SCHEME)],
        response_class=Response,
        responses=documented("unauthorized", "forbidden")
        | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def page(request: Request) -> Response:
        """Public counts for Prometheus, by task. Role operator."""
        await auth.admit(request)
        now = await pulse.status(READY_SECONDS)
        text = await run_in_threadpool(metrics.text, now if isinstance(now, Status) else None)
        return Response(text, media_type="text/plain; version=0.0.4")

    return routes
