"""The application of one task: routes, errors, headers and the life of the planner together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.cors import CORSMiddleware

from tacit._version import __version__
from tacit_service import dashboard
from tacit_service.http import errors
from tacit_service.http.auth import Door, documented
from tacit_service.http.limits import Edge, Upload
from tacit_service.http.metrics import Metrics, TaskMetrics
from tacit_service.http.monitoring import One, Probes, metrics_route, monitoring
from tacit_service.http.routes import api

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.planning.loop import PlannerLoop

DESCRIPTION = """Reinforcement learning under differential privacy.

Devices read the task and the newest policy, act, and hand in reports. Reports are known by their
id: whatever happens to a request, send the same bytes again. Errors carry a code to program
against."""

CROSS_ORIGIN: dict[str, Any] = {
    "allow_methods": ("GET", "POST"),
    "allow_headers": ("Authorization", "Content-Type", "If-None-Match"),
    "expose_headers": ("ETag", "Retry-After"),
    "max_age": 86_400,
}
"""What pages of the declared origins may send and read; there are no cookies, so none of those."""

Life = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create_app(collector: Collector, planner: PlannerLoop | None = None) -> FastAPI:
    """An ASGI application on an open collector; it runs the planner, and closes both at its end."""
    metrics, tasks = Metrics(), One({collector.deployment.stem: collector})
    routes = [metrics_route(Probes(tasks), metrics, Door(collector).admit)]
    return task_app(collector, planner, metrics, _life(collector, planner), routes)


def monitor_app(collector: Collector, planner: PlannerLoop) -> FastAPI:
    """The same for a planner that takes no reports: it can be watched, and no more."""
    metrics, tasks = Metrics(), One({collector.deployment.stem: collector})
    connect(collector, planner, metrics)
    probes = Probes(tasks)
    routes = [monitoring(probes), metrics_route(probes, metrics, Door(collector).admit)]
    return assemble(routes, metrics.of(""), _life(collector, planner))


def task_app(
    collector: Collector,
    planner: PlannerLoop | None,
    metrics: Metrics,
    life: Life | None = None,
    more: Sequence[APIRouter] = (),
) -> FastAPI:
    """The routes of one task, on metrics that others may share."""
    counters = connect(collector, planner, metrics)
    routes, upload = api(collector, Door(collector), counters)
    probes = Probes(One({collector.deployment.stem: collector}))
    pages = APIRouter(responses=_beside_pages())
    pages.include_router(dashboard.router(collector))
    app = assemble([routes, monitoring(probes), *more, pages], counters, life, upload)
    if origins := collector.deployment.settings.server.origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, **CROSS_ORIGIN)
    return app


def connect(collector: Collector, planner: PlannerLoop | None, metrics: Metrics) -> TaskMetrics:
    """Let a task count what it does."""
    counters = metrics.of(collector.deployment.stem, collector.deployment.model)
    collector.readiness.failed = counters.planner_failed
    if planner is not None:
        planner.timed = counters.time_plan
    return counters


def assemble(
    routes: Sequence[APIRouter],
    counters: TaskMetrics,
    life: Life | None = None,
    upload: Upload | None = None,
) -> FastAPI:
    """Routes with errors in one shape, headers and limits around them."""
    app = FastAPI(
        title="tacit",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # the framework's pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # it would time uploads
    )
    for router in routes:
        app.include_router(router)
    errors.install(app)
    app.add_middleware(Edge, metrics=counters, upload=upload)
    return app


def _life(collector: Collector, planner: PlannerLoop | None) -> Life:
    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        if planner is not None:
            planner.start()
        yield
        if planner is not None:
            await run_in_threadpool(planner.stop)
        await run_in_threadpool(collector.close)

    return life


def _beside_pages() -> dict[int | str, dict[str, Any]]:
    """Errors of routes that answer pages: JSON there too, which the framework would not write."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {
        status: {"description": entry["description"], "content": error}
        for status, entry in documented("unknown_version", "invalid").items()
    }
