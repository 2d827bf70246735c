"""What watches the service: alive, ready, healthy, and metrics; of one task or of several."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from tacit._version import __version__
from tacit_service.http import models
from tacit_service.http.auth import SCHEME, documented
from tacit_service.http.readiness import trouble_of
from tacit_service.responses import Status, Trouble

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.http.metrics import Metrics

HEALTH_SECONDS, READY_SECONDS = 2.0, 1.0
AWAY = Trouble("database", "the database does not answer; nothing that was acknowledged is lost")
Admit = Callable[[Request], Awaitable[object]]


class Tasks(Protocol):
    """Tasks by their names; and files that should be tasks, with what is wrong with them."""

    @property
    def collectors(self) -> Mapping[str, Collector]:
        """Those that are served."""

    @property
    def problems(self) -> Mapping[str, Trouble]:
        """Those that cannot be."""


@dataclass(frozen=True)
class One:
    """A server of a single task."""

    collectors: Mapping[str, Collector]
    problems: Mapping[str, Trouble] = field(default_factory=dict)


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


class Probes:
    """The pulse of every task."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self._pulses: dict[str, Pulse] = {}

    async def ask(self, seconds: float, only: str | None = None) -> dict[str, Status | Trouble]:
        """How every task is, or one of them, all asked at the same time."""
        chosen = [name for name in list(self.tasks.collectors) if only in (None, name)]
        for name in chosen:
            if name not in self._pulses:
                self._pulses[name] = Pulse(self.tasks.collectors[name])
        found = await asyncio.gather(*(self._pulses[name].status(seconds) for name in chosen))
        return {**self.tasks.problems, **dict(zip(chosen, found, strict=True))}


def trouble_in(one: Status | Trouble) -> Trouble | None:
    """What is wrong with a task that was asked."""
    return one.trouble if isinstance(one, Status) else one


def monitoring(probes: Probes, *, named: bool = False) -> APIRouter:
    """Public routes for whoever restarts, routes traffic, or wakes somebody.

    Args:
        probes: asks the tasks.
        named: whether sentences begin with the name of the task.
    """
    routes = APIRouter()

    @routes.get(
        "/healthz",
        response_model=models.Health,
        responses=documented() | {503: {"model": models.Health}},
    )
    async def health() -> Response:
        """Whether database and planner work. Public, and quick also under load."""
        asked = (await probes.ask(HEALTH_SECONDS)).values()
        known = [one for one in asked if isinstance(one, Status)]
        database = len(known) == len(asked)
        planner = database and all(one.planner_alive for one in known)
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
        asked = {name: trouble_in(one) for name, one in (await probes.ask(READY_SECONDS)).items()}
        wrong = {name: trouble for name, trouble in sorted(asked.items()) if trouble is not None}
        said = [f"{task}: {one.sentence}" if named else one.sentence for task, one in wrong.items()]
        found = {
            "ready": not wrong,
            "reason": next((one.reason for one in wrong.values()), None),
            "message": "; ".join(said) or None,
            "tasks": list(wrong),
            "tacit": __version__,
        }
        return JSONResponse(found, 503 if wrong else 200)

    return routes


def metrics_route(probes: Probes, metrics: Metrics, admit: Admit) -> APIRouter:
    """The page of Prometheus, for operators."""
    routes = APIRouter()

    @routes.get(
        "/metrics",
        dependencies=[Depends(SCHEME)],
        response_class=Response,
        responses=documented("unauthorized", "forbidden", "too_many_requests")
        | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def page(request: Request) -> Response:
        """Public counts for Prometheus, by task. Role operator."""
        await admit(request)
        tasks = probes.tasks.collectors
        found = {
            name: (
                tasks[name].deployment.model if name in tasks else None,
                one if isinstance(one, Status) else None,
            )
            for name, one in (await probes.ask(READY_SECONDS)).items()
        }
        text = await run_in_threadpool(metrics.text, found)
        return Response(text, media_type="text/plain; version=0.0.4")

    return routes
