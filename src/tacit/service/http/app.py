"""The application: routes, errors, headers and the life of the planner put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from tacit._version import __version__
from tacit.service import dashboard
from tacit.service.http import errors
from tacit.service.http.edge import Edge
from tacit.service.http.metrics import Metrics
from tacit.service.http.routes import api, documented

if TYPE_CHECKING:
    from tacit.service.collector import Collector
    from tacit.service.planning import PlannerLoop

DESCRIPTION = """Reinforcement learning under differential privacy.

Devices read the task and the newest policy, act, and hand in reports. Reports are known by their
id: whatever happens to a request, send the same bytes again. Errors carry a code to program
against."""


def create_app(collector: Collector, planner: PlannerLoop | None = None) -> FastAPI:
    """An ASGI application on an open collector; it runs the planner, and closes both at its end."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        if planner is not None:
            planner.start()
        yield
        if planner is not None:
            await run_in_threadpool(planner.stop)
        await run_in_threadpool(collector.close)

    metrics = Metrics(collector)
    if planner is not None:
        planner.timed = metrics.time_plan
    app = FastAPI(
        title="tacit",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # the framework's pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
    )
    routes, upload = api(collector, metrics)
    app.include_router(routes)
    app.include_router(dashboard.router(collector), responses=_beside_pages())
    errors.install(app)
    app.add_middleware(Edge, metrics=metrics, upload=upload)
    return app


def _beside_pages() -> dict[int | str, dict[str, Any]]:
    """Errors of routes that answer pages: JSON there too, which the framework would not write."""
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {
        status: {"description": entry["description"], "content": error}
        for status, entry in documented("unknown_version", "invalid").items()
    }
