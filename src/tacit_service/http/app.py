"""The application: routes, errors, headers and the life of the planner together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.cors import CORSMiddleware

from tacit._version import __version__
from tacit_service import dashboard
from tacit_service.http import errors
from tacit_service.http.auth import Authenticator, documented
from tacit_service.http.limits import RequestLimits
from tacit_service.http.metrics import Metrics
from tacit_service.http.monitoring import monitoring
from tacit_service.http.operator import operator_api
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


def create_app(collector: Collector, planner: PlannerLoop | None = None) -> FastAPI:
    """An ASGI application on an open collector; it runs the planner, and closes both at its end."""
    auth, metrics = Authenticator(collector), _metrics(collector, planner)
    routes, upload = api(collector, auth, metrics)
    pages = APIRouter(responses=_beside_pages())
    pages.include_router(dashboard.router(collector))
    watched = monitoring(collector, auth, metrics)
    app = _assemble([routes, watched, operator_api(collector, auth), pages], collector, planner)
    app.add_middleware(RequestLimits, metrics=metrics, upload=upload)
    if origins := collector.deployment.settings.server.origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, **CROSS_ORIGIN)
    return app


def monitor_app(collector: Collector, planner: PlannerLoop) -> FastAPI:
    """The same for a planner that takes no reports: it can be watched, and no more."""
    metrics = _metrics(collector, planner)
    routes = monitoring(collector, Authenticator(collector), metrics)
    app = _assemble([routes], collector, planner)
    app.add_middleware(RequestLimits, metrics=metrics)
    return app


def _metrics(collector: Collector, planner: PlannerLoop | None) -> Metrics:
    """Counters, told of what the planner does."""
    metrics = Metrics(collector.deployment.stem, collector.deployment.model)
    collector.readiness.failed = metrics.failures.inc
    if planner is not None:
        planner.timed = metrics.planning.observe
    return metrics


def _assemble(
    routes: Sequence[APIRouter], collector: Collector, planner: PlannerLoop | None
) -> FastAPI:
    """Routes with errors in one shape, and the life of the planner around them."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        if planner is not None:
            planner.start()
        yield
        if planner is not None:
            await run_in_threadpool(planner.stop)
        await run_in_threadpool(collector.close)

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
    return app


def _beside_pages() -> dict[int | str, dict[str, Any]]:
    """Errors of routes that answer pages: JSON there too, which the framework would not write."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {
        status: {"description": entry["description"], "content": error}
        for status, entry in documented("unknown_version", "invalid").items()
    }
