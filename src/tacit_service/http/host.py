"""Several tasks behind one address: each under ``/t/NAME/``, with one page and one watch for all.

What a server of a single task answers at ``/v1/task`` is here at ``/t/NAME/v1/task``, and so on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit_service.http.app import assemble, connect, task_app
from tacit_service.http.auth import documented
from tacit_service.http.errors import ApiError
from tacit_service.http.metrics import Metrics
from tacit_service.http.monitoring import READY_SECONDS, Probes, metrics_route, monitoring
from tacit_service.http.operator import OperatorDoor, operator_api
from tacit_service.responses import Status

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.folder import Folder
    from tacit_service.planning.loop import PlannerLoop

TASKS = "/t/"


class Host:
    """The ASGI application on a folder of tasks; it lets go of them at its end.

    Args:
        folder: started after this is made, because tasks are connected when they are opened.
        serves: False for a process that only plans: it can be watched, and no more.
    """

    def __init__(self, folder: Folder, *, serves: bool = True) -> None:
        self._apps: dict[str, ASGIApp] = {}
        metrics, probes, door = Metrics(), Probes(folder), OperatorDoor(folder.path)

        def opened(name: str, collector: Collector, planner: PlannerLoop | None) -> None:
            if serves:
                self._apps[name] = task_app(collector, planner, metrics)
            else:
                connect(collector, planner, metrics)

        @asynccontextmanager
        async def life(app: FastAPI) -> AsyncIterator[None]:
            yield
            await run_in_threadpool(folder.stop)

        folder.opened = opened
        routes = [monitoring(probes, named=True), metrics_route(probes, metrics, door.admit)]
        if serves:
            routes += [operator_api(folder, door, probes), _index(probes)]
        self._own = assemble(routes, metrics.of(""), life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to its task, or answer it here."""
        app: ASGIApp = self._own
        path = scope.get("path", "")
        if scope["type"] == "http" and path.startswith(TASKS):
            name, slash, _ = path.removeprefix(TASKS).partition("/")
            if name in self._apps and slash:
                app, scope = self._apps[name], {**scope, "root_path": f"{TASKS}{name}"}
        await app(scope, receive, send)


def _index(probes: Probes) -> APIRouter:
    """The page that names the tasks."""
    routes = APIRouter(tags=["dashboard"])
    html: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/html": {"schema": {"type": "string"}}}}
    }

    @routes.get("/", response_class=Response, summary="Tasks", responses=documented() | html)
    async def index() -> Response:
        """Every task that is served here, with its dashboard. Public."""
        found = await probes.ask(READY_SECONDS)
        lines = [
            Markup('<li><a href="t/{0}/">{0}</a>: {1}</li>').format(name, _said(found[name]))
            for name in sorted(probes.tasks.collectors)
            if name in found
        ]
        return HTMLResponse(
            Markup(
                '<!doctype html><html lang="en"><meta charset="utf-8"><title>tacit</title>'
                "<h1>Tasks</h1><ul>{}</ul></html>"
            ).format(Markup("").join(lines))
        )

    @routes.get(f"{TASKS}{{name}}", include_in_schema=False)
    async def beside(name: str) -> Response:
        """The dashboard's addresses are relative to the slash at its end."""
        if name not in probes.tasks.collectors:
            raise ApiError("unknown_task", "there is no such task", "see /")
        return RedirectResponse(f"{TASKS}{name}/")

    return routes


def _said(one: object) -> str:
    if not isinstance(one, Status):
        return "its database does not answer"
    return f"{one.state}, {one.accepted:,} of {one.population:,} reports, policy {one.version}"
